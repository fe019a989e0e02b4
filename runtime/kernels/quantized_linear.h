// Integer products: x int8 (sums in int32) or int16 (in int64) and weights int8, every sum scaled by one
// float32 multiplier:
//
//   y = clamp(rne(float(sum) * multiplier) + y_zero, q_min, q_max)   int8 or int16
//   y = float(sum) * multiplier                                      float32
//
// where sum = bias + sum over k of (x - x_zero) * (w - w_zero). The converter proves that no sum leaves its
// type; in a file that violates this it wraps. docs/numerics.md.
#pragma once

#include "runtime/kernels/linear.h"
#include "runtime/kernels/requantize.h"

namespace sinter::linear {

// The settings that the rows of ops.def for integer products have in common.
struct QuantizedSettings {
  int64_t x_zero, y_zero, q_min, q_max, to;
};

template <class A>
QuantizedSettings quantized_settings(const A& a) {
  return {a.x_zero, a.y_zero, a.q_min, a.q_max, a.to};
}

// Checks x's type, the attributes, and for `columns` output channels bias (operand 2), multipliers (3) and
// the weights' zero points (4). Gives the result's type.
Status check_quantized(const OpCall& call, const QuantizedSettings& s, int64_t columns, DType* result);
// Checks a product of two activations, which has no bias, multipliers and zero points.
Status check_quantized_range(const OpCall& call, const QuantizedSettings& s, DType* result);

// W is int16 where both are activations.
template <class X, class W = int8_t>
class Quantized {
 public:
  using Input = X;
  using Weight = W;
  using Acc = std::conditional_t<sizeof(X) == 1, uint32_t, uint64_t>;  // wraps
  using Sum = std::make_signed_t<Acc>;
  using Kept = X;
  struct Reader {
    Acc zero = 0;
    template <class V>
    Acc operator()(V v) const {
      return static_cast<Acc>(v) - zero;
    }
  };
  // Any order of summing gives the same bits.
  static constexpr bool kDots = true;

  Quantized(const OpCall& call, const QuantizedSettings& s, const Sum* bias, const float* multipliers,
            int64_t multiplier_step, const W* weight_zeros, int64_t weight_zero_step)
      : x_zero_(static_cast<Acc>(s.x_zero)),
        bias_(bias),
        multipliers_(multipliers),
        multiplier_step_(multiplier_step),
        weight_zeros_(weight_zeros),
        weight_zero_step_(weight_zero_step),
        to_(call.out(0).dtype),
        y_(call.out(0).data),
        y_zero_(static_cast<int32_t>(s.y_zero)),
        low_(static_cast<float>(s.q_min - s.y_zero)),
        high_(static_cast<float>(s.q_max - s.y_zero)) {}
  // The operands are x, weights, bias, multipliers, weight zero points? -> y.
  Quantized(const OpCall& call, const QuantizedSettings& s)
      : Quantized(call, s, call.in(2).as<Sum>(), call.in(3).as<float>(), call.in(3).size() == 1 ? 0 : 1,
                  call.has_input(4) ? call.in(4).as<W>() : nullptr,
                  call.has_input(4) && call.in(4).size() == 1 ? 0 : 1) {}

  X padding() const { return static_cast<X>(x_zero_); }
  Reader row_reader() const { return {x_zero_}; }
  Reader column_reader(int64_t column) const {
    return {weight_zeros_ == nullptr ? Acc{0} : static_cast<Acc>(weight_zeros_[column * weight_zero_step_])};
  }
  void store(int64_t at, int64_t column, Acc sum) const {
    if (bias_ != nullptr) sum += static_cast<Acc>(bias_[column]);
    const float value = static_cast<float>(static_cast<Sum>(sum)) * multipliers_[column * multiplier_step_];
    if (to_ == DType::kFloat32)
      reinterpret_cast<float*>(y_)[at] = value;
    else if (to_ == DType::kInt8)
      reinterpret_cast<int8_t*>(y_)[at] = static_cast<int8_t>(round_clamped(value, low_, high_) + y_zero_);
    else
      reinterpret_cast<int16_t*>(y_)[at] = static_cast<int16_t>(round_clamped(value, low_, high_) + y_zero_);
  }

 private:
  Acc x_zero_;
  const Sum* bias_;
  const float* multipliers_;
  int64_t multiplier_step_;
  const W* weight_zeros_;
  int64_t weight_zero_step_;
  DType to_;
  std::byte* y_;
  int32_t y_zero_;
  float low_, high_;
};

// Calls f with a value of x's element type.
template <class F>
Status for_quantized(DType x, F&& f) {
  return for_narrow(x, f);
}

}  // namespace sinter::linear
