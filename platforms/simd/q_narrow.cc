// The instruction sets with dot products of bytes, too.
#define SINTER_SIMD_BYTE_TABLES
#define SINTER_SIMD_BYTE_DOTS
#include "platforms/simd/q_narrow.h"

#include <cstring>

#include "platforms/simd/q_cells.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/q_narrow.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/q_elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// On ARM, other kernels fill vectors with twice as many channels.
bool q_narrow_gains(const Geometry& g) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D32()));
  return g.out_channels <= (HWY_TARGET_IS_NEON ? lanes : lanes / 2);
}

void pack_q_narrow(const QNarrow& n, const QWeights& from, std::byte* packed) {
  const Geometry& g = n.g;
  const int64_t columns = narrow_columns(g), words = narrow_words(g, kUnit), taps = g.kernel[2];
  const Cells cells(g, 1, kUnit);
  auto* weights = reinterpret_cast<WeightElement*>(packed);
  auto* bias = reinterpret_cast<int32_t*>(packed) + words;
  auto* multipliers = reinterpret_cast<float*>(bias + columns);
  for (int64_t i = 0; i < words * kUnit; ++i) weights[i] = 0;
  for (int64_t c = 0; c < columns; ++c) {
    const bool valid = c < g.out_channels;
    uint32_t sum = 0;
    const int8_t* w = from.weights + c * from.column_step;
    for (int64_t line = 0; valid && line < g.kernel[0] * g.kernel[1]; ++line)
      for (int64_t t = 0; t < taps; ++t)
        for (int64_t k = 0; k < g.in_channels; ++k, w += from.depth_step) {
          const int64_t at = cells.shared ? t * g.in_channels + k : t * cells.parts * kUnit + k;
          weights[((line * cells.window + at / kUnit) * columns + c) * kUnit + at % kUnit] = *w;
          sum += static_cast<uint32_t>(static_cast<int32_t>(*w));
        }
    const uint32_t shift =
        kCentred ? 0 : sum * static_cast<uint32_t>(kShift + static_cast<int32_t>(n.x_zero));
    const uint32_t first = valid && from.bias != nullptr ? static_cast<uint32_t>(from.bias[c]) : 0;
    bias[c] = static_cast<int32_t>(first - shift);
    multipliers[c] = valid ? from.multipliers[c * from.multiplier_step] : 0.0f;
  }
}

// ---- cells

HWY_INLINE int32_t cell_at(const Element* p) {
  int32_t cell;
  std::memcpy(&cell, p, sizeof(cell));
  return cell;
}

// Cells 0 .. count - 1 of one plane, from p on; those of the three planes beside it where kPlanes is 4. Up to
// three more are written.
template <int kPlanes>
HWY_INLINE void gather_cells(const Element* p, int64_t step, int64_t count, int64_t room, int32_t* to) {
  for (int64_t i = 0; i < count; i += 4, p += 4 * step) {
    const hn::FixedTag<int32_t, 4> d;
    const hn::FixedTag<int64_t, 2> wide;
    if constexpr (kPlanes == 4) {
      const auto row = [&](int64_t r) SINTER_SIMD_LAMBDA {
        return hn::LoadU(d, reinterpret_cast<const int32_t*>(p + r * step));
      };
      const auto r0 = row(0), r1 = row(1), r2 = row(2), r3 = row(3);
      const auto a = hn::BitCast(wide, hn::InterleaveLower(d, r0, r1)),
                 b = hn::BitCast(wide, hn::InterleaveLower(d, r2, r3)),
                 c = hn::BitCast(wide, hn::InterleaveUpper(d, r0, r1)),
                 e = hn::BitCast(wide, hn::InterleaveUpper(d, r2, r3));
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, a, b)), d, to + i);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, a, b)), d, to + room + i);
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, c, e)), d, to + 2 * room + i);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, c, e)), d, to + 3 * room + i);
    } else {
      for (int64_t r = 0; r < 4; ++r) to[i + r] = cell_at(p + r * step);
    }
  }
}

// One plane whose four neighbouring cells are in 16 bytes.
HWY_INLINE void shuffle_cells(const Element* p, int64_t step, int64_t count, int32_t* to) {
  const hn::FixedTag<uint8_t, 16> d;
  const hn::FixedTag<int32_t, 4> words;
  HWY_ALIGN uint8_t order[16];
  for (int64_t i = 0; i < 16; ++i)
    order[i] = static_cast<uint8_t>(i / 4 * step * static_cast<int64_t>(sizeof(Element)) + i % 4);
  const auto from = hn::Load(d, order);
  for (int64_t i = 0; i < count; i += 4)
    hn::StoreU(hn::BitCast(words, hn::TableLookupBytes(
                                      hn::LoadU(d, reinterpret_cast<const uint8_t*>(p + i * step)), from)),
               words, to + i);
}

// All planes of a line.
HWY_INLINE void load_cells(const Geometry& g, const Cells& cells, const Element* line, int32_t* to) {
  const int64_t room = cells.room();
  if (cells.parts == 1 && (3 * cells.step + kUnit) * static_cast<int64_t>(sizeof(Element)) <= 16) {
    for (int64_t phase = 0; phase < cells.planes; ++phase)
      shuffle_cells(line + phase * g.in_channels, cells.step, cells.plane, to + phase * room);
    return;
  }
  for (int64_t plane = 0; plane < cells.planes;) {
    const int64_t phase = plane / cells.parts, part = plane % cells.parts;
    const Element* p = line + phase * g.in_channels + part * kUnit;
    if (part + 4 <= cells.parts) {
      gather_cells<4>(p, cells.step, cells.plane, room, to + plane * room);
      plane += 4;
    } else {
      gather_cells<1>(p, cells.step, cells.plane, room, to + plane * room);
      plane += 1;
    }
  }
}

// ---- sums

// What a box's pixels are computed from.
struct NarrowBox {
  const int32_t *words, *bias;
  const float* multipliers;
  const int32_t* offsets;  // of a window's line
  int64_t window;          // cells of it
  int64_t planes, lines;   // of a window
  int64_t plane_step, line_step;
};

// Columns of T, one after another, as pixels. Of the first `columns` of kColumns; kRoom pixels each.
template <class T, int kColumns, int kRoom>
HWY_INLINE void store_pixels(const T (*from)[kRoom], int64_t count, int64_t columns, T* y) {
  constexpr size_t kTogether = kRoom < 16 ? 8 : 16;
  HWY_ALIGN T part[kRoom * kNarrowChannels];
  if constexpr (kColumns == 1) {
    std::memcpy(y, from[0], static_cast<size_t>(count) * sizeof(T));
    return;
  } else if constexpr (sizeof(T) == 1 && kColumns <= 4) {
    const hn::FixedTag<int8_t, kTogether> d;
    T* to = count == kRoom ? y : part;
    for (size_t i = 0; i < kRoom; i += kTogether) {
      const auto a = hn::LoadU(d, from[0] + i), b = hn::LoadU(d, from[1] + i);
      if constexpr (kColumns == 2) {
        hn::StoreInterleaved2(a, b, d, to + i * 2);
      } else {
        const auto c = hn::LoadU(d, from[2] + i);
        if constexpr (kColumns == 3)
          hn::StoreInterleaved3(a, b, c, d, to + i * 3);
        else
          hn::StoreInterleaved4(a, b, c, hn::LoadU(d, from[3] + i), d, to + i * 4);
      }
    }
    if (to == y) return;
  } else if constexpr (sizeof(T) == 1) {
    // Eight columns: pairs of them, then four pairs.
    const hn::FixedTag<int8_t, 16> d;
    const hn::FixedTag<int16_t, 8> pairs;
    const hn::FixedTag<int8_t, 8> half;
    for (size_t i = 0; i < kRoom; i += 8) {
      const auto pair = [&](int c) SINTER_SIMD_LAMBDA {
        const auto a = hn::ZeroExtendVector(d, hn::LoadU(half, from[c] + i)),
                   b = hn::ZeroExtendVector(d, hn::LoadU(half, from[c + 1] + i));
        return hn::BitCast(pairs, hn::InterleaveLower(d, a, b));
      };
      hn::StoreInterleaved4(pair(0), pair(2), pair(4), pair(6), pairs,
                            reinterpret_cast<int16_t*>(part + i * kNarrowChannels));
    }
    if (columns < kColumns)
      for (int64_t i = 0; i < count; ++i)
        for (int64_t c = 0; c < columns; ++c) part[i * columns + c] = part[i * kColumns + c];
  } else {
    for (int64_t i = 0; i < count; ++i)
      for (int64_t c = 0; c < columns; ++c) part[i * columns + c] = from[c][i];
  }
  std::memcpy(y, part, static_cast<size_t>(count * columns) * sizeof(T));
}

// `count` pixels, at most kVectors vectors of them.
template <class T, int kColumns, int kVectors>
HWY_INLINE void narrow_pixels(const NarrowBox& box, const int32_t* x, int64_t count, int64_t columns,
                              const ProductResult& result, T* y) {
  const D32 d;
  const hn::Rebind<T, D32> to;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
#define SINTER_COLUMNS(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7)
#define SINTER_BEGIN(c)                                                   \
  [[maybe_unused]] V32 a##c = hn::Set(d, box.bias[kColumns > c ? c : 0]); \
  [[maybe_unused]] V32 b##c = a##c;
  SINTER_COLUMNS(SINTER_BEGIN)
#undef SINTER_BEGIN
  const int32_t* w = box.words;
  for (int64_t t0 = 0; t0 < box.planes; ++t0, x += box.plane_step) {
    const int32_t* line = x;
    for (int64_t t1 = 0; t1 < box.lines; ++t1, line += box.line_step)
      for (int64_t k = 0; k < box.window; ++k, w += kColumns) {
        const V32 x0 = hn::LoadU(d, line + box.offsets[k]);
        [[maybe_unused]] const V32 x1 = kVectors == 2 ? hn::LoadU(d, line + box.offsets[k] + lanes) : x0;
#define SINTER_ADD(c)                                              \
  if constexpr (kColumns > c) {                                    \
    const V32 v = hn::Set(d, w[c]);                                \
    a##c = add_products(x0, v, a##c);                              \
    if constexpr (kVectors == 2) b##c = add_products(x1, v, b##c); \
  }
        SINTER_COLUMNS(SINTER_ADD)
#undef SINTER_ADD
      }
  }
  constexpr int kRoom = static_cast<int>(2 * hn::MaxLanes(D32()));
  HWY_ALIGN T parts[kColumns][kRoom];
  Finish<T> value(result);
#define SINTER_END(c)                                                           \
  if constexpr (kColumns > c) {                                                 \
    value.multiplier = hn::Set(DF(), box.multipliers[c]);                       \
    hn::StoreU(value(a##c), to, parts[c]);                                      \
    if constexpr (kVectors == 2) hn::StoreU(value(b##c), to, parts[c] + lanes); \
  }
  SINTER_COLUMNS(SINTER_END)
#undef SINTER_END
#undef SINTER_COLUMNS
  store_pixels<T, kColumns, kRoom>(parts, count, columns, y);
}

template <class T, int kColumns>
HWY_NOINLINE void narrow_line(const NarrowBox& box, const int32_t* x, int64_t pixels, int64_t columns,
                              const ProductResult& result, T* y) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D32()));
  // As many sums as the registers hold.
  constexpr int kVectors = HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3 && kColumns > 4 ? 1 : 2;
  int64_t i = 0;
  for (; pixels - i > lanes * (kVectors - 1); i += kVectors * lanes)
    narrow_pixels<T, kColumns, kVectors>(box, x + i, std::min(kVectors * lanes, pixels - i), columns, result,
                                         y + i * columns);
  if (i < pixels) narrow_pixels<T, kColumns, 1>(box, x + i, pixels - i, columns, result, y + i * columns);
}

template <class T>
HWY_INLINE void narrow_lines(const QNarrow& n, const QBox& at, const NarrowBox& box, const int32_t* x) {
  const Geometry& g = n.g;
  const auto run = g.out_channels == 1   ? narrow_line<T, 1>
                   : g.out_channels == 2 ? narrow_line<T, 2>
                   : g.out_channels == 3 ? narrow_line<T, 3>
                   : g.out_channels == 4 ? narrow_line<T, 4>
                                         : narrow_line<T, 8>;
  const int64_t step = box.line_step / g.dilation[1] * g.stride[1];
  for (int64_t i = at.begin[1]; i < at.end[1]; ++i, x += step)
    run(box, x, at.end[2] - at.begin[2], g.out_channels, n.result,
        static_cast<T*>(n.result.y) + at.pixel(g, i, at.begin[2]) * g.out_channels);
}

void run_q_narrow(const QNarrow& n, const std::byte* packed, const QBox& at, std::byte* scratch) {
  const Geometry& g = n.g;
  const Cells cells(g, at.end[2] - at.begin[2], kUnit);
  const int64_t line_cells = cells.planes * cells.room();
  auto* offsets = reinterpret_cast<int32_t*>(scratch);
  int32_t* const first = offsets + cells.window;
  auto* line = reinterpret_cast<Element*>(first + g.kernel[0] * at.lines * line_cells);
  for (int64_t j = 0; j < cells.window; ++j) {
    const int64_t offset = cells.offset(g, j, kUnit);
    offsets[j] = static_cast<int32_t>(offset / Cells::kOffset * cells.room() + offset % Cells::kOffset);
  }
  int32_t* to = first;
  const int64_t reach = (g.kernel[1] - 1) * g.dilation[1];
  for (int64_t t0 = 0; t0 < g.kernel[0]; ++t0) {
    const int64_t i0 = at.begin[0] * g.stride[0] - g.pad[0] + t0 * g.dilation[0];
    for (int64_t l = 0; l < at.lines; ++l, to += line_cells) {
      if (l % g.stride[1] > reach) continue;  // between the windows
      const int64_t i1 = at.begin[1] * g.stride[1] - g.pad[1] + l;
      const bool inside = i0 >= 0 && i0 < g.in[0] && i1 >= 0 && i1 < g.in[1];
      const int8_t* from =
          inside ? n.x + ((at.batch * g.in[0] + i0) * g.in[1] + i1) * g.in[2] * g.in_channels : nullptr;
      convert_line(g, from, at.begin[2] * g.stride[2] - g.pad[2], at.line, static_cast<int32_t>(n.x_zero),
                   line);
      load_cells(g, cells, line, to);
    }
  }
  const int64_t words = narrow_words(g, kUnit), columns = narrow_columns(g);
  NarrowBox box;
  box.words = reinterpret_cast<const int32_t*>(packed);
  box.bias = box.words + words;
  box.multipliers = reinterpret_cast<const float*>(box.bias + columns);
  box.offsets = offsets, box.window = cells.window;
  box.planes = g.kernel[0], box.lines = g.kernel[1];
  box.plane_step = at.lines * line_cells, box.line_step = g.dilation[1] * line_cells;
  if (n.result.type == DType::kInt8)
    narrow_lines<int8_t>(n, at, box, first);
  else if (n.result.type == DType::kFloat32)
    narrow_lines<float>(n, at, box, first);
  else
    narrow_lines<int16_t>(n, at, box, first);
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {

HWY_EXPORT(q_narrow_gains);
HWY_EXPORT(pack_q_narrow);
HWY_EXPORT(run_q_narrow);

namespace {

constexpr int64_t kBoxBytes = 32768;  // of cells, unless one line of some pixels takes more
constexpr int64_t kBoxPixels = 4096;
constexpr int64_t kUnits[] = {2, 4};  // numbers of a cell, of all instruction sets

}  // namespace

bool q_narrow_fits(const Geometry& g, bool weight_zeros) {
  constexpr int64_t kWorthwhilePixels = 8;  // of a line
  constexpr int64_t kWorthwhileDepth = 8;
  return g.group == 1 && !weight_zeros && g.out_channels <= kNarrowChannels &&
         g.out[2] >= kWorthwhilePixels && g.stride[2] <= g.kernel[2] &&
         g.kernel[0] * g.kernel[1] * g.kernel[2] * g.in_channels >= kWorthwhileDepth;
}

bool q_narrow_gains(const Geometry& g) { return HWY_DYNAMIC_DISPATCH(q_narrow_gains)(g); }

bool choose_q_narrow_boxes(QNarrow* n, int64_t threads) {
  const int64_t bytes = divide_up(n->g.in_channels, 2) * 4;
  if (!n->boxes.choose(n->g, bytes, kBoxBytes, kBoxPixels)) return false;
  n->boxes.share(n->g, threads);
  return n->boxes.measure(n->g, bytes);
}

bool q_narrow_packed_bytes(const QNarrow& n, int64_t* bytes) {
  const Geometry& g = n.g;
  int64_t taps = 0;
  return checked_mul(g.kernel[0], g.kernel[1], &taps) && checked_mul(taps, g.kernel[2], &taps) &&
         checked_mul(taps, divide_up(g.in_channels, 2) * 4 * kNarrowChannels, bytes) &&
         checked_add(*bytes, kNarrowChannels * 8, bytes);
}

bool q_narrow_scratch_bytes(const QNarrow& n, int64_t* bytes) {
  const Geometry& g = n.g;
  *bytes = 0;
  for (const int64_t unit : kUnits) {
    const Cells cells(g, n.boxes.out_pixels, unit);
    int64_t all = 0, line = 0;
    if (!checked_mul(n.boxes.lines, g.kernel[0], &all) || !checked_mul(all, cells.planes, &all) ||
        !checked_mul(all, cells.room(), &all) || !checked_add(all, cells.window, &all) ||
        !checked_mul<int64_t>(all, 4, &all) ||
        // The line of numbers, of which cells of up to three pixels more are read.
        !checked_mul(cells.plane + 4, std::max(cells.step, unit), &line) ||
        !checked_mul(line + 16, 4 / unit, &line) || !checked_add(all, line, &all) ||
        !checked_add<int64_t>(all, kBufferAlignment, &all))
      return false;
    *bytes = std::max(*bytes,
                      all / static_cast<int64_t>(kBufferAlignment) * static_cast<int64_t>(kBufferAlignment));
  }
  return *bytes < INT32_MAX;
}

void pack_q_narrow(const QNarrow& n, const QWeights& from, std::byte* packed) {
  HWY_DYNAMIC_DISPATCH(pack_q_narrow)(n, from, packed);
}

void run_q_narrow(const QNarrow& n, const std::byte* packed, const QBox& box, std::byte* scratch) {
  HWY_DYNAMIC_DISPATCH(run_q_narrow)(n, packed, box, scratch);
}

}  // namespace sinter::simd
#endif  // HWY_ONCE
