// DepthwiseConv: every output channel has a filter of its own over one input channel.
#include "runtime/kernels/conv_loops.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

using namespace linear;

ConvSettings settings(const OpCall& call) {
  const auto& a = call.attrs<DepthwiseConvAttrs>();
  return {a.strides, a.dilations, a.pads, nullptr, 1, a.act_min, a.act_max, true, false};
}

Status infer_call(OpCall& call) { return infer_conv(call, settings(call)); }

Status run(const OpCall& call, RunContext& context) {
  ConvGeometry g;
  int64_t dims[kMaxRank];
  SINTER_RETURN_IF_ERROR(conv_geometry(call, settings(call), &g, dims));
  set_steps(call, &g);
  const auto& a = call.attrs<DepthwiseConvAttrs>();
  return dispatch(call.in(0).dtype, [&](auto t) {
    return depthwise(call, g, Direct<decltype(t)>(call, a.act_min, a.act_max), context), ok_status();
  });
}

Status lead(const OpCall& call, size_t* bytes) {
  ConvGeometry g;
  int64_t dims[kMaxRank];
  SINTER_RETURN_IF_ERROR(conv_geometry(call, settings(call), &g, dims));
  return windows_lead(call, g, 0, bytes);
}

}  // namespace

const Kernel kDepthwiseConvKernel = {Op::kDepthwiseConv, infer_call, nullptr, run, nullptr, lead};

}  // namespace sinter
