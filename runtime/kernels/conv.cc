// Conv in the operands' own type.
#include "runtime/kernels/conv_loops.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

using namespace linear;

ConvSettings settings(const OpCall& call) {
  const auto& a = call.attrs<ConvAttrs>();
  return {a.strides, a.dilations, a.pads, nullptr, a.group, a.act_min, a.act_max, false, false};
}

Status infer_call(OpCall& call) { return infer_conv(call, settings(call)); }

Status workspace(const OpCall& call, int threads, size_t* bytes) {
  ConvGeometry g;
  int64_t dims[kMaxRank];
  SINTER_RETURN_IF_ERROR(conv_geometry(call, settings(call), &g, dims));
  return conv_workspace(call, g, threads, bytes);
}

Status run(const OpCall& call, RunContext& context) {
  ConvGeometry g;
  int64_t dims[kMaxRank];
  SINTER_RETURN_IF_ERROR(conv_geometry(call, settings(call), &g, dims));
  set_steps(call, &g);
  const auto& a = call.attrs<ConvAttrs>();
  return dispatch(call.in(0).dtype, [&](auto t) {
    return conv(call, g, Direct<decltype(t)>(call, a.act_min, a.act_max), context), ok_status();
  });
}

Status lead(const OpCall& call, size_t* bytes) {
  ConvGeometry g;
  int64_t dims[kMaxRank];
  SINTER_RETURN_IF_ERROR(conv_geometry(call, settings(call), &g, dims));
  return conv_lead(call, g, bytes);
}

}  // namespace

const Kernel kConvKernel = {Op::kConv, infer_call, workspace, run, nullptr, lead};

}  // namespace sinter
