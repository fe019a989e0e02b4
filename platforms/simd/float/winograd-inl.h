// Winograd's transforms of one line of a tile (runtime/backend/winograd.h), a vector of channels at a time.
// Points come in pairs, so that the even and the odd part of a polynomial serve two of them.
//
// Arrays are indexed by constants only: with variable indices they would be kept in memory.
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_FLOAT_WINOGRAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_FLOAT_WINOGRAD_INL_H_
#undef SINTER_PLATFORMS_SIMD_FLOAT_WINOGRAD_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_FLOAT_WINOGRAD_INL_H_
#endif

#include "platforms/simd/isa/math-inl.h"
#include "runtime/backend/winograd.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

struct WinogradLine {
  V v[8];
};

// Returns c[0] d[at] + c[1] d[at + 2] + ...; the last coefficient is 1.
template <int kTerms, int kFirst>
HWY_INLINE V every_second(const double* c, const WinogradLine& d) {
  V sum = d.v[kFirst + 2 * (kTerms - 1)];
  if constexpr (kTerms > 3) sum = hn::MulAdd(set(static_cast<float>(c[2])), d.v[kFirst + 4], sum);
  if constexpr (kTerms > 2) sum = hn::MulAdd(set(static_cast<float>(c[1])), d.v[kFirst + 2], sum);
  if constexpr (kTerms > 1) sum = hn::MulAdd(set(static_cast<float>(c[0])), d.v[kFirst], sum);
  return sum;
}

#if HWY_ARCH_ARM_A64
// The sum of a multiplication replaces an operand here, so that the odd part of a pair is multiplied by the
// point before it is added and subtracted, and the even part need not be copied.

// Returns the odd part of pair i at its point, times the point.
template <int kPairs, int i>
HWY_INLINE V odd_times_point(const WinogradLine& d) {
  constexpr const double(&row)[Winograd<kPairs>::kInputs] = kWinograd<kPairs>.input[1 + 2 * i];
  V sum = hn::Mul(set(static_cast<float>(row[2 * kPairs - 1])), d.v[2 * kPairs - 1]);
  if constexpr (kPairs > 2) sum = hn::MulAdd(set(static_cast<float>(row[3])), d.v[3], sum);
  if constexpr (kPairs > 1) sum = hn::MulAdd(set(static_cast<float>(row[1])), d.v[1], sum);
  return sum;
}

// Returns even plus the sum of c(k) d[2 k + 2], for all k but the last.
template <int kPairs, class Coefficient>
HWY_INLINE V plus_evens(V even, const WinogradLine& d, Coefficient c) {
  if constexpr (kPairs > 1) even = hn::MulAdd(set(static_cast<float>(c(0))), d.v[2], even);
  if constexpr (kPairs > 2) even = hn::MulAdd(set(static_cast<float>(c(1))), d.v[4], even);
  return even;
}
// Returns the even part of pair i, from that of the pair before it: only their difference is added, so that
// one register serves all of them, and none is copied.
template <int kPairs, int i>
HWY_INLINE V next_even(V even, const WinogradLine& d) {
  constexpr const Winograd<kPairs>& w = kWinograd<kPairs>;
  return plus_evens<kPairs>(even, d, [](int k) SINTER_SIMD_LAMBDA {
    return w.rest[i][k] - (i > 0 ? w.rest[i > 0 ? i - 1 : 0][k] : 0);
  });
}

// Returns v, which is not computed before a and b: compilers would compute it early, into another register.
HWY_INLINE V after(V v, V a, V b) {
  asm("" : "+w"(v.raw) : "w"(a.raw), "w"(b.raw));
  return v;
}

// Computes B^T d.
template <int kPairs>
HWY_INLINE WinogradLine transformed_input(const WinogradLine& d) {
  constexpr const Winograd<kPairs>& w = kWinograd<kPairs>;
  WinogradLine y;
  y.v[w.kInputs - 1] = every_second<kPairs + 1, 1>(w.ends, d);
  V even = d.v[2 * kPairs];
#define SINTER_PAIR(i)                                    \
  if constexpr (kPairs > i) {                             \
    even = next_even<kPairs, i % kPairs>(even, d);        \
    const V odd = odd_times_point<kPairs, i % kPairs>(d); \
    y.v[1 + 2 * i] = hn::Add(even, odd);                  \
    y.v[2 + 2 * i] = hn::Sub(even, odd);                  \
    even = after(even, y.v[1 + 2 * i], y.v[2 + 2 * i]);   \
  }
  SINTER_PAIR(0);
  SINTER_PAIR(1);
  SINTER_PAIR(2);
#undef SINTER_PAIR
  even = plus_evens<kPairs>(even, d,
                            [](int k) SINTER_SIMD_LAMBDA { return w.ends[k + 1] - w.rest[kPairs - 1][k]; });
  y.v[0] = hn::MulAdd(set(static_cast<float>(w.ends[0])), d.v[0], even);
  return y;
}
#else
// Computes B^T d.
template <int kPairs>
HWY_INLINE WinogradLine transformed_input(const WinogradLine& d) {
  constexpr const Winograd<kPairs>& w = kWinograd<kPairs>;
  WinogradLine y;
  y.v[0] = every_second<kPairs + 1, 0>(w.ends, d);
  y.v[w.kInputs - 1] = every_second<kPairs + 1, 1>(w.ends, d);
#define SINTER_PAIR(i)                                             \
  if constexpr (kPairs > i) {                                      \
    const V even = every_second<kPairs, 2>(w.rest[i % kPairs], d); \
    const V odd = every_second<kPairs, 1>(w.rest[i % kPairs], d);  \
    const V point = set(static_cast<float>(w.points[i % kPairs])); \
    y.v[1 + 2 * i] = hn::MulAdd(point, odd, even);                 \
    y.v[2 + 2 * i] = hn::NegMulAdd(point, odd, even);              \
  }
  SINTER_PAIR(0);
  SINTER_PAIR(1);
  SINTER_PAIR(2);
#undef SINTER_PAIR
  return y;
}
#endif

// Returns output k of A^T m, from the sums and the differences of the pairs of m.
template <int kPairs, int k>
HWY_INLINE V winograd_output(const WinogradLine& m, const V (&sums)[3], const V (&differences)[3]) {
  constexpr const Winograd<kPairs>& w = kWinograd<kPairs>;
  const V(&parts)[3] = k % 2 == 0 ? sums : differences;
  V y;
  if constexpr (k == 0) {
    y = hn::Add(m.v[0], parts[0]);
    if constexpr (kPairs > 1) y = hn::Add(y, parts[1]);
    if constexpr (kPairs > 2) y = hn::Add(y, parts[2]);
    return y;
  }
  if constexpr (k == w.kTile - 1)
    y = hn::MulAdd(set(static_cast<float>(w.powers[0][k])), parts[0], m.v[w.kInputs - 1]);
  else
    y = hn::Mul(set(static_cast<float>(w.powers[0][k])), parts[0]);
  if constexpr (kPairs > 1) y = hn::MulAdd(set(static_cast<float>(w.powers[1 % kPairs][k])), parts[1], y);
  if constexpr (kPairs > 2) y = hn::MulAdd(set(static_cast<float>(w.powers[2 % kPairs][k])), parts[2], y);
  return y;
}

// Computes A^T m.
template <int kPairs>
HWY_INLINE WinogradLine transformed_output(const WinogradLine& m) {
  V sums[3], differences[3];
#define SINTER_PAIR(i)                                        \
  if constexpr (kPairs > i) {                                 \
    sums[i] = hn::Add(m.v[1 + 2 * i], m.v[2 + 2 * i]);        \
    differences[i] = hn::Sub(m.v[1 + 2 * i], m.v[2 + 2 * i]); \
  }
  SINTER_PAIR(0);
  SINTER_PAIR(1);
  SINTER_PAIR(2);
#undef SINTER_PAIR
  WinogradLine y;
#define SINTER_OUTPUT(k) \
  if constexpr (2 * kPairs > k) y.v[k] = winograd_output<kPairs, k>(m, sums, differences);
  SINTER_OUTPUT(0);
  SINTER_OUTPUT(1);
  SINTER_OUTPUT(2);
  SINTER_OUTPUT(3);
  SINTER_OUTPUT(4);
  SINTER_OUTPUT(5);
#undef SINTER_OUTPUT
  return y;
}

// Load v[i] = p[i * step], n of them, and store them.
template <int kCount, class Load>
HWY_INLINE WinogradLine load_line(const Load& load, const float* p, int64_t step) {
  WinogradLine d;
  d.v[0] = load(p), d.v[1] = load(p + step), d.v[2] = load(p + 2 * step), d.v[3] = load(p + 3 * step);
  if constexpr (kCount > 4) d.v[4] = load(p + 4 * step), d.v[5] = load(p + 5 * step);
  if constexpr (kCount > 6) d.v[6] = load(p + 6 * step), d.v[7] = load(p + 7 * step);
  return d;
}
template <int kCount>
HWY_INLINE void store_line(const WinogradLine& y, float* p, int64_t step) {
  const F d;
  hn::StoreU(y.v[0], d, p), hn::StoreU(y.v[1], d, p + step);
  if constexpr (kCount > 2) hn::StoreU(y.v[2], d, p + 2 * step), hn::StoreU(y.v[3], d, p + 3 * step);
  if constexpr (kCount > 4) hn::StoreU(y.v[4], d, p + 4 * step), hn::StoreU(y.v[5], d, p + 5 * step);
  if constexpr (kCount > 6) hn::StoreU(y.v[6], d, p + 6 * step), hn::StoreU(y.v[7], d, p + 7 * step);
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#endif  // SINTER_PLATFORMS_SIMD_FLOAT_WINOGRAD_INL_H_
