// Tensors that own their bytes, for tests: made from lists and patterns, and compared.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include "runtime/core/dtype.h"

namespace sinter::test {

template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>) return DType::kFloat32;
  if constexpr (std::is_same_v<T, double>) return DType::kFloat64;
  if constexpr (std::is_same_v<T, int8_t>) return DType::kInt8;
  if constexpr (std::is_same_v<T, uint8_t>) return DType::kUint8;
  if constexpr (std::is_same_v<T, int16_t>) return DType::kInt16;
  if constexpr (std::is_same_v<T, uint16_t>) return DType::kUint16;
  if constexpr (std::is_same_v<T, int32_t>) return DType::kInt32;
  if constexpr (std::is_same_v<T, uint32_t>) return DType::kUint32;
  if constexpr (std::is_same_v<T, int64_t>) return DType::kInt64;
  if constexpr (std::is_same_v<T, uint64_t>) return DType::kUint64;
  if constexpr (std::is_same_v<T, bool>) return DType::kBool;
}

using Shape = std::vector<int64_t>;

// A dense tensor that owns its bytes. A default one is an absent operand.
struct Tensor {
  DType dtype = DType::kNone;
  Shape dims;
  std::vector<std::byte> bytes;

  int64_t size() const {
    int64_t n = 1;
    for (const int64_t d : dims) n *= d;
    return n;
  }
  template <class T>
  std::vector<T> values() const {
    std::vector<T> v(static_cast<size_t>(size()));
    for (size_t i = 0; i < v.size(); ++i) {
      T item;
      std::memcpy(&item, bytes.data() + i * sizeof(T), sizeof(T));
      v[i] = item;
    }
    return v;
  }
};

// The number of values must be the product of the dims.
template <class T, class Values>
Tensor tensor_of(Shape dims, const Values& values, DType dtype = dtype_of<T>()) {
  Tensor t{dtype, std::move(dims), {}};
  EXPECT_EQ(static_cast<int64_t>(values.size()), t.size());
  for (const T v : values) {
    const auto* p = reinterpret_cast<const std::byte*>(&v);
    t.bytes.insert(t.bytes.end(), p, p + sizeof(T));
  }
  return t;
}
template <class T>
Tensor tensor(Shape dims, std::initializer_list<T> values) {
  return tensor_of<T>(std::move(dims), values);
}
template <class T>
Tensor tensor(Shape dims, const std::vector<T>& values) {
  return tensor_of<T>(std::move(dims), values);
}
// Bit patterns as another type: bits_tensor<uint16_t>(DType::kFloat16, {2}, {0x3c00, 0}).
template <class T>
Tensor bits_tensor(DType dtype, Shape dims, std::initializer_list<T> values) {
  return tensor_of<T>(std::move(dims), values, dtype);
}
template <class T>
Tensor full(Shape dims, T value) {
  Tensor t{dtype_of<T>(), dims, {}};
  const auto* p = reinterpret_cast<const std::byte*>(&value);
  for (int64_t i = 0; i < t.size(); ++i) t.bytes.insert(t.bytes.end(), p, p + sizeof(T));
  return t;
}
// start, start + step, ...
template <class T>
Tensor iota(Shape dims, T start = T(0), T step = T(1)) {
  Tensor t{dtype_of<T>(), dims, {}};
  for (int64_t i = 0; i < t.size(); ++i) {
    const T value = static_cast<T>(start + static_cast<T>(i) * step);
    const auto* p = reinterpret_cast<const std::byte*>(&value);
    t.bytes.insert(t.bytes.end(), p, p + sizeof(T));
  }
  return t;
}
// Repeatable values in [low, high), no pattern.
template <class T>
Tensor noise(Shape dims, double low, double high, uint64_t seed = 1) {
  Tensor t{dtype_of<T>(), dims, {}};
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (int64_t i = 0; i < t.size(); ++i) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    const double unit = static_cast<double>(state >> 11) * 0x1p-53;
    const T value = static_cast<T>(low + unit * (high - low));
    const auto* p = reinterpret_cast<const std::byte*>(&value);
    t.bytes.insert(t.bytes.end(), p, p + sizeof(T));
  }
  return t;
}

// Same dtype, dims and values (0.0 equals -0.0; NaN equals NaN).
inline void expect_equal(const Tensor& got, const Tensor& want) {
  ASSERT_EQ(dtype_name(got.dtype), std::string(dtype_name(want.dtype)));
  ASSERT_EQ(got.dims, want.dims);
  const auto floats = [&](auto zero) {
    using T = decltype(zero);
    const auto a = got.values<T>(), b = want.values<T>();
    for (size_t i = 0; i < a.size(); ++i)
      EXPECT_TRUE(a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])))
          << "element " << i << ": " << a[i] << ", expected " << b[i];
  };
  const auto integers = [&](auto zero) {
    using T = decltype(zero);
    const auto a = got.values<T>(), b = want.values<T>();
    for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(+a[i], +b[i]) << "element " << i;
  };
  switch (want.dtype) {
    case DType::kFloat32:
      return floats(float{});
    case DType::kFloat64:
      return floats(double{});
    case DType::kInt8:
      return integers(int8_t{});
    case DType::kInt16:
      return integers(int16_t{});
    case DType::kInt32:
      return integers(int32_t{});
    case DType::kInt64:
      return integers(int64_t{});
    case DType::kUint64:
      return integers(uint64_t{});
    default:
      EXPECT_EQ(got.bytes, want.bytes);
  }
}

// |got - want| <= atol + rtol * |want|; NaN only where NaN, infinities exactly. float32 or float64.
inline void expect_near(const Tensor& got, const Tensor& want, double rtol = 1e-6, double atol = 1e-7) {
  ASSERT_EQ(dtype_name(got.dtype), std::string(dtype_name(want.dtype)));
  ASSERT_EQ(got.dims, want.dims);
  const auto check = [&](auto zero) {
    using T = decltype(zero);
    const auto a = got.values<T>(), b = want.values<T>();
    for (size_t i = 0; i < a.size(); ++i) {
      const double x = a[i], y = b[i];
      if (std::isnan(y) || std::isinf(y)) {
        EXPECT_TRUE(x == y || (std::isnan(x) && std::isnan(y)))
            << "element " << i << ": " << x << ", expected " << y;
      } else {
        EXPECT_LE(std::fabs(x - y), atol + rtol * std::fabs(y))
            << "element " << i << ": " << x << ", expected " << y;
      }
    }
  };
  if (want.dtype == DType::kFloat64)
    check(double{});
  else
    check(float{});
}

}  // namespace sinter::test
