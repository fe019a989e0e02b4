// DepthwiseConv: every output channel has a filter of its own over one input channel.
#include "runtime/kernels/conv_loops.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

using namespace linear;

Status run_depthwise_conv(const OpCall& call, RunContext& context) {
  WindowGeometry g;
  SINTER_RETURN_IF_ERROR(conv_geometry<DepthwiseConvAttrs>(call, &g));
  g.set_steps(call);
  const auto& a = call.attrs<DepthwiseConvAttrs>();
  return dispatch(call.in(0).dtype, [&](auto t) {
    return depthwise(call, g, Direct<decltype(t)>(call, a.act_min, a.act_max), context), ok_status();
  });
}

Status depthwise_lead(const OpCall& call, size_t* bytes) {
  WindowGeometry g;
  SINTER_RETURN_IF_ERROR(conv_geometry<DepthwiseConvAttrs>(call, &g));
  return windows_lead(call, g, 0, bytes);
}

}  // namespace

const Kernel kDepthwiseConvKernel = reference_kernel({Op::kDepthwiseConv, infer_conv<DepthwiseConvAttrs>,
                                                      nullptr, run_depthwise_conv, nullptr, depthwise_lead});

}  // namespace sinter
