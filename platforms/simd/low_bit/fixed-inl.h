// One row of x as fixed-point numbers (LowBit::is_fixed).
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_LOW_BIT_FIXED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_LOW_BIT_FIXED_INL_H_
#undef SINTER_PLATFORMS_SIMD_LOW_BIT_FIXED_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_LOW_BIT_FIXED_INL_H_
#endif

#include <algorithm>
#include <cstring>
#include <limits>

#include "platforms/simd/low_bit/dots-inl.h"
#include "platforms/simd/low_bit/groups.h"

#if SINTER_FIXED
HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

using Four = hn::FixedTag<float, 4>;
using FourWords = hn::FixedTag<int32_t, 4>;

// Returns the numbers of byte 0, 1, 2 and 3 of each vector: those of vector v are v, v + kVectors, and so on.
template <int kVectors>
HWY_INLINE void numbers_of_vectors(const hn::Vec<FourWords>* numbers, hn::Vec<FourWords>* of_vector) {
  const FourWords d;
  if constexpr (kVectors == 1) {
    of_vector[0] = numbers[0];
  } else if constexpr (kVectors == 2) {
    of_vector[0] = hn::ConcatEven(d, numbers[1], numbers[0]);
    of_vector[1] = hn::ConcatOdd(d, numbers[1], numbers[0]);
  } else {
    const auto a = hn::InterleaveLower(d, numbers[0], numbers[2]),
               b = hn::InterleaveLower(d, numbers[1], numbers[3]),
               e = hn::InterleaveUpper(d, numbers[0], numbers[2]),
               f = hn::InterleaveUpper(d, numbers[1], numbers[3]);
    of_vector[0] = hn::InterleaveLower(d, a, b), of_vector[1] = hn::InterleaveUpper(d, a, b);
    of_vector[2] = hn::InterleaveLower(d, e, f), of_vector[3] = hn::InterleaveUpper(d, e, f);
  }
}

// Arranges as many numbers as a word holds weights: their digits, to the word's place at `to`, their unit and
// their sum.
template <int kVectors>
HWY_INLINE void fix_word(const float* x, int64_t lanes, uint8_t* to, float* unit, float* sum) {
  const Four d;
  const FourWords di;
  const hn::Repartition<uint8_t, FourWords> bytes;
  hn::Vec<Four> v[kVectors], most = hn::Zero(d), total = most;
  for (int i = 0; i < kVectors; ++i) {
    v[i] = hn::LoadU(d, x + 4 * i);
    most = hn::Max(most, hn::Abs(v[i])), total = hn::Add(total, v[i]);
  }
  *sum = hn::ReduceSum(d, total);
  // A unit that is subnormal has no reciprocal.
  *unit = std::max(hn::ReduceMax(d, most) * (1.0f / kMostFixed), std::numeric_limits<float>::min());
  const auto in_one = hn::Set(d, 1 / *unit);
  // Lower digits from 128 on are negative, and the digits above them are 1 larger.
  const auto lower = hn::Set(di, 0x8080);
  hn::Vec<FourWords> numbers[kVectors], of_vector[kVectors];
  for (int i = 0; i < kVectors; ++i)
    numbers[i] = hn::Xor(hn::Add(hn::NearestInt(hn::Mul(v[i], in_one)), lower), lower);
  numbers_of_vectors<kVectors>(numbers, of_vector);
  // The first digits of four numbers, their second ones and their third ones.
  static_assert(kFixedDigits == 3);
  alignas(16) static constexpr uint8_t kOrder[16] = {2, 6, 10, 14, 1, 5, 9, 13, 0, 4, 8, 12, 3, 7, 11, 15};
  for (int i = 0; i < kVectors; ++i) {
    uint32_t digits[4];
    hn::StoreU(hn::BitCast(hn::RebindToUnsigned<FourWords>(),
                           hn::TableLookupBytes(hn::BitCast(bytes, of_vector[i]), hn::Load(bytes, kOrder))),
               hn::RebindToUnsigned<FourWords>(), digits);
    for (int digit = 0; digit < kFixedDigits; ++digit)
      std::memcpy(to + (digit * kVectors + i) * lanes * 4, digits + digit, 4);
  }
}

// Arranges one group as fixed-point numbers. Its sums are multiplied by `known`, by which all weights are too
// small (known_zero).
template <int kVectors>
HWY_INLINE void arrange_fixed(const LowBitGroups& groups, const float* x, int64_t count, float known,
                              float* to) {
  constexpr int kWord = 4 * kVectors;
  const int64_t lanes = groups.lanes;
  float *start = to + groups.numbers, *sums = start + lanes;
  for (int64_t l = 0; l < lanes; ++l) sums[l] = 0;
  for (int64_t c = 0; c < groups.chunks; ++c, to += groups.chunk) {
    float* units = to + kFixedDigits * kVectors * lanes;
    for (int64_t l = 0; l < lanes; ++l, x += kWord, count -= kWord) {
      float rest[kWord] = {};
      if (count < kWord) std::copy_n(x, std::max<int64_t>(count, 0), rest);
      float sum;
      fix_word<kVectors>(count < kWord ? rest : x, lanes, reinterpret_cast<uint8_t*>(to + l), units + l,
                         &sum);
      sums[l] += sum;
    }
  }
  for (int64_t l = 0; l < lanes; ++l) start[l] = known * sums[l];
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();
#endif  // SINTER_FIXED

#endif  // per-target include guard
