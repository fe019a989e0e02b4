// QConvTranspose: ConvTranspose in integers.
#include "runtime/kernels/conv_loops.h"
#include "runtime/kernels/quantized_linear.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

using namespace linear;

ConvSettings settings(const OpCall& call) {
  const auto& a = call.attrs<QConvTransposeAttrs>();
  return {a.strides, a.dilations, a.pads, &a.output_padding, a.group, -kInfinity, kInfinity, false, true};
}

Status infer_call(OpCall& call) {
  ConvGeometry g;
  int64_t dims[kMaxRank];
  DType result = DType::kNone;
  SINTER_RETURN_IF_ERROR(conv_geometry(call, settings(call), &g, dims));
  SINTER_RETURN_IF_ERROR(
      check_quantized(call, quantized_settings(call.attrs<QConvTransposeAttrs>()), g.out_channels, &result));
  return give_output(call, 0, result, {dims, static_cast<size_t>(call.in(0).rank)});
}

Status workspace(const OpCall& call, int threads, size_t* bytes) {
  ConvGeometry g;
  int64_t dims[kMaxRank];
  SINTER_RETURN_IF_ERROR(conv_geometry(call, settings(call), &g, dims));
  return quantized_workspace(conv_product(g), threads, bytes);
}

Status run(const OpCall& call, RunContext& context) {
  ConvGeometry g;
  int64_t dims[kMaxRank];
  SINTER_RETURN_IF_ERROR(conv_geometry(call, settings(call), &g, dims));
  return for_quantized(call.in(0).dtype, [&](auto x) {
    const Quantized<decltype(x)> numerics(call, quantized_settings(call.attrs<QConvTransposeAttrs>()));
    return Transposed(call, g, numerics, context).run(), ok_status();
  });
}

}  // namespace

const Kernel kQConvTransposeKernel = {Op::kQConvTranspose, infer_call, workspace, run};

}  // namespace sinter
