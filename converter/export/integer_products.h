// Products of integers of 8 bits: the graph has them as products of int32, behind a Cast and the subtraction
// of a zero point.
#pragma once

#include "converter/export/rows.h"

namespace sinter::convert {

// Writes ConvInteger, the only integer convolution of ONNX, with weights in this order and a kernel of these
// lengths. False: the operation is refused.
bool write_integer_conv(NodeExport& n, const ConvAttrs& a, const Axes& weight_axes,
                        const std::vector<int64_t>& kernel);
// Writes MatMulInteger, with the operands in these orders. False: the operands are no such integers, and
// nothing is written.
bool write_integer_product(NodeExport& n, const Axes& first, const Axes& second);

}  // namespace sinter::convert
