#include "tests/op_harness/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>

namespace sinter::test {
namespace {

// Returns values that `next` makes one after the other.
template <class T, class F>
Tensor generated(Shape dims, F next) {
  Tensor t{dtype_of<T>(), std::move(dims), {}};
  const auto n = static_cast<size_t>(t.size());
  t.bytes.resize(n * sizeof(T));
  for (size_t i = 0; i < n; ++i) {
    const T value = next(i);
    std::memcpy(t.bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
  return t;
}

template <class T>
void expect_equal_floats(const Tensor& got, const Tensor& want) {
  const auto a = got.values<T>(), b = want.values<T>();
  for (size_t i = 0; i < a.size(); ++i)
    if (!(a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))))
      ADD_FAILURE() << "element " << i << ": " << a[i] << ", expected " << b[i];
}

template <class T>
void expect_equal_integers(const Tensor& got, const Tensor& want) {
  const auto a = got.values<T>(), b = want.values<T>();
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i]) ADD_FAILURE() << "element " << i << ": " << +a[i] << ", expected " << +b[i];
}

template <class T>
void expect_near_floats(const Tensor& got, const Tensor& want, double rtol, double atol) {
  const auto a = got.values<T>(), b = want.values<T>();
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = a[i], y = b[i];
    const bool near = std::isnan(y) || std::isinf(y) ? x == y || (std::isnan(x) && std::isnan(y))
                                                     : std::fabs(x - y) <= atol + rtol * std::fabs(y);
    if (!near) ADD_FAILURE() << "element " << i << ": " << x << ", expected " << y;
  }
}

}  // namespace

int64_t Tensor::size() const {
  int64_t n = 1;
  for (const int64_t d : dims) n *= d;
  return n;
}

template <class T>
std::vector<T> Tensor::values() const {
  std::vector<T> v(static_cast<size_t>(size()));
  if (!v.empty()) std::memcpy(v.data(), bytes.data(), v.size() * sizeof(T));
  return v;
}

Tensor tensor_of_bytes(DType dtype, Shape dims, const void* values, size_t count, size_t width) {
  Tensor t{dtype, std::move(dims), {}};
  EXPECT_EQ(static_cast<int64_t>(count), t.size());
  t.bytes.resize(count * width);
  if (!t.bytes.empty()) std::memcpy(t.bytes.data(), values, t.bytes.size());
  return t;
}

template <class T>
Tensor full(Shape dims, T value) {
  return generated<T>(std::move(dims), [&](size_t) { return value; });
}

template <class T>
Tensor iota(Shape dims, T start, T step) {
  return generated<T>(std::move(dims),
                      [&](size_t i) { return static_cast<T>(start + static_cast<T>(i) * step); });
}

template <class T>
Tensor noise(Shape dims, double low, double high, uint64_t seed) {
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  return generated<T>(std::move(dims), [&](size_t) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    const double unit = static_cast<double>(state >> 11) * 0x1p-53;
    return static_cast<T>(low + unit * (high - low));
  });
}

#define SINTER_TEST_TENSORS_OF(T)       \
  template Tensor full<T>(Shape, T);    \
  template Tensor iota<T>(Shape, T, T); \
  template Tensor noise<T>(Shape, double, double, uint64_t);
SINTER_TEST_TENSORS_OF(float)
SINTER_TEST_TENSORS_OF(double)
SINTER_TEST_TENSORS_OF(int8_t)
SINTER_TEST_TENSORS_OF(uint8_t)
SINTER_TEST_TENSORS_OF(int16_t)
SINTER_TEST_TENSORS_OF(uint16_t)
SINTER_TEST_TENSORS_OF(int32_t)
SINTER_TEST_TENSORS_OF(uint32_t)
SINTER_TEST_TENSORS_OF(int64_t)
SINTER_TEST_TENSORS_OF(uint64_t)
SINTER_TEST_TENSORS_OF(bool)
#undef SINTER_TEST_TENSORS_OF
template std::vector<float> Tensor::values() const;
template std::vector<double> Tensor::values() const;
template std::vector<int8_t> Tensor::values() const;
template std::vector<uint8_t> Tensor::values() const;
template std::vector<int16_t> Tensor::values() const;
template std::vector<uint16_t> Tensor::values() const;
template std::vector<int32_t> Tensor::values() const;
template std::vector<uint32_t> Tensor::values() const;
template std::vector<int64_t> Tensor::values() const;
template std::vector<uint64_t> Tensor::values() const;

void expect_equal(const Tensor& got, const Tensor& want) {
  ASSERT_EQ(dtype_name(got.dtype), std::string(dtype_name(want.dtype)));
  ASSERT_EQ(got.dims, want.dims);
  switch (want.dtype) {
    case DType::kFloat32:
      return expect_equal_floats<float>(got, want);
    case DType::kFloat64:
      return expect_equal_floats<double>(got, want);
    case DType::kInt8:
      return expect_equal_integers<int8_t>(got, want);
    case DType::kInt16:
      return expect_equal_integers<int16_t>(got, want);
    case DType::kInt32:
      return expect_equal_integers<int32_t>(got, want);
    case DType::kInt64:
      return expect_equal_integers<int64_t>(got, want);
    case DType::kUint64:
      return expect_equal_integers<uint64_t>(got, want);
    default:
      EXPECT_EQ(got.bytes, want.bytes);
  }
}

void expect_near(const Tensor& got, const Tensor& want, double rtol, double atol) {
  ASSERT_EQ(dtype_name(got.dtype), std::string(dtype_name(want.dtype)));
  ASSERT_EQ(got.dims, want.dims);
  if (want.dtype == DType::kFloat64)
    expect_near_floats<double>(got, want, rtol, atol);
  else
    expect_near_floats<float>(got, want, rtol, atol);
}

}  // namespace sinter::test
