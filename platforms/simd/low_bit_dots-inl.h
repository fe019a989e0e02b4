// Dot products of bytes of weights with bytes of x.
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_LOW_BIT_DOTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_LOW_BIT_DOTS_INL_H_
#undef SINTER_PLATFORMS_SIMD_LOW_BIT_DOTS_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_LOW_BIT_DOTS_INL_H_
#endif

#include "platforms/simd/int8-inl.h"
#include "platforms/simd/low_bit_words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

#if HWY_TARGET <= HWY_AVX3_DL && HWY_ARCH_X86
inline constexpr bool kUnsignedDots = true;  // of unsigned with signed bytes
#else
inline constexpr bool kUnsignedDots = false;
#endif

// Whether rounded x of one row meets the rows of weights one after another (LowBit::is_one_stream).
#undef SINTER_ONE_STREAM
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
#define SINTER_ONE_STREAM 1
#else
#define SINTER_ONE_STREAM 0
#endif

// Whether weights are multiplied as signed bytes, less 128: those of 8 bits, where others are in the range
// that both kinds of bytes have.
HWY_INLINE constexpr bool has_signed_bytes(int bits) { return bits == 8 && !kUnsignedDots; }

// Whether four bytes times four bytes are one instruction.
#undef SINTER_QUAD_DOTS
#if (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL) || HWY_TARGET == HWY_NEON
#define SINTER_QUAD_DOTS 1
#else
#define SINTER_QUAD_DOTS 0
#endif

#if HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3_DL
// Sums of pairs, which fit: 2 * 127 * 127, and 2 * 128 * 127 of signed bytes.
template <bool kSigned>
HWY_INLINE V16 byte_pairs(V8 w, V8 x) {
  const hn::RebindToUnsigned<D8> du;
  if constexpr (kSigned)
    return hn::SatWidenMulPairwiseAdd(D16(), hn::BitCast(du, hn::Abs(w)),
                                      hn::IfNegativeThenNegOrUndefIfZero(w, x));
  else
    return hn::SatWidenMulPairwiseAdd(D16(), hn::BitCast(du, w), x);
}
#endif

#if !HWY_ARCH_X86 || HWY_TARGET <= HWY_AVX3_DL
// sum + four bytes of w times four of x, in each lane.
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

// sum + the words of weights times a chunk of x, whose vectors follow each other.
template <int kBits>
HWY_INLINE VI add_dots(const PlaneWords<kBits>& words, VI mask, const float* x, int64_t lanes, VI sum) {
  constexpr int kVectors = PlaneWords<kBits>::kVectors;
  const auto weights = [&](VI v) SINTER_SIMD_LAMBDA {
    return hn::BitCast(D8(), kBits == 8 ? v : hn::And(v, mask));
  };
  const auto x_bytes = [&](int64_t vector) SINTER_SIMD_LAMBDA {
    return hn::BitCast(D8(), hn::LoadU(F(), x + vector * lanes));
  };
#if HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3_DL
  const V16 ones = hn::Set(D16(), int16_t{1});
  constexpr bool kSigned = kBits == 8;
  V16 pairs = byte_pairs<kSigned>(weights(words.template bytes<0>()), x_bytes(0));
  if constexpr (kVectors > 1) {
    if constexpr (kBits == 7) {  // more than two products do not fit
      sum = add_pairs(pairs, ones, sum);
      pairs = byte_pairs<kSigned>(weights(words.template bytes<1>()), x_bytes(1));
    } else {
      pairs = hn::Add(pairs, byte_pairs<kSigned>(weights(words.template bytes<1>()), x_bytes(1)));
    }
  }
  if constexpr (kVectors > 2)
    pairs = hn::Add(pairs, hn::Add(byte_pairs<kSigned>(weights(words.template bytes<2>()), x_bytes(2)),
                                   byte_pairs<kSigned>(weights(words.template bytes<3>()), x_bytes(3))));
  return add_pairs(pairs, ones, sum);
#else
  sum = add_bytes(weights(words.template bytes<0>()), x_bytes(0), sum);
  if constexpr (kVectors > 1) sum = add_bytes(weights(words.template bytes<1>()), x_bytes(1), sum);
  if constexpr (kVectors > 2) {
    sum = add_bytes(weights(words.template bytes<2>()), x_bytes(2), sum);
    sum = add_bytes(weights(words.template bytes<3>()), x_bytes(3), sum);
  }
  return sum;
#endif
}

#if SINTER_QUAD_DOTS
// Vectors of bytes of x that follow each other.
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
    const auto bytes = [&](VI v) SINTER_SIMD_LAMBDA { return hn::BitCast(D8(), hn::And(v, mask)); };
    v0 = bytes(words.template bytes<0>());
    if constexpr (kVectors > 1) v1 = bytes(words.template bytes<1>());
    if constexpr (kVectors > 2) v2 = bytes(words.template bytes<2>()), v3 = bytes(words.template bytes<3>());
  }
  // sum + these times x.
  HWY_INLINE VI add_dots(const XBytes<kVectors>& x, VI sum) const {
    sum = add_bytes(v0, x.v0, sum);
    if constexpr (kVectors > 1) sum = add_bytes(v1, x.v1, sum);
    if constexpr (kVectors > 2) sum = add_bytes(v3, x.v3, add_bytes(v2, x.v2, sum));
    return sum;
  }
};

// Fixed-point numbers of x: integers of magnitude kMostFixed at most, in signed digits of base 256. The unit
// is one for each lane, that is, for as many neighbours as a word holds weights. A chunk of x is its first
// digits, its second ones, its third ones, and the units.
inline constexpr int kFixedDigits = 3;
inline constexpr int32_t kMostFixed = 0x7f7f00;  // three digits of 127, less what rounding may add
// Whether sums of products of a word fit into int32.
template <int kBits>
inline constexpr bool kFixedSums = int64_t{kMostFixed} * ((1 << kBits) - 1) * (32 / bit_planes(kBits).bits) <
                                   (int64_t{1} << 31);

// sum + the weights times a chunk of x.
template <int kBits>
HWY_INLINE V add_fixed(const WeightBytes<kBits>& weights, const float* chunk, int64_t lanes, V sum) {
  constexpr int kVectors = WeightBytes<kBits>::kVectors;
  const F d;
  const XBytes<kVectors> x0(chunk, lanes), x1(chunk + kVectors * lanes, lanes),
      x2(chunk + 2 * kVectors * lanes, lanes);
  const V unit = hn::LoadU(d, chunk + kFixedDigits * kVectors * lanes);
  // Sums of their own, for the latency of a product is long.
  const VI none = hn::Zero(I()), q0 = weights.add_dots(x0, none), q1 = weights.add_dots(x1, none),
           q2 = weights.add_dots(x2, none), higher = hn::Add(hn::ShiftLeft<8>(q0), q1);
  if constexpr (kFixedSums<kBits>)
    return hn::MulAdd(hn::ConvertTo(d, hn::Add(hn::ShiftLeft<8>(higher), q2)), unit, sum);
  else
    return hn::MulAdd(hn::MulAdd(hn::ConvertTo(d, higher), hn::Set(d, 256.0f), hn::ConvertTo(d, q2)), unit,
                      sum);
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
