// ConvTranspose in the operands' own type.
#include "runtime/kernels/conv_loops.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

using namespace linear;

ConvSettings settings(const OpCall& call) {
  const auto& a = call.attrs<ConvTransposeAttrs>();
  return {a.strides, a.dilations, a.pads, &a.output_padding, a.group, a.act_min, a.act_max, false, true};
}

Status infer_call(OpCall& call) { return infer_conv(call, settings(call)); }

Status workspace(const OpCall& call, int threads, size_t* bytes) {
  ConvGeometry g;
  int64_t dims[kMaxRank];
  SINTER_RETURN_IF_ERROR(conv_geometry(call, settings(call), &g, dims));
  // No phase has more pixels or taps than this.
  return product_workspace(conv_product(g), call.in(0).dtype, false, threads, bytes);
}

Status run(const OpCall& call, RunContext& context) {
  ConvGeometry g;
  int64_t dims[kMaxRank];
  SINTER_RETURN_IF_ERROR(conv_geometry(call, settings(call), &g, dims));
  set_steps(call, &g);
  const auto& a = call.attrs<ConvTransposeAttrs>();
  return dispatch(call.in(0).dtype, [&](auto t) {
    const Direct<decltype(t)> numerics(call, a.act_min, a.act_max);
    return Transposed(call, g, numerics, context).run(), ok_status();
  });
}

}  // namespace

const Kernel kConvTransposeKernel = {Op::kConvTranspose, infer_call, workspace, run};

}  // namespace sinter
