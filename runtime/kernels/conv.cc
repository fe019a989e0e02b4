// Conv: computed directly, in the input's own type; weights may be narrower floats.
#include "runtime/backend/winograd.h"
#include "runtime/kernels/conv_loops.h"
#include "runtime/kernels/narrow_weights.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

using namespace linear;

Status infer_direct_or_winograd(OpCall& call) {
  SINTER_RETURN_IF_ERROR(infer_conv<ConvAttrs>(call));
  const auto& a = call.attrs<ConvAttrs>();
  if (a.winograd == 0) return ok_status();
  WindowGeometry g;
  SINTER_RETURN_IF_ERROR(conv_geometry<ConvAttrs>(call, &g));
  SINTER_RETURN_UNLESS(is_winograd_tile(a.winograd),
                       invalid("a Winograd tile of %a outputs is unknown", a.winograd));
  SINTER_RETURN_UNLESS(is_compute_float(call.in(0).dtype) && call.in(1).dtype == call.in(0).dtype &&
                           call.in(0).rank == 4 && winograd_fits(g),
                       invalid("Winograd tiles need floats of one type and a window of 3x3 with stride 1, "
                               "dilation 1 and one group"));
  return ok_status();
}

Status direct_workspace(const OpCall& call, int threads, size_t* bytes) {
  WindowGeometry g;
  SINTER_RETURN_IF_ERROR(conv_geometry<ConvAttrs>(call, &g));
  return conv_workspace(call, g, threads, bytes);
}

Status run_conv(const OpCall& call, RunContext& context) {
  WindowGeometry g;
  SINTER_RETURN_IF_ERROR(conv_geometry<ConvAttrs>(call, &g));
  g.set_steps(call);
  const auto& a = call.attrs<ConvAttrs>();
  return for_weights(call, a.act_min, a.act_max,
                     [&](const auto& numerics) { conv(call, g, numerics, context); });
}

Status direct_lead(const OpCall& call, size_t* bytes) {
  WindowGeometry g;
  SINTER_RETURN_IF_ERROR(conv_geometry<ConvAttrs>(call, &g));
  return conv_lead(call, g, bytes);
}

}  // namespace

const Kernel kConvKernel =
    reference_kernel({Op::kConv, infer_direct_or_winograd, direct_workspace, run_conv, nullptr, direct_lead});

}  // namespace sinter
