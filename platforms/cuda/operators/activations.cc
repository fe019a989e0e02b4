// Activation functions: Clamp to Softplus.
#include <cmath>

#include "platforms/cuda/operators/binary.h"
#include "platforms/cuda/operators/unary.h"
#include "runtime/core/float_formats.h"

namespace sinter::cuda {
namespace {

// A bound of integers, saturated into their type.
int64_t bound_in(DType t, double v) {
  switch (t) {
    case DType::kInt8:
      return saturate_to<int8_t>(v);
    case DType::kUint8:
      return saturate_to<uint8_t>(v);
    case DType::kInt16:
      return saturate_to<int16_t>(v);
    case DType::kUint16:
      return saturate_to<uint16_t>(v);
    case DType::kInt32:
      return saturate_to<int32_t>(v);
    case DType::kUint32:
      return saturate_to<uint32_t>(v);
    case DType::kInt64:
      return saturate_to<int64_t>(v);
    default:
      return static_cast<int64_t>(saturate_to<uint64_t>(v));
  }
}

}  // namespace

Status lower_Clamp(Lowering& l) {
  const auto& a = l.attrs<ClampAttrs>();
  const DType t = l.in(0).dtype;
  if (is_integer(t))
    return add_unary(l, IntegerFunction::kClamp,
                     {bound_in(t, std::ceil(a.min)), bound_in(t, std::floor(a.max))});
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
