// How the integer kernels come back to int8: y = clamp(rne(value) + y_zero, q_min, q_max). docs/numerics.md.
#pragma once

#include "runtime/kernels/support.h"

namespace sinter {

// The largest float32 multiplier of the int8 kernels: sums and products of int8 differences, which are below
// 2^17 per divisor, stay below 2^31.
inline constexpr double kMaxInt8Multiplier = 1 << 14;
// Elements of the largest sum: their differences to a zero point, 255 at most, add up to an int32.
inline constexpr int64_t kMaxInt8Sum = 1 << 23;

// rne(clamp(value, low, high)) for bounds that are integers of less than 2^16; NaN gives the lower one. Half
// to even whatever the host's rounding mode is set to.
inline int32_t round_clamped(float value, float low, float high) {
  const float v = !(value > low) ? low : value < high ? value : high;
  constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23: what is added to it is rounded to an integer
  return static_cast<int32_t>((v + kMagic) - kMagic);
}

// v / 2^shift, rounded half to even; shift 0 to 30, |v| <= 2^30.
inline int32_t shift_right_rne(int32_t v, int shift) {
  if (shift == 0) return v;
  return (v + (1 << (shift - 1)) - 1 + (v >> shift & 1)) >> shift;
}

// The end of a kernel with int8 results; A has y_zero, q_min and q_max.
class Int8Result {
 public:
  template <class A>
  explicit Int8Result(const A& a)
      : zero_(static_cast<int32_t>(a.y_zero)),
        min_(static_cast<int32_t>(a.q_min)),
        max_(static_cast<int32_t>(a.q_max)) {}
  // |v| <= 2^30.
  int8_t operator()(int32_t v) const { return static_cast<int8_t>(std::clamp(v + zero_, min_, max_)); }
  // Clamping before rounding is the same: the bounds are integers.
  int8_t operator()(float v) const {
    return static_cast<int8_t>(
        round_clamped(v, static_cast<float>(min_ - zero_), static_cast<float>(max_ - zero_)) + zero_);
  }

 private:
  int32_t zero_, min_, max_;
};

// ---- checks for infer

inline Status check_int8(const OpCall& call, size_t i) {
  return check_dtype(call, i, call.in(i).dtype == DType::kInt8);
}
inline Status check_int8_number(int64_t v) {
  SINTER_CHECK(v >= -128 && v <= 127, invalid("zero point or bound %a is not an int8", v));
  return ok_status();
}
template <class A>
Status check_int8_result(const A& a) {
  SINTER_RETURN_IF_ERROR(check_int8_number(a.y_zero));
  SINTER_RETURN_IF_ERROR(check_int8_number(a.q_min));
  SINTER_RETURN_IF_ERROR(check_int8_number(a.q_max));
  SINTER_CHECK(a.q_min <= a.q_max, invalid("the bounds %a and %b cross", a.q_min, a.q_max));
  return ok_status();
}
inline Status check_int8_multiplier(double m) {
  SINTER_CHECK(m >= 0 && m <= kMaxInt8Multiplier, invalid("a multiplier is not a number from 0 to 16384"));
  return ok_status();
}

// What the value of one element of x is: its multiplier is divided by the divisor in double, then rounded.
inline float multiplier_per(double multiplier, int64_t divisor) {
  return static_cast<float>(multiplier / static_cast<double>(divisor));
}

}  // namespace sinter
