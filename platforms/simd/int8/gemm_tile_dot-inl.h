// Blocks of rows by a panel, whose products are dot products of bytes, or on ARM without them and on
// WebAssembly of int16.
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_INT8_GEMM_TILE_DOT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_INT8_GEMM_TILE_DOT_INL_H_
#undef SINTER_PLATFORMS_SIMD_INT8_GEMM_TILE_DOT_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_INT8_GEMM_TILE_DOT_INL_H_
#endif

#include <cstring>

#include "platforms/simd/float/gemm_four_depths_neon-inl.h"
#include "platforms/simd/int8/gemm.h"
#include "platforms/simd/int8/gemm_tile-inl.h"
#include "platforms/simd/int8/multiply-inl.h"

// The columns are side by side: a sum for their lower half, and one for their upper half.
#undef SINTER_Q_COLUMNS
#define SINTER_Q_COLUMNS (!HWY_ARCH_X86 && HWY_TARGET != HWY_NEON)

#if !HWY_ARCH_X86 || HWY_TARGET <= HWY_AVX3_DL
HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// kUnit depths are multiplied at a time; a Word of a row is broadcast.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
using Word = int32_t;
using Weights = V8;
constexpr int64_t kUnit = kCell;
HWY_INLINE Weights load_weights(const int8_t* p) { return hn::LoadU(D8(), p); }
HWY_INLINE V32 product(Word word, Weights w, V32 sum) {
  return add_products(hn::Set(D32(), word), hn::BitCast(D32(), w), sum);
}
#elif HWY_TARGET == HWY_NEON  // with dot products of bytes (isa/config.h)
using Word = int32_t;
using Weights = V8;
constexpr int64_t kUnit = kCell;
HWY_INLINE Weights load_weights(const int8_t* p) { return hn::LoadU(D8(), p); }
// Adds word `lane` of x times four columns.
template <int lane>
HWY_INLINE V32 dot_of_lane(int8x8_t x, V8 w, V32 sum) {
  asm(".arch armv8.2-a+crypto+dotprod\n\tsdot %0.4s, %1.16b, %2.4b[%3]"
      : "+w"(sum.raw)
      : "w"(w.raw), "w"(x), "n"(lane));
  return sum;
}
HWY_INLINE int8x8_t load_word(const int8_t* p) {
  int32_t word;
  std::memcpy(&word, p, sizeof(word));
  return vreinterpret_s8_s32(vld1_dup_s32(&word));
}
#else
using Word = int16_t;
using Weights = V16;
constexpr int64_t kUnit = 1;
HWY_INLINE Weights load_weights(const int8_t* p) { return load16(p); }
#endif

constexpr int64_t kMaxRows = HWY_ARCH_X86 || HWY_ARCH_ARM_A64 ? 8 : 4;  // as many as the registers hold

// The weights of a panel, and the numbers that they are multiplied with besides a row.
struct Panel {
  const QRuns& runs;
  const int32_t* run_offsets;
  const int8_t* weights;
  const int32_t* bias;
  static int64_t rows_at_once() { return kMaxRows; }
};

// The panels of weights for the rows of a box.
class Panels {
 public:
  Panels(const QPacked& w, const QRows& rows) : w_(w), rows_(rows) {}
  Panel at(int64_t index) const {
    const int64_t column = index * panel_columns();
    return {w_.runs, rows_.runs, w_.panels + column * w_.runs.packed_depth(), w_.bias + column};
  }

 private:
  const QPacked& w_;
  const QRows& rows_;
};

HWY_INLINE Word word_at(const Element* p) {
  Word w;
  std::memcpy(&w, p, sizeof(w));
  return w;
}

template <int kRows, int kVectors, class End>
HWY_INLINE void block(const Element* a, const int32_t* rows, const Panel& panel, const End& end) {
  const D32 d;
  const QRuns& runs = panel.runs;
  const int8_t* b = panel.weights;
  const int32_t* bias = panel.bias;
  const size_t lanes = hn::Lanes(d);
  const auto step = static_cast<int64_t>(2 * lanes) * kUnit;
  // Weights are packed up to a multiple of kQDepth, the rest of which is skipped.
  const int64_t depth = divide_up(runs.length, kUnit) * kUnit;
  const int64_t skipped = (runs.packed_length() - depth) * static_cast<int64_t>(2 * lanes);
  const V32 s0 = hn::LoadU(d, bias), s1 = hn::LoadU(d, bias + (kVectors == 2 ? lanes : 0));
  V32 c00 = s0, c10 = s0, c20 = s0, c30 = s0, c40 = s0, c50 = s0, c60 = s0, c70 = s0;
  V32 c01 = s1, c11 = s1, c21 = s1, c31 = s1, c41 = s1, c51 = s1, c61 = s1, c71 = s1;
  // A single row alternates between sums, so that no sum waits for the one before it.
  if constexpr (kRows == 1) c10 = c11 = c20 = c21 = c30 = c31 = hn::Zero(d);
  for (int64_t run = 0; run < runs.count; ++run, b += skipped) {
    const Element* from = a + panel.run_offsets[run];
#define SINTER_ROW(r) [[maybe_unused]] const Element* a##r = from + (kRows > r ? rows[kRows > r ? r : 0] : 0);
    SINTER_EACH_ROW(SINTER_ROW)
#undef SINTER_ROW
    int64_t k = 0;
#if SINTER_Q_COLUMNS
    for (; k < depth; ++k, b += step) {
      const V16 w = load_weights(b);
#define SINTER_ROW(r)      \
  if constexpr (kRows > r) \
    c##r##0 = hn::WidenMulAccumulate(d, hn::Set(D16(), word_at(a##r + k)), w, c##r##0, c##r##1);
#else
    const int64_t half = step / 2;
#if HWY_TARGET == HWY_NEON
    for (FourDots f; k + 4 * kUnit <= depth; k += 4 * kUnit) {
      f.load_panel(b);
#define SINTER_PAIR(q, r)                                                                    \
  if constexpr (kRows > r)                                                                   \
    f.add<kVectors>(a##q, a##r, (c##q##0).raw, (c##q##1).raw, (c##r##0).raw, (c##r##1).raw); \
  else if constexpr (kRows > q)                                                              \
    f.add<kVectors>(a##q, (c##q##0).raw, (c##q##1).raw);
      SINTER_PAIR(0, 1) SINTER_PAIR(2, 3) SINTER_PAIR(4, 5) SINTER_PAIR(6, 7)
#undef SINTER_PAIR
    }
    // The rest takes a word or two of each row at a time.
    if (depth - k >= 2 * kUnit) {
      const V8 w0 = load_weights(b), w1 = load_weights(b + half), w2 = load_weights(b + step),
               w3 = load_weights(b + step + half);
#define SINTER_ROW(r)                                                                             \
  if constexpr (kRows > r) {                                                                      \
    const int8x8_t x = vld1_s8(a##r);                                                             \
    a##r += 2 * kUnit;                                                                            \
    c##r##0 = dot_of_lane<1>(x, w2, dot_of_lane<0>(x, w0, c##r##0));                              \
    if constexpr (kVectors == 2) c##r##1 = dot_of_lane<1>(x, w3, dot_of_lane<0>(x, w1, c##r##1)); \
  }
      SINTER_EACH_ROW(SINTER_ROW)
#undef SINTER_ROW
      k += 2 * kUnit, b += 2 * step;
    }
    if (k < depth) {
      const V8 w0 = load_weights(b), w1 = load_weights(b + half);
      b += step;
#define SINTER_ROW(r)                                                      \
  if constexpr (kRows > r) {                                               \
    const int8x8_t x = load_word(a##r);                                    \
    c##r##0 = dot_of_lane<0>(x, w0, c##r##0);                              \
    if constexpr (kVectors == 2) c##r##1 = dot_of_lane<0>(x, w1, c##r##1); \
  }
#else
    if constexpr (kRows == 1) {
      for (; k + 4 * kUnit <= depth; k += 4 * kUnit, b += 4 * step) {
#define SINTER_TURN(i)                                                                 \
  c##i##0 = product(word_at(a0 + k + i * kUnit), load_weights(b + i * step), c##i##0); \
  if constexpr (kVectors == 2)                                                         \
    c##i##1 = product(word_at(a0 + k + i * kUnit), load_weights(b + i * step + half), c##i##1);
        SINTER_TURN(0) SINTER_TURN(1) SINTER_TURN(2) SINTER_TURN(3)
#undef SINTER_TURN
      }
    }
    for (; k < depth; k += kUnit, b += step) {
      const Weights w0 = load_weights(b);
      const Weights w1 = kVectors == 2 ? load_weights(b + half) : w0;
#define SINTER_ROW(r)                                               \
  if constexpr (kRows > r) {                                        \
    const Word x = word_at(a##r + k);                               \
    c##r##0 = product(x, w0, c##r##0);                              \
    if constexpr (kVectors == 2) c##r##1 = product(x, w1, c##r##1); \
  }
#endif
#endif
      SINTER_EACH_ROW(SINTER_ROW)
#undef SINTER_ROW
    }
  }
  if constexpr (kRows == 1) {
    c00 = hn::Add(hn::Add(c00, c10), hn::Add(c20, c30));
    c01 = hn::Add(hn::Add(c01, c11), hn::Add(c21, c31));
  }
  end_block<kRows, kVectors>(end, c00, c01, c10, c11, c20, c21, c30, c31, c40, c41, c50, c51, c60, c61, c70,
                             c71);
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();
#endif

#endif  // per-target include guard
