// The geometry of a channels-last convolution: attributes and shapes checked, and the output inferred.
#pragma once

#include "runtime/backend/window.h"
#include "runtime/kernels/linear.h"

namespace sinter::linear {

struct ConvSettings {
  WindowAxis axis[kMaxWindowAxes];
  bool lists_fit = false;  // false: `axis` is not set
  bool depthwise = false, transposed = false;
  int64_t group = 1;
  double act_min = -kInfinity, act_max = kInfinity;
};
template <WindowAttrs A>
ConvSettings conv_settings(const OpCall& call) {
  const auto& a = call.attrs<A>();
  const int axes = call.in(0).rank - 2;
  ConvSettings s;
  s.depthwise = kDepthwiseWindow<A>, s.transposed = kTransposedWindow<A>;
  if constexpr (!kDepthwiseWindow<A>) s.group = a.group;
  if constexpr (requires { a.act_min; }) s.act_min = a.act_min, s.act_max = a.act_max;
  s.lists_fit = window_lists_fit(a, axes) && !a.strides.empty() && !a.dilations.empty() && !a.pads.empty();
  if constexpr (kTransposedWindow<A>) s.lists_fit = s.lists_fit && !a.output_padding.empty();
  for (int i = 0; i < axes && i < kMaxWindowAxes && s.lists_fit; ++i) s.axis[i] = window_axis<A>(call, i);
  return s;
}

// Checks attributes and the shapes of input and weights, and fills in the geometry and the output's dims
// (rank of x).
Status conv_geometry(const OpCall& call, const ConvSettings& settings, WindowGeometry* g, int64_t* out_dims);
template <WindowAttrs A>
Status conv_geometry(const OpCall& call, WindowGeometry* g, int64_t* out_dims) {
  return conv_geometry(call, conv_settings<A>(call), g, out_dims);
}
// Does the same for callers that do not need the dims of the output.
template <WindowAttrs A>
Status conv_geometry(const OpCall& call, WindowGeometry* g) {
  int64_t dims[kMaxRank];
  return conv_geometry<A>(call, g, dims);
}
// Runs conv_geometry, checks the operands' types and the bias, and sets the output.
Status infer_conv(OpCall& call, const ConvSettings& settings);
template <WindowAttrs A>
Status infer_conv(OpCall& call) {
  return infer_conv(call, conv_settings<A>(call));
}

}  // namespace sinter::linear
