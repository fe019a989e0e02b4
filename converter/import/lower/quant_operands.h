// The operands of quantization: scale, zero point, input and output types are four facts (rules
// quant.types, quant.zero), and each may come as one number or as many.
#pragma once

#include "converter/import/lower.h"

namespace sinter::convert {

// Types that quantized values may have.
bool quantized_type(DType t);
// Rule quant.zero: a zero point of another type than its data takes the data's type where its values fit;
// sets `as_numbers` where they do not, but mean something all the same. False: refused.
bool settle_zero_point(NodeLowering& n, DType data, ValueId* zero_point, bool* as_numbers);
// A scale that comes as an integer is a number like any other.
ValueId real_scale(NodeLowering& n, ValueId scale);
// Rule quant.zero for what is quantized to `to`: the zero point takes its type where its values fit.
bool settle_zero_point_of_result(NodeLowering& n, DType to, ValueId* zero_point);
// The type that a value is quantized to if its zero point does not have a type of quantized values: the
// declared type of the result, the type of a zero point that it is dequantized with, else 8 bits by the sign.
DType result_type(NodeLowering& n, ValueId zero_point);
// An operand given per block of an axis, repeated for each element.
ValueId repeated(NodeLowering& n, ValueId v, int64_t axis, int64_t block_size, const Dims& full);
// A single scale or zero point goes with all that there are of the other.
bool same_shape(NodeLowering& n, ValueId* scale, ValueId* zero_point, int64_t* axis, int64_t block_size);

}  // namespace sinter::convert
