// Products of one row of x as bytes, of rounded blocks or of fixed-point numbers, with four rows of weights
// at a time.
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_LOW_BIT_COLUMNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_LOW_BIT_COLUMNS_INL_H_
#undef SINTER_PLATFORMS_SIMD_LOW_BIT_COLUMNS_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_LOW_BIT_COLUMNS_INL_H_
#endif

#include "platforms/simd/low_bit/dots-inl.h"
#include "platforms/simd/low_bit/numbers-inl.h"
#include "platforms/simd/low_bit/read_ahead-inl.h"
#include "platforms/simd/low_bit/words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// True if registers hold the words of four rows and more.
inline constexpr bool kManyRegisters = HWY_ARCH_X86 ? HWY_TARGET <= HWY_AVX3 : !HWY_ARCH_ARM_V7;
// True if fixed-point numbers are multiplied with one row of weights after the other, within a group: the
// registers do not hold the words of two rows, their sums and the constants.
inline constexpr bool kRowByRow = HWY_ARCH_X86 && !kManyRegisters;

#define SINTER_FOUR(of) of(0) of(1) of(2) of(3)

// Computes y of columns first .. last - 1, with kFixed for LowBit::is_fixed, else for is_rounded. Fewer than
// four columns are filled up with the last one.
template <int kBits, bool kFixed, class Scale>
HWY_NOINLINE void column_products(const LowBit& g, const float* arranged, int64_t first, int64_t last,
                                  const float* bias, float min, float max, float* y) {
  const F d;
  using Words = PlaneWords<kBits>;
  constexpr int kVectors = Words::kVectors;
  constexpr BitPlanes kPlanes = Words::kPlanes;
  const LowBitGroups groups(g, static_cast<int64_t>(hn::Lanes(d)));
  // These are copies, because a compiler reads fields again after every store.
  const int64_t lanes = groups.lanes, count = groups.groups, numbers = groups.numbers, record = groups.record,
                chunks = groups.chunks, each = groups.scales, chunk = groups.chunk,
                skip = groups.group - chunks * chunk, row_bytes = g.row_bytes();
  const int64_t chunk_floats = kFixed ? chunk : chunk / 4;  // of x
  const int64_t two_at = plane_bytes(kPlanes.bits, g.depth),
                single_at = two_at + (kPlanes.two ? plane_bytes(2, g.depth) : 0);
  const uint8_t* const weights_end = g.end;
  ReadAhead<kBits> ahead(g, 4, count);
  const auto lane_block = lane_blocks(groups, 0);
  const VI flip = flip_of(g, has_signed_bytes(kBits)), mask = Words::each_byte((1 << kBits) - 1);
  const bool with_zeros = g.zeros != nullptr;
  RowNumbers<4, Scale> of_blocks(g, groups);
  const auto load_inside = [](auto of, const uint8_t* p) SINTER_SIMD_LAMBDA { return hn::LoadU(of, p); };
  const auto load_at_end = [&](auto of, const uint8_t* p)
                               SINTER_SIMD_LAMBDA { return load_before(of, p, weights_end); };
  [[maybe_unused]] const int64_t row_step = chunks * 4 * lanes + skip * kPlanes.bits / 8,
                                 two_step = groups.group / 4, single_step = groups.group / 8;
  for (int64_t n = first; n < last; n += 4) {
    const int64_t n1 = n + 1 < last ? n + 1 : n, n2 = n + 2 < last ? n + 2 : n1,
                  n3 = n + 3 < last ? n + 3 : n2;
    const int64_t to0 = 0, to1 = (n1 - n) * row_bytes, to2 = (n2 - n) * row_bytes, to3 = (n3 - n) * row_bytes;
    const uint8_t *low = g.weights + n * row_bytes, *two = low + two_at, *single = low + single_at;
    // True if no vector of these rows passes the end of the weights.
    const bool inside = weights_end - (low + to3 + row_bytes) >= 4 * lanes;
    ahead.start(g, n);
    V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    const float* x = arranged + kArrangedHead;
    for (int64_t group = 0; group < count;) {
      const int64_t end = of_blocks.read(n, n1, n2, n3, group);
      int64_t at = 0;  // in a block's numbers
      for (; group < end; ++group, at += each) {
        if constexpr (kFixed && kRowByRow) {
          const V start = hn::LoadU(d, x + numbers), sums = hn::LoadU(d, x + numbers + lanes);
          const auto row = [&](int64_t i, int64_t to, V sum) SINTER_SIMD_LAMBDA {
            const uint8_t *row_low = low + to, *row_two = two + to, *row_single = single + to;
            const float* bytes = x;
            V a = start;
            for (int64_t c = 0; c < chunks; ++c) {
              Words w;
              if (HWY_LIKELY(inside))
                w.load_at(row_low, row_two, row_single, load_inside);
              else
                w.load_at(row_low, row_two, row_single, load_at_end);
              w.change_sign(flip);
              a = add_fixed(WeightBytes<kBits>(w, mask), FixedChunk<kVectors>(bytes, lanes), a);
              bytes += chunk_floats, row_low += 4 * lanes, row_two += chunk / 4, row_single += chunk / 8;
            }
            if (with_zeros)
              a = hn::NegMulAdd(hn::TableLookupLanes(hn::LoadU(d, of_blocks.zeros(i) + at), lane_block), sums,
                                a);
            return hn::MulAdd(a, hn::TableLookupLanes(load_scales(of_blocks.scales(i) + at), lane_block),
                              sum);
          };
          for (int64_t c = 0; c < chunks; ++c) ahead.template words<4>();
          ahead.scales(4);
          s0 = row(0, to0, s0), s1 = row(1, to1, s1), s2 = row(2, to2, s2), s3 = row(3, to3, s3);
          low += row_step, two += two_step, single += single_step;
          x += record;
          continue;
        }
        V a0 = hn::LoadU(d, x + numbers), a1 = a0, a2 = a0, a3 = a0;
        [[maybe_unused]] VI q0 = hn::BitCast(I(), a0), q1 = q0, q2 = q0, q3 = q0;
        const float* bytes = x;
        for (int64_t c = 0; c < chunks; ++c) {
#define SINTER_LOAD(i) w##i.load_at(low + to##i, two + to##i, single + to##i, load);
          if constexpr (!kFixed) ahead.template words<4>();
          if constexpr (kFixed || kManyRegisters) {
            Words w0, w1, w2, w3;
            if (HWY_LIKELY(inside)) {
              const auto& load = load_inside;
              SINTER_FOUR(SINTER_LOAD)
            } else {
              const auto& load = load_at_end;
              SINTER_FOUR(SINTER_LOAD)
            }
#define SINTER_BYTES(i)   \
  w##i.change_sign(flip); \
  const WeightBytes<kBits> b##i(w##i, mask);
            SINTER_FOUR(SINTER_BYTES)
#undef SINTER_BYTES
            if constexpr (kFixed) {
              const FixedChunk<kVectors> of_x(bytes, lanes);
              add_fixed(b0, b1, of_x, a0, a1), add_fixed(b2, b3, of_x, a2, a3);
            } else {
              const XBytes<kVectors> of_x(bytes, lanes);
#define SINTER_ADD(i) q##i = b##i.add_dots(of_x, q##i);
              SINTER_FOUR(SINTER_ADD)
#undef SINTER_ADD
            }
          } else {
#define SINTER_ADD(i)                                                                     \
  {                                                                                       \
    Words w##i;                                                                           \
    if (HWY_LIKELY(inside)) {                                                             \
      const auto& load = load_inside;                                                     \
      SINTER_LOAD(i)                                                                      \
    } else {                                                                              \
      const auto& load = load_at_end;                                                     \
      SINTER_LOAD(i)                                                                      \
    }                                                                                     \
    w##i.change_sign(flip);                                                               \
    q##i = WeightBytes<kBits>(w##i, mask).add_dots(XBytes<kVectors>(bytes, lanes), q##i); \
  }
            SINTER_FOUR(SINTER_ADD)
#undef SINTER_ADD
          }
#undef SINTER_LOAD
          // The words are delayed less here, as measured.
          if constexpr (kFixed) ahead.template words<4>();
          bytes += chunk_floats;
          low += 4 * lanes, two += chunk / 4, single += chunk / 8;
        }
        low += skip * kPlanes.bits / 8, two += skip / 4, single += skip / 8;
        if constexpr (!kFixed) {
#define SINTER_CONVERT(i) a##i = hn::ConvertTo(d, q##i);
          SINTER_FOUR(SINTER_CONVERT)
#undef SINTER_CONVERT
        }
        if (with_zeros) {
          const V sums = hn::LoadU(d, x + numbers + lanes);
#define SINTER_ZERO(i) \
  a##i = hn::NegMulAdd(hn::TableLookupLanes(hn::LoadU(d, of_blocks.zeros(i) + at), lane_block), sums, a##i);
          SINTER_FOUR(SINTER_ZERO)
#undef SINTER_ZERO
        }
        ahead.scales(4);
        [[maybe_unused]] const V x_scale = hn::LoadU(d, x + numbers + 2 * lanes);
#define SINTER_SCALE(i)                                                                      \
  {                                                                                          \
    const V scale = hn::TableLookupLanes(load_scales(of_blocks.scales(i) + at), lane_block); \
    s##i = hn::MulAdd(a##i, kFixed ? scale : hn::Mul(scale, x_scale), s##i);                 \
  }
        SINTER_FOUR(SINTER_SCALE)
#undef SINTER_SCALE
        x += record;
      }
    }
    const auto finish = [&](int64_t column, float sum) {
      if (column >= last) return;
      if (bias != nullptr) sum += bias[column];
      y[column] = sum < min ? min : sum > max ? max : sum;
    };
    finish(n, hn::ReduceSum(d, s0)), finish(n + 1, hn::ReduceSum(d, s1));
    finish(n + 2, hn::ReduceSum(d, s2)), finish(n + 3, hn::ReduceSum(d, s3));
  }
}

#undef SINTER_FOUR

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
