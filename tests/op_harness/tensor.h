// Tensors that own their bytes, for tests, which make them from lists and patterns and compare them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <utility>
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

  int64_t size() const;
  template <class T>
  std::vector<T> values() const;
};

// Returns a tensor of the `count` values at `values`. The number must be the product of the dims.
Tensor tensor_of_bytes(DType dtype, Shape dims, const void* values, size_t count, size_t width);

template <class T>
Tensor tensor(Shape dims, std::initializer_list<T> values) {
  return tensor_of_bytes(dtype_of<T>(), std::move(dims), values.begin(), values.size(), sizeof(T));
}
template <class T>
Tensor tensor(Shape dims, const std::vector<T>& values) {
  static_assert(!std::is_same_v<T, bool>, "its vector is packed");
  return tensor_of_bytes(dtype_of<T>(), std::move(dims), values.data(), values.size(), sizeof(T));
}
// Returns bit patterns as another type: bits_tensor<uint16_t>(DType::kFloat16, {2}, {0x3c00, 0}).
template <class T>
Tensor bits_tensor(DType dtype, Shape dims, std::initializer_list<T> values) {
  return tensor_of_bytes(dtype, std::move(dims), values.begin(), values.size(), sizeof(T));
}
template <class T>
Tensor bits_tensor(DType dtype, Shape dims, const std::vector<T>& values) {
  return tensor_of_bytes(dtype, std::move(dims), values.data(), values.size(), sizeof(T));
}
template <class T>
Tensor full(Shape dims, T value);
// Returns start, start + step, ...
template <class T>
Tensor iota(Shape dims, T start = T(0), T step = T(1));
// Returns repeatable values in [low, high) without a pattern.
template <class T>
Tensor noise(Shape dims, double low, double high, uint64_t seed = 1);

// Expects the same dtype, dims and values (0.0 equals -0.0; NaN equals NaN).
void expect_equal(const Tensor& got, const Tensor& want);

// Expects |got - want| <= atol + rtol * |want|, and NaN and infinities in the same places, in float32 or
// float64.
void expect_near(const Tensor& got, const Tensor& want, double rtol = 1e-6, double atol = 1e-7);

}  // namespace sinter::test
