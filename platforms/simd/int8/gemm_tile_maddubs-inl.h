// Blocks of rows by a panel, whose products are bounded (maddubs-inl.h).
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_INT8_GEMM_TILE_MADDUBS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_INT8_GEMM_TILE_MADDUBS_INL_H_
#undef SINTER_PLATFORMS_SIMD_INT8_GEMM_TILE_MADDUBS_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_INT8_GEMM_TILE_MADDUBS_INL_H_
#endif

#include <algorithm>

#include "platforms/simd/int8/gemm_tile-inl.h"
#include "platforms/simd/int8/maddubs-inl.h"
#include "platforms/simd/int8/multiply-inl.h"

#if HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3_DL
HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

constexpr int64_t kMaxRows = HWY_TARGET <= HWY_AVX3 ? 8 : 4;  // as many as the registers hold
constexpr int64_t kFewRows = 2;
constexpr int64_t kUnit = kQDepth;  // depths that are multiplied at a time

// The means by which products are kept from saturating.
enum class Means {
  kSigned,  // few rows: by the signs of x
  kCells,   // few rows: each cell is compared with its limit, for at most kFewRows rows at a time
  kSteps,   // many rows: steps are chosen by the limits
};

// The weights of a panel, and the way in which they are multiplied with the rows of a box.
struct Panel {
  const QRuns& runs;
  const int32_t* run_offsets;
  const int8_t* weights;
  const int32_t* bias;  // with kSigned of x, else of x + 128
  const uint8_t *limits, *most;
  Means means;
  QSteps steps;
  int64_t rows_at_once() const { return means == Means::kCells ? kFewRows : kMaxRows; }
};

template <int kRows, int kVectors, class End>
HWY_INLINE void block(const RowElement* a, const int32_t* rows, const Panel& panel, const End& end) {
  const D32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(D8()));
  const V32 s0 = hn::LoadU(d, panel.bias), s1 = hn::LoadU(d, panel.bias + (kVectors == 2 ? lanes / 4 : 0));
  V32 c00 = s0, c10 = s0, c20 = s0, c30 = s0, c40 = s0, c50 = s0, c60 = s0, c70 = s0;
  V32 c01 = s1, c11 = s1, c21 = s1, c31 = s1, c41 = s1, c51 = s1, c61 = s1, c71 = s1;
#define SINTER_ROW(r) [[maybe_unused]] const RowElement* a##r = a + (kRows > r ? rows[kRows > r ? r : 0] : 0);
  SINTER_EACH_ROW(SINTER_ROW)
#undef SINTER_ROW
  const QSteps& steps = panel.steps;
  const auto weights_at = [&](int64_t cell, int i) SINTER_SIMD_LAMBDA {
    return hn::LoadU(D8(), panel.weights + (2 * cell + (kVectors == 2 || i % 2 == 0 ? i : 0)) * lanes);
  };
  for (const QStep* s = steps.pairs; s < steps.pairs_end; ++s) {
    const int64_t at = s->input, cell = s->cell;
    const V8 w0 = weights_at(cell, 0), w1 = weights_at(cell, 1), w2 = weights_at(cell, 2),
             w3 = weights_at(cell, 3);
#define SINTER_ROW(r)                                                                    \
  if constexpr (kRows > r) {                                                             \
    const VU8 x = load_cell(a##r + at), y = load_cell(a##r + at + kQDepth);              \
    c##r##0 = add_widened(hn::Add(two_products(x, w0), two_products(y, w2)), c##r##0);   \
    if constexpr (kVectors == 2)                                                         \
      c##r##1 = add_widened(hn::Add(two_products(x, w1), two_products(y, w3)), c##r##1); \
  }
    SINTER_EACH_ROW(SINTER_ROW)
#undef SINTER_ROW
  }
  for (const QStep* s = steps.single; s < steps.single_end; ++s) {
    const int64_t at = s->input, cell = s->cell;
    const V8 w0 = weights_at(cell, 0), w1 = weights_at(cell, 1);
#define SINTER_ROW(r)                                                                 \
  if constexpr (kRows > r) {                                                          \
    const VU8 x = load_cell(a##r + at);                                               \
    c##r##0 = add_widened(two_products(x, w0), c##r##0);                              \
    if constexpr (kVectors == 2) c##r##1 = add_widened(two_products(x, w1), c##r##1); \
  }
    SINTER_EACH_ROW(SINTER_ROW)
#undef SINTER_ROW
  }
  for (const QStep* s = steps.split; s < steps.split_end; ++s) {
    const int64_t at = s->input, cell = s->cell;
    const Halves w0(weights_at(cell, 0)), w1(weights_at(cell, 1));
#define SINTER_ROW(r)                                                       \
  if constexpr (kRows > r) {                                                \
    const Halves x(load_cell(a##r + at));                                   \
    c##r##0 = add_products_of(x, w0, c##r##0);                              \
    if constexpr (kVectors == 2) c##r##1 = add_products_of(x, w1, c##r##1); \
  }
    SINTER_EACH_ROW(SINTER_ROW)
#undef SINTER_ROW
  }
  end_block<kRows, kVectors>(end, c00, c01, c10, c11, c20, c21, c30, c31, c40, c41, c50, c51, c60, c61, c70,
                             c71);
}

// Sums cell by cell in their order, without steps, whose choice would take longer than the products of a row
// or two.
template <int kRows, int kVectors, class End>
HWY_INLINE void few_rows(const RowElement* a, const int32_t* rows, const Panel& panel, const End& end) {
  static_assert(kRows <= kFewRows);
  const D32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(D8()));
  V32 c00 = hn::LoadU(d, panel.bias), c01 = hn::LoadU(d, panel.bias + (kVectors == 2 ? lanes / 4 : 0));
  V32 c10 = c00, c11 = c01;
  const int64_t cells = panel.runs.packed_length() / kQDepth;
  const int8_t* w = panel.weights;
  const uint8_t *limit = panel.limits, *most = panel.most;
  for (int64_t run = 0; run < panel.runs.count; ++run) {
    const RowElement* a0 = a + panel.run_offsets[run] + rows[0];
    const RowElement* a1 = a + panel.run_offsets[run] + rows[kRows - 1];
    for (int64_t cell = 0; cell < cells;
         ++cell, ++limit, ++most, w += 2 * lanes, a0 += kQDepth, a1 += kQDepth) {
      const V8 w0 = hn::LoadU(D8(), w), w1 = hn::LoadU(D8(), w + (kVectors == 2 ? lanes : 0));
      const VU8 x = load_cell(a0), y = load_cell(a1);
      if (HWY_LIKELY(*most <= *limit)) {
        c00 = add_widened(two_products(x, w0), c00);
        if constexpr (kVectors == 2) c01 = add_widened(two_products(x, w1), c01);
        if constexpr (kRows == 2) c10 = add_widened(two_products(y, w0), c10);
        if constexpr (kRows == 2 && kVectors == 2) c11 = add_widened(two_products(y, w1), c11);
      } else {
        const Halves h0(w0), h1(w1), hx(x), hy(y);
        c00 = add_products_of(hx, h0, c00);
        if constexpr (kVectors == 2) c01 = add_products_of(hx, h1, c01);
        if constexpr (kRows == 2) c10 = add_products_of(hy, h0, c10);
        if constexpr (kRows == 2 && kVectors == 2) c11 = add_products_of(hy, h1, c11);
      }
    }
  }
  end_block<kRows, kVectors>(end, c00, c01, c10, c11, c00, c01, c00, c01, c00, c01, c00, c01, c00, c01, c00,
                             c01);
}

// Sums sizes times weights with the signs of x.
template <int kRows, int kVectors, class End>
HWY_INLINE void signed_block(const RowElement* a, const int32_t* rows, const Panel& panel, const End& end) {
  const D32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(D8()));
  const V32 s0 = hn::LoadU(d, panel.bias), s1 = hn::LoadU(d, panel.bias + (kVectors == 2 ? lanes / 4 : 0));
  V32 c00 = s0, c10 = s0, c20 = s0, c30 = s0, c40 = s0, c50 = s0, c60 = s0, c70 = s0;
  V32 c01 = s1, c11 = s1, c21 = s1, c31 = s1, c41 = s1, c51 = s1, c61 = s1, c71 = s1;
  const int64_t length = panel.runs.packed_length();
  const int8_t* w = panel.weights;
  for (int64_t run = 0; run < panel.runs.count; ++run) {
    const RowElement* from = a + panel.run_offsets[run];
#define SINTER_ROW(r) \
  [[maybe_unused]] const RowElement* a##r = from + (kRows > r ? rows[kRows > r ? r : 0] : 0);
    SINTER_EACH_ROW(SINTER_ROW)
#undef SINTER_ROW
    for (int64_t k = 0; k < length; k += kQDepth, w += 2 * lanes) {
      const V8 w0 = hn::LoadU(D8(), w), w1 = hn::LoadU(D8(), w + (kVectors == 2 ? lanes : 0));
#define SINTER_ROW(r)                                                                                \
  if constexpr (kRows > r) {                                                                         \
    const V8 x = signed_cell(a##r + k);                                                              \
    const VU8 size = hn::BitCast(DU8(), hn::Abs(x));                                                 \
    c##r##0 = add_widened(two_products(size, hn::IfNegativeThenNegOrUndefIfZero(x, w0)), c##r##0);   \
    if constexpr (kVectors == 2)                                                                     \
      c##r##1 = add_widened(two_products(size, hn::IfNegativeThenNegOrUndefIfZero(x, w1)), c##r##1); \
  }
      SINTER_EACH_ROW(SINTER_ROW)
#undef SINTER_ROW
    }
  }
  end_block<kRows, kVectors>(end, c00, c01, c10, c11, c20, c21, c30, c31, c40, c41, c50, c51, c60, c61, c70,
                             c71);
}

// Sums one row, and a bias for each column, by the signs of x or cell by cell.
HWY_NOINLINE void add_row(const uint8_t* row, const Panel& panel, int32_t* sums) {
  constexpr int32_t kFirst = 0;
  if (panel.means == Means::kSigned)
    signed_block<1, 2>(row, &kFirst, panel, KeepSums{sums});
  else
    few_rows<1, 2>(row, &kFirst, panel, KeepSums{sums});
}

// The panels of weights for the rows of a box.
class Panels {
 public:
  // The spare bytes hold the largest input of each cell, in the rows and then in `minima`, and the steps.
  Panels(const QPacked& w, const QRows& rows) : w_(w), rows_(rows) {
    const int64_t cells = w.runs.packed_depth() / kQDepth, each = divide_up(cells, 8) * 8;
    most_ = reinterpret_cast<uint8_t*>(rows.spare);
    int64_t used = each;
    const auto* minima = reinterpret_cast<const uint8_t*>(rows.minima);
    if (minima != nullptr && std::any_of(minima, minima + w.runs.length, [](uint8_t v) { return v != 0; })) {
      minima_ = minima, most_of_minima_ = most_ + used, used += each;
      constexpr int32_t kFirst = 0;
      QRows one;
      one.buffer = rows.minima, one.rows = one.runs = &kFirst, one.count = 1;
      find_most(one, w.runs, most_of_minima_);
    }
    steps_ = reinterpret_cast<QStep*>(rows.spare + used);
    has_steps_ =
        rows.count > kFewRows && static_cast<int64_t>(sizeof(QStep)) * cells <= rows.spare_bytes - used;
  }

  // Returns a panel, which is valid until the next call.
  Panel at(int64_t index) {
    const int64_t column = index * panel_columns(), limits = panel_limits(w_.runs);
    Panel panel{w_.runs,
                rows_.runs,
                w_.panels + column * w_.runs.packed_depth(),
                w_.bias + column,
                w_.limits + index * limits,
                most_,
                Means::kSteps,
                {}};
    const bool lowest = panel.limits[limits - 1] != 0;
    if (!has_steps_ || (!lowest && rows_.count < kManyQRows))
      panel.means = lowest ? Means::kCells : Means::kSigned;
    if (panel.means == Means::kSigned)
      panel.bias = shifted_bias(panel.bias, column);
    else
      compare();
    if (minima_ != nullptr) {
      constexpr int32_t kFirst = 0;
      Panel of_minima = panel;
      of_minima.run_offsets = &kFirst, of_minima.most = most_of_minima_;
      of_minima.means = lowest ? Means::kCells : Means::kSigned;
      if (!lowest) of_minima.bias = shifted_bias(panel.bias, column);
      add_row(minima_, of_minima, bias_);
      panel.bias = bias_;
    }
    if (panel.means == Means::kSteps)
      panel.steps = choose_steps(w_.runs, rows_.runs, most_, panel.limits, steps_);
    return panel;
  }

 private:
  // Returns the bias of x, if `bias` is that of x + 128, for the columns of a panel.
  const int32_t* shifted_bias(const int32_t* bias, int64_t column) {
    const D32 d;
    for (size_t i = 0; i < 2 * hn::Lanes(d); i += hn::Lanes(d)) {
      const V32 shift = hn::ShiftLeft<7>(hn::LoadU(d, w_.sums + column + i));
      hn::StoreU(hn::Add(hn::LoadU(d, bias + i), shift), d, bias_ + i);
    }
    return bias_;
  }
  // Finds the inputs that the limits are compared with, once.
  void compare() {
    if (!compared_) find_most(rows_, w_.runs, most_);
    compared_ = true;
  }

  const QPacked& w_;
  const QRows& rows_;
  uint8_t *most_ = nullptr, *most_of_minima_ = nullptr;
  const uint8_t* minima_ = nullptr;
  QStep* steps_ = nullptr;
  bool has_steps_ = false, compared_ = false;
  HWY_ALIGN int32_t bias_[2 * hn::MaxLanes(D32())];
};

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();
#endif

#endif  // per-target include guard
