// QAdd (and differences, by a negative multiplier), QMul, QPRelu: int8 to int8, int16 to int16.
#include <cmath>

#include "runtime/kernels/reference.h"
#include "runtime/kernels/requantize.h"

namespace sinter {
namespace {

Status infer_pair(OpCall& call) {
  SINTER_RETURN_IF_ERROR(check_same_dtype(call, 1, 0));
  Dims dims(call.in(0).shape());
  SINTER_RETURN_IF_ERROR(broadcast_into(&dims, call.in(1).shape()));
  return give_output(call, 0, call.in(0).dtype, dims.span());
}

Status infer_add(OpCall& call) {
  const auto& a = call.attrs<QAddAttrs>();
  const DType t = call.in(0).dtype;
  SINTER_RETURN_IF_ERROR(check_narrow(call, 0));
  SINTER_RETURN_IF_ERROR(check_zero_point(t, a.a_zero));
  SINTER_RETURN_IF_ERROR(check_zero_point(t, a.b_zero));
  for (const int64_t m : {a.a_multiplier, a.b_multiplier})
    SINTER_RETURN_UNLESS(m >= -kMaxAddMultiplier && m <= kMaxAddMultiplier,
                         invalid("multiplier %a is not within %b", m, kMaxAddMultiplier));
  SINTER_RETURN_UNLESS(a.shift >= 0 && a.shift <= kMaxAddShift, invalid("shift %a is out of range", a.shift));
  SINTER_RETURN_IF_ERROR(check_narrow_result(a, t));
  return infer_pair(call);
}

// Sums int16 in float32: their multipliers have 22 bits, which are exact.
Status add_int16(const OpCall& call) {
  const auto& a = call.attrs<QAddAttrs>();
  const float unit = 1.0f / static_cast<float>(int64_t{1} << a.shift);
  const float a_multiplier = static_cast<float>(a.a_multiplier) * unit,
              b_multiplier = static_cast<float>(a.b_multiplier) * unit;
  const Int16Result result(a);
  map_binary<int16_t, int16_t, int16_t>(call.out(0), call.in(0), call.in(1), [&](int16_t u, int16_t v) {
    return result(static_cast<float>(u) * a_multiplier + static_cast<float>(v) * b_multiplier);
  });
  return ok_status();
}

Status run_add(const OpCall& call, RunContext&) {
  if (call.in(0).dtype == DType::kInt16) return add_int16(call);
  const auto& a = call.attrs<QAddAttrs>();
  const auto a_zero = static_cast<int32_t>(a.a_zero), b_zero = static_cast<int32_t>(a.b_zero),
             a_multiplier = static_cast<int32_t>(a.a_multiplier),
             b_multiplier = static_cast<int32_t>(a.b_multiplier);
  const int shift = static_cast<int>(a.shift);
  const Int8Result result(a);
  map_binary<int8_t, int8_t, int8_t>(call.out(0), call.in(0), call.in(1), [&](int8_t u, int8_t v) {
    return result(shift_right_rne((u - a_zero) * a_multiplier + (v - b_zero) * b_multiplier, shift));
  });
  return ok_status();
}

Status infer_mul(OpCall& call) {
  const auto& a = call.attrs<QMulAttrs>();
  const DType t = call.in(0).dtype;
  SINTER_RETURN_IF_ERROR(check_narrow(call, 0));
  SINTER_RETURN_IF_ERROR(check_zero_point(t, a.a_zero));
  SINTER_RETURN_IF_ERROR(check_zero_point(t, a.b_zero));
  SINTER_RETURN_IF_ERROR(check_int8_multiplier(a.multiplier));
  SINTER_RETURN_IF_ERROR(check_narrow_result(a, t));
  return infer_pair(call);
}

Status run_mul(const OpCall& call, RunContext&) {
  const auto& a = call.attrs<QMulAttrs>();
  const auto a_zero = static_cast<int32_t>(a.a_zero), b_zero = static_cast<int32_t>(a.b_zero);
  const auto multiplier = static_cast<float>(a.multiplier);
  return for_narrow(call.in(0).dtype, [&](auto tag) {
    using T = decltype(tag);
    const NarrowResult<T> result(a);
    map_binary<T, T, T>(call.out(0), call.in(0), call.in(1), [&](T u, T v) {
      return result(static_cast<float>((u - a_zero) * (v - b_zero)) * multiplier);
    });
    return ok_status();
  });
}

Status infer_q_prelu(OpCall& call) {
  const auto& a = call.attrs<QPReluAttrs>();
  const TensorView &x = call.in(0), &slopes = call.in(1);
  SINTER_RETURN_IF_ERROR(check_narrow(call, 0));
  SINTER_RETURN_IF_ERROR(check_dtype(call, 1, slopes.dtype == DType::kFloat32));
  SINTER_RETURN_IF_ERROR(check_zero_point(x.dtype, a.x_zero));
  SINTER_RETURN_IF_ERROR(check_int8_multiplier(a.multiplier));
  SINTER_RETURN_IF_ERROR(check_narrow_result(a, x.dtype));
  SINTER_RETURN_UNLESS(
      slopes.rank == 1 && (slopes.dims[0] == 1 || (x.rank > 0 && slopes.dims[0] == x.dims[x.rank - 1])),
      invalid("the slopes are neither one nor one for each channel"));
  return infer_like_input(call);
}

Status run_q_prelu(const OpCall& call, RunContext&) {
  const auto& a = call.attrs<QPReluAttrs>();
  const auto x_zero = static_cast<int32_t>(a.x_zero);
  const auto multiplier = static_cast<float>(a.multiplier);
  return for_narrow(call.in(0).dtype, [&](auto tag) {
    using T = decltype(tag);
    const NarrowResult<T> result(a);
    map_binary<T, T, float>(call.out(0), call.in(0), call.in(1), [&](T v, float slope) {
      const int32_t x = v - x_zero;
      const float below = std::fabs(slope) <= static_cast<float>(kMaxIntegerMultiplier) ? slope : 0.0f;
      return result(static_cast<float>(x) * (x < 0 ? below : multiplier));
    });
    return ok_status();
  });
}

}  // namespace

const Kernel kQAddKernel = reference_kernel({Op::kQAdd, infer_add, nullptr, run_add});
const Kernel kQMulKernel = reference_kernel({Op::kQMul, infer_mul, nullptr, run_mul});
const Kernel kQPReluKernel = reference_kernel({Op::kQPRelu, infer_q_prelu, nullptr, run_q_prelu});

}  // namespace sinter
