// Arguments of kernels/elements/convert.cu.
#pragma once

#include "platforms/cuda/grid/box.h"
#include "runtime/core/dtype.h"

namespace sinter::cuda {

enum class Conversion : uint8_t { kCast, kQuantize, kDequantize };

// The steps of types of less than a byte, which are dense, count elements.
struct ConvertOperand {
  std::byte* data = nullptr;  // null: absent
  Steps steps;
  DType dtype = DType::kNone;
};

struct ConvertArguments {
  Conversion conversion = Conversion::kCast;
  bool saturates = true;  // types of 8 bits
  bool wide = false;      // quotients and products are computed in double
  Box box;
  ConvertOperand x, y, scale, zero;
  int32_t axis = -1;  // the axis along which `block` neighbours share a scale and a zero point
  Divider block;
};

}  // namespace sinter::cuda
