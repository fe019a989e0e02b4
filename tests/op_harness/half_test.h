// float16 tensors for tests: float32 values rounded to them, and read back.
#pragma once

#include <vector>

#include "runtime/core/float_formats.h"
#include "tests/op_harness/tensor.h"

namespace sinter::test {

// Rounded to float16; other types and absent operands stay.
inline Tensor halved(const Tensor& t) {
  if (t.dtype != DType::kFloat32 && t.dtype != DType::kFloat64) return t;
  std::vector<uint16_t> bits;
  if (t.dtype == DType::kFloat32)
    for (const float v : t.values<float>()) bits.push_back(float16_bits(v));
  else
    for (const double v : t.values<double>()) bits.push_back(float16_bits(v));
  return bits_tensor(DType::kFloat16, t.dims, bits);
}

// float16 in T, exactly; other types and absent operands stay.
template <class T>
Tensor unhalved(const Tensor& t) {
  if (t.dtype != DType::kFloat16) return t;
  std::vector<T> values;
  for (const uint16_t v : t.values<uint16_t>()) values.push_back(static_cast<T>(float16_value(v)));
  return tensor<T>(t.dims, values);
}

// Every float16 number that is finite, zeros of both signs included, or every n-th of them.
inline Tensor finite_halves(uint32_t n = 1) {
  std::vector<uint16_t> bits;
  for (uint32_t b = 0; b < 0x10000; b += n)
    if ((b & 0x7c00) != 0x7c00) bits.push_back(static_cast<uint16_t>(b));
  return bits_tensor(DType::kFloat16, {static_cast<int64_t>(bits.size())}, bits);
}

}  // namespace sinter::test
