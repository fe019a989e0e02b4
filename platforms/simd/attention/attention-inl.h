// Products of a few query rows with keys, and sums of weighted values, of elements that are widened to
// float32 in registers.
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_ATTENTION_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_ATTENTION_ATTENTION_INL_H_
#undef SINTER_PLATFORMS_SIMD_ATTENTION_ATTENTION_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_ATTENTION_ATTENTION_INL_H_
#endif

#include <type_traits>

#include "hwy/highway.h"
#include "platforms/simd/isa/float_formats-inl.h"
#include "runtime/core/attention_rows.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// ---- a vector of elements, or the first n of one (the other lanes are zeros), as float32

HWY_INLINE V load_wide(const float* p) { return hn::LoadU(F(), p); }
HWY_INLINE V load_wide(const float* p, int64_t n) { return hn::LoadN(F(), p, static_cast<size_t>(n)); }

// The type of an element in memory stands for its format: uint8_t is float8e4m3fn.
HWY_INLINE const uint16_t* bits_of(const void* p) { return static_cast<const uint16_t*>(p); }
HWY_INLINE V load_wide(const hwy::float16_t* p) { return Float16::load(bits_of(p)); }
HWY_INLINE V load_wide(const hwy::float16_t* p, int64_t n) {
  return Float16::load_some(bits_of(p), static_cast<size_t>(n));
}
HWY_INLINE V load_wide(const hwy::bfloat16_t* p) { return BFloat16::load(bits_of(p)); }
HWY_INLINE V load_wide(const hwy::bfloat16_t* p, int64_t n) {
  return BFloat16::load_some(bits_of(p), static_cast<size_t>(n));
}
HWY_INLINE V load_wide(const uint8_t* p) { return Float8E4M3FN::load(p); }
HWY_INLINE V load_wide(const uint8_t* p, int64_t n) {
  return Float8E4M3FN::load_some(p, static_cast<size_t>(n));
}
using Integers8 = hn::Rebind<int8_t, F>;
HWY_INLINE V widen_int8(hn::Vec<Integers8> x) { return hn::ConvertTo(F(), hn::PromoteTo(I(), x)); }
HWY_INLINE V load_wide(const int8_t* p) { return widen_int8(hn::LoadU(Integers8(), p)); }
HWY_INLINE V load_wide(const int8_t* p, int64_t n) {
  return widen_int8(hn::LoadN(Integers8(), p, static_cast<size_t>(n)));
}

// Two elements of 4 bits, each plus kAttentionMiddle; the even one is in the low half.
struct Pair {
  uint8_t byte;
};
// The number of parts of an item in memory, which is an element or a pair of them. For pairs, queries and
// sums have the even elements of a row before the odd ones.
template <class E>
constexpr int kParts = std::is_same_v<E, Pair> ? 2 : 1;

// Returns the even (part 0) or odd elements of pairs, of which each lane has one.
template <int kPart>
HWY_INLINE V widen_pairs(hn::Vec<hn::Rebind<uint8_t, F>> pairs) {
  const I d;
  const VI wide = hn::PromoteTo(d, pairs);
  const VI code = kPart == 0 ? hn::And(wide, hn::Set(d, 15)) : hn::ShiftRight<4>(wide);
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  // The table holds all 16 elements that exist, by code.
  return hn::TableLookupLanes(hn::Iota(F(), -kAttentionMiddle), hn::IndicesFromVec(F(), code));
#else
  return hn::ConvertTo(F(), hn::Sub(code, hn::Set(d, kAttentionMiddle)));
#endif
}

// Returns a part of a vector of items, or of the first n of one.
template <int kPart, bool kWhole, class E>
HWY_INLINE V load_part(const E* p, int64_t n) {
  if constexpr (std::is_same_v<E, Pair>) {
    const hn::Rebind<uint8_t, F> d;
    const auto* bytes = reinterpret_cast<const uint8_t*>(p);
    if constexpr (kWhole)
      return widen_pairs<kPart>(hn::LoadU(d, bytes));
    else
      return widen_pairs<kPart>(hn::LoadN(d, bytes, static_cast<size_t>(n)));
  } else if constexpr (kWhole) {
    return load_wide(p);
  } else {
    return load_wide(p, n);
  }
}

// ---- products

// Computes one number for each of kRows query rows of `size` elements, and each of kKeys rows of keys.
#define SINTER_ROWS(f) f(0) f(1) f(2) f(3)
template <int kRows, int kKeys, class E>
HWY_INLINE void block_products(const float* q, int64_t size, const E* k, float* y, int64_t stride) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t length = size / kParts<E>;
#define SINTER_BEGIN(r) [[maybe_unused]] V a##r = hn::Zero(d), b##r = a##r, e##r = a##r, f##r = a##r;
  SINTER_ROWS(SINTER_BEGIN)
#undef SINTER_BEGIN
#define SINTER_ADD(r, part, whole)                                                 \
  if constexpr (kRows > r) {                                                       \
    const V x = load_part<0, whole>(q + r * size + part * length + i, length - i); \
    a##r = hn::MulAdd(x, k0, a##r);                                                \
    if constexpr (kKeys > 1) b##r = hn::MulAdd(x, k1, b##r);                       \
    if constexpr (kKeys == 4) e##r = hn::MulAdd(x, k2, e##r);                      \
    if constexpr (kKeys == 4) f##r = hn::MulAdd(x, k3, f##r);                      \
  }
  constexpr int64_t k1_at = kKeys > 1 ? 1 : 0, k2_at = kKeys == 4 ? 2 : 0, k3_at = kKeys == 4 ? 3 : 0;
#define SINTER_KEY(at, part, whole) load_part<part, whole>(k + at * length + i, length - i)
#define SINTER_STEP(part, whole)                                                     \
  if constexpr (part < kParts<E>) {                                                  \
    const V k0 = SINTER_KEY(0, part, whole);                                         \
    [[maybe_unused]] const V k1 = kKeys > 1 ? SINTER_KEY(k1_at, part, whole) : k0;   \
    [[maybe_unused]] const V k2 = kKeys == 4 ? SINTER_KEY(k2_at, part, whole) : k0;  \
    [[maybe_unused]] const V k3 = kKeys == 4 ? SINTER_KEY(k3_at, part, whole) : k0;  \
    SINTER_ADD(0, part, whole)                                                       \
    SINTER_ADD(1, part, whole) SINTER_ADD(2, part, whole) SINTER_ADD(3, part, whole) \
  }
  int64_t i = 0;
  for (; i + lanes <= length; i += lanes) {
    SINTER_STEP(0, true)
    SINTER_STEP(1, true)
  }
  if (i < length) {
    SINTER_STEP(0, false)
    SINTER_STEP(1, false)
  }
#undef SINTER_STEP
#undef SINTER_KEY
#undef SINTER_ADD
#define SINTER_END(r)                                                     \
  if constexpr (kRows > r) {                                              \
    y[r * stride] = hn::ReduceSum(d, a##r);                               \
    if constexpr (kKeys > 1) y[r * stride + 1] = hn::ReduceSum(d, b##r);  \
    if constexpr (kKeys == 4) y[r * stride + 2] = hn::ReduceSum(d, e##r); \
    if constexpr (kKeys == 4) y[r * stride + 3] = hn::ReduceSum(d, f##r); \
  }
  SINTER_ROWS(SINTER_END)
#undef SINTER_END
}

template <int kRows, class E>
HWY_NOINLINE void row_products(const float* q, int64_t size, const E* k, int64_t count, float* y,
                               int64_t stride) {
  constexpr int kKeys = kRows == 4 ? 2 : 4;  // registers hold the sums of as many
  const int64_t length = size / kParts<E>;
  int64_t j = 0;
  for (; j + kKeys <= count; j += kKeys) block_products<kRows, kKeys>(q, size, k + j * length, y + j, stride);
  for (; j < count; ++j) block_products<kRows, 1>(q, size, k + j * length, y + j, stride);
}

// ---- sums of weighted values

template <bool kWhole>
HWY_INLINE void store_part(V x, float* to, int64_t n) {
  if constexpr (kWhole)
    hn::StoreU(x, F(), to);
  else
    hn::StoreN(x, F(), to, static_cast<size_t>(n));
}

// Adds the values of a vector of items, or of two, to the sums of kRows rows; `n` is less than a vector at
// the end. For pairs, the second vector of sums has the odd elements.
template <int kRows, int kVectors, bool kWhole, class E>
HWY_INLINE void block_values(const float* w, int64_t stride, const E* v, int64_t count, int64_t size,
                             int64_t n, float* y) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t length = size / kParts<E>, second = kParts<E> == 2 ? length : lanes;
#define SINTER_BEGIN(r)                                                  \
  [[maybe_unused]] V a##r = hn::Zero(d), b##r = a##r;                    \
  if constexpr (kRows > r) a##r = load_part<0, kWhole>(y + r * size, n); \
  if constexpr (kRows > r && kVectors == 2) b##r = load_part<0, kWhole>(y + r * size + second, n);
  SINTER_ROWS(SINTER_BEGIN)
#undef SINTER_BEGIN
  for (int64_t j = 0; j < count; ++j, v += length) {
    const V v0 = load_part<0, kWhole>(v, n);
    [[maybe_unused]] V v1 = v0;
    if constexpr (kParts<E> == 2)
      v1 = load_part<1, kWhole>(v, n);
    else if constexpr (kVectors == 2)
      v1 = load_wide(v + lanes);
#define SINTER_ADD(r)                                            \
  if constexpr (kRows > r) {                                     \
    const V x = set(w[r * stride + j]);                          \
    a##r = hn::MulAdd(x, v0, a##r);                              \
    if constexpr (kVectors == 2) b##r = hn::MulAdd(x, v1, b##r); \
  }
    SINTER_ROWS(SINTER_ADD)
#undef SINTER_ADD
  }
#define SINTER_END(r)                                                                \
  if constexpr (kRows > r) {                                                         \
    store_part<kWhole>(a##r, y + r * size, n);                                       \
    if constexpr (kVectors == 2) store_part<kWhole>(b##r, y + r * size + second, n); \
  }
  SINTER_ROWS(SINTER_END)
#undef SINTER_END
}

template <int kRows, class E>
HWY_NOINLINE void row_values(const float* w, int64_t stride, const E* v, int64_t count, int64_t size,
                             float* y) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(F()));
  const int64_t length = size / kParts<E>;
  int64_t i = 0;
  if constexpr (kParts<E> == 1)
    for (; i + 2 * lanes <= length; i += 2 * lanes)
      block_values<kRows, 2, true>(w, stride, v + i, count, size, lanes, y + i);
  for (; i + lanes <= length; i += lanes)
    block_values<kRows, kParts<E>, true>(w, stride, v + i, count, size, lanes, y + i);
  if (i < length) block_values<kRows, kParts<E>, false>(w, stride, v + i, count, size, length - i, y + i);
}
#undef SINTER_ROWS

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
