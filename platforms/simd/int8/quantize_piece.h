// Pieces of Quantize, Dequantize and DynamicQuantize, as this machine's instruction set computes them.
#pragma once

#include <type_traits>

#include "platforms/simd/int8/int8.h"

namespace sinter::simd {

// The scale and the zero point of a piece: arrays of one per element where given, else the numbers.
struct Steps {
  const float* scales = nullptr;
  const int32_t* zeros = nullptr;
  float scale = 0;
  int32_t zero = 0;
};

// Calls f with `data` as elements of the quantized type.
template <class Data, class F>
void for_quantized(DType type, Data* data, const F& f) {
  const auto as = [&](auto element) {
    using T = decltype(element);
    f(static_cast<std::conditional_t<std::is_const_v<Data>, const T, T>*>(data));
  };
  switch (type) {
    case DType::kInt8:
      return as(int8_t{});
    case DType::kUint8:
      return as(uint8_t{});
    case DType::kInt16:
      return as(int16_t{});
    default:
      return as(uint16_t{});
  }
}

// Converts n elements: float32 or int32 to a quantized type, or a quantized type or int32 to float32.
using ConvertPiece = void(DType from, DType to, const void* x, void* y, size_t n, const Steps& steps);
ConvertPiece* convert_piece();

// Widens the range to hold n numbers; NaN changes nothing.
using WidenRange = void(const float* x, size_t n, float* low, float* high);
WidenRange* range_widener();

}  // namespace sinter::simd
