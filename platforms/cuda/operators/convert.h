// Steps of kernels/elements/convert.cu.
#pragma once

#include "platforms/cuda/operators/element_program.h"

namespace sinter::cuda {

// Adds a cast between any two types.
Status add_cast(Lowering& l);
// The parameters of Quantize and Dequantize.
struct QuantizeCall {
  int64_t axis = 0, block = 0;
  bool blocked = false, single = false;  // a scale for each block; one for all
};
QuantizeCall quantize_call(const OpCall& call, int64_t axis, int64_t block_size);
// Adds the conversion of any types.
Status add_quantization(Lowering& l, Conversion conversion, const QuantizeCall& q, bool wide, bool saturates);

}  // namespace sinter::cuda
