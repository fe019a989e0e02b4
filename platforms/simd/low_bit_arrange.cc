// Rows of x in the order in which weights of few bits come out of their vectors (low_bit_rows.cc).
#define SINTER_SIMD_BYTE_TABLES
#define SINTER_SIMD_BYTE_DOTS

#include <limits>

#include "platforms/simd/int8.h"
#include "platforms/simd/low_bit_groups.h"
#include "runtime/backend/rounded_block.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/low_bit_arrange.cc"
#include "hwy/foreach_target.h"
// After it:
#include "platforms/simd/low_bit_dots-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

int64_t low_bit_lanes() { return static_cast<int64_t>(hn::Lanes(F())); }

// The bits of the largest magnitude; more than kInfinity's if a number is NaN.
constexpr int32_t kInfinity = 0x7f800000;
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

// As rounded_block_scale.
HWY_INLINE float scale_of(const float* x, int64_t n) {
  const int32_t bits = largest_bits(x, n);
  if (bits >= kInfinity) return std::numeric_limits<float>::quiet_NaN();
  float most;
  std::memcpy(&most, &bits, sizeof most);
  return most / 127.0f;
}

// As rounded_to_int8.
HWY_INLINE void round_numbers(const float* x, int64_t n, float scale, int8_t* q) {
  int64_t i = 0;
#if !(HWY_ARCH_ARM && !HWY_ARCH_ARM_A64)  // NEON of 32-bit ARM divides approximately
  const F d;
  const hn::Rebind<int8_t, F> bytes;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V most = hn::Set(d, 127.0f), step = hn::Set(d, scale);
  for (; scale > 0 && i + lanes <= n; i += lanes) {
    const V v = hn::Div(hn::LoadU(d, x + i), step);
    hn::StoreU(hn::DemoteTo(bytes, nearest(hn::Max(hn::Neg(most), hn::Min(v, most)))), bytes, q + i);
  }
#endif
  for (; i < n; ++i) q[i] = static_cast<int8_t>(rounded_to_int8(x[i], scale));
}

// A chunk of `count` numbers and zeros; sums of each lane.
template <int kVectors>
HWY_INLINE void arrange_floats(const float* x, int64_t count, int64_t lanes, float* to, float* sums) {
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
      to[(vector * 4 + byte) * lanes + l] = from[m] * (byte % 2 != 0 ? 0x1p-8f : 1.0f);
      sum += from[m];
    }
    sums[l] += sum;
  }
}

template <int kVectors>
HWY_INLINE void arrange_integers(const int8_t* q, int64_t lanes, int8_t* to, float* sums) {
  constexpr int kWord = 4 * kVectors;
  for (int64_t l = 0; l < lanes; ++l, q += kWord) {
    int sum = 0;
    for (int m = 0; m < kWord; ++m) {
      const int byte = m / kVectors, vector = m % kVectors;
      to[vector * 4 * lanes + 4 * l + byte] = q[m];
      sum += q[m];
    }
    sums[l] += static_cast<float>(sum);
  }
}

// One group.
template <int kVectors>
HWY_INLINE void arrange_group(const LowBit& g, const LowBitGroups& groups, const float* x, int64_t count,
                              float* to) {
  const int64_t lanes = groups.lanes, word = groups.chunk / lanes;
  float *start = to + groups.numbers, *sums = start + lanes, *scales = sums + lanes;
  const float scale = g.is_rounded && !groups.spread ? scale_of(x, count) : 0;
  for (int64_t l = 0; l < lanes; ++l) sums[l] = 0, scales[l] = scale;
  for (int64_t c = 0; c < groups.chunks; ++c, x += groups.chunk, count -= groups.chunk) {
    const int64_t n = count < groups.chunk ? count : groups.chunk;
    if (!g.is_rounded) {
      arrange_floats<kVectors>(x, n, lanes, to + c * groups.chunk, sums);
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
    arrange_integers<kVectors>(q, lanes, reinterpret_cast<int8_t*>(to) + c * groups.chunk, sums);
  }
  // What is known of the zero point before the weights are.
  const bool signed_bytes = g.is_rounded && has_signed_bytes(g.bits);
  const float known = (g.zeros == nullptr ? -middle_of(g) : 0.0f) + (signed_bytes ? 128.0f : 0.0f);
  for (int64_t l = 0; l < lanes; ++l) {
    start[l] = known * sums[l];
    if (!g.is_rounded) continue;
    const auto whole = static_cast<int32_t>(static_cast<int64_t>(known) * static_cast<int64_t>(sums[l]));
    std::memcpy(start + l, &whole, sizeof whole);
  }
}

void arrange_row(const LowBit& g, const float* x, float* arranged) {
  const LowBitGroups groups(g, low_bit_lanes());
  arranged[0] = largest_bits(x, g.depth) < kInfinity ? 0.0f : 1.0f;
  float* to = arranged + kArrangedHead;
  for (int64_t k = 0; k < g.depth; k += groups.group, to += groups.record) {
    const int64_t count = g.depth - k < groups.group ? g.depth - k : groups.group;
    switch (bit_planes(g.bits).bits) {
      case 2:
        arrange_group<4>(g, groups, x + k, count, to);
        break;
      case 4:
        arrange_group<2>(g, groups, x + k, count, to);
        break;
      default:
        arrange_group<1>(g, groups, x + k, count, to);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {

HWY_EXPORT(low_bit_lanes);
HWY_EXPORT(arrange_row);

int64_t low_bit_lanes() { return HWY_DYNAMIC_DISPATCH(low_bit_lanes)(); }
void arrange_row(const LowBit& g, const float* x, float* arranged) {
  HWY_DYNAMIC_DISPATCH(arrange_row)(g, x, arranged);
}

bool arranged_floats(const LowBit& g, int64_t* floats) {
  int64_t most = 0;
  for (const int64_t lanes : {int64_t{4}, int64_t{8}, kMostLanes}) {
    const LowBitGroups groups(g, lanes);
    int64_t n = 0;
    if (!checked_mul(groups.record, groups.groups, &n)) return false;
    most = std::max(most, n);
  }
  // Rows begin where vectors may.
  return checked_add(most, 2 * kArrangedHead, floats) &&
         (*floats = *floats / kArrangedHead * kArrangedHead, true);
}

}  // namespace sinter::simd
#endif  // HWY_ONCE
