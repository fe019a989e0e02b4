// Functions of float32 vectors. "Error" is a bound on the relative error against the exact result, in units
// of 2^-24, over all finite inputs whose result is a normal number; tests/ops checks it. NaN gives NaN, and
// an infinity the limit.
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_ISA_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_ISA_MATH_INL_H_
#undef SINTER_PLATFORMS_SIMD_ISA_MATH_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_ISA_MATH_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F = hn::ScalableTag<float>;
using V = hn::Vec<F>;
using I = hn::RebindToSigned<F>;
using VI = hn::Vec<I>;

HWY_INLINE V set(float v) { return hn::Set(F(), v); }

// Returns the lanes of x where it is NaN, of y elsewhere.
HWY_INLINE V keep_nan(V x, V y) { return hn::IfThenElse(hn::IsNaN(x), x, y); }
// Applies two bounds, the upper one last, in case they cross; NaN stays.
template <class W>
HWY_INLINE W clamp(W x, W low, W high) {
#if HWY_ARCH_X86
  return hn::Min(high, hn::Max(low, x));  // these give the second operand if one of them is NaN
#elif HWY_ARCH_ARM_A64
  return W(vminq_f32(high.raw, vmaxq_f32(low.raw, x.raw)));  // unlike Highway's, these give NaN for NaN
#else
  const W raised = hn::IfThenElse(hn::Lt(x, low), low, x);
  return hn::IfThenElse(hn::Gt(raised, high), high, raised);
#endif
}

// Applies one bound; NaN stays.
HWY_INLINE V at_least(V x, V low) {
#if HWY_ARCH_X86
  return hn::Max(low, x);
#elif HWY_ARCH_ARM_A64
  return V(vmaxq_f32(low.raw, x.raw));
#else
  return hn::IfThenElse(hn::Lt(x, low), low, x);
#endif
}
HWY_INLINE V at_most(V x, V high) {
#if HWY_ARCH_X86
  return hn::Min(high, x);
#elif HWY_ARCH_ARM_A64
  return V(vminq_f32(high.raw, x.raw));
#else
  return hn::IfThenElse(hn::Gt(x, high), high, x);
#endif
}

// Returns 2^k for k in [-126, 127].
HWY_INLINE V power_of_two(VI k) { return hn::BitCast(F(), hn::ShiftLeft<23>(hn::Add(k, hn::Set(I(), 127)))); }

// Splits x = k ln 2 + r into k and exp(r) - 1, for x in [-104, 89].
HWY_INLINE V exp_reduced(V x, VI* k) {
  // Numbers from 2^23 to 2^24 are integers, so that the sum is rounded to one and has k in its last bits.
  const V magic = set(12582912.0f);  // 1.5 * 2^23
  const V sum = hn::MulAdd(x, set(1.44269504f), magic);
  *k = hn::Sub(hn::BitCast(I(), sum), hn::BitCast(I(), magic));
  const V n = hn::Sub(sum, magic);
  V r = hn::NegMulAdd(n, set(0.693145752f), x);  // ln 2 in two parts; the first has few bits
  r = hn::NegMulAdd(n, set(1.42860677e-6f), r);
  V p = hn::MulAdd(r, set(0.00139410282f), set(0.00836317986f));
  p = hn::MulAdd(p, r, set(0.0416663773f));
  p = hn::MulAdd(p, r, set(0.166665763f));
  p = hn::MulAdd(p, r, set(0.5f));
  return hn::MulAdd(hn::Mul(r, r), p, r);
}

// Returns 1 / d for d from 1 to 2^125. Error 1.
HWY_INLINE V reciprocal(V d) {
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86  // 14 bits, and one step of Newton's method: less than a division
  const V y = hn::ApproximateReciprocal(d);
  return hn::MulAdd(y, hn::NegMulAdd(d, y, set(1.0f)), y);
#else
  return hn::Div(set(1.0f), d);
#endif
}

// Returns n / d for d that reciprocal takes.
HWY_INLINE V quotient(V n, V d) {
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  return hn::Mul(n, reciprocal(d));
#else
  return hn::Div(n, d);
#endif
}

// Error 3.
HWY_INLINE V exp(V x) {
  VI k;
  const V p = hn::Add(exp_reduced(clamp(x, set(-104.0f), set(89.0f)), &k), set(1.0f));
  // Two factors make results beside the largest and the denormal ones come out.
  const VI half = hn::ShiftRight<1>(k);
  const V y = hn::Mul(hn::Mul(p, power_of_two(half)), power_of_two(hn::Sub(k, half)));
  return keep_nan(x, y);
}

// Returns exp(x) - 1 for x <= 0. Error 4.
HWY_INLINE V expm1_negative(V x) {
  VI k;
  const V p = exp_reduced(clamp(x, set(-30.0f), set(0.0f)), &k);
  const V scale = power_of_two(k);
  return keep_nan(x, hn::MulAdd(p, scale, hn::Sub(scale, set(1.0f))));
}

// exp(-x) = 2^k N(-r) / N(r), where N(r) = 1 + r / 2 + r^2 / 10 + r^3 / 120 (N(r) / N(-r) is the Pade
// approximant of exp(r), whose error is below float32's), so the sigmoid of x is N(r) / (N(r) + 2^k N(-r)).
struct Fraction {
  V over, under;
};
HWY_INLINE Fraction sigmoid_fraction(V even, V odd, V k) {
  const V n = hn::Add(even, odd), negated = hn::Sub(even, odd);
  const VI scaled = hn::Add(hn::BitCast(I(), negated), hn::ShiftLeft<23>(hn::BitCast(I(), k)));
  return {n, hn::Add(n, hn::BitCast(F(), scaled))};
}
// Holds for x within kSigmoidRange of 0, where the denominator is finite.
constexpr float kSigmoidRange = 86.6f;
HWY_INLINE Fraction sigmoid_fraction(V x) {
  const V magic = set(12582912.0f), sum = hn::NegMulAdd(x, set(1.44269504f), magic), k = hn::Sub(sum, magic);
  V r = hn::MulAdd(k, set(0.693145752f), x);  // from -ln 2 / 2 to ln 2 / 2
  r = hn::MulAdd(k, set(1.42860677e-6f), r);
  const V u = hn::Mul(r, r), even = hn::MulAdd(u, set(0.1f), set(1.0f));
  return sigmoid_fraction(even, hn::Mul(r, hn::MulAdd(u, set(1.0f / 120), set(0.5f))), sum);
}

// Error 4. Results below 2^-125 are 0.
HWY_INLINE V sigmoid(V x) {
  const V range = set(kSigmoidRange), low = hn::Neg(range);
  const Fraction f = sigmoid_fraction(clamp(x, low, range));
  return hn::IfThenZeroElse(hn::Lt(x, low), quotient(f.over, f.under));
}

// Returns x sigmoid(x). Error 5. Results closer to 0 than about -2^-112 are that number.
HWY_INLINE V silu(V x) {
#if HWY_ARCH_ARM_A64
  // Each constant of a polynomial would take one more instruction, which moves it to the register of the sum.
  // N is 20.8 times as large, so the range is shorter; r is k + x / ln 2, from -1/2 to 1/2, with 1 / ln 2 in
  // two parts.
  const V v = at_least(x, set(-82.0f)), w = at_most(v, set(82.0f));
  const V sum = hn::NegMulAdd(w, set(1.44269504f), set(12582912.0f));
  V r = hn::Sub(sum, set(12582912.0f));
  r = hn::MulAdd(w, set(1.92596299e-8f), hn::MulAdd(w, set(1.44269504f), r));
  const V u = hn::Mul(r, r), odd = hn::Mul(hn::Mul(r, set(0.0577622650f)), hn::Add(u, set(124.882139f)));
  const Fraction f = sigmoid_fraction(hn::Add(u, set(20.8136898f)), odd, sum);
#else
  const V range = set(kSigmoidRange), v = at_least(x, hn::Neg(range));
  const Fraction f = sigmoid_fraction(at_most(v, range));
#endif
  return hn::Mul(v, quotient(f.over, f.under));
}

// Error 6.
HWY_INLINE V tanh(V x) {
  const V m = expm1_negative(hn::Mul(hn::Abs(x), set(-2.0f)));
  return hn::CopySign(hn::Div(hn::Neg(m), hn::Add(set(2.0f), m)), x);
}

// Error 3.
HWY_INLINE V log(V x) {
  const V tiny = set(1.17549435e-38f);
  const auto denormal = hn::Lt(x, tiny);
  const V scaled = hn::IfThenElse(denormal, hn::Mul(x, set(8388608.0f)), x);
  // m in [sqrt(1/2), sqrt(2)): subtract the bits of sqrt(1/2), take the exponent, put it back.
  const VI bits = hn::BitCast(I(), scaled);
  const VI k = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(I(), 0x3f3504f3)));
  const V m = hn::BitCast(F(), hn::Sub(bits, hn::ShiftLeft<23>(k)));
  const V e = hn::Sub(hn::ConvertTo(F(), k), hn::IfThenElseZero(denormal, set(23.0f)));
  const V f = hn::Sub(m, set(1.0f));
  // log(1 + f) = 2 atanh(f / (2 + f)) = f - s (f - 2 s^2 q), which keeps f exact.
  const V s = hn::Div(f, hn::Add(set(2.0f), f));
  const V u = hn::Mul(s, s);
  V q = hn::MulAdd(u, set(0.116693161f), set(0.142752528f));
  q = hn::MulAdd(q, u, set(0.200000629f));
  q = hn::MulAdd(q, u, set(0.333333343f));
  const V tail = hn::Mul(s, hn::NegMulAdd(hn::Add(u, u), q, f));
  const V low = hn::MulAdd(e, set(1.42860677e-6f), hn::Neg(tail));
  V y = hn::MulAdd(e, set(0.693145752f), hn::Add(f, low));
  y = hn::IfThenElse(hn::Eq(x, hn::Zero(F())), set(-HUGE_VALF), y);
  y = hn::IfThenElse(hn::Lt(x, hn::Zero(F())), hn::NaN(F()), y);
  return hn::IfThenElse(hn::Eq(x, set(HUGE_VALF)), x, keep_nan(x, y));
}

// Returns log(1 + t) for t in [0, 1]. Error 5.
HWY_INLINE V log1p_unit(V t) {
  const V u = hn::Add(set(1.0f), t);
  return hn::Add(log(u), hn::Div(hn::Sub(t, hn::Sub(u, set(1.0f))), u));
}

// Returns max(x, 0) + log(1 + exp(-|x|)). Error 6.
HWY_INLINE V softplus(V x) {
  return keep_nan(x, hn::Add(hn::Max(x, hn::Zero(F())), log1p_unit(exp(hn::Neg(hn::Abs(x))))));
}

// Returns 1 - erf(a) for a in [0.92, 4] as the exponential of a polynomial.
HWY_INLINE V erfc_tail(V a) {
  V p = hn::MulAdd(a, set(1.03940567e-06f), set(-1.66982591e-05f));
  p = hn::MulAdd(p, a, set(9.51457987e-05f));
  p = hn::MulAdd(p, a, set(-2.60524648e-05f));
  p = hn::MulAdd(p, a, set(-0.00302598765f));
  p = hn::MulAdd(p, a, set(0.0232648235f));
  p = hn::MulAdd(p, a, set(-0.106321953f));
  p = hn::MulAdd(p, a, set(-0.634647608f));
  p = hn::MulAdd(p, a, set(-1.12902129f));
  return exp(hn::MulAdd(p, a, set(9.30399183e-05f)));
}

// Error 5.
HWY_INLINE V erf(V x) {
  const V a = hn::Abs(x), u = hn::Mul(x, x);
  V p = hn::MulAdd(u, set(8.34522507e-05f), set(-0.00081374374f));
  p = hn::MulAdd(p, u, set(0.00520063424f));
  p = hn::MulAdd(p, u, set(-0.0268592704f));
  p = hn::MulAdd(p, u, set(0.112836942f));
  p = hn::MulAdd(p, u, set(-0.376126349f));
  p = hn::MulAdd(p, u, set(1.12837923f));
  const V large = hn::CopySign(hn::Sub(set(1.0f), erfc_tail(clamp(a, set(0.92f), set(4.0f)))), x);
  return keep_nan(x, hn::IfThenElse(hn::Lt(a, set(0.92f)), hn::Mul(x, p), large));
}

// Returns erf as x P(x^2) / Q(x^2), which exceeds 1 at 4.05. Absolute error 3.3e-7.
HWY_INLINE V erf_rational(V x) {
  const V v = clamp(x, set(-4.05f), set(4.05f)), u = hn::Mul(v, v), one = set(1.0f);
  V p = hn::MulAdd(u, set(2.034721e-06f), set(0.00028747728f));
  p = hn::MulAdd(p, u, set(0.0038682967f));
  p = hn::MulAdd(p, u, set(0.053060386f));
  p = hn::MulAdd(p, u, set(0.19276355f));
  p = hn::MulAdd(p, u, set(1.1283791f));
  V q = hn::MulAdd(u, set(3.8070382e-05f), set(0.001188105f));
  q = hn::MulAdd(q, u, set(0.015172237f));
  q = hn::MulAdd(q, u, set(0.11508438f));
  q = hn::MulAdd(q, u, set(0.5041639f));
  q = hn::MulAdd(q, u, one);
  return clamp(hn::Mul(hn::Mul(v, p), reciprocal(q)), set(-1.0f), one);
}

// Absolute error 1.7e-7 |x|, because 1 + erf cancels for negative x.
HWY_INLINE V gelu(V x) {
  const V half = hn::Mul(x, set(0.5f));
  return hn::MulAdd(half, erf_rational(hn::Mul(x, set(0.707106781f))), half);
}
// Returns the tanh approximation as x sigmoid(2 z), which does not cancel. Absolute error 1e-7 beside error
// 6: z is rounded.
HWY_INLINE V gelu_tanh(V x) {
  const V z = hn::Mul(hn::Mul(x, set(1.59576912f)), hn::MulAdd(hn::Mul(x, x), set(0.044715f), set(1.0f)));
  return hn::Mul(x, sigmoid(z));
}

// Returns the sum of the lanes of four accumulators, in a fixed order.
HWY_INLINE float sum4(V a, V b, V c, V d) {
  return hn::ReduceSum(F(), hn::Add(hn::Add(a, b), hn::Add(c, d)));
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#endif  // SINTER_PLATFORMS_SIMD_ISA_MATH_INL_H_
