#include "platforms/simd/int8/gemm_i8mm.h"

#include <cstring>
#include <type_traits>

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace sinter::simd {

// The depths of sums that gain less than it costs to copy the input.
constexpr int64_t kFewDepths = 16;

bool pairs_fit(const Geometry& g) {
  const int64_t depth = g.in_channels / g.group;
  if (g.out_pixels() * g.batch < 2 || depth < kQPairDepth || g.taps() * depth <= kFewDepths) return false;
  return depth % kQPairDepth == 0 || (g.group == 1 && pointwise(g));
}

#if defined(__aarch64__)
namespace {

// ---- the input

// Copies n bytes of each of two rows; n is at least eight. The rest is filled up with zeros.
void copy_pair(const int8_t* p, const int8_t* q, int64_t n, int8_t* to) {
  for (; n >= 16; n -= 16, p += 16, q += 16, to += 32) {
    const int64x2x2_t both = {vreinterpretq_s64_s8(vld1q_s8(p)), vreinterpretq_s64_s8(vld1q_s8(q))};
    vst2q_s64(reinterpret_cast<int64_t*>(to), both);
  }
  if (n >= 8) {
    vst1q_s8(to, vcombine_s8(vld1_s8(p), vld1_s8(q)));
    n -= 8, p += 8, q += 8, to += 16;
  }
  if (n > 0) {
    // These are eight bytes that end where the row does.
    const int64x2_t last =
        vreinterpretq_s64_s8(vcombine_s8(vld1_s8(p + n - kQPairDepth), vld1_s8(q + n - kQPairDepth)));
    const int64x2_t shift = vdupq_n_s64((n - kQPairDepth) * 8);
    vst1q_s8(to, vreinterpretq_s8_u64(vshlq_u64(vreinterpretq_u64_s64(last), shift)));
  }
}

// Loads a line of the buffer: `pixels` pairs of pixels, the first of which begin at pixels `from` and `from +
// apart` of an input line of g.in[2] (null: outside).
void load_line(const Geometry& g, const int8_t* line, int64_t from, int64_t apart, int64_t pixels,
               int8_t x_zero, int8_t* to) {
  const int64_t c = g.in_channels, step = 2 * pair_channels(c);
  if (line == nullptr) return void(std::memset(to, x_zero, static_cast<size_t>(pixels * step)));
  // Pixels first .. end - 1 are inside with their partners.
  const int64_t first = std::clamp<int64_t>(-from, 0, pixels);
  const int64_t end = std::clamp(g.in[2] - apart - from, first, pixels);
  const auto edge = [&](int64_t i) {
    const int64_t at[] = {from + i, from + i + apart};
    for (int which = 0; which < 2; ++which) {
      const bool inside = at[which] >= 0 && at[which] < g.in[2];
      for (int64_t k = 0; k < c; k += kQPairDepth) {
        int8_t* eight = to + i * step + 2 * k + which * kQPairDepth;
        vst1_s8(eight, inside ? vld1_s8(line + at[which] * c + k) : vdup_n_s8(x_zero));
      }
    }
  };
  for (int64_t i = 0; i < first; ++i) edge(i);
  const int8_t *p = line + (from + first) * c, *q = p + apart * c;
  if (step == 2 * c) {
    if (first < end) copy_pair(p, q, (end - first) * c, to + first * step);
  } else {
    for (int64_t i = first; i < end; ++i, p += c, q += c) copy_pair(p, q, c, to + i * step);
  }
  for (int64_t i = end; i < pixels; ++i) edge(i);
}

// ---- products

// The sums of pair r: sums[4 * r + i] has columns 2 * i and 2 * i + 1 with its first row, then with its
// second.
using Sums = int32x4_t[16];

// The loops are in assembly, because compilers copy sums between registers around them. v0 to v15 are sums,
// v16 to v23 columns of eight depths each. Pairs are read at x10 to x13.
#define SINTER_EIGHT_DEPTHS(c, d, e, f, x, b0, b1, b2, b3) \
  "smmla v" #c ".4s, v" #x ".16b, v" #b0                   \
  ".16b\n\t"                                               \
  "smmla v" #d ".4s, v" #x ".16b, v" #b1                   \
  ".16b\n\t"                                               \
  "smmla v" #e ".4s, v" #x ".16b, v" #b2                   \
  ".16b\n\t"                                               \
  "smmla v" #f ".4s, v" #x ".16b, v" #b3 ".16b\n\t"
#define SINTER_SIXTEEN(p, x, y, c, d, e, f)                                                     \
  "ldp q" #x ", q" #y ", [x" #p "], #32\n\t" SINTER_EIGHT_DEPTHS(c, d, e, f, x, 16, 17, 18, 19) \
      SINTER_EIGHT_DEPTHS(c, d, e, f, y, 20, 21, 22, 23)
#define SINTER_EIGHT(p, x, y, c, d, e, f) \
  "ldr q" #x ", [x" #p "]\n\t" SINTER_EIGHT_DEPTHS(c, d, e, f, x, 16, 17, 18, 19)
#define SINTER_BEGIN(p, x, y, c, d, e, f) "ldrsw x" #p ", [x14], #4\n\tadd x" #p ", x9, x" #p "\n\t"
#define SINTER_COPY(p, x, y, c, d, e, f)                                                      \
  "mov v" #c ".16b, v0.16b\n\tmov v" #d ".16b, v1.16b\n\tmov v" #e ".16b, v2.16b\n\tmov v" #f \
  ".16b, v3.16b\n\t"
#define SINTER_PAIR0(of) of(10, 24, 25, 0, 1, 2, 3)
#define SINTER_PAIR1(of) of(11, 26, 27, 4, 5, 6, 7)
#define SINTER_PAIR23(of) of(12, 28, 29, 8, 9, 10, 11) of(13, 30, 31, 12, 13, 14, 15)
#define SINTER_ONE(of) SINTER_PAIR0(of)
#define SINTER_TWO(of) SINTER_PAIR0(of) SINTER_PAIR1(of)
#define SINTER_FOUR(of) SINTER_TWO(of) SINTER_PAIR23(of)
#define SINTER_PRODUCT(each, copies) \
  asm volatile(".arch armv8.2-a+crypto+dotprod+i8mm\n\t"                                                   \
      "mov x14, %[bias]\n\tld1r {v0.2d}, [x14], #8\n\tld1r {v1.2d}, [x14], #8\n\t"                         \
      "ld1r {v2.2d}, [x14], #8\n\tld1r {v3.2d}, [x14]\n\t" copies                                          \
      "1:\n\tldrsw x9, [%[runs]], #4\n\tmov x14, %[pairs]\n\tadd x9, %[a], x9\n\t" each(SINTER_BEGIN)      \
      "mov x14, %[blocks]\n\tcbz x14, 3f\n\t"                                                              \
      "2:\n\tld1 {v16.4s, v17.4s, v18.4s, v19.4s}, [%[b]], #64\n\t"                                        \
      "ld1 {v20.4s, v21.4s, v22.4s, v23.4s}, [%[b]], #64\n\tsub x14, x14, #1\n\t" each(SINTER_SIXTEEN)     \
      "cbnz x14, 2b\n\t"                                                                                   \
      "3:\n\ttbz %[depth], #3, 4f\n\tld1 {v16.4s, v17.4s, v18.4s, v19.4s}, [%[b]], #64\n\t"                \
      each(SINTER_EIGHT)                                                                                   \
      "4:\n\tsub %[count], %[count], #1\n\tcbnz %[count], 1b\n\t"                                          \
      : [runs] "+r"(run), [b] "+r"(b), [count] "+r"(count), "=w"(s0), "=w"(s1), "=w"(s2), "=w"(s3), "=w"(s4), \
        "=w"(s5), "=w"(s6), "=w"(s7), "=w"(s8), "=w"(s9), "=w"(s10), "=w"(s11), "=w"(s12), "=w"(s13),      \
        "=w"(s14), "=w"(s15)                                                                               \
      : [a] "r"(from.buffer), [pairs] "r"(pairs), [blocks] "r"(from.depth >> 4), [depth] "r"(from.depth), [bias] "r"(from.bias) \
      : "memory", "x9", "x10", "x11", "x12", "x13", "x14", "v16", "v17", "v18", "v19", "v20", "v21", "v22", \
        "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31")

// The data that the blocks of a panel share.
struct PanelOf {
  const std::byte* buffer;
  const int32_t* run;
  int64_t count, depth;  // runs, and their packed depth
  const int8_t* b;
  const int32_t* bias;
};

// Computes the sums of kPairs pairs and the eight columns of a panel.
template <int kPairs>
[[gnu::always_inline]] inline void multiply_pairs(const PanelOf& from, const int32_t* pairs, Sums& sums) {
  register int32x4_t s0 asm("v0"), s1 asm("v1"), s2 asm("v2"), s3 asm("v3"), s4 asm("v4"), s5 asm("v5"),
      s6 asm("v6"), s7 asm("v7"), s8 asm("v8"), s9 asm("v9"), s10 asm("v10"), s11 asm("v11"), s12 asm("v12"),
      s13 asm("v13"), s14 asm("v14"), s15 asm("v15");
  const int32_t* run = from.run;
  const int8_t* b = from.b;
  int64_t count = from.count;
  if constexpr (kPairs == 1)
    SINTER_PRODUCT(SINTER_ONE, "");
  else if constexpr (kPairs == 2)
    SINTER_PRODUCT(SINTER_TWO, SINTER_PAIR1(SINTER_COPY));
  else
    SINTER_PRODUCT(SINTER_FOUR, SINTER_PAIR1(SINTER_COPY) SINTER_PAIR23(SINTER_COPY));
  sums[0] = s0, sums[1] = s1, sums[2] = s2, sums[3] = s3, sums[4] = s4, sums[5] = s5, sums[6] = s6;
  sums[7] = s7, sums[8] = s8, sums[9] = s9, sums[10] = s10, sums[11] = s11, sums[12] = s12, sums[13] = s13;
  sums[14] = s14, sums[15] = s15;
}

#undef SINTER_PRODUCT
#undef SINTER_FOUR
#undef SINTER_TWO
#undef SINTER_ONE
#undef SINTER_PAIR23
#undef SINTER_PAIR1
#undef SINTER_PAIR0
#undef SINTER_COPY
#undef SINTER_BEGIN
#undef SINTER_EIGHT
#undef SINTER_SIXTEEN
#undef SINTER_EIGHT_DEPTHS

// ---- results

enum class Bounds {
  kNone,    // only those of int8; scaled sums are int16
  kBytes,   // other bounds
  kFloats,  // any, where multipliers may be NaN or infinite
};

// The end of one panel's sums.
template <Bounds kBounds>
struct PairBytes {
  float32x4_t multipliers[4], low, high;
  int16x8_t zero;
  int8x16_t least, most;
  int64_t next;  // like QPairRows::next

  // Rounds half to even; saturates, as all of the narrowing does. NaN gives the lower bound.
  [[gnu::always_inline]] int32x4_t rounded(int32x4_t sum, int i) const {
    float32x4_t v = vmulq_f32(vcvtq_f32_s32(sum), multipliers[i]);
    if constexpr (kBounds == Bounds::kFloats) v = vminq_f32(vmaxnmq_f32(v, low), high);
    return vcvtnq_s32_f32(v);
  }
  [[gnu::always_inline]] static int16x8_t words(int32x4_t a, int32x4_t b) {
    if constexpr (kBounds == Bounds::kNone)
      return vuzp1q_s16(vreinterpretq_s16_s32(a), vreinterpretq_s16_s32(b));
    return vqmovn_high_s32(vqmovn_s32(a), b);
  }
  // Returns two columns of both rows, then the next two.
  [[gnu::always_inline]] int16x8_t bytes(const int32x4_t* s) const {
    const int16x8_t a = words(rounded(s[0], 0), rounded(s[1], 1)),
                    b = words(rounded(s[2], 2), rounded(s[3], 3));
    return vreinterpretq_s16_s8(vqmovn_high_s16(vqmovn_s16(vqaddq_s16(a, zero)), vqaddq_s16(b, zero)));
  }
  [[gnu::always_inline]] int8x16_t bounded(int16x8_t v) const {
    const int8x16_t all = vreinterpretq_s8_s16(v);
    return kBounds == Bounds::kBytes ? vminq_s8(vmaxq_s8(all, least), most) : all;
  }
  // Stores the results of kPairs pairs, at y + y_rows[..].
  template <int kPairs>
  [[gnu::always_inline]] void store(const Sums& sums, const int64_t* y_rows, int8_t* y) const {
    const auto one = [&](int r) __attribute__((always_inline)) {
      const int16x8_t v = bytes(sums + 4 * r);
      const int8x16_t first = bounded(vuzp1q_s16(v, v)), second = bounded(vuzp2q_s16(v, v));
      vst1_s8(y + y_rows[r], vget_low_s8(first));
      vst1_s8(y + y_rows[r] + next, vget_low_s8(second));
    };
    // The halves of a vector are a row each.
    const auto two = [&](int r) __attribute__((always_inline)) {
      const int16x8_t v = bytes(sums + 4 * r), w = bytes(sums + 4 * r + 4);
      const int8x16_t first = bounded(vuzp1q_s16(v, w)), second = bounded(vuzp2q_s16(v, w));
      int8_t *p = y + y_rows[r], *q = y + y_rows[r + 1];
      vst1_s8(p, vget_low_s8(first)), vst1_s8(p + next, vget_low_s8(second));
      const int64_t first_of_q = vgetq_lane_s64(vreinterpretq_s64_s8(first), 1),
                    second_of_q = vgetq_lane_s64(vreinterpretq_s64_s8(second), 1);
      std::memcpy(q, &first_of_q, 8), std::memcpy(q + next, &second_of_q, 8);
    };
    if constexpr (kPairs == 1) one(0);
    if constexpr (kPairs >= 2) two(0);
    if constexpr (kPairs == 4) two(2);
  }
};

template <int kPairs, Bounds kBounds>
[[gnu::always_inline]] inline void block(const PanelOf& from, const QPairRows& rows, int64_t pair,
                                         const PairBytes<kBounds>& end, int8_t* y) {
  Sums sums;
  multiply_pairs<kPairs>(from, rows.pairs + pair, sums);
  end.template store<kPairs>(sums, rows.y_rows + pair, y);
}

// Does the same for a panel with fewer columns.
template <int kPairs, Bounds kBounds>
void part_of_block(const PanelOf& from, const QPairRows& rows, int64_t pair, PairBytes<kBounds> end,
                   int8_t* y, int64_t columns) {
  constexpr int64_t kRows[] = {0, 16, 32, 48};
  int8_t tile[64];
  Sums sums;
  multiply_pairs<kPairs>(from, rows.pairs + pair, sums);
  end.next = 8;
  end.template store<kPairs>(sums, kRows, tile);
  for (int r = 0; r < kPairs; ++r) {
    int8_t* to = y + rows.y_rows[pair + r];
    store_columns(tile + kRows[r], columns, to);
    store_columns(tile + kRows[r] + 8, columns, to + rows.next);
  }
}

template <Bounds kBounds>
void panel(const QPacked& w, const QPairRows& rows, int64_t column, const ProductResult& result) {
  const PanelOf from{rows.buffer,
                     rows.runs,
                     w.runs.count,
                     w.runs.packed_length(),
                     w.panels + column * w.runs.packed_depth(),
                     w.bias + column};
  PairBytes<kBounds> end;
  for (int i = 0; i < 4; ++i) {
    const float32x2_t two = vld1_f32(w.multipliers + column + 2 * i);
    end.multipliers[i] = vcombine_f32(two, two);
  }
  end.low = vdupq_n_f32(result.low), end.high = vdupq_n_f32(result.high);
  end.zero = vdupq_n_s16(static_cast<int16_t>(result.zero));
  end.least = vdupq_n_s8(lowest(result)), end.most = vdupq_n_s8(highest(result));
  end.next = rows.next;
  auto* y = static_cast<int8_t*>(result.y) + column;
  const int64_t columns = w.columns - column;
  const auto blocks = [&](auto&& block_of) {
    int64_t pair = 0;
    for (; pair + 4 <= rows.count; pair += 4) block_of(std::integral_constant<int, 4>(), pair);
    const int64_t left = rows.count - pair;
    // Three pairs take as long as four, one of them again.
    if (left == 3 && rows.count > 3) return block_of(std::integral_constant<int, 4>(), rows.count - 4);
    if (left >= 2) block_of(std::integral_constant<int, 2>(), pair), pair += 2;
    if (pair < rows.count) block_of(std::integral_constant<int, 1>(), pair);
  };
  if (columns >= 8)
    blocks([&](auto pairs, int64_t at)
               __attribute__((always_inline)) { block<pairs()>(from, rows, at, end, y); });
  else
    blocks([&](auto pairs, int64_t at) { part_of_block<pairs()>(from, rows, at, end, y, columns); });
}

using Panel = void (*)(const QPacked& w, const QPairRows& rows, int64_t column, const ProductResult& result);

Panel panel_of(const QPacked& w, int64_t column, const ProductResult& result) {
  const int64_t columns = std::min<int64_t>(w.columns - column, 8);
  const float* multipliers = w.multipliers + column;
  if (!finite(multipliers, columns)) return panel<Bounds::kFloats>;
  return lowest(result) == -128 && highest(result) == 127 &&
                 scaled_sums_fit(w.bias + column, multipliers, w.runs.depth())
             ? panel<Bounds::kNone>
             : panel<Bounds::kBytes>;
}

}  // namespace

void load_q_pairs(const Geometry& g, const QBox& box, const int8_t* x, int32_t x_zero, std::byte* buffer) {
  auto* to = reinterpret_cast<int8_t*>(buffer);
  const int64_t reach = (g.kernel[1] - 1) * g.dilation[1], pixels = pair_pixels(g, box);
  for (int64_t t0 = 0; t0 < g.kernel[0]; ++t0) {
    const int64_t i0 = box.begin[0] * g.stride[0] - g.pad[0] + t0 * g.dilation[0];
    for (int64_t l = 0; l < box.lines; ++l, to += 2 * pixels * pair_channels(g.in_channels)) {
      if (l % g.stride[1] > reach) continue;  // between the windows
      const int64_t i1 = box.begin[1] * g.stride[1] - g.pad[1] + l;
      load_line(g, input_line(g, box, x, i0, i1), box.begin[2] * g.stride[2] - g.pad[2], box.line - pixels,
                pixels, static_cast<int8_t>(x_zero), to);
    }
  }
}

void multiply_q_pairs(const QPacked& w, const QPairRows& rows, int64_t first_panel, int64_t end_panel,
                      const ProductResult& result) {
  for (int64_t column = first_panel * 8; column < std::min(end_panel * 8, w.columns); column += 8)
    panel_of(w, column, result)(w, rows, column, result);
}

#else

void load_q_pairs(const Geometry&, const QBox&, const int8_t*, int32_t, std::byte*) {}
void multiply_q_pairs(const QPacked&, const QPairRows&, int64_t, int64_t, const ProductResult&) {}

#endif

}  // namespace sinter::simd
