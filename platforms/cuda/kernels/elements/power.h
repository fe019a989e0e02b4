// Powers.
//
// CUDA's powf has an error of up to 4 units in the last place. The error of this one is about 1: log2(x) is
// computed as a sum of two floats, the second below the first one's last place. Source of sums and products
// of two floats: Dekker, A Floating-Point Technique for Extending the Available Precision (1971).
#pragma once

#include "platforms/cuda/grid/grid.h"

namespace sinter::cuda {
namespace power_of {

struct Two {
  float high, low;
};
// Returns a + b for |a| >= |b| or a = 0.
SINTER_DEVICE Two sum(float a, float b) {
  const float s = a + b;
  return {s, b - (s - a)};
}
SINTER_DEVICE Two product(float a, float b) {
  const float p = a * b;
  return {p, m_fma(a, b, -p)};
}
SINTER_DEVICE Two product(Two a, Two b) {
  const Two p = product(a.high, b.high);
  return {p.high, p.low + (a.high * b.low + a.low * b.high)};
}

// Returns the logarithm of a positive finite number.
SINTER_DEVICE Two log2_of(float x) {
  float e = 0;
  if (x < 0x1p-126f) x *= 0x1p24f, e = -24;
  // x = m * 2^e, m from sqrt(1/2) to sqrt(2).
  const auto exponent = static_cast<int32_t>(bits_of(x) - 0x3f3504f3u) >> 23;
  const float m = float_of(bits_of(x) - (static_cast<uint32_t>(exponent) << 23));
  e += static_cast<float>(exponent);
  // log(m) = 2 s (1 + u / 3 + u^2 / 5 + ...), s = (m - 1) / (m + 1), u = s^2 < 0.0295.
  const float n = m - 1;
  const float d = m + 1, d_low = m - (d - 1);
  Two s;
  s.high = n / d;
  s.low = (m_fma(-s.high, d, n) - s.high * d_low) / d;
  const Two u = product(s, s);
  const Two third = product(u, {0x1.555556p-2f, -0x1.555556p-27f});
  const float v = u.high;
  const float rest = v * v * (0.2f + v * (1.0f / 7 + v * (1.0f / 9 + v * (1.0f / 11 + v * (1.0f / 13)))));
  Two series = sum(1.0f, third.high);
  series.low += third.low + rest;
  const Two log = product(product(s, series), {0x1.715476p+1f, 0x1.4ae0cp-25f});  // 2 / ln(2)
  Two all = sum(e, log.high);
  all.low += log.low;
  return sum(all.high, all.low);
}

// Returns 2^(a + b) for |b| far below |a|.
SINTER_DEVICE float exp2_of(float a, float b) {
  const float n = m_rint(a), f = (a - n) + b;
  // ln(2)^k / k!
  const float p =
      0.69314718f +
      f * (0.24022651f +
           f * (0.055504109f +
                f * (0.0096181291f + f * (0.0013333558f + f * (1.5403530e-4f + f * 1.5252734e-5f)))));
  // There are two steps, so that only a result that is subnormal rounds.
  const auto exponent = static_cast<int32_t>(n), half = exponent >> 1;
  const float v = m_fma(f, p, 1.0f) * float_of(static_cast<uint32_t>(half + 127) << 23);
  return v * float_of(static_cast<uint32_t>(exponent - half + 127) << 23);
}

}  // namespace power_of

// Special numbers give the results of std::pow.
SINTER_DEVICE float power(float x, float y) {
  if (y == 2.0f) return x * x;  // the most frequent one
  if (y == 0.0f || x == 1.0f) return 1.0f;
  if (m_isnan(x) || m_isnan(y)) return x + y;
  const float size = m_fabs(x), infinity = float_of(0x7f800000u);
  const bool whole = m_floor(y) == y;
  const bool odd = whole && m_fabs(y) < 0x1p24f && (static_cast<int32_t>(y) & 1) != 0;
  const float sign = odd && (bits_of(x) >> 31) != 0 ? -1.0f : 1.0f;
  if (x == 0.0f || size == infinity) return sign * ((size == infinity) == (y > 0.0f) ? infinity : 0.0f);
  if (m_fabs(y) == infinity) return size == 1.0f ? 1.0f : (size > 1.0f) == (y > 0.0f) ? infinity : 0.0f;
  if (x < 0.0f && !whole) return float_of(0x7fc00000u);
  const power_of::Two log = power_of::log2_of(size);
  const float high = y * log.high;
  if (high >= 129.0f) return sign * infinity;
  if (high <= -151.0f) return sign * 0.0f;
  return sign * power_of::exp2_of(high, m_fma(y, log.high, -high) + y * log.low);
}
SINTER_DEVICE double power(double x, double y) {
  if (y == 2.0) return x * x;
  const double r = m_pow(x, y);
  // Whole powers of whole numbers are whole; the device's function may be two units in the last place away.
  return y > 0.0 && m_rint(x) == x && m_rint(y) == y && m_fabs(r) < 0x1p51 ? m_rint(r) : r;
}

}  // namespace sinter::cuda
