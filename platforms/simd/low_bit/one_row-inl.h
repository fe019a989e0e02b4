// Products of one row of rounded x with rows of weights of few bits, one after another as they are in memory:
// processors read one stream of addresses faster than several.
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_LOW_BIT_ONE_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_LOW_BIT_ONE_ROW_INL_H_
#undef SINTER_PLATFORMS_SIMD_LOW_BIT_ONE_ROW_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_LOW_BIT_ONE_ROW_INL_H_
#endif

#include "platforms/simd/low_bit/dots-inl.h"
#include "platforms/simd/low_bit/numbers-inl.h"
#include "platforms/simd/low_bit/words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// Computes y of columns first .. last - 1. `arranged` is as in LowBit::is_one_stream.
template <int kBits, class Scale>
HWY_NOINLINE void one_row_products(const LowBit& g, const float* arranged, int64_t first, int64_t last,
                                   const float* bias, float min, float max, float* y) {
  const F d;
  using Words = PlaneWords<kBits>;
  static_assert(!has_planes(kBits));  // whole chunks: vectors end where the weights do
  const LowBitGroups groups(g, static_cast<int64_t>(hn::Lanes(d)));
  // These are copies, because a compiler reads fields again after every store.
  const int64_t lanes = groups.lanes, count = groups.groups, chunks = groups.chunks, each = groups.scales,
                chunk_floats = groups.chunk / 4, chunk_bytes = 4 * lanes;
  const int64_t row_bytes = g.row_bytes();
  const BlockNumbers x_blocks(g, groups, arranged + kArrangedHead);
  const VI flip = flip_of(g, has_signed_bytes(kBits)), mask = Words::each_byte((1 << kBits) - 1),
           none = hn::Zero(I());
  // The groups whose scales a vector has.
  const int64_t at_once = lanes / each;
  decltype(lane_blocks(groups, 0)) of_group[hn::MaxLanes(d)];
  for (int64_t i = 0; i < at_once; ++i) of_group[i] = lane_blocks(groups, i * each);
  RowNumbers<1, Scale> of_blocks(g, groups);
  // Weights are read ahead into the first cache, or into the second one if whole lines are used up in less
  // time than the first cache takes to get one (as measured on Zen 4).
  const bool to_second = HWY_TARGET <= HWY_AVX3 && each <= 4;
  const auto dots = [&](const uint8_t* weights, const float* chunk, VI q) SINTER_SIMD_LAMBDA {
    if (to_second)
      __builtin_prefetch(weights + 8192, 0, 2);
    else
      __builtin_prefetch(weights + 4096);
    Words w;
    w.low = hn::BitCast(I(), hn::LoadU(hn::Repartition<uint8_t, I>(), weights));
    w.change_sign(flip);
    return WeightBytes<kBits>(w, mask).add_dots(XBytes<Words::kVectors>(chunk, lanes), q);
  };
  const uint8_t* weights = g.weights + first * row_bytes;
  for (int64_t n = first; n < last; ++n) {
    V sums = hn::Zero(d), sums1 = sums, starts = sums;
    const float* x = arranged + kArrangedHead;
    for (int64_t group = 0; group < count;) {
      const int64_t end = of_blocks.read(n, n, n, n, group);
      const Scale* scale = of_blocks.scales(0);
      const float* zero = of_blocks.zeros(0);
      for (; group < end; scale += lanes, zero += lanes) {
        const int64_t block = group * each, groups_left = end - group;
        const int64_t here = groups_left < at_once ? groups_left : at_once;
        // The scales behind the last block are zeros.
        const V of_row = load_scales_of_blocks(scale, here * each);
        const V factors = hn::Mul(of_row, hn::LoadU(d, x_blocks.scales + block));
        starts = hn::MulAdd(of_row, hn::LoadU(d, x_blocks.starts + block), starts);
        if (g.zeros != nullptr) {
          const V zeros = hn::Mul(of_row, load_scales_of_blocks(zero, here * each));
          starts = hn::NegMulAdd(zeros, hn::LoadU(d, x_blocks.sums + block), starts);
        }
        int64_t i = 0;
        if (chunks == 1) {
          for (; i + 2 <= here; i += 2, x += 2 * chunk_floats, weights += 2 * chunk_bytes) {
            const VI q0 = dots(weights, x, none), q1 = dots(weights + chunk_bytes, x + chunk_floats, none);
            sums = hn::MulAdd(hn::ConvertTo(d, q0), hn::TableLookupLanes(factors, of_group[i]), sums);
            sums1 = hn::MulAdd(hn::ConvertTo(d, q1), hn::TableLookupLanes(factors, of_group[i + 1]), sums1);
          }
        }
        for (; i < here; ++i) {
          VI q = none;
          for (int64_t c = 0; c < chunks; ++c, x += chunk_floats, weights += chunk_bytes)
            q = dots(weights, x, q);
          sums = hn::MulAdd(hn::ConvertTo(d, q), hn::TableLookupLanes(factors, of_group[i]), sums);
        }
        group += here;
      }
    }
    float sum = hn::ReduceSum(d, hn::Add(hn::Add(sums, sums1), starts));
    if (bias != nullptr) sum += bias[n];
    y[n] = sum < min ? min : sum > max ? max : sum;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
