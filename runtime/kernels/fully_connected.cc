// FullyConnected: every row of x with every row of the weights, which may be narrower floats.
#include "runtime/kernels/narrow_weights.h"
#include "runtime/kernels/product.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

using namespace linear;

Status infer_fully_connected(OpCall& call) {
  const auto& a = call.attrs<FullyConnectedAttrs>();
  const TensorView& x = call.in(0);
  const TensorView& w = call.in(1);
  SINTER_RETURN_IF_ERROR(check_connected(call));
  SINTER_RETURN_IF_ERROR(check_linear_dtype(call));
  SINTER_RETURN_IF_ERROR(check_weight_dtype(x.dtype, w.dtype));
  SINTER_RETURN_IF_ERROR(check_bounds(a.act_min, a.act_max));
  if (call.has_input(2)) {
    SINTER_RETURN_IF_ERROR(check_same_dtype(call, 2, 0));
    SINTER_RETURN_UNLESS(call.in(2).rank == 1 && call.in(2).dims[0] == w.dims[0],
                         invalid("the bias is not one value per row of the weights"));
  }
  Dims dims(x.shape());
  dims.d[x.rank - 1] = w.dims[0];
  return give_output(call, 0, x.dtype, dims.span());
}

Status fully_connected_workspace(const OpCall& call, int threads, size_t* bytes) {
  return product_workspace(connected_product(call), call.in(0).dtype, true, threads, bytes);
}

Status run_fully_connected(const OpCall& call, RunContext& context) {
  const auto& a = call.attrs<FullyConnectedAttrs>();
  return for_weights(call, a.act_min, a.act_max,
                     [&](const auto& numerics) { connect(call, numerics, context); });
}

}  // namespace

const Kernel kFullyConnectedKernel =
    reference_kernel({Op::kFullyConnected, infer_fully_connected, fully_connected_workspace,
                      run_fully_connected, nullptr, connected_lead});

}  // namespace sinter
