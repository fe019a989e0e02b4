#include "platforms/xnnpack/planning/accept.h"

#include "runtime/core/checked.h"
#include "runtime/core/integer_limits.h"
#include "runtime/core/op_enums.h"

namespace sinter::xnnpack {
namespace {

constexpr double kLargestHalf = 65504;
constexpr size_t kWidestTile = 32;  // output channels that a product kernel computes together, at most

// The kernels for ARM add two products in int16.
bool takes_wide_weights(const Target& target) {
  return target.architecture != Architecture::kAarch64 && target.architecture != Architecture::kArmv7 &&
         target.architecture != Architecture::kCortexM;
}

}  // namespace

Status accept_broadcast(const Request& r, size_t*) {
  for (const TensorView& v : r.call.inputs)
    SINTER_RETURN_UNLESS(v.rank <= kMaxAxes, unsupported("more than 6 axes"));
  return ok_status();
}

// The bounds are float16 numbers or infinite, and proper.
Status accept_clamp(const Request& r, size_t*) {
  const auto& a = r.call.attrs<ClampAttrs>();
  const auto holds = [](double v) {
    return v == kInfinity || v == -kInfinity || (v >= -kLargestHalf && v <= kLargestHalf);
  };
  SINTER_RETURN_UNLESS(holds(a.min) && holds(a.max) && a.min < a.max,
                       unsupported("the bounds are not float16 numbers"));
  return ok_status();
}

Status accept_cast(const Request& r, size_t*) {
  SINTER_RETURN_UNLESS(r.call.in(0).dtype != r.call.out(0).dtype,
                       unsupported("only between float32 and float16"));
  return ok_status();
}

Status accept_pad(const Request& r, size_t*) {
  const OpCall& call = r.call;
  SINTER_RETURN_UNLESS(static_cast<PadMode>(call.attrs<PadAttrs>().mode) == PadMode::kConstant &&
                           call.in(0).rank >= 1 && call.in(0).rank <= kMaxAxes &&
                           (!call.has_input(1) || call.in(1).constant),
                       unsupported("only constant padding of up to 6 axes"));
  return ok_status();
}

Status accept_transpose(const Request& r, size_t*) {
  SINTER_RETURN_UNLESS(r.call.in(0).rank >= 1 && r.call.in(0).rank <= kMaxAxes,
                       unsupported("only 1 to 6 axes"));
  return ok_status();
}

Status accept_float_weights(const Request& r, double act_min, double act_max) {
  const OpCall& call = r.call;
  SINTER_RETURN_UNLESS(call.in(1).constant && (!call.has_input(2) || call.in(2).constant),
                       unsupported("weights must be constant"));
  SINTER_RETURN_UNLESS(static_cast<float>(act_min) < static_cast<float>(act_max),
                       unsupported("the clamp's bounds are equal or crossed"));
  return ok_status();
}

Status accept_integer_weights(const Request& r, const IntegerLimits& limits) {
  const OpCall& call = r.call;
  for (size_t i = 1; i < call.inputs.size(); ++i)
    SINTER_RETURN_UNLESS(!call.has_input(i) || call.in(i).constant, unsupported("weights must be constant"));
  SINTER_RETURN_UNLESS(limits.to == static_cast<int64_t>(DType::kInt8), unsupported("only int8 from int8"));
  SINTER_RETURN_UNLESS(!call.has_input(4), unsupported("the weights have zero points"));
  SINTER_RETURN_UNLESS(call.in(3).dims[0] == call.in(2).dims[0],
                       unsupported("the output channels share one multiplier"));
  const TensorView& multipliers = call.in(3);
  for (int64_t i = 0; multipliers.data != nullptr && i < multipliers.dims[0]; ++i)
    SINTER_RETURN_UNLESS(is_product_multiplier(static_cast<double>(multipliers.as<float>()[i])),
                         unsupported("a multiplier is not from 2^-32 to 256"));
  SINTER_RETURN_UNLESS(limits.q_min < limits.q_max, unsupported("the clamp's bounds are equal"));
  SINTER_RETURN_UNLESS(limits.wide_weights == 0 || takes_wide_weights(r.target),
                       unsupported("the kernels for ARM do not take weights of -128"));
  return ok_status();
}

Status accept_mat_mul(const Request& r, size_t* workspace) {
  Product p;
  SINTER_RETURN_IF_ERROR(mat_mul_product(r.call, &p));
  if (p.constant) return ok_status();
  // The operand is packed in each run, one matrix of b after another.
  size_t bytes = align_up(p.n, kWidestTile) * sizeof(float);
  bool fits = checked_mul(bytes, p.k + 1, &bytes);
  for (int i = 0; i < p.batch_rank; ++i) fits = fits && checked_mul(bytes, p.batch_b[i], &bytes);
  SINTER_RETURN_UNLESS(fits, unsupported("the product is too large"));
  *workspace = align_up(bytes, kBufferAlignment);
  return ok_status();
}

}  // namespace sinter::xnnpack
