// The geometry of a channels-last convolution, always with three spatial axes (missing ones have length 1).
#pragma once

#include "runtime/kernels/linear.h"

namespace sinter::linear {

struct ConvGeometry {
  int64_t batch = 0, in_channels = 0, out_channels = 0, group = 1;
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1}, pad[3] = {0, 0, 0};
  int64_t taps = 1;
  int64_t in_step = 0, out_step = 0;  // elements from one pixel to the next

  int64_t out_pixels() const { return out[0] * out[1] * out[2]; }
  int64_t group_in() const { return in_channels / group; }
  int64_t group_out() const { return out_channels / group; }
};

// What the three kinds of convolution have in common in their rows of ops.def.
struct ConvSettings {
  const IntList& strides;
  const IntList& dilations;
  const IntList& pads;
  const IntList* output_padding;  // ConvTranspose only
  int64_t group;
  double act_min, act_max;
  bool depthwise, transposed;
};

// Checks attributes and the shapes of input and weights, and fills in the geometry and the output's dims
// (rank of x).
Status conv_geometry(const OpCall& call, const ConvSettings& settings, ConvGeometry* g, int64_t* out_dims);
// For a run: where the operands' pixels are.
inline void set_steps(const OpCall& call, ConvGeometry* g) {
  (void)call.in(0).evenly_spaced(&g->in_step);
  (void)call.out(0).evenly_spaced(&g->out_step);
}
// conv_geometry, the operands' types and the bias checked, and the output set.
Status infer_conv(OpCall& call, const ConvSettings& settings);

}  // namespace sinter::linear
