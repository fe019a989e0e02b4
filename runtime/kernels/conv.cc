// Conv in the operands' own type.
#include "runtime/kernels/conv_loops.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

using namespace linear;

Status workspace(const OpCall& call, int threads, size_t* bytes) {
  WindowGeometry g;
  SINTER_RETURN_IF_ERROR(conv_geometry<ConvAttrs>(call, &g));
  return conv_workspace(call, g, threads, bytes);
}

Status run(const OpCall& call, RunContext& context) {
  WindowGeometry g;
  SINTER_RETURN_IF_ERROR(conv_geometry<ConvAttrs>(call, &g));
  g.set_steps(call);
  const auto& a = call.attrs<ConvAttrs>();
  return dispatch(call.in(0).dtype, [&](auto t) {
    return conv(call, g, Direct<decltype(t)>(call, a.act_min, a.act_max), context), ok_status();
  });
}

Status lead(const OpCall& call, size_t* bytes) {
  WindowGeometry g;
  SINTER_RETURN_IF_ERROR(conv_geometry<ConvAttrs>(call, &g));
  return conv_lead(call, g, bytes);
}

}  // namespace

const Kernel kConvKernel = {Op::kConv, infer_conv<ConvAttrs>, workspace, run, nullptr, lead};

}  // namespace sinter
