// ConvTranspose in the operands' own type.
#include "runtime/kernels/conv_loops.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

using namespace linear;

Status conv_transpose_workspace(const OpCall& call, int threads, size_t* bytes) {
  WindowGeometry g;
  SINTER_RETURN_IF_ERROR(conv_geometry<ConvTransposeAttrs>(call, &g));
  // No phase has more pixels or taps than this.
  return product_workspace(conv_product(g), call.in(0).dtype, false, threads, bytes);
}

Status run_conv_transpose(const OpCall& call, RunContext& context) {
  WindowGeometry g;
  SINTER_RETURN_IF_ERROR(conv_geometry<ConvTransposeAttrs>(call, &g));
  g.set_steps(call);
  const auto& a = call.attrs<ConvTransposeAttrs>();
  return dispatch(call.in(0).dtype, [&](auto t) {
    const Direct<decltype(t)> numerics(call, a.act_min, a.act_max);
    return Transposed(call, g, numerics, context).run(), ok_status();
  });
}

}  // namespace

const Kernel kConvTransposeKernel = reference_kernel(
    {Op::kConvTranspose, infer_conv<ConvTransposeAttrs>, conv_transpose_workspace, run_conv_transpose});

}  // namespace sinter
