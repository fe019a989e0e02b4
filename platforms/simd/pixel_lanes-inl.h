// Convolutions with pixels in the lanes (pixel_lanes.h): the input of a box as cells, sums, and their results
// as pixels.
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_PIXEL_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_PIXEL_LANES_INL_H_
#undef SINTER_PLATFORMS_SIMD_PIXEL_LANES_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_PIXEL_LANES_INL_H_
#endif

#include <cstring>
#include <type_traits>

#include "hwy/highway.h"
#include "platforms/simd/move/interleave-inl.h"
#include "platforms/simd/pixel_lanes.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Words = hn::ScalableTag<int32_t>;

// ---- cells

template <class E>
HWY_INLINE int32_t cell_at(const E* p) {
  int32_t cell;
  std::memcpy(&cell, p, sizeof(cell));
  return cell;
}

// Returns 16 bytes of each of the cells' pixels 0, 4, 8 .. from p on, as many as a vector of D holds.
template <class D, class E>
HWY_INLINE hn::Vec<D> every_fourth(D d, const E* p, int64_t step) {
  if constexpr (HWY_MAX_LANES_D(D) == 4) {
    return hn::LoadU(d, reinterpret_cast<const int32_t*>(p));
  } else {
    const hn::Half<D> half;
    constexpr auto kPixels = static_cast<int64_t>(HWY_MAX_LANES_D(D) / 2);
    return hn::Combine(d, every_fourth(half, p + kPixels * step, step), every_fourth(half, p, step));
  }
}

// Writes cells i .. of four planes side by side, a vector of D of each, while whole vectors fit.
template <class D, class E>
HWY_INLINE int64_t gather_planes(D d, const E* p, int64_t step, int64_t i, int64_t count, int64_t room,
                                 int32_t* to) {
  const hn::Repartition<int64_t, D> wide;
  constexpr auto kLanes = static_cast<int64_t>(HWY_MAX_LANES_D(D));
  for (p += i * step; i + kLanes <= count; i += kLanes, p += kLanes * step) {
    const auto r0 = every_fourth(d, p, step), r1 = every_fourth(d, p + step, step),
               r2 = every_fourth(d, p + 2 * step, step), r3 = every_fourth(d, p + 3 * step, step);
    const auto a = hn::BitCast(wide, hn::InterleaveLower(d, r0, r1)),
               b = hn::BitCast(wide, hn::InterleaveLower(d, r2, r3)),
               c = hn::BitCast(wide, hn::InterleaveUpper(d, r0, r1)),
               e = hn::BitCast(wide, hn::InterleaveUpper(d, r2, r3));
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, a, b)), d, to + i);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, a, b)), d, to + room + i);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, c, e)), d, to + 2 * room + i);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, c, e)), d, to + 3 * room + i);
  }
  return i;
}

// Writes cells 0 .. count - 1 of one plane, from p on, and those of the three planes beside it if kPlanes is
// 4. Up to three more are written.
template <int kPlanes, class E>
HWY_INLINE void gather_cells(const E* p, int64_t step, int64_t count, int64_t room, int32_t* to) {
  if constexpr (kPlanes == 4) {
    const int64_t i = gather_planes(Words(), p, step, 0, count, room, to);
    gather_planes(hn::FixedTag<int32_t, 4>(), p, step, i, count + 3, room, to);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = cell_at(p + i * step);
  }
}

// Writes one plane whose four neighbouring cells are in 16 bytes.
template <class E>
HWY_INLINE void shuffle_cells(const E* p, int64_t step, int64_t count, int32_t* to) {
  const hn::FixedTag<uint8_t, 16> d;
  const hn::FixedTag<int32_t, 4> words;
  HWY_ALIGN uint8_t order[16];
  for (int64_t i = 0; i < 16; ++i)
    order[i] = static_cast<uint8_t>(i / 4 * step * static_cast<int64_t>(sizeof(E)) + i % 4);
  const auto from = hn::Load(d, order);
  for (int64_t i = 0; i < count; i += 4)
    hn::StoreU(hn::BitCast(words, hn::TableLookupBytes(
                                      hn::LoadU(d, reinterpret_cast<const uint8_t*>(p + i * step)), from)),
               words, to + i);
}

// Writes all planes of a line.
template <class E>
HWY_INLINE void load_cells(const Geometry& g, const Cells& cells, const E* line, int32_t* to) {
  constexpr auto kUnit = static_cast<int64_t>(4 / sizeof(E));
  const int64_t room = cells.room();
  if (cells.parts == 1 && (3 * cells.step + kUnit) * static_cast<int64_t>(sizeof(E)) <= 16) {
    for (int64_t phase = 0; phase < cells.planes; ++phase)
      shuffle_cells(line + phase * g.in_channels, cells.step, cells.plane, to + phase * room);
    return;
  }
  for (int64_t plane = 0; plane < cells.planes;) {
    const int64_t phase = plane / cells.beside, part = plane % cells.beside;
    const E* p = line + phase * g.in_channels + part * kUnit;
    if (part + 4 <= cells.beside) {
      gather_cells<4>(p, cells.step, cells.plane, room, to + plane * room);
      plane += 4;
    } else {
      gather_cells<1>(p, cells.step, cells.plane, room, to + plane * room);
      plane += 1;
    }
  }
}

// ---- sums

// The input of the pixels of a line.
struct NarrowLine {
  const int32_t* words;
  const int32_t* lines;    // for each line of a window, the start of its cells
  int64_t height;          // lines of a window, of all planes
  const int32_t* offsets;  // of the cells of a window's line
  int64_t window;          // cells of a window's line
};

// Stores columns of T, one after another, as pixels, `pixel` numbers apart: the first `columns` of kColumns,
// which have kRoom pixels each, of which `count` are stored.
template <class T, int kColumns, int kRoom>
HWY_INLINE void store_pixels(const T (*from)[kRoom], int64_t count, int64_t columns, int64_t pixel, T* y) {
  constexpr size_t kLanes = HWY_MIN(16 / sizeof(T), kRoom);
  const hn::FixedTag<T, kLanes> d;
  HWY_ALIGN T part[kRoom * kNarrowChannels];
  T* to = count == kRoom && columns == kColumns && pixel == columns ? y : part;
  if constexpr (kColumns == 1) {
    std::memcpy(part, from[0], sizeof(from[0]));
    to = part;
  } else if constexpr (kColumns <= 4) {
    interleave_vectors<kColumns>(d, from[0], kRoom, to, kRoom);
  } else {
    // Columns are paired, then pairs.
    using Pair = hwy::MakeWide<hwy::MakeSigned<T>>;
    const hn::FixedTag<T, 16 / sizeof(T)> whole;
    const hn::FixedTag<T, 8 / sizeof(T)> half;
    const hn::FixedTag<Pair, 8 / sizeof(T)> pairs;
    for (size_t i = 0; i < kRoom; i += 8 / sizeof(T)) {
      const auto pair = [&](int c) SINTER_SIMD_LAMBDA {
        const auto a = hn::ZeroExtendVector(whole, hn::LoadU(half, from[c] + i)),
                   b = hn::ZeroExtendVector(whole, hn::LoadU(half, from[c + 1] + i));
        return hn::BitCast(pairs, hn::InterleaveLower(whole, a, b));
      };
      hn::StoreInterleaved4(pair(0), pair(2), pair(4), pair(6), pairs,
                            reinterpret_cast<Pair*>(to + i * kNarrowChannels));
    }
    if (columns < kColumns)
      for (int64_t i = 0; i < count; ++i)
        for (int64_t c = 0; c < columns; ++c) part[i * columns + c] = part[i * kColumns + c];
  }
  if (to == y) return;
  if (pixel == columns) return void(std::memcpy(y, part, static_cast<size_t>(count * columns) * sizeof(T)));
  for (int64_t i = 0; i < count; ++i)
    for (int64_t c = 0; c < columns; ++c) y[i * pixel + c] = part[i * columns + c];
}

// The most vectors of pixels that are summed at a time: registers hold the sums of 4 columns.
constexpr int kNarrowVectors = HWY_ARCH_ARM_A64 ? 4 : 2;

// Computes `count` pixels, at most kVectors vectors of them. A has vectors Sum, start(c), the sum of column c
// without products, add(cells, word, sum), and finish(c, sum), a vector of T.
template <class A, class T, int kColumns, int kVectors>
HWY_INLINE void narrow_pixels(const NarrowLine& from, const A& arithmetic, const int32_t* x, int64_t count,
                              int64_t columns, int64_t pixel, T* y) {
  const Words d;
  const hn::Rebind<T, Words> to;
  using Sum = typename A::Sum;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
#define SINTER_COLUMNS(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7)
#define SINTER_BEGIN(c)                                               \
  [[maybe_unused]] Sum a##c = arithmetic.start(kColumns > c ? c : 0); \
  [[maybe_unused]] Sum b##c = a##c, e##c = a##c, f##c = a##c;
  SINTER_COLUMNS(SINTER_BEGIN)
#undef SINTER_BEGIN
  const int32_t* w = from.words;
  for (int64_t t = 0; t < from.height; ++t) {
    const int32_t* line = x + from.lines[t];
    for (int64_t k = 0; k < from.window; ++k, w += kColumns) {
      const auto x0 = hn::LoadU(d, line + from.offsets[k]);
      [[maybe_unused]] const auto x1 = kVectors >= 2 ? hn::LoadU(d, line + from.offsets[k] + lanes) : x0;
      [[maybe_unused]] const auto x2 = kVectors == 4 ? hn::LoadU(d, line + from.offsets[k] + 2 * lanes) : x0;
      [[maybe_unused]] const auto x3 = kVectors == 4 ? hn::LoadU(d, line + from.offsets[k] + 3 * lanes) : x0;
#define SINTER_ADD(c)                                        \
  if constexpr (kColumns > c) {                              \
    const auto v = hn::Set(d, w[c]);                         \
    a##c = A::add(x0, v, a##c);                              \
    if constexpr (kVectors >= 2) b##c = A::add(x1, v, b##c); \
    if constexpr (kVectors == 4) e##c = A::add(x2, v, e##c); \
    if constexpr (kVectors == 4) f##c = A::add(x3, v, f##c); \
  }
      SINTER_COLUMNS(SINTER_ADD)
#undef SINTER_ADD
    }
  }
  constexpr int kRoom = static_cast<int>(kNarrowVectors * hn::MaxLanes(d));
  HWY_ALIGN T parts[kColumns][kRoom];
#define SINTER_END(c)                                                                       \
  if constexpr (kColumns > c) {                                                             \
    const auto v = arithmetic.finish(c, a##c);                                              \
    hn::StoreU(v, to, parts[c]);                                                            \
    hn::StoreU(kVectors >= 2 ? arithmetic.finish(c, b##c) : v, to, parts[c] + lanes);       \
    if constexpr (kNarrowVectors == 4) {                                                    \
      hn::StoreU(kVectors == 4 ? arithmetic.finish(c, e##c) : v, to, parts[c] + 2 * lanes); \
      hn::StoreU(kVectors == 4 ? arithmetic.finish(c, f##c) : v, to, parts[c] + 3 * lanes); \
    }                                                                                       \
  }
  SINTER_COLUMNS(SINTER_END)
#undef SINTER_END
#undef SINTER_COLUMNS
  store_pixels<T, kColumns, kRoom>(parts, count, columns, pixel, y);
}

template <class A, class T, int kColumns>
HWY_NOINLINE void narrow_line(const NarrowLine& from, const A& arithmetic, const int32_t* x, int64_t pixels,
                              int64_t columns, int64_t pixel, T* y) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Words()));
  constexpr bool kFewRegisters = HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3;
  constexpr int kVectors = kColumns <= 4 ? kNarrowVectors : kFewRegisters ? 1 : 2;
  const auto run = [&](auto vectors, int64_t i) SINTER_SIMD_LAMBDA {
    narrow_pixels<A, T, kColumns, vectors()>(from, arithmetic, x + i, std::min(vectors() * lanes, pixels - i),
                                             columns, pixel, y + i * pixel);
  };
  int64_t i = 0;
  for (; pixels - i > lanes * (kVectors / 2); i += kVectors * lanes)
    run(std::integral_constant<int, kVectors>(), i);
  if (kVectors == 4 && pixels - i > lanes) run(std::integral_constant<int, 2>(), i), i += 2 * lanes;
  if (i < pixels) run(std::integral_constant<int, 1>(), i);
}

// Computes the box's pixels of y line by line, and keeps the input lines that a window reaches. load(i0, i1,
// to) writes line i1 of the input's plane i0, either of which may be outside, from the box's first pixel on.
template <class A, class T, class E, class Load>
HWY_INLINE void run_narrow_box(const Geometry& g, const QBox& at, const int32_t* words, const A& arithmetic,
                               std::byte* scratch, T* y, Load load) {
  constexpr auto kUnit = static_cast<int64_t>(4 / sizeof(E));
  const Cells cells(g, at.end[2] - at.begin[2], kUnit);
  const int64_t line_cells = cells.planes * cells.room(), height = g.kernel[0] * g.kernel[1];
  const int64_t kept = narrow_kept_lines(g);
  auto* offsets = reinterpret_cast<int32_t*>(scratch);
  int32_t* const lines = offsets + cells.window;
  int32_t* const first = lines + height;
  auto* numbers = reinterpret_cast<E*>(first + g.kernel[0] * kept * line_cells);
  for (int64_t j = 0; j < cells.window; ++j) {
    const int64_t offset = cells.offset(g, j, kUnit);
    offsets[j] = static_cast<int32_t>(offset / Cells::kOffset * cells.room() + offset % Cells::kOffset);
  }
  const auto run = g.out_channels == 1   ? narrow_line<A, T, 1>
                   : g.out_channels == 2 ? narrow_line<A, T, 2>
                   : g.out_channels == 3 ? narrow_line<A, T, 3>
                   : g.out_channels == 4 ? narrow_line<A, T, 4>
                                         : narrow_line<A, T, 8>;
  const NarrowLine from{words, lines, height, offsets, cells.window};
  int64_t loaded = 0;  // lines of the box's input, without those between windows
  for (int64_t i = 0; i < at.end[1] - at.begin[1]; ++i) {
    for (loaded = std::max(loaded, i * g.stride[1]); loaded < i * g.stride[1] + kept; ++loaded)
      for (int64_t t0 = 0; t0 < g.kernel[0]; ++t0) {
        load(at.begin[0] * g.stride[0] - g.pad[0] + t0 * g.dilation[0],
             at.begin[1] * g.stride[1] - g.pad[1] + loaded, numbers);
        load_cells(g, cells, numbers, first + (t0 * kept + loaded % kept) * line_cells);
      }
    for (int64_t t = 0; t < height; ++t) {
      const int64_t line = i * g.stride[1] + t % g.kernel[1] * g.dilation[1];
      lines[t] = static_cast<int32_t>((t / g.kernel[1] * kept + line % kept) * line_cells);
    }
    run(from, arithmetic, first, at.end[2] - at.begin[2], g.out_channels, g.out_pixel(),
        y + at.pixel(g, at.begin[1] + i, at.begin[2]) * g.out_pixel());
  }
}

// Packs one channel's weights w into words, [line of the window][tap][input channel], `depth_step` apart.
// Returns their sum, wrapped.
template <class P, class W>
HWY_INLINE uint32_t pack_narrow_words(const Geometry& g, const W* w, int64_t depth_step, int64_t column,
                                      P* to) {
  constexpr auto kUnit = static_cast<int64_t>(4 / sizeof(P));
  const int64_t columns = narrow_columns(g);
  const Cells cells(g, 1, kUnit);
  uint32_t sum = 0;
  for (int64_t line = 0; line < g.kernel[0] * g.kernel[1]; ++line)
    for (int64_t t = 0; t < g.kernel[2]; ++t)
      for (int64_t k = 0; k < g.in_channels; ++k, w += depth_step) {
        const int64_t at = cells.shared ? t * g.in_channels + k : t * cells.parts * kUnit + k;
        to[((line * cells.window + at / kUnit) * columns + column) * kUnit + at % kUnit] = static_cast<P>(*w);
        if constexpr (sizeof(W) == 1) sum += static_cast<uint32_t>(static_cast<int32_t>(*w));
      }
  return sum;
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
