// MatMul: computed in the operands' own type.
#include "runtime/kernels/mat_mul_loops.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

using namespace linear;

Transposes product_transposes(const OpCall& call) {
  const auto& a = call.attrs<MatMulAttrs>();
  return {a.transpose_a != 0, a.transpose_b != 0};
}

Status infer_mat_mul(OpCall& call) {
  const auto& attrs = call.attrs<MatMulAttrs>();
  SINTER_RETURN_IF_ERROR(check_code(attrs.transpose_a, 2));
  SINTER_RETURN_IF_ERROR(check_code(attrs.transpose_b, 2));
  SINTER_RETURN_IF_ERROR(check_linear_dtype(call));
  SINTER_RETURN_IF_ERROR(check_same_dtype(call, 1, 0));
  Dims dims;
  SINTER_RETURN_IF_ERROR(mat_mul_dims(call, product_transposes(call), &dims));
  return give_output(call, 0, call.in(0).dtype, dims.span());
}

Status product_workspace(const OpCall& call, int threads, size_t* bytes) {
  return mat_mul_workspace(call, product_transposes(call), threads, bytes);
}

Status run_mat_mul(const OpCall& call, RunContext& context) {
  return dispatch(call.in(0).dtype, [&](auto t) {
    return mat_mul(call, product_transposes(call), Direct<decltype(t)>(call, -kInfinity, kInfinity), context),
           ok_status();
  });
}

}  // namespace

const Kernel kMatMulKernel = reference_kernel({Op::kMatMul, infer_mat_mul, product_workspace, run_mat_mul});

}  // namespace sinter
