// The conversion of the integer kernels' sums to int8: y = clamp(rne(value) + y_zero, q_min, q_max), and to
// int16, which has no zero points. docs/numerics.md.
#pragma once

#include "runtime/core/integer_limits.h"
#include "runtime/kernels/support.h"

namespace sinter {

// Returns rne(clamp(value, low, high)) for bounds that are integers of less than 2^16; NaN gives the lower
// one. Half to even whatever the host's rounding mode is set to.
inline int32_t round_clamped(float value, float low, float high) {
  const float v = !(value > low) ? low : value < high ? value : high;
  constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23: a sum with it is rounded to an integer
  return static_cast<int32_t>((v + kMagic) - kMagic);
}

// Returns v / 2^shift, rounded half to even; shift 0 to 30, |v| <= 2^30.
inline int32_t shift_right_rne(int32_t v, int shift) {
  if (shift == 0) return v;
  return (v + (1 << (shift - 1)) - 1 + (v >> shift & 1)) >> shift;
}

// The last step of a kernel with int8 results; A has y_zero, q_min and q_max.
class Int8Result {
 public:
  template <class A>
  explicit Int8Result(const A& a)
      : zero_(static_cast<int32_t>(a.y_zero)),
        min_(static_cast<int32_t>(a.q_min)),
        max_(static_cast<int32_t>(a.q_max)) {}
  // |v| is at most 2^30.
  int8_t operator()(int32_t v) const { return static_cast<int8_t>(std::clamp(v + zero_, min_, max_)); }
  // Clamping before rounding is the same: the bounds are integers.
  int8_t operator()(float v) const {
    return static_cast<int8_t>(
        round_clamped(v, static_cast<float>(min_ - zero_), static_cast<float>(max_ - zero_)) + zero_);
  }

 private:
  int32_t zero_, min_, max_;
};

// The same for int16 results.
class Int16Result {
 public:
  template <class A>
  explicit Int16Result(const A& a) : low_(static_cast<float>(a.q_min)), high_(static_cast<float>(a.q_max)) {}
  int16_t operator()(float v) const { return static_cast<int16_t>(round_clamped(v, low_, high_)); }

 private:
  float low_, high_;
};
template <class T>
using NarrowResult = std::conditional_t<sizeof(T) == 1, Int8Result, Int16Result>;

// Calls f with a value of the type, int8 or int16.
template <class F>
Status for_narrow(DType t, F&& f) {
  const auto of = [&](auto tag) { return f(typename decltype(tag)::type{}); };
  return t == DType::kInt8 ? for_built<DType::kInt8, int8_t>(of) : for_built<DType::kInt16, int16_t>(of);
}

// ---- checks for infer

inline bool is_narrow(DType t) { return t == DType::kInt8 || t == DType::kInt16; }
inline Status check_narrow(const OpCall& call, size_t i) {
  return check_dtype(call, i, is_narrow(call.in(i).dtype));
}
// Checks the zero point of a type; those of int16 are 0.
inline Status check_zero_point(DType t, int64_t v) {
  SINTER_RETURN_UNLESS(
      t == DType::kInt16 ? v == 0 : v >= -128 && v <= 127,
      invalid("zero point %a does not fit element type number %b", v, static_cast<int64_t>(t)));
  return ok_status();
}
inline Status check_result_bounds(DType t, int64_t q_min, int64_t q_max) {
  const int64_t most = t == DType::kInt16 ? 32767 : 127;
  for (const int64_t v : {q_min, q_max})
    SINTER_RETURN_UNLESS(v >= -most - 1 && v <= most,
                         invalid("bound %a does not fit element type number %b", v, static_cast<int64_t>(t)));
  SINTER_RETURN_UNLESS(q_min <= q_max, invalid("the bounds %a and %b cross", q_min, q_max));
  return ok_status();
}
template <class A>
Status check_narrow_result(const A& a, DType t) {
  SINTER_RETURN_IF_ERROR(check_zero_point(t, a.y_zero));
  return check_result_bounds(t, a.q_min, a.q_max);
}

inline Status check_int8(const OpCall& call, size_t i) {
  return check_dtype(call, i, call.in(i).dtype == DType::kInt8);
}
inline Status check_int8_number(int64_t v) {
  SINTER_RETURN_UNLESS(v >= -128 && v <= 127, invalid("zero point or bound %a is not an int8", v));
  return ok_status();
}
template <class A>
Status check_int8_result(const A& a) {
  SINTER_RETURN_IF_ERROR(check_int8_number(a.y_zero));
  SINTER_RETURN_IF_ERROR(check_int8_number(a.q_min));
  SINTER_RETURN_IF_ERROR(check_int8_number(a.q_max));
  SINTER_RETURN_UNLESS(a.q_min <= a.q_max, invalid("the bounds %a and %b cross", a.q_min, a.q_max));
  return ok_status();
}
inline Status check_int8_multiplier(double m) {
  SINTER_RETURN_UNLESS(
      m >= 0 && m <= kMaxIntegerMultiplier,
      invalid("a multiplier is not a number from 0 to %a", static_cast<int64_t>(kMaxIntegerMultiplier)));
  return ok_status();
}

// Returns the factor of one element of x: the multiplier, divided in double and then rounded.
inline float multiplier_per(double multiplier, int64_t divisor) {
  return static_cast<float>(multiplier / static_cast<double>(divisor));
}

}  // namespace sinter
