// Dot products of bytes of weights with bytes of x.
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_LOW_BIT_DOTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_LOW_BIT_DOTS_INL_H_
#undef SINTER_PLATFORMS_SIMD_LOW_BIT_DOTS_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_LOW_BIT_DOTS_INL_H_
#endif

#include "platforms/simd/int8/int8-inl.h"
#include "platforms/simd/low_bit/words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

#if HWY_TARGET <= HWY_AVX3_DL && HWY_ARCH_X86
inline constexpr bool kUnsignedDots = true;  // unsigned times signed bytes
#else
inline constexpr bool kUnsignedDots = false;
#endif

// 1 if rounded x of one row is multiplied by rows of weights one after another (LowBit::is_one_stream).
#undef SINTER_ONE_STREAM
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
#define SINTER_ONE_STREAM 1
#else
#define SINTER_ONE_STREAM 0
#endif

// Returns whether weights are multiplied as signed bytes, less 128: weights of 8 bits. Others are in the
// range that both kinds of bytes have.
HWY_INLINE constexpr bool has_signed_bytes(int bits) { return bits == 8 && !kUnsignedDots; }

// 1 if four bytes times four bytes are one instruction.
#undef SINTER_QUAD_DOTS
#define SINTER_QUAD_DOTS (HWY_ARCH_X86 ? HWY_TARGET <= HWY_AVX3_DL : HWY_TARGET == HWY_NEON)

// 1 if products of bytes are summed in int16 first, without dot products of bytes.
#undef SINTER_BYTE_PAIRS
#define SINTER_BYTE_PAIRS (!SINTER_QUAD_DOTS && (HWY_ARCH_X86 || HWY_TARGET_IS_NEON))

// 1 if one row of floats is arranged as fixed-point numbers (LowBit::is_fixed).
#undef SINTER_FIXED
#define SINTER_FIXED (HWY_ARCH_X86 || HWY_TARGET_IS_NEON)

#if SINTER_BYTE_PAIRS
// Returns the pairs of products of weights' unsigned bytes and signed ones of x whose sum int16 holds.
constexpr int64_t pairs_that_fit(int bits) {
  const int64_t pairs = 32767 / (2 * 128 * ((1 << bits) - 1));
  return pairs < 1 ? 1 : pairs;
}

#if HWY_ARCH_X86
// The sums of pairs of products, of which one fits at any width: 2 * 128 * 127.
using Products = V16;
template <bool kSigned>
HWY_INLINE Products products_of(V8 w, V8 x) {
  const hn::RebindToUnsigned<D8> du;
  if constexpr (kSigned)
    return hn::SatWidenMulPairwiseAdd(D16(), hn::BitCast(du, hn::Abs(w)),
                                      hn::IfNegativeThenNegOrUndefIfZero(w, x));
  else
    return hn::SatWidenMulPairwiseAdd(D16(), hn::BitCast(du, w), x);
}
template <bool kSigned>
HWY_INLINE Products add_products_of(V8 w, V8 x, Products sums) {
  return hn::Add(sums, products_of<kSigned>(w, x));
}
// Multiplies by kFactor.
template <int kFactor>
HWY_INLINE VI sum_of_pairs(Products p) {
  return hn::WidenMulPairwiseAdd(I(), p, hn::Set(D16(), int16_t{kFactor}));
}
HWY_INLINE VI add_pairs_of(Products p, VI sum) { return add_pairs(p, hn::Set(D16(), int16_t{1}), sum); }
#else
// The sums of products of the lower and of the upper bytes of a vector; those of a pair are added last.
struct Products {
  int16x8_t low, high;
};
template <bool>
HWY_INLINE Products products_of(V8 w, V8 x) {
#if HWY_ARCH_ARM_A64
  return {vmull_s8(vget_low_s8(w.raw), vget_low_s8(x.raw)), vmull_high_s8(w.raw, x.raw)};
#else
  return {vmull_s8(vget_low_s8(w.raw), vget_low_s8(x.raw)),
          vmull_s8(vget_high_s8(w.raw), vget_high_s8(x.raw))};
#endif
}
template <bool>
HWY_INLINE Products add_products_of(V8 w, V8 x, Products sums) {
  const int16x8_t low = vmlal_s8(sums.low, vget_low_s8(w.raw), vget_low_s8(x.raw));
#if HWY_ARCH_ARM_A64
  return {low, vmlal_high_s8(sums.high, w.raw, x.raw)};
#else
  return {low, vmlal_s8(sums.high, vget_high_s8(w.raw), vget_high_s8(x.raw))};
#endif
}
HWY_INLINE int16x8_t pairs_of(Products p) {
#if HWY_ARCH_ARM_A64
  return vpaddq_s16(p.low, p.high);
#else
  return vcombine_s16(vpadd_s16(vget_low_s16(p.low), vget_high_s16(p.low)),
                      vpadd_s16(vget_low_s16(p.high), vget_high_s16(p.high)));
#endif
}
template <int kFactor>
HWY_INLINE VI sum_of_pairs(Products p) {
  return hn::ShiftLeft<hwy::CeilLog2(kFactor)>(VI(vpaddlq_s16(pairs_of(p))));
}
HWY_INLINE VI add_pairs_of(Products p, VI sum) { return VI(vpadalq_s16(sum.raw, pairs_of(p))); }
#endif
#else
// Returns sum + four bytes of w times four of x, in each lane.
HWY_INLINE VI add_bytes(V8 w, V8 x, VI sum) {
#if HWY_ARCH_X86
  return hn::SumOfMulQuadAccumulate(I(), hn::BitCast(hn::RebindToUnsigned<D8>(), w), x, sum);
#elif HWY_TARGET == HWY_NEON
  return add_dots(w, x, sum);
#else
  return hn::SumOfMulQuadAccumulate(I(), w, x, sum);
#endif
}
#endif

// The vectors of bytes of x that follow each other.
template <int kVectors>
struct XBytes {
  V8 v0, v1, v2, v3;

  HWY_INLINE XBytes(const float* x, int64_t lanes) {
    const auto bytes = [&](int64_t vector) SINTER_SIMD_LAMBDA {
      return hn::BitCast(D8(), hn::LoadU(F(), x + vector * lanes));
    };
    v0 = bytes(0);
    if constexpr (kVectors > 1) v1 = bytes(1);
    if constexpr (kVectors > 2) v2 = bytes(2), v3 = bytes(3);
  }
};

// The bytes of a vector of words of weights.
template <int kBits>
struct WeightBytes {
  static constexpr int kVectors = PlaneWords<kBits>::kVectors;
  V8 v0, v1, v2, v3;

  HWY_INLINE WeightBytes(const PlaneWords<kBits>& words, VI mask) {
    const auto bytes = [&](VI v) SINTER_SIMD_LAMBDA {
      return hn::BitCast(D8(), kBits == 8 || has_planes(kBits) ? v : hn::And(v, mask));
    };
    v0 = bytes(words.template bytes<0>());
    if constexpr (kVectors > 1) v1 = bytes(words.template bytes<1>());
    if constexpr (kVectors > 2) v2 = bytes(words.template bytes<2>()), v3 = bytes(words.template bytes<3>());
  }
  // Returns these times x times kFactor, a power of two; four products of each vector are in a lane.
  template <int kFactor = 1>
  HWY_INLINE VI dots(const XBytes<kVectors>& x) const {
#if SINTER_BYTE_PAIRS
    if constexpr (kFits) return sum_of_pairs<kFactor>(products(x));
#endif
    return hn::ShiftLeft<hwy::CeilLog2(kFactor)>(add_dots(x, hn::Zero(I())));
  }
  // Returns sum + these times x.
  HWY_INLINE VI add_dots(const XBytes<kVectors>& x, VI sum) const {
#if SINTER_BYTE_PAIRS
    if constexpr (kFits)
      return add_pairs_of(products(x), sum);
    else
      return add_pairs_of(products_of<false>(v1, x.v1), add_pairs_of(products_of<false>(v0, x.v0), sum));
#else
    sum = add_bytes(v0, x.v0, sum);
    if constexpr (kVectors > 1) sum = add_bytes(v1, x.v1, sum);
    if constexpr (kVectors > 2) sum = add_bytes(v3, x.v3, add_bytes(v2, x.v2, sum));
    return sum;
#endif
  }

#if SINTER_BYTE_PAIRS
 private:
  static constexpr bool kFits = pairs_that_fit(kBits) >= kVectors;  // products of all vectors
  static_assert(kFits || kVectors == 2);

  HWY_INLINE Products products(const XBytes<kVectors>& x) const {
    constexpr bool kSigned = has_signed_bytes(kBits);
    Products p = products_of<kSigned>(v0, x.v0);
    if constexpr (kVectors > 1) p = add_products_of<kSigned>(v1, x.v1, p);
    if constexpr (kVectors > 2) p = add_products_of<kSigned>(v3, x.v3, add_products_of<kSigned>(v2, x.v2, p));
    return p;
  }
#endif
};

// The fixed-point numbers of x are integers of magnitude kMostFixed at most, in signed digits of base 256.
// Each lane has a unit, for as many neighbours as a word holds weights.
inline constexpr int kFixedDigits = 3;
inline constexpr int kFixedBase = 256;
// Beyond these bits, floats are as fast, or pairs of products of bytes do not fit into int16.
inline constexpr int kMostFixedBits = HWY_TARGET == HWY_NEON ? 8 : 7;
inline constexpr int32_t kMostFixed = 0x7f7f00;  // three digits of 127, less what rounding may add
// Returns whether sums of products of a word fit into int32.
template <int kBits>
inline constexpr bool kFixedSums = int64_t{kMostFixed} * ((1 << kBits) - 1) * (32 / bit_planes(kBits).bits) <
                                   (int64_t{1} << 31);

// A chunk of x: its first digits, its second ones, its third ones, and the units.
template <int kVectors>
struct FixedChunk {
  XBytes<kVectors> first, second, third;
  V unit;

  HWY_INLINE FixedChunk(const float* chunk, int64_t lanes)
      : first(chunk, lanes),
        second(chunk + kVectors * lanes, lanes),
        third(chunk + 2 * kVectors * lanes, lanes),
        unit(hn::LoadU(F(), chunk + kFixedDigits * kVectors * lanes)) {}
};

// Returns the sums of products with the two higher digits, in units of the second, and with the third.
template <int kBits>
HWY_INLINE V sum_of_digits(VI higher, VI lowest) {
  const F d;
  if constexpr (kFixedSums<kBits>)
    return hn::ConvertTo(d, hn::Add(hn::ShiftLeft<hwy::CeilLog2(kFixedBase)>(higher), lowest));
  else
    return hn::MulAdd(hn::ConvertTo(d, higher), hn::Set(d, kFixedBase), hn::ConvertTo(d, lowest));
}

// Returns sum + the weights of a row times a chunk of x.
template <int kBits, int kVectors>
HWY_INLINE V add_fixed(const WeightBytes<kBits>& w, const FixedChunk<kVectors>& x, V sum) {
  const VI higher = hn::Add(w.template dots<kFixedBase>(x.first), w.dots(x.second));
  return hn::MulAdd(sum_of_digits<kBits>(higher, w.dots(x.third)), x.unit, sum);
}

// Adds the products of two rows' weights and a chunk of x to their sums. Two rows are taken at a time, and
// digits have sums of their own, because the latency of products is long.
template <int kBits, int kVectors>
HWY_INLINE void add_fixed(const WeightBytes<kBits>& a, const WeightBytes<kBits>& b,
                          const FixedChunk<kVectors>& x, V& sum_a, V& sum_b) {
  const VI a0 = a.template dots<kFixedBase>(x.first), b0 = b.template dots<kFixedBase>(x.first),
           a1 = a.dots(x.second), b1 = b.dots(x.second), a2 = a.dots(x.third), b2 = b.dots(x.third);
  sum_a = hn::MulAdd(sum_of_digits<kBits>(hn::Add(a0, a1), a2), x.unit, sum_a);
  sum_b = hn::MulAdd(sum_of_digits<kBits>(hn::Add(b0, b1), b2), x.unit, sum_b);
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
