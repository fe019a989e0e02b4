// The file is compiled for the instruction sets with dot products of bytes, too.
#define SINTER_SIMD_BYTE_TABLES
#define SINTER_SIMD_BYTE_DOTS
#include "platforms/simd/int8/gemm.h"

#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/int8/gemm.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/int8/gemm_8x8_neon-inl.h"
#include "platforms/simd/int8/gemm_tile-inl.h"
#include "platforms/simd/int8/gemm_tile_dot-inl.h"
#include "platforms/simd/int8/gemm_tile_maddubs-inl.h"
#include "platforms/simd/int8/int8-inl.h"
#include "platforms/simd/int8/maddubs-inl.h"
#include "platforms/simd/int8/multiply-inl.h"
#include "platforms/simd/int8/store_neon-inl.h"
#include "platforms/simd/int8/store_x86-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

#undef SINTER_Q_BOUNDED
#define SINTER_Q_BOUNDED (HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3_DL)

int64_t q_panel_width() { return panel_columns(); }
const char* q_gemm_name() {
#if HWY_TARGET == HWY_NEON
  return "qs8_gemm_4x16_dot";
#elif !HWY_ARCH_X86
  return kMaxRows == 8 ? "qs8_gemm_8x8_neon" : "qs8_gemm_4x8_neon";
#elif HWY_TARGET <= HWY_AVX3_DL
  return "qs8_gemm_8x32_vnni";
#else
  return kMaxRows == 8           ? "qs8_gemm_8x32_maddubs"
         : panel_columns() == 16 ? "qs8_gemm_4x16_maddubs"
                                 : "qs8_gemm_4x8_maddubs";
#endif
}
bool multiplies_bytes() { return sizeof(Element) == 1; }
bool reads_rows_as_they_are() { return sizeof(RowElement) == 1 && shift_of<RowElement>() == 0; }
#if SINTER_Q_BOUNDED
bool bounds_products() { return true; }
void lower_q_rows(std::byte* rows, int64_t count, int64_t length, std::byte* minima) {
  lower_rows(reinterpret_cast<uint8_t*>(rows), count, length, reinterpret_cast<uint8_t*>(minima));
}
#else
bool bounds_products() { return false; }
void lower_q_rows(std::byte*, int64_t, int64_t, std::byte*) {}
#endif

void pack_q_panels(const QWeights& w, int32_t x_zero, const QPacked& packed) {
  const int64_t width = q_panel_width(), length = packed.runs.packed_length(),
                deep = packed.runs.packed_depth(), unit = packed.runs.pairs ? kQPairDepth : kUnit;
  for (int64_t c = 0; c < divide_up(packed.columns, width) * width; ++c) {
    int8_t* to = packed.panels + c / width * width * deep + c % width * unit;
    const bool valid = c < packed.columns;
    const int8_t* from = w.weights + c * w.column_step;
    uint32_t sum = 0;
    for (int64_t run = 0; run < packed.runs.count;
         ++run, from += packed.runs.length * w.depth_step, to += length * width)
      for (int64_t k = 0; k < length; ++k) {
        const int8_t v = valid && k < packed.runs.length ? from[k * w.depth_step] : int8_t{0};
        to[k / unit * width * unit + k % unit] = v;
        sum += static_cast<uint32_t>(v);
      }
    const uint32_t shift =
        is_centred<RowElement>() ? 0 : sum * static_cast<uint32_t>(shift_of<RowElement>() + x_zero);
    packed.bias[c] =
        valid ? static_cast<int32_t>((w.bias != nullptr ? static_cast<uint32_t>(w.bias[c]) : 0) - shift) : 0;
    packed.multipliers[c] = valid ? w.multipliers[c * w.multiplier_step] : 0.0f;
    if (packed.zeros != nullptr) packed.zeros[c] = valid ? w.zeros[c * w.zero_step] : 0;
    if (packed.sums != nullptr) packed.sums[c] = static_cast<int32_t>(sum);
  }
#if SINTER_Q_BOUNDED
  for (int64_t panel = 0; panel < divide_up(packed.columns, width); ++panel)
    set_limits(packed.runs, packed.panels + panel * width * deep,
               packed.limits + panel * panel_limits(packed.runs));
#endif
}

// ---- products

// AVX-512 without dot products has 32 of these blocks, each with three loops: in one function they took a
// quarter of a minute to compile, and twice the bytes.
#undef SINTER_Q_BLOCK
#if HWY_TARGET == HWY_AVX3
#define SINTER_Q_BLOCK HWY_NOINLINE
#else
#define SINTER_Q_BLOCK HWY_INLINE
#endif
template <int kRows, int kVectors, class End>
SINTER_Q_BLOCK void block_of_rows(const RowElement* a, const int32_t* rows, const Panel& panel,
                                  const End& end) {
#if SINTER_Q_BOUNDED
  if (panel.means == Means::kSigned) return signed_block<kRows, kVectors>(a, rows, panel, end);
#endif
  block<kRows, kVectors>(a, rows, panel, end);
}

// Computes 1 to panel.rows_at_once() rows.
template <int kVectors, class End>
HWY_INLINE void block_of(int64_t n, const RowElement* a, const int32_t* rows, const Panel& panel,
                         const End& end) {
#if SINTER_Q_BOUNDED
  if (panel.means == Means::kCells)
    return (n == 1 ? few_rows<1, kVectors, End> : few_rows<2, kVectors, End>)(a, rows, panel, end);
#endif
  switch (n) {
#define SINTER_ROWS(r)                                                            \
  case r:                                                                         \
    if constexpr (r <= kMaxRows) block_of_rows<r, kVectors>(a, rows, panel, end); \
    break;
    SINTER_ROWS(1)
    SINTER_ROWS(2)
    SINTER_ROWS(3)
    SINTER_ROWS(4)
    SINTER_ROWS(5)
    SINTER_ROWS(6)
    SINTER_ROWS(7)
    SINTER_ROWS(8)
#undef SINTER_ROWS
  }
}

// ---- results

template <int kVectors>
HWY_NOINLINE void rows_block(int64_t n, const RowElement* a, const int32_t* rows, const Panel& panel,
                             int32_t* sums) {
  block_of<kVectors>(n, a, rows, panel, KeepSums{sums});
}

// Stores the results of `n` rows, columns from `column` on, of which `valid` count.
template <class T>
HWY_NOINLINE void finish(const QPacked& w, const int32_t* sums, const int32_t* row_sums, int64_t n,
                         int64_t column, int64_t valid, const ProductResult& result, const int64_t* y_rows) {
  const D32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const hn::Rebind<T, D32> to;
  Finish<T> value(result);
  for (int64_t c = 0; c < valid; c += lanes, sums += lanes) {
    value.multiplier = hn::LoadU(DF(), w.multipliers + column + c);
    T* y = static_cast<T*>(result.y) + column + c;
    const int64_t step = 2 * lanes;
    const auto rest = static_cast<size_t>(valid - c);
    if (w.zeros != nullptr) {
      const V32 zeros = hn::LoadU(d, w.zeros + column + c);
      for (int64_t r = 0; r < n; ++r) {
        const V32 shift = hn::Mul(zeros, hn::Set(d, row_sums[r]));
        hn::StoreN(value(hn::Sub(hn::LoadU(d, sums + r * step), shift)), to, y + y_rows[r], rest);
      }
    } else if (valid - c >= lanes) {
      for (int64_t r = 0; r < n; ++r) hn::StoreU(value(hn::LoadU(d, sums + r * step)), to, y + y_rows[r]);
    } else {
      for (int64_t r = 0; r < n; ++r)
        hn::StoreN(value(hn::LoadU(d, sums + r * step)), to, y + y_rows[r], rest);
    }
  }
}

#if HWY_ARCH_X86 || HWY_ARCH_ARM_A64
template <int kVectors>
HWY_NOINLINE void panel_bytes(const QRows& rows, const Panel& panel, StoreBytes end) {
  const auto* a = reinterpret_cast<const RowElement*>(rows.buffer);
  const int32_t* row = rows.rows;
  int64_t left = rows.count;
#if HWY_TARGET == HWY_NEON
  if (kVectors == 2 && end.valid == 8 && panel.runs.count > 0 && left >= 8) {
    const DotRuns dots(rows, panel.runs);
    constexpr int64_t kAgain = 4;  // rows left from which the last eight, some of them again, are faster
    const auto eights = [&](auto usual) SINTER_SIMD_LAMBDA {
      for (; left >= 8; left -= 8, row += 8, end.y_rows += 8)
        multiply_eight_rows<usual()>(dots, row, panel.weights, panel.bias, end, end.y_rows);
      if (left < kAgain) return;
      multiply_eight_rows<usual()>(dots, row + left - 8, panel.weights, panel.bias, end,
                                   end.y_rows + left - 8);
      left = 0;
    };
    if (end.usual(panel.bias, panel.runs.depth()))
      eights(std::true_type());
    else
      eights(std::false_type());
    if (left == 0) return;
  }
#endif
#if SINTER_Q_BOUNDED
  if (panel.means != Means::kSteps) {
    const int64_t most = panel.rows_at_once();
    for (; left > 0; left -= most, row += most, end.y_rows += most)
      block_of<kVectors>(std::min(left, most), a, row, panel, end);
    return;
  }
#endif
  for (; left >= kMaxRows; left -= kMaxRows, row += kMaxRows, end.y_rows += kMaxRows)
    block<kMaxRows, kVectors>(a, row, panel, end);
  if (left > 0) block_of<kVectors>(left, a, row, panel, end);
}

// Multiplies the panel from `column` on.
HWY_INLINE void multiply_to_bytes(const QPacked& w, const QRows& rows, int64_t column, int64_t valid,
                                  const Panel& panel, const ProductResult& result, const int64_t* y_rows) {
  const StoreBytes end{w.multipliers + column,
                       static_cast<int8_t*>(result.y) + column,
                       y_rows,
                       valid,
                       static_cast<int16_t>(result.zero),
                       lowest(result),
                       highest(result)};
  const bool one = 2 * valid <= q_panel_width() && !SINTER_Q_COLUMNS;
  (one ? panel_bytes<1> : panel_bytes<2>)(rows, panel, end);
}
#endif

void multiply_q(const QPacked& w, const QRows& rows, int64_t first_panel, int64_t end_panel,
                const ProductResult& result, const int64_t* y_rows) {
  const int64_t width = q_panel_width();
  const auto* a = reinterpret_cast<const RowElement*>(rows.buffer);
  Panels panels(w, rows);
  HWY_ALIGN int32_t sums[static_cast<size_t>(kMaxRows) * 2 * hn::MaxLanes(D32())];
  for (int64_t index = first_panel; index < end_panel; ++index) {
    const int64_t column = index * width, valid = std::min(width, w.columns - column);
    if (valid <= 0) break;
#if HWY_TARGET == HWY_NEON
    if (index + 1 < end_panel && takes_two_panels(w, rows, column, result)) {
      QRows last = rows;
      last.count = multiply_two_panels(w, rows, column, result, y_rows);
      const int64_t done = rows.count - last.count;
      last.rows += done;
      if (last.count > 0) HWY_NAMESPACE::multiply_q(w, last, index, index + 2, result, y_rows + done);
      ++index;
      continue;
    }
#endif
    const Panel panel = panels.at(index);
#if HWY_ARCH_X86 || HWY_ARCH_ARM_A64
    if (result.type == DType::kInt8 && w.zeros == nullptr &&
        StoreBytes::takes(w.multipliers + column, valid)) {
      multiply_to_bytes(w, rows, column, valid, panel, result, y_rows);
      continue;
    }
#endif
    const auto product_of = 2 * valid <= width && !SINTER_Q_COLUMNS ? rows_block<1> : rows_block<2>;
    const auto finish_of = result.type == DType::kInt8      ? finish<int8_t>
                           : result.type == DType::kFloat32 ? finish<float>
                                                            : finish<int16_t>;
    // The blocks have nearly the same size.
    const int64_t blocks = divide_up(rows.count, panel.rows_at_once());
    for (int64_t i = 0; i < blocks; ++i) {
      const int64_t row = rows.count * i / blocks, n = rows.count * (i + 1) / blocks - row;
      product_of(n, a, rows.rows + row, panel, sums);
      finish_of(w, sums, rows.sums != nullptr ? rows.sums + row : nullptr, n, column, valid, result,
                y_rows + row);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {

HWY_EXPORT(q_panel_width);
HWY_EXPORT(q_gemm_name);
HWY_EXPORT(multiplies_bytes);
HWY_EXPORT(bounds_products);
HWY_EXPORT(lower_q_rows);
HWY_EXPORT(reads_rows_as_they_are);
HWY_EXPORT(pack_q_panels);
HWY_EXPORT(multiply_q);

int64_t q_panel_width() { return HWY_DYNAMIC_DISPATCH(q_panel_width)(); }
const char* q_gemm_name() { return HWY_DYNAMIC_DISPATCH(q_gemm_name)(); }
bool multiplies_bytes() { return HWY_DYNAMIC_DISPATCH(multiplies_bytes)(); }
bool bounds_products() { return HWY_DYNAMIC_DISPATCH(bounds_products)(); }
void lower_q_rows(std::byte* rows, int64_t count, int64_t length, std::byte* minima) {
  HWY_DYNAMIC_DISPATCH(lower_q_rows)(rows, count, length, minima);
}
bool reads_rows_as_they_are() { return HWY_DYNAMIC_DISPATCH(reads_rows_as_they_are)(); }

void pack_q_panels(const QWeights& w, int32_t x_zero, const QPacked& packed) {
  HWY_DYNAMIC_DISPATCH(pack_q_panels)(w, x_zero, packed);
}

void multiply_q(const QPacked& w, const QRows& rows, int64_t first_panel, int64_t end_panel,
                const ProductResult& result, const int64_t* y_rows) {
  HWY_DYNAMIC_DISPATCH(multiply_q)(w, rows, first_panel, end_panel, result, y_rows);
}

}  // namespace sinter::simd
#endif  // HWY_ONCE
