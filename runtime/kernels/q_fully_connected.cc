// QFullyConnected: FullyConnected in integers.
#include "runtime/kernels/product.h"
#include "runtime/kernels/quantized_linear.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

using namespace linear;

Status infer_q_fully_connected(OpCall& call) {
  SINTER_RETURN_IF_ERROR(check_connected(call));
  const TensorView &x = call.in(0), &w = call.in(1);
  DType result = DType::kNone;
  SINTER_RETURN_IF_ERROR(
      check_quantized(call, quantized_settings(call.attrs<QFullyConnectedAttrs>()), w.dims[0], &result));
  Dims dims(x.shape());
  dims.d[x.rank - 1] = w.dims[0];
  return give_output(call, 0, result, dims.span());
}

Status run_q_fully_connected(const OpCall& call, RunContext& context) {
  return for_quantized(call.in(0).dtype, [&](auto x) {
    const Quantized<decltype(x)> numerics(call, quantized_settings(call.attrs<QFullyConnectedAttrs>()));
    return connect(call, numerics, context), ok_status();
  });
}

}  // namespace

const Kernel kQFullyConnectedKernel = reference_kernel(
    {Op::kQFullyConnected, infer_q_fully_connected, nullptr, run_q_fully_connected, nullptr, connected_lead});

}  // namespace sinter
