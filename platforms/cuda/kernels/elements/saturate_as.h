// Saturation of a number into an integer type that is known when it is computed, for the host and the device.
#pragma once

#include "runtime/core/dtype.h"
#include "runtime/core/float_formats.h"

namespace sinter::cuda {

// `t` is a whole-byte integer type. The result for uint64 is its bits.
constexpr int64_t saturated_as(DType t, double v) {
  switch (t) {
    case DType::kInt8:
      return saturate_to<int8_t>(v);
    case DType::kUint8:
      return saturate_to<uint8_t>(v);
    case DType::kInt16:
      return saturate_to<int16_t>(v);
    case DType::kUint16:
      return saturate_to<uint16_t>(v);
    case DType::kInt32:
      return saturate_to<int32_t>(v);
    case DType::kUint32:
      return saturate_to<uint32_t>(v);
    case DType::kInt64:
      return saturate_to<int64_t>(v);
    default:
      return static_cast<int64_t>(saturate_to<uint64_t>(v));
  }
}

}  // namespace sinter::cuda
