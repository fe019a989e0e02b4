// Common parts of convolutions and pools: spatial attributes with ONNX's defaults, auto_pad resolved.
#pragma once

#include <vector>

#include "converter/import/lowering.h"

namespace sinter::convert {

// One entry per spatial axis; pads: begins, then ends.
struct SpatialAttrs {
  std::vector<int64_t> kernel, strides, dilations, pads;
};

// Reads kernel_shape, strides, dilations, pads and auto_pad. `input` holds the spatial dims. kernel is that
// of the weights (convolutions) or empty (pools: the attribute is required). Refuses what does not fit; false
// then.
bool read_spatial(NodeLowering& n, const Dims& input, std::vector<int64_t> kernel, SpatialAttrs* out);

// Refuses numbers with which sizes could overflow: beyond a million.
bool within_reach(NodeLowering& n, const SpatialAttrs& attrs);

// [N, C, H, W] -> {H, W}
Dims spatial_dims(const Dims& dims);

// The node's Conv attributes over given operands (conv.cc); x and the result are channels-first.
ValueId convolution(NodeLowering& n, ValueId x, ValueId w, ValueId bias);
// The node's AveragePool attributes over a given operand (pool.cc).
ValueId average_pool(NodeLowering& n, ValueId x);

}  // namespace sinter::convert
