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

// Whether weights are multiplied as signed bytes, less 128: those of 8 bits, where others are in the range
// that both kinds of bytes have.
HWY_INLINE constexpr bool has_signed_bytes(int bits) { return bits == 8 && !kUnsignedDots; }

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
HWY_INLINE VI add_dots(const WeightWords<kBits>& words, VI mask, const float* x, int64_t lanes, VI sum) {
  constexpr int kVectors = WeightWords<kBits>::kVectors;
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

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
