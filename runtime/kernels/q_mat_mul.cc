// QMatMul: the product of two activations, int8 with zero points of their own or int16 with none.
#include "runtime/kernels/mat_mul_loops.h"
#include "runtime/kernels/quantized_linear.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

using namespace linear;

Transposes q_transposes(const OpCall& call) {
  const auto& a = call.attrs<QMatMulAttrs>();
  return {a.transpose_a != 0, a.transpose_b != 0};
}

Status infer_q_mat_mul(OpCall& call) {
  const auto& a = call.attrs<QMatMulAttrs>();
  SINTER_RETURN_IF_ERROR(check_code(a.transpose_a, 2));
  SINTER_RETURN_IF_ERROR(check_code(a.transpose_b, 2));
  const DType t = call.in(0).dtype;
  SINTER_RETURN_IF_ERROR(check_narrow(call, 0));
  SINTER_RETURN_IF_ERROR(check_same_dtype(call, 1, 0));
  SINTER_RETURN_IF_ERROR(check_zero_point(t, a.x_zero));
  SINTER_RETURN_IF_ERROR(check_zero_point(t, a.b_zero));
  SINTER_RETURN_UNLESS(a.multiplier >= 0 && a.multiplier <= std::numeric_limits<float>::max(),
                       invalid("the multiplier is negative or not a finite float32"));
  DType result = DType::kNone;
  SINTER_RETURN_IF_ERROR(check_quantized_range(call, quantized_settings(a), &result));
  Dims dims;
  SINTER_RETURN_IF_ERROR(mat_mul_dims(call, q_transposes(call), &dims));
  return give_output(call, 0, result, dims.span());
}

Status run_q_mat_mul(const OpCall& call, RunContext& context) {
  const auto& a = call.attrs<QMatMulAttrs>();
  const auto multiplier = static_cast<float>(a.multiplier);
  return for_narrow(call.in(0).dtype, [&](auto tag) {
    using T = decltype(tag);
    const auto b_zero = static_cast<T>(a.b_zero);
    const Quantized<T, T> numerics(call, quantized_settings(a), nullptr, &multiplier, 0, &b_zero, 0);
    mat_mul(call, q_transposes(call), numerics, context);
    return ok_status();
  });
}

}  // namespace

const Kernel kQMatMulKernel = reference_kernel({Op::kQMatMul, infer_q_mat_mul, nullptr, run_q_mat_mul});

}  // namespace sinter
