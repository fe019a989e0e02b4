// Rows of x in the order in which weights of few bits come out of their vectors (rows.cc).
#define SINTER_SIMD_BYTE_TABLES
#define SINTER_SIMD_BYTE_DOTS

#include <cmath>
#include <limits>
#include <type_traits>

#include "platforms/simd/int8/int8.h"
#include "platforms/simd/low_bit/groups.h"
#include "platforms/simd/low_bit/segments.h"
#include "runtime/backend/rounded_block.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/low_bit/arrange.cc"
#include "hwy/foreach_target.h"
// These come after it:
#include "platforms/simd/low_bit/dots-inl.h"
#include "platforms/simd/low_bit/fixed-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

int64_t low_bit_lanes() { return static_cast<int64_t>(hn::Lanes(F())); }
void choose_arrangement(LowBit* g, bool one_row) {
  const bool by_row = one_row || !unpacks_once(g->format.bits);
  // Fixed-point numbers take fewer instructions than weights that become floats.
  g->is_fixed = SINTER_FIXED != 0 && by_row && !g->is_rounded && g->format.is_integer() &&
                g->format.bits <= kMostFixedBits;
  const LowBitGroups groups(*g, low_bit_lanes());
  const bool has_whole_chunks = g->depth % groups.group == 0 && groups.group % groups.chunk == 0;
  // Weights in planes are several streams anyway.
  g->is_one_stream =
      SINTER_ONE_STREAM != 0 && by_row && g->is_rounded && !has_planes(g->format.bits) && has_whole_chunks;
}

// The bits of the largest magnitude; more than kInfinity's if a number is NaN.
constexpr int32_t kInfinity = 0x7f800000;
constexpr int32_t kSmallestOfFixed = (127 - 80) << 23;  // 2^-80
HWY_INLINE int32_t largest_bits(const float* x, int64_t n) {
  const I d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* bits = reinterpret_cast<const int32_t*>(x);
  const VI magnitude = hn::Set(d, 0x7fffffff);
  VI most = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) most = hn::Max(most, hn::And(hn::LoadU(d, bits + i), magnitude));
  if (i < n) most = hn::Max(most, hn::And(hn::LoadN(d, bits + i, static_cast<size_t>(n - i)), magnitude));
  return hn::ReduceMax(d, most);
}

// Does the work of rounded_block_scale.
HWY_INLINE float scale_of(const float* x, int64_t n) {
  const int32_t bits = largest_bits(x, n);
  if (bits >= kInfinity) return std::numeric_limits<float>::quiet_NaN();
  float most;
  std::memcpy(&most, &bits, sizeof most);
  return most / 127.0f;
}

// Does the work of rounded_to_int8.
HWY_INLINE void round_numbers(const float* x, int64_t n, float scale, int8_t* q) {
  int64_t i = 0;
  const F d;
  const hn::Rebind<int8_t, F> bytes;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V most = hn::Set(d, 127.0f), step = hn::Set(d, scale);
  for (; scale > 0 && i + lanes <= n; i += lanes) {
    const V v = rounded_quotient(hn::LoadU(d, x + i), step);
    hn::StoreU(hn::DemoteTo(bytes, nearest(hn::Max(hn::Neg(most), hn::Min(v, most)))), bytes, q + i);
  }
  for (; i < n; ++i) q[i] = static_cast<int8_t>(rounded_to_int8(x[i], scale));
}

HWY_INLINE int32_t sum_of(const int8_t* q, int64_t n) {
  const I d;
  VI sum = hn::Zero(d);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) sum = hn::Add(sum, load32(q + i));
  int32_t all = hn::ReduceSum(d, sum);
  for (; i < n; ++i) all += q[i];
  return all;
}

// Arranges a chunk of `count` numbers and zeros, higher bytes of pairs times `higher`, and sums each lane.
template <int kVectors>
HWY_INLINE void arrange_floats(const float* x, int64_t count, int64_t lanes, float higher, float* to,
                               float* sums) {
  constexpr int kWord = 4 * kVectors;
  float padded[kWord];
  for (int64_t l = 0; l < lanes; ++l, x += kWord, count -= kWord) {
    const float* from = x;
    if (count < kWord) {
      for (int m = 0; m < kWord; ++m) padded[m] = m < count ? x[m] : 0.0f;
      from = padded;
    }
    float sum = 0;
    for (int m = 0; m < kWord; ++m) {
      const int byte = m / kVectors, vector = m % kVectors;
      to[(vector * 4 + byte) * lanes + l] = from[m] * (byte % 2 != 0 ? higher : 1.0f);
      sum += from[m];
    }
    sums[l] += sum;
  }
}

template <int kVectors>
HWY_INLINE void arrange_integers(const int8_t* q, int64_t lanes, int8_t* to) {
  constexpr int kWord = 4 * kVectors;
  for (int64_t l = 0; l < lanes; ++l, q += kWord)
    for (int m = 0; m < kWord; ++m) {
      const int byte = m / kVectors, vector = m % kVectors;
      to[vector * 4 * lanes + 4 * l + byte] = q[m];
    }
}

// Returns the number that integer sums begin with for each x that they add up: the part of the zero point
// that is known before the weights are, and the number that makes signed bytes of weights unsigned.
HWY_INLINE int32_t known_zero(const LowBit& g) {
  return (g.zeros == nullptr ? -static_cast<int32_t>(middle_of(g)) : 0) +
         ((g.is_rounded || g.is_fixed) && has_signed_bytes(g.format.bits) ? 128 : 0);
}

// Arranges one group.
template <int kVectors>
HWY_INLINE void arrange_group(const LowBit& g, const LowBitGroups& groups, const float* x, int64_t count,
                              float* to) {
  const int64_t lanes = groups.lanes, word = groups.chunk / lanes;
  float *start = to + groups.numbers, *sums = start + lanes, *scales = sums + lanes;
  const float scale = g.is_rounded && !groups.spread ? scale_of(x, count) : 0;
  const float higher = g.format.is_integer() ? 0x1p-8f : 1.0f;  // codes-inl.h
  for (int64_t l = 0; l < lanes; ++l) sums[l] = 0, scales[l] = scale;
  for (int64_t c = 0; c < groups.chunks; ++c, x += groups.chunk, count -= groups.chunk) {
    const int64_t n = count < groups.chunk ? count : groups.chunk;
    if (!g.is_rounded) {
      arrange_floats<kVectors>(x, n, lanes, higher, to + c * groups.chunk, sums);
      continue;
    }
    int8_t q[kMostLanes * 4 * kVectors] = {};
    if (groups.spread) {
      for (int64_t b = 0; b < n; b += g.block) {
        const int64_t length = n - b < g.block ? n - b : g.block;
        const float of_block = scale_of(x + b, length);
        round_numbers(x + b, length, of_block, q + b);
        for (int64_t l = b / word; l < (b + g.block) / word; ++l) scales[l] = of_block;
      }
    } else {
      round_numbers(x, n, scale, q);
    }
    arrange_integers<kVectors>(q, lanes, reinterpret_cast<int8_t*>(to) + c * groups.chunk);
    for (int64_t l = 0; l < lanes; ++l) sums[l] += static_cast<float>(sum_of(q + l * word, word));
  }
  const int32_t known = known_zero(g);
  for (int64_t l = 0; l < lanes; ++l) {
    start[l] = known != 0 ? static_cast<float>(known) * sums[l] : 0.0f;
    if (!g.is_rounded) continue;
    const int32_t whole = known * static_cast<int32_t>(sums[l]);
    std::memcpy(start + l, &whole, sizeof whole);
  }
}

#if SINTER_ONE_STREAM
// Arranges rounded x: bytes and then the numbers of the blocks.
template <int kVectors>
HWY_INLINE void arrange_blocks(const LowBit& g, const LowBitGroups& groups, const float* x, float* to) {
  const BlockNumbers numbers(g, groups, to);
  const int64_t padded = numbers.padded(g, groups);
  std::fill_n(numbers.scales, 3 * padded, 0.0f);
  const int32_t known = known_zero(g);
  int8_t q[kMostLanes * 4 * kVectors];
  int64_t whole = 0;  // in a block's bytes
  float scale = 0;
  for (int64_t k = 0; k < g.depth; k += groups.chunk, to += groups.chunk / 4) {
    for (int64_t i = 0, length; i < groups.chunk; i += length) {
      length = std::min(g.block, groups.chunk);
      const int64_t block = (k + i) / g.block;
      if ((k + i) % g.block == 0) scale = scale_of(x + k + i, std::min(g.block, g.depth - k - i)), whole = 0;
      round_numbers(x + k + i, length, scale, q + i);
      whole += sum_of(q + i, length);
      numbers.scales[block] = scale, numbers.sums[block] = static_cast<float>(whole) * scale;
      numbers.starts[block] = static_cast<float>(known * whole) * scale;
    }
    arrange_integers<kVectors>(q, groups.lanes, reinterpret_cast<int8_t*>(to));
  }
}
#endif

void arrange_row(const LowBit& g, const float* x, float* arranged) {
  const LowBitGroups groups(g, low_bit_lanes());
  const int32_t largest = largest_bits(x, g.depth);
  // Tiny numbers have no unit that is small enough.
  const bool has_units = largest >= kSmallestOfFixed || largest == 0;
  const bool is_ordered = largest < kInfinity && (has_units || !g.is_fixed);
  arranged[0] = is_ordered ? 0.0f : 1.0f;
  float* to = arranged + kArrangedHead;
#if SINTER_ONE_STREAM
  if (g.is_one_stream) {
    const int bits = bit_planes(g.format.bits).bits;
    return bits == 2   ? arrange_blocks<4>(g, groups, x, to)
           : bits == 4 ? arrange_blocks<2>(g, groups, x, to)
                       : arrange_blocks<1>(g, groups, x, to);
  }
#endif
  for (int64_t k = 0; k < g.depth; k += groups.group, to += groups.record) {
    const int64_t count = g.depth - k < groups.group ? g.depth - k : groups.group;
    const auto arrange = [&](auto vectors) {
      constexpr int kVectors = decltype(vectors)::value;
#if SINTER_FIXED
      if (g.is_fixed && is_ordered)
        return arrange_fixed<kVectors>(groups, x + k, count, static_cast<float>(known_zero(g)), to);
#endif
      arrange_group<kVectors>(g, groups, x + k, count, to);
    };
    switch (bit_planes(g.format.bits).bits) {
      case 2:
        arrange(std::integral_constant<int, 4>());
        break;
      case 4:
        arrange(std::integral_constant<int, 2>());
        break;
      default:
        arrange(std::integral_constant<int, 1>());
    }
  }
}

// Arranges whole sixteens, in the order in which the bytes of weights come out of their words.
template <int kVectors>
HWY_INLINE void copy_sixteens(const int8_t* q, int64_t n, int8_t* to) {
  const hn::FixedTag<int8_t, 16> d;
  HWY_ALIGN int8_t order[16];
  constexpr int kWord = 4 * kVectors;
  for (int i = 0; i < 16; ++i)
    order[i] = static_cast<int8_t>(i / kWord * kWord + i % 4 * kVectors + i % kWord / 4);
  const auto table = hn::Load(d, order);
  for (int64_t i = 0; i < n; i += 16) hn::StoreU(hn::TableLookupBytes(hn::LoadU(d, q + i), table), d, to + i);
}

void round_row(const LowBit& g, const LowBitSegments& segments, const float* x, float* to) {
  HWY_ALIGN int8_t q[kLongestSegment];
  const int64_t bytes = 4 * segments.fours;
  const int32_t known = known_zero(g);
  float scale = 0;
  for (int64_t s = 0; s < segments.count; ++s, to += segments.record()) {
    const int64_t first = segments.first(s), n = segments.weights(s, g.depth);
    if (s % segments.parts == 0) scale = scale_of(x + first, std::min(g.block, g.depth - first));
    if (n > 0) round_numbers(x + first, n, scale, q);
    std::fill(q + n, q + bytes, int8_t{0});
    switch (bit_planes(g.format.bits).bits) {
      case 2:
        copy_sixteens<4>(q, bytes, reinterpret_cast<int8_t*>(to));
        break;
      case 4:
        copy_sixteens<2>(q, bytes, reinterpret_cast<int8_t*>(to));
        break;
      default:
        std::memcpy(to, q, static_cast<size_t>(bytes));
    }
    const int32_t sum = sum_of(q, bytes), start = known * sum;
    float* ends = to + segments.fours;
    std::memcpy(ends + LowBitSegments::kStart, &start, sizeof start);
    ends[LowBitSegments::kSum] = static_cast<float>(sum);
    ends[LowBitSegments::kScale] = scale;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {

HWY_EXPORT(low_bit_lanes);
HWY_EXPORT(choose_arrangement);
HWY_EXPORT(arrange_row);
HWY_EXPORT(round_row);

int64_t low_bit_lanes() { return HWY_DYNAMIC_DISPATCH(low_bit_lanes)(); }
void choose_arrangement(LowBit* g, bool one_row) { HWY_DYNAMIC_DISPATCH(choose_arrangement)(g, one_row); }
void arrange_row(const LowBit& g, const float* x, float* arranged) {
  HWY_DYNAMIC_DISPATCH(arrange_row)(g, x, arranged);
}
void round_row(const LowBit& g, const LowBitSegments& segments, const float* x, float* to) {
  HWY_DYNAMIC_DISPATCH(round_row)(g, segments, x, to);
}

bool arranged_floats(const LowBit& g, int64_t* floats) {
  int64_t most = 0;
  for (const int64_t lanes : {int64_t{4}, int64_t{8}, kMostLanes}) {
    const LowBitGroups groups(g, lanes);
    int64_t n = 0;
    if (!checked_mul(groups.record, groups.groups, &n)) return false;
    most = std::max(most, n);
  }
  // Rows begin at places where vectors may begin.
  return checked_add(most, 2 * kArrangedHead, floats) &&
         (*floats = *floats / kArrangedHead * kArrangedHead, true);
}

}  // namespace sinter::simd
#endif  // HWY_ONCE
