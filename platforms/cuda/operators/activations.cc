// Activation functions: Clamp to Softplus.
#include <cmath>

#include "platforms/cuda/kernels/elements/saturate_as.h"
#include "platforms/cuda/operators/binary.h"
#include "platforms/cuda/operators/unary.h"

namespace sinter::cuda {

Status lower_Clamp(Lowering& l) {
  const auto& a = l.attrs<ClampAttrs>();
  const DType t = l.in(0).dtype;
  if (is_integer(t))
    return add_unary(l, IntegerFunction::kClamp,
                     {saturated_as(t, std::ceil(a.min)), saturated_as(t, std::floor(a.max))});
  return add_unary(l, FloatFunction::kClamp, {a.min, a.max});
}
Status lower_Sigmoid(Lowering& l) { return add_unary(l, FloatFunction::kSigmoid); }
Status lower_Tanh(Lowering& l) { return add_unary(l, FloatFunction::kTanh); }
Status lower_HardSigmoid(Lowering& l) {
  const auto& a = l.attrs<HardSigmoidAttrs>();
  return add_unary(l, FloatFunction::kHardSigmoid, {a.alpha, a.beta});
}
Status lower_HardSwish(Lowering& l) { return add_unary(l, FloatFunction::kHardSwish); }
Status lower_Gelu(Lowering& l) {
  const bool approximate = l.attrs<GeluAttrs>().tanh_approximation != 0;
  return add_unary(l, approximate ? FloatFunction::kGeluTanh : FloatFunction::kGelu);
}
Status lower_Silu(Lowering& l) { return add_unary(l, FloatFunction::kSilu, {l.attrs<SiluAttrs>().alpha}); }
Status lower_Elu(Lowering& l) {
  const auto& a = l.attrs<EluAttrs>();
  return add_unary(l, FloatFunction::kElu, {a.gamma * a.alpha, a.beta, a.gamma});
}
Status lower_LeakyRelu(Lowering& l) {
  return add_unary(l, FloatFunction::kLeakyRelu, {l.attrs<LeakyReluAttrs>().alpha});
}
Status lower_PRelu(Lowering& l) { return add_binary(l, FloatFunction::kPRelu, IntegerFunction::kPRelu); }
Status lower_Softplus(Lowering& l) { return add_unary(l, FloatFunction::kSoftplus); }

}  // namespace sinter::cuda
