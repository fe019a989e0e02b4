// float16 and bfloat16 tensors for tests, rounded from wider values and widened again.
#pragma once

#include <vector>

#include "runtime/core/float_formats.h"
#include "tests/op_harness/tensor.h"

namespace sinter::test {

constexpr DType kHalves[] = {DType::kFloat16, DType::kBFloat16};
constexpr bool is_half(DType t) { return t == DType::kFloat16 || t == DType::kBFloat16; }

// Returns the floats rounded to `type`; other types and absent operands stay.
inline Tensor halved(const Tensor& t, DType type = DType::kFloat16) {
  if (t.dtype != DType::kFloat32 && t.dtype != DType::kFloat64) return t;
  std::vector<uint16_t> bits;
  const auto add = [&](double v) {
    bits.push_back(type == DType::kFloat16 ? float16_bits(v) : bfloat16_bits(v));
  };
  if (t.dtype == DType::kFloat32)
    for (const float v : t.values<float>()) add(v);
  else
    for (const double v : t.values<double>()) add(v);
  return bits_tensor(type, t.dims, bits);
}
inline std::vector<Tensor> halved(const std::vector<Tensor>& inputs, DType type = DType::kFloat16) {
  std::vector<Tensor> all;
  for (const Tensor& t : inputs) all.push_back(halved(t, type));
  return all;
}

// Returns the halves in T, exactly; other types and absent operands stay.
template <class T>
Tensor unhalved(const Tensor& t) {
  if (!is_half(t.dtype)) return t;
  std::vector<T> values;
  for (const uint16_t v : t.values<uint16_t>())
    values.push_back(static_cast<T>(t.dtype == DType::kFloat16 ? float16_value(v) : bfloat16_value(v)));
  return tensor<T>(t.dims, values);
}

// Returns every finite number of the type, zeros of both signs included, or every n-th of them.
inline Tensor finite_halves(uint32_t n = 1, DType type = DType::kFloat16) {
  const uint32_t infinity = type == DType::kFloat16 ? kFloat16Format.inf_code : kBFloat16Format.inf_code;
  std::vector<uint16_t> bits;
  for (uint32_t b = 0; b < 0x10000; b += n)
    if ((b & infinity) != infinity) bits.push_back(static_cast<uint16_t>(b));
  return bits_tensor(type, {static_cast<int64_t>(bits.size())}, bits);
}

}  // namespace sinter::test
