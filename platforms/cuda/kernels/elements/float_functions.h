// The functions of element-wise programs in float and double.
#pragma once

#include "platforms/cuda/kernels/elements/elements.h"
#include "platforms/cuda/kernels/elements/power.h"
#include "platforms/cuda/kernels/elements/thread_elements.h"

namespace sinter::cuda {

// ---- one element. Comparisons are written so that NaN passes.

template <class T>
SINTER_DEVICE T clamped(T x, T lower, T upper) {
  const T raised = x < lower ? lower : x;
  return raised > upper ? upper : raised;
}
// The form neither overflows nor cancels.
template <class T>
SINTER_DEVICE T sigmoid(T x) {
  const T e = m_exp(-m_fabs(x));
  return (x >= T(0) ? T(1) : e) / (T(1) + e);
}
template <class T>
SINTER_DEVICE T softplus(T x) {
  const T v = m_log1p(m_exp(x > T(0) ? -x : x));
  return x > T(0) ? x + v : v;
}
// (1 + erf(z)) / 2 = erfc(-z) / 2 and (1 + tanh(u)) / 2 = sigmoid(2 u) keep the left tail exact.
template <class T>
SINTER_DEVICE T gelu(T x) {
  return T(0.5) * x * m_erfc(-x * static_cast<T>(0.70710678118654752440));
}
template <class T>
SINTER_DEVICE T gelu_tanh(T x) {
  const T scale = static_cast<T>(1.5957691216057307118);  // 2 sqrt(2 / pi)
  return x * sigmoid(scale * (x + static_cast<T>(0.044715) * x * x * x));
}
template <class T>
SINTER_DEVICE T classified(T x, int mask) {
  constexpr int kNan = 1, kPositive = 2, kNegative = 4;  // ClassifyBit
  const bool infinite = m_fabs(x) > (sizeof(T) == 8 ? static_cast<T>(1.7976931348623157e308)
                                                    : static_cast<T>(3.4028234663852886e38));
  const int is = m_isnan(x) ? kNan : !infinite ? 0 : x > T(0) ? kPositive : kNegative;
  return (mask & is) != 0 ? T(1) : T(0);
}

// ---- an instruction's function of x, y and z, into x

template <class T>
SINTER_DEVICE void trigonometry(FloatFunction function, T (&x)[4]) {
  switch (function) {
    case FloatFunction::kSin:
      return by_turns(x, [](T v) { return m_sin(v); });
    case FloatFunction::kCos:
      return by_turns(x, [](T v) { return m_cos(v); });
    case FloatFunction::kTan:
      return by_turns(x, [](T v) { return m_tan(v); });
    case FloatFunction::kAsin:
      return by_turns(x, [](T v) { return m_asin(v); });
    case FloatFunction::kAcos:
      return by_turns(x, [](T v) { return m_acos(v); });
    case FloatFunction::kAtan:
      return by_turns(x, [](T v) { return m_atan(v); });
    case FloatFunction::kSinh:
      return by_turns(x, [](T v) { return m_sinh(v); });
    case FloatFunction::kCosh:
      return by_turns(x, [](T v) { return m_cosh(v); });
    case FloatFunction::kAsinh:
      return by_turns(x, [](T v) { return m_asinh(v); });
    case FloatFunction::kAcosh:
      return by_turns(x, [](T v) { return m_acosh(v); });
    default:
      return by_turns(x, [](T v) { return m_atanh(v); });
  }
}

template <class T>
SINTER_DEVICE void compute(const ElementInstruction<T>& c, T (&x)[4], T (&y)[4], const T (&z)[4]) {
  const T a = c.with[0], b = c.with[1];
  switch (const auto function = static_cast<FloatFunction>(c.function); function) {
    case FloatFunction::kAbs:
      return each(x, [](T v) { return m_fabs(v); });
    case FloatFunction::kNeg:
      return each(x, [](T v) { return -v; });
    case FloatFunction::kSign:  // zero for both zeros, NaN for NaN
      return each(x, [](T v) { return v > T(0) ? T(1) : v < T(0) ? T(-1) : v == T(0) ? T(0) : v; });
    case FloatFunction::kRoundEven:
      return each(x, [](T v) { return m_rint(v); });
    case FloatFunction::kFloor:
      return each(x, [](T v) { return m_floor(v); });
    case FloatFunction::kCeil:
      return each(x, [](T v) { return m_ceil(v); });
    case FloatFunction::kSqrt:
      return by_turns(x, [](T v) { return m_sqrt(v); });
    case FloatFunction::kRsqrt:
      return by_turns(x, [](T v) { return T(1) / m_sqrt(v); });
    case FloatFunction::kExp:
      return by_turns(x, [](T v) { return m_exp(v); });
    case FloatFunction::kLog:
      return by_turns(x, [](T v) { return m_log(v); });
    case FloatFunction::kErf:
      return by_turns(x, [](T v) { return m_erf(v); });
    case FloatFunction::kClassify:
      return each(x, [mask = static_cast<int>(a)](T v) { return classified(v, mask); });
    case FloatFunction::kClamp:
      return each(x, [a, b](T v) { return clamped(v, a, b); });
    case FloatFunction::kSigmoid:
      return by_turns(x, [](T v) { return sigmoid(v); });
    case FloatFunction::kTanh:
      return by_turns(x, [](T v) { return m_tanh(v); });
    case FloatFunction::kHardSigmoid:
      return each(x, [a, b](T v) { return clamped(a * v + b, T(0), T(1)); });
    case FloatFunction::kHardSwish:
      return each(x, [](T v) { return v * clamped(v + T(3), T(0), T(6)) / T(6); });
    case FloatFunction::kGelu:
      return by_turns(x, [](T v) { return gelu(v); });
    case FloatFunction::kGeluTanh:
      return by_turns(x, [](T v) { return gelu_tanh(v); });
    case FloatFunction::kSilu:
      return by_turns(x, [a](T v) { return v * sigmoid(a * v); });
    case FloatFunction::kElu:
      return by_turns(x,
                      [a, b, gamma = c.with[2]](T v) { return v > T(0) ? gamma * v : a * m_expm1(b * v); });
    case FloatFunction::kLeakyRelu:
      return each(x, [a](T v) { return v < T(0) ? a * v : v; });
    case FloatFunction::kSoftplus:
      return by_turns(x, [](T v) { return softplus(v); });
    case FloatFunction::kPRelu:
      return each(x, y, [](T v, T slope) { return v < T(0) ? slope * v : v; });
    case FloatFunction::kAdd:
      return each(x, y, [](T v, T w) { return v + w; });
    case FloatFunction::kSub:
      return each(x, y, [](T v, T w) { return v - w; });
    case FloatFunction::kMul:
      return each(x, y, [](T v, T w) { return v * w; });
    case FloatFunction::kDiv:
      return by_turns(x, y, [](T v, T w) { return v / w; });
    case FloatFunction::kPow:
      return by_turns(x, y, [](T v, T w) { return power(v, w); });
    case FloatFunction::kMod:
      return by_turns(x, y, [](T v, T w) { return m_fmod(v, w); });
    case FloatFunction::kMin:  // NaN if an operand is
      return each(x, y, [](T v, T w) { return v < w || m_isnan(v) ? v : w; });
    case FloatFunction::kMax:
      return each(x, y, [](T v, T w) { return v > w || m_isnan(v) ? v : w; });
    case FloatFunction::kEqual:
      return each(x, y, [](T v, T w) { return v == w ? T(1) : T(0); });
    case FloatFunction::kNotEqual:
      return each(x, y, [](T v, T w) { return v != w ? T(1) : T(0); });
    case FloatFunction::kLess:
      return each(x, y, [](T v, T w) { return v < w ? T(1) : T(0); });
    case FloatFunction::kLessOrEqual:
      return each(x, y, [](T v, T w) { return v <= w ? T(1) : T(0); });
    case FloatFunction::kGreater:
      return each(x, y, [](T v, T w) { return v > w ? T(1) : T(0); });
    case FloatFunction::kGreaterOrEqual:
      return each(x, y, [](T v, T w) { return v >= w ? T(1) : T(0); });
    case FloatFunction::kWhere:
      for (int i = 0; i < 4; ++i) x[i] = x[i] != T(0) ? y[i] : z[i];
      return;
    case FloatFunction::kQuantize:  // NaN gives the zero point
      by_turns(x, y, [](T v, T scale) { return v / scale; });
      for (int i = 0; i < 4; ++i) x[i] = clamped((m_isnan(x[i]) ? T(0) : m_rint(x[i])) + z[i], a, b);
      return;
    case FloatFunction::kDequantize:
      for (int i = 0; i < 4; ++i) x[i] = (x[i] - z[i]) * y[i];
      return;
    default:
      return trigonometry(function, x);
  }
}

}  // namespace sinter::cuda
