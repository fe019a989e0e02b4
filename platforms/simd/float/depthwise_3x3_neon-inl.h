// DepthwiseConv of 3x3, line by line, on 64-bit ARM: eight channels, whose filters stay in registers. A
// column of the input goes into the results of all windows that it is part of, so that it is loaded once for
// each line of the result. Sums are in the order of the columns, then of the lines. It is in assembly,
// because the filters, the column and three columns of sums take 30 registers.
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_FLOAT_DEPTHWISE_3X3_NEON_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_FLOAT_DEPTHWISE_3X3_NEON_INL_H_
#undef SINTER_PLATFORMS_SIMD_FLOAT_DEPTHWISE_3X3_NEON_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_FLOAT_DEPTHWISE_3X3_NEON_INL_H_
#endif

#include "platforms/simd/float/depthwise.h"
#include "platforms/simd/isa/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

#if HWY_ARCH_ARM_A64

// Lines of the result whose windows have the same lines inside the input. Steps are in bytes.
struct DepthwiseRun {
  const float* x[3];    // first column of each line of the first window
  int64_t pixel, line;  // from column to column, and from the last one to the next window's line
  const float* filter;  // the filter of the first line inside
  int64_t tap;          // from tap to tap
  const float* bias;    // eight of them
  const float* bounds;  // the lower one four times, then the upper one
  float* y;
  int64_t out_pixel;
  int64_t lines;
  int64_t steps;   // columns of the result between the first and the last
  int64_t begins;  // 1: the first column is in the padding
  int64_t ends;    // 1: so is the last
};

// v0 to v17: two vectors for each tap, v18 to v23: a column of the input, v24 to v29: sums A, B and C, v30
// and v31: bounds. The list of a line has the registers of its three taps and of its input, and its pointer.
#define SINTER_LINE0(op, a, b) op(a, b, 0, 1, 2, 3, 4, 5, 18, 19, x9)
#define SINTER_LINE1(op, a, b) op(a, b, 6, 7, 8, 9, 10, 11, 20, 21, x10)
#define SINTER_LINE2(op, a, b) op(a, b, 12, 13, 14, 15, 16, 17, 22, 23, x11)
#define SINTER_LINES1(op, a, b) SINTER_LINE0(op, a, b)
#define SINTER_LINES2(op, a, b) SINTER_LINE0(op, a, b) SINTER_LINE1(op, a, b)
#define SINTER_LINES3(op, a, b) SINTER_LINES2(op, a, b) SINTER_LINE2(op, a, b)

#define SINTER_FILTERS(a, b, f0, g0, f1, g1, f2, g2, x0, x1, p) \
  "ld1 {v" #f0 ".4s, v" #g0                                     \
  ".4s}, [%[filter]], %[tap]\n\t"                               \
  "ld1 {v" #f1 ".4s, v" #g1                                     \
  ".4s}, [%[filter]], %[tap]\n\t"                               \
  "ld1 {v" #f2 ".4s, v" #g2 ".4s}, [%[filter]], %[tap]\n\t"
#define SINTER_COLUMN(a, b, f0, g0, f1, g1, f2, g2, x0, x1, p) \
  "ld1 {v" #x0 ".4s, v" #x1 ".4s}, [" #p "], %[pixel]\n\t"
#define SINTER_NEXT(a, b, f0, g0, f1, g1, f2, g2, x0, x1, p) "add " #p ", " #p ", %[line]\n\t"
#define SINTER_PRODUCTS(a, b, f, g, x0, x1) \
  "fmla v" #a ".4s, v" #f ".4s, v" #x0      \
  ".4s\n\t"                                 \
  "fmla v" #b ".4s, v" #g ".4s, v" #x1 ".4s\n\t"
#define SINTER_TAP0(a, b, f0, g0, f1, g1, f2, g2, x0, x1, p) SINTER_PRODUCTS(a, b, f0, g0, x0, x1)
#define SINTER_TAP1(a, b, f0, g0, f1, g1, f2, g2, x0, x1, p) SINTER_PRODUCTS(a, b, f1, g1, x0, x1)
#define SINTER_TAP2(a, b, f0, g0, f1, g1, f2, g2, x0, x1, p) SINTER_PRODUCTS(a, b, f2, g2, x0, x1)
#define SINTER_BEGIN(a, b) "ldp q" #a ", q" #b ", [%[bias]]\n\t"
#define SINTER_CLAMP_BELOW(a, b) \
  "fmax v" #a ".4s, v" #a ".4s, v30.4s\n\tfmax v" #b ".4s, v" #b ".4s, v30.4s\n\t"
#define SINTER_CLAMP(a, b) \
  SINTER_CLAMP_BELOW(a, b) "fmin v" #a ".4s, v" #a ".4s, v31.4s\n\tfmin v" #b ".4s, v" #b ".4s, v31.4s\n\t"
#define SINTER_STORE(a, b) "st1 {v" #a ".4s, v" #b ".4s}, [%[y]], %[out_pixel]\n\t"

// With stride 1, a step takes a column of the input: the last one of the sums `o`, the middle one of `m` and
// the first one of `n`.
#define SINTER_STEP1(lines, bound, oa, ob, ma, mb, na, nb)                                                  \
  SINTER_BEGIN(na, nb)                                                                                      \
  lines(SINTER_COLUMN, , ) lines(SINTER_TAP2, oa, ob) lines(SINTER_TAP1, ma, mb) lines(SINTER_TAP0, na, nb) \
      bound(oa, ob) SINTER_STORE(oa, ob)
#define SINTER_END1(lines, bound, oa, ob, ma, mb)                                 \
  lines(SINTER_COLUMN, , ) lines(SINTER_TAP2, oa, ob) bound(oa, ob) SINTER_STORE( \
      oa, ob) "tbz %[ends], #0, 9f\n\t" lines(SINTER_TAP1, ma, mb) bound(ma, mb) SINTER_STORE(ma, mb)
#define SINTER_STRIDE1(lines, bound) \
  SINTER_BEGIN(24, 25) SINTER_BEGIN(26, 27) lines(SINTER_COLUMN, , )                                    \
  "tbnz %[begins], #0, 2f\n\t" lines(SINTER_TAP0, 24, 25) lines(SINTER_COLUMN, , )                      \
  "2:\n\t" lines(SINTER_TAP1, 24, 25) lines(SINTER_TAP0, 26, 27)                                        \
  "subs x12, %[steps], #3\n\t"                                                                          \
  "b.lt 4f\n\t"                                                                                         \
  "3:\n\t" SINTER_STEP1(lines, bound, 24, 25, 26, 27, 28, 29)                                           \
      SINTER_STEP1(lines, bound, 26, 27, 28, 29, 24, 25)                                                \
      SINTER_STEP1(lines, bound, 28, 29, 24, 25, 26, 27)                                                \
  "subs x12, x12, #3\n\t"                                                                               \
  "b.ge 3b\n\t"                                                                                         \
  "4:\n\tcmn x12, #2\n\t"                                                                               \
  "b.eq 5f\n\t"                                                                                         \
  "b.gt 6f\n\t" SINTER_END1(lines, bound, 24, 25, 26, 27)                                               \
  "b 9f\n\t"                                                                                            \
  "5:\n\t" SINTER_STEP1(lines, bound, 24, 25, 26, 27, 28, 29) SINTER_END1(lines, bound, 26, 27, 28, 29) \
  "b 9f\n\t"                                                                                            \
  "6:\n\t" SINTER_STEP1(lines, bound, 24, 25, 26, 27, 28, 29)                                           \
      SINTER_STEP1(lines, bound, 26, 27, 28, 29, 24, 25) SINTER_END1(lines, bound, 28, 29, 24, 25)

// With stride 2, a step takes two columns: the middle and the last one of the sums `o`, of which the latter
// is the first one of `n`.
#define SINTER_STEP2(lines, bound, oa, ob, na, nb)                                                  \
  lines(SINTER_COLUMN, , ) SINTER_BEGIN(na, nb) lines(SINTER_TAP1, oa, ob) lines(SINTER_COLUMN, , ) \
      lines(SINTER_TAP2, oa, ob) lines(SINTER_TAP0, na, nb) bound(oa, ob) SINTER_STORE(oa, ob)
#define SINTER_END2(lines, bound, oa, ob)                                                                 \
  lines(SINTER_COLUMN, , ) lines(SINTER_TAP1, oa, ob) "tbnz %[ends], #0, 8f\n\t" lines(SINTER_COLUMN, , ) \
      lines(SINTER_TAP2, oa, ob) "8:\n\t" bound(oa, ob) SINTER_STORE(oa, ob)
#define SINTER_STRIDE2(lines, bound) \
  SINTER_BEGIN(24, 25)               \
  "tbnz %[begins], #0, 2f\n\t" lines(SINTER_COLUMN, , ) lines(SINTER_TAP0, 24, 25)                      \
  "2:\n\tsubs x12, %[steps], #2\n\t"                                                                    \
  "b.lt 4f\n\t"                                                                                         \
  "3:\n\t" SINTER_STEP2(lines, bound, 24, 25, 26, 27) SINTER_STEP2(lines, bound, 26, 27, 24, 25)        \
  "subs x12, x12, #2\n\t"                                                                               \
  "b.ge 3b\n\t"                                                                                         \
  "4:\n\ttbnz x12, #0, 5f\n\t" SINTER_END2(lines, bound, 24, 25)                                        \
  "b 9f\n\t"                                                                                            \
  "5:\n\t" SINTER_STEP2(lines, bound, 24, 25, 26, 27) SINTER_END2(lines, bound, 26, 27)

#define SINTER_RUN(stride, lines, bound) \
  asm volatile("mov x9, %[x0]\n\tmov x10, %[x1]\n\tmov x11, %[x2]\n\t"                                  \
               "ldp q30, q31, [%[bounds]]\n\t" lines(SINTER_FILTERS, , )                                \
               "1:\n\t" stride(lines, bound)                                                            \
               "9:\n\t" lines(SINTER_NEXT, , )                                                          \
               "subs %[count], %[count], #1\n\t"                                                        \
               "b.ne 1b\n\t"                                                                            \
               : [filter] "+r"(filter), [y] "+r"(y), [count] "+r"(count)                                \
               : [x0] "r"(r.x[0]), [x1] "r"(r.x[1]), [x2] "r"(r.x[2]), [pixel] "r"(r.pixel),            \
                 [line] "r"(r.line), [tap] "r"(r.tap), [bias] "r"(r.bias), [bounds] "r"(r.bounds),      \
                 [out_pixel] "r"(r.out_pixel), [steps] "r"(r.steps), [begins] "r"(r.begins), [ends] "r"(r.ends)                                             \
               : "memory", "cc", "x9", "x10", "x11", "x12", "v0", "v1", "v2", "v3", "v4", "v5", "v6",   \
                 "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18",       \
                 "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30",    \
                 "v31")

template <int kStride, int kLines, bool kLowers>
HWY_NOINLINE void run_depthwise_lines(const DepthwiseRun& r) {
  const float* filter = r.filter;
  float* y = r.y;
  int64_t count = r.lines;
#define SINTER_CHOOSE(stride, n)                                      \
  if constexpr (kStride == stride && kLines == n && kLowers)          \
    SINTER_RUN(SINTER_STRIDE##stride, SINTER_LINES##n, SINTER_CLAMP); \
  if constexpr (kStride == stride && kLines == n && !kLowers)         \
  SINTER_RUN(SINTER_STRIDE##stride, SINTER_LINES##n, SINTER_CLAMP_BELOW)
  SINTER_CHOOSE(1, 1);
  SINTER_CHOOSE(1, 2);
  SINTER_CHOOSE(1, 3);
  SINTER_CHOOSE(2, 1);
  SINTER_CHOOSE(2, 2);
  SINTER_CHOOSE(2, 3);
#undef SINTER_CHOOSE
}

#include "platforms/simd/isa/undef_assembly.h"

template <int kStride, bool kLowers>
void choose_lines(const DepthwiseRun& r, int64_t inside) {
  if (inside == 3) return run_depthwise_lines<kStride, 3, kLowers>(r);
  if (inside == 2) return run_depthwise_lines<kStride, 2, kLowers>(r);
  run_depthwise_lines<kStride, 1, kLowers>(r);
}

// Returns the columns of the last window that are in the padding.
int64_t depthwise_overhang(const Geometry& g) {
  return (g.out[2] - 1) * g.stride[2] - g.pad[2] + g.kernel[2] - g.in[2];
}

bool takes_depthwise_lines(const Geometry& g) {
  return g.kernel[0] == 1 && g.kernel[1] == 3 && g.kernel[2] == 3 && g.stride[2] <= 2 && g.dilation[2] == 1 &&
         g.dilation[1] == 1 && g.pad[0] == 0 && g.pad[1] >= 0 && g.pad[1] <= 2 && g.pad[2] >= 0 &&
         g.pad[2] <= 1 && (g.out[1] - 1) * g.stride[1] - g.pad[1] < g.in[1] && depthwise_overhang(g) <= 1 &&
         g.out[2] >= 2 && g.in[2] >= 3 && g.in_channels >= 8;
}

void depthwise_lines(const Depthwise& d, int64_t plane, int64_t first, int64_t end) {
  const F f;
  const Geometry& g = d.g;
  constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
  const int64_t lanes = 4, line = g.in[2] * g.in_pixel(), out_line = g.out[2] * g.out_pixel();
  const int64_t ends = depthwise_overhang(g) == 1 ? 1 : 0, begins = g.pad[2];
  alignas(16) float bounds[8], none[8] = {};
  hn::Store(set(d.min), f, bounds), hn::Store(set(d.max), f, bounds + lanes);
  DepthwiseRun r{};
  r.pixel = g.in_pixel() * kFloat, r.out_pixel = g.out_pixel() * kFloat, r.tap = g.in_channels * kFloat;
  r.bounds = bounds, r.begins = begins, r.ends = ends;
  r.steps = g.out[2] - 1 - (g.stride[2] == 1 ? ends : 0);
  const int64_t taken = g.stride[2] == 1 ? (begins != 0 ? 1 : 2) + r.steps + 1
                                         : (begins != 0 ? 0 : 1) + 2 * r.steps + (ends != 0 ? 1 : 2);
  r.line = (g.stride[1] * line - taken * g.in_pixel()) * kFloat;
  const float* image = d.x + (plane / g.out[0] * g.in[0] + plane % g.out[0] * g.stride[0]) * g.in[1] * line;
  const bool lowers = d.max < HUGE_VALF;
  while (first < end) {
    // The lines whose windows have the same lines inside.
    const int64_t start = first * g.stride[1] - g.pad[1];
    const auto within = [&](int64_t at) { return at >= 0 && at < g.in[1]; };
    int64_t skipped = 0, inside = 3, count = 1;
    while (inside > 1 && !within(start + skipped)) ++skipped, --inside;
    while (inside > 1 && !within(start + skipped + inside - 1)) --inside;
    if (inside == 3)
      while (first + count < end && within(start + count * g.stride[1] + 2)) ++count;
    r.lines = count;
    for (int64_t c = 0; c < g.in_channels; c += 8) {
      c = std::min(c, g.in_channels - 8);  // the last vectors may compute some channels again
      for (int64_t i = 0; i < 3; ++i) r.x[i] = image + (start + skipped + std::min(i, inside - 1)) * line + c;
      r.filter = d.filter + skipped * 3 * g.in_channels + c;
      r.bias = d.bias != nullptr ? d.bias + c : none;
      r.y = d.y + (plane * g.out[1] + first) * out_line + c;
      if (g.stride[2] == 1)
        lowers ? choose_lines<1, true>(r, inside) : choose_lines<1, false>(r, inside);
      else
        lowers ? choose_lines<2, true>(r, inside) : choose_lines<2, false>(r, inside);
    }
    first += count;
  }
}

#else

bool takes_depthwise_lines(const Geometry&) { return false; }
void depthwise_lines(const Depthwise&, int64_t, int64_t, int64_t) {}

#endif  // HWY_ARCH_ARM_A64

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
