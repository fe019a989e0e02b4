// Rows of x (windows, copied with zeros for padding) times rows of weights: products of pairs in int32, which
// are added up in int64 before they can overflow.
#include "platforms/simd/q16_product.h"

#include <cstring>

#include "platforms/simd/int8.h"
#include "platforms/simd/packed.h"
#include "platforms/simd/q16_end.h"
#include "platforms/simd/q16_panels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/q16_product.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

#ifndef SINTER_SIMD_Q16_PRODUCT_ONCE
#define SINTER_SIMD_Q16_PRODUCT_ONCE
namespace sinter::simd {

inline constexpr int64_t kRows16 = 16;     // that are copied and multiplied at a time
inline constexpr int64_t kDepth16 = 32;    // their length is a multiple of this: a widest vector
inline constexpr int64_t kColumns16 = 64;  // of sums that are held

struct Product16 {
  const int16_t* x;  // [rows, stride], zeros from `depth` on
  int64_t rows, stride, depth;
  const int8_t* w;  // [columns, depth]
  int64_t columns;  // up to kColumns16
  int64_t* sums;    // [rows, kColumns16]
};

}  // namespace sinter::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D16 = hn::ScalableTag<int16_t>;
using D32 = hn::ScalableTag<int32_t>;
using D64 = hn::ScalableTag<int64_t>;
using DF = hn::ScalableTag<float>;
using V16 = hn::Vec<D16>;
using V32 = hn::Vec<D32>;
using H8 = hn::Rebind<int8_t, D16>;

// Vectors of pairs that an int32 holds the sum of: 2 * 2^15 * 2^7 each.
constexpr int64_t kHeld = 255;

HWY_INLINE int64_t total(V32 v) {
  const D64 d;
  return hn::ReduceSum(d, hn::Add(hn::PromoteLowerTo(d, v), hn::PromoteUpperTo(d, v)));
}

// Sums of products by lanes. ARM adds each half of the products to a register of its own.
struct Sums16 {
  V32 sum;
#if HWY_TARGET_IS_NEON
  V32 high;
  HWY_INLINE Sums16() : sum(hn::Zero(D32())), high(sum) {}
  HWY_INLINE void add(V16 x, V16 w) { sum = hn::WidenMulAccumulate(D32(), x, w, sum, high); }
  HWY_INLINE int64_t all() const { return total(hn::Add(sum, high)); }
#else
  HWY_INLINE Sums16() : sum(hn::Zero(D32())) {}
  HWY_INLINE void add(V16 x, V16 w) { sum = add_pairs(x, w, sum); }
  HWY_INLINE int64_t all() const { return total(sum); }
#endif
};

template <int kCount>
HWY_INLINE void columns16(const Product16& p, int64_t row, int64_t column, int64_t other) {
  const D16 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int16_t* x = p.x + row * p.stride;
  const int8_t *w = p.w + column * p.depth, *u = p.w + other * p.depth;
  int64_t s[8] = {};
  for (int64_t k = 0; k < p.depth;) {
    Sums16 a0, a1, a2, a3, b0, b1, b2, b3;
    const int64_t end = std::min(p.depth, k + kHeld * lanes);
    for (; k < end; k += lanes) {
      const auto left = static_cast<size_t>(p.depth - k);
      const bool all = static_cast<int64_t>(left) >= lanes;
      const V16 wv = hn::PromoteTo(d, all ? hn::LoadU(H8(), w + k) : hn::LoadN(H8(), w + k, left)),
                uv = hn::PromoteTo(d, all ? hn::LoadU(H8(), u + k) : hn::LoadN(H8(), u + k, left));
#define SINTER_ROW(r)                                  \
  if constexpr (kCount > r) {                          \
    const V16 xv = hn::LoadU(d, x + r * p.stride + k); \
    a##r.add(xv, wv), b##r.add(xv, uv);                \
  }
      SINTER_ROW(0) SINTER_ROW(1) SINTER_ROW(2) SINTER_ROW(3)
#undef SINTER_ROW
    }
    s[0] += a0.all(), s[1] += b0.all();
    if constexpr (kCount > 1) s[2] += a1.all(), s[3] += b1.all();
    if constexpr (kCount > 2) s[4] += a2.all(), s[5] += b2.all();
    if constexpr (kCount > 3) s[6] += a3.all(), s[7] += b3.all();
  }
  for (int64_t r = 0; r < kCount; ++r) {
    p.sums[(row + r) * kColumns16 + column] = s[2 * r];
    p.sums[(row + r) * kColumns16 + other] = s[2 * r + 1];
  }
}

void q16_products(const Product16& p) {
  for (int64_t row = 0; row < p.rows; row += 4) {
    for (int64_t n = 0; n < p.columns; n += 2) {
      const int64_t other = std::min(n + 1, p.columns - 1);
      switch (std::min<int64_t>(p.rows - row, 4)) {
        case 1:
          columns16<1>(p, row, n, other);
          break;
        case 2:
          columns16<2>(p, row, n, other);
          break;
        case 3:
          columns16<3>(p, row, n, other);
          break;
        default:
          columns16<4>(p, row, n, other);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {

HWY_EXPORT(q16_products);

namespace {

struct Plan16 {
  Geometry g;
  int64_t columns = 0, depth = 0, stride = 0;  // of one group
  // The lines of a window, the numbers in each, and how far apart lines are in a copied window: an even
  // distance, for panels multiply pairs.
  int64_t lines = 1, line = 0, room = 0;
  int64_t x_zero = 0;
  End16 end;

  int64_t packed_depth() const { return lines * room; }
  // Whether the numbers of each line are adjacent in the input.
  bool in_lines() const { return g.group == 1 && g.dilation[2] == 1; }
};

Plan16 plan_of(const OpCall& call) {
  Plan16 p;
  if (call.op == Op::kQFullyConnected) {
    const auto& a = call.attrs<QFullyConnectedAttrs>();
    const TensorView& x = call.in(0);
    p.end = end_of(call, a), p.x_zero = a.x_zero;
    p.g.batch = 1, p.g.in_channels = x.dims[x.rank - 1], p.g.out_channels = call.in(1).dims[0];
    for (int i = 0; i + 1 < x.rank; ++i) p.g.in[2] *= x.dims[i];
    p.g.out[2] = p.g.in[2];
  } else {
    const auto& a = call.attrs<QConvAttrs>();
    p.end = end_of(call, a), p.x_zero = a.x_zero;
    p.g = window_geometry<QConvAttrs>(call);
  }
  p.columns = p.g.out_channels / p.g.group;
  p.depth = p.g.taps() * (p.g.in_channels / p.g.group);
  p.lines = p.in_lines() ? p.g.kernel[0] * p.g.kernel[1] : 1;
  p.line = p.lines == 0 ? 0 : p.depth / p.lines;
  p.room = divide_up(p.line, 2) * 2;
  p.stride = divide_up(p.packed_depth(), kDepth16) * kDepth16;
  return p;
}

// The window of output pixel `row`, one group's channels, as [lines, room].
void copy_part(const Plan16& p, const int16_t* x, int64_t row, int64_t group, int16_t* to) {
  const Geometry& g = p.g;
  const int64_t channels = g.in_channels / g.group, line = p.in_lines() ? p.room : g.kernel[2] * channels;
  const WindowOf<int16_t> w = window_at(g, x, row);
  std::memset(to, 0, static_cast<size_t>(p.stride) * sizeof(int16_t));
  if (w.empty()) return;
  const int64_t step2 = g.dilation[2] * g.in_channels, step1 = g.dilation[1] * g.in[2] * g.in_channels,
                step0 = g.dilation[0] * g.in[1] * g.in[2] * g.in_channels;
  for (int64_t i = w.first[0]; i < w.end[0]; ++i)
    for (int64_t j = w.first[1]; j < w.end[1]; ++j)
      for (int64_t k = w.first[2]; k < w.end[2]; ++k)
        std::memcpy(to + (i * g.kernel[1] + j) * line + k * channels,
                    w.x + (i - w.first[0]) * step0 + (j - w.first[1]) * step1 + (k - w.first[2]) * step2 +
                        group * channels,
                    static_cast<size_t>(channels) * sizeof(int16_t));
}

// The windows of output pixels first .. first + count - 1, p.stride apart. Those inside the input are copied
// line by line where their taps are adjacent.
void copy_windows(const Plan16& p, const int16_t* x, int64_t first, int64_t count, int64_t group,
                  int16_t* to) {
  const Geometry& g = p.g;
  const int64_t pixel = first % g.out_pixels();
  int64_t batch = first / g.out_pixels();
  int64_t at[3] = {pixel / (g.out[1] * g.out[2]), pixel / g.out[2] % g.out[1], pixel % g.out[2]};
  for (int64_t row = first; row < first + count; ++row, to += p.stride) {
    int64_t start[3];
    bool whole = p.in_lines();
    for (int i = 0; i < 3; ++i) {
      start[i] = at[i] * g.stride[i] - g.pad[i];
      whole &= start[i] >= 0 && start[i] + (g.kernel[i] - 1) * g.dilation[i] < g.in[i];
    }
    if (whole) {
      int16_t* next = to;
      for (int64_t i = 0; i < g.kernel[0]; ++i)
        for (int64_t j = 0; j < g.kernel[1]; ++j, next += p.room) {
          const int64_t plane = batch * g.in[0] + start[0] + i * g.dilation[0];
          std::memcpy(
              next,
              x + ((plane * g.in[1] + start[1] + j * g.dilation[1]) * g.in[2] + start[2]) * g.in_channels,
              static_cast<size_t>(p.line) * sizeof(int16_t));
          if (p.room > p.line) next[p.line] = 0;
        }
      std::memset(next, 0, static_cast<size_t>(to + p.stride - next) * sizeof(int16_t));
    } else {
      copy_part(p, x, row, group, to);
    }
    if (++at[2] < g.out[2]) continue;
    at[2] = 0;
    if (++at[1] < g.out[1]) continue;
    at[1] = 0;
    if (++at[0] == g.out[0]) at[0] = 0, ++batch;
  }
}

// Of one thread: rows, and their sums.
bool scratch_bytes(const Plan16& p, int64_t* bytes) {
  return checked_mul<int64_t>(p.stride, kRows16 * static_cast<int64_t>(sizeof(int16_t)), bytes) &&
         checked_add<int64_t>(*bytes, kRows16 * kColumns16 * 8 + static_cast<int64_t>(kBufferAlignment),
                              bytes) &&
         (*bytes = *bytes / static_cast<int64_t>(kBufferAlignment) * static_cast<int64_t>(kBufferAlignment),
          true);
}

}  // namespace

Status accept_q16_product(const OpCall& call) {
  const Plan16 p = plan_of(call);
  SINTER_RETURN_UNLESS(p.x_zero == 0 && !call.has_input(4),
                       unsupported("the simd kernel takes int16 without zero points"));
  SINTER_RETURN_UNLESS(call.in(0).rank <= 5 || call.op == Op::kQFullyConnected,
                       unsupported("the simd kernel has at most three spatial axes"));
  return accept_dense(call);
}

Status q16_product_workspace(const OpCall& call, int threads, size_t* bytes) {
  int64_t each = 0;
  SINTER_RETURN_UNLESS(
      scratch_bytes(plan_of(call), &each) && checked_mul<int64_t>(each, std::max(threads, 1), &each),
      invalid("the operation needs more workspace than the step has"));
  *bytes = static_cast<size_t>(each);
  return ok_status();
}

Status run_q16_product(const OpCall& call, RunContext& context) {
  Plan16 p = plan_of(call);
  int64_t each = 0;
  if (call.out(0).size() == 0 || !scratch_bytes(p, &each)) return ok_status();
  p.room = p.line;  // as in the weights
  const Geometry& g = p.g;
  const auto run = HWY_DYNAMIC_POINTER(q16_products);
  const auto* x = call.in(0).as<const int16_t>();
  const auto* weights = call.in(1).as<const int8_t>();
  std::byte* y = call.out(0).data;
  const int64_t rows = g.batch * g.out_pixels(), blocks = divide_up(rows, kRows16),
                threads = threads_of(context.threads);
  // Where there are few rows, columns are shared out.
  const int64_t pieces = divide_up(p.columns, kColumns16);
  const int64_t parts = blocks >= threads ? 1 : std::min(pieces, divide_up(threads, blocks));
  const int64_t units = blocks * parts, slots = std::min(units, threads);
  parallel_slots(context.threads, slots, units, [&](int64_t slot, int64_t begin, int64_t end) {
    std::byte* scratch = context.workspace.data() + slot * each;
    auto* sums = reinterpret_cast<int64_t*>(scratch);
    auto* window = reinterpret_cast<int16_t*>(sums + kRows16 * kColumns16);
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t first = unit / parts * kRows16, count = std::min(kRows16, rows - first),
                    part = unit % parts;
      for (int64_t group = 0; group < g.group; ++group) {
        copy_windows(p, x, first, count, group, window);
        for (int64_t piece = pieces * part / parts; piece < pieces * (part + 1) / parts; ++piece) {
          const int64_t at = piece * kColumns16, columns = std::min(kColumns16, p.columns - at),
                        column = group * p.columns + at;
          run({window, count, p.stride, p.depth, weights + column * p.depth, columns, sums});
          for (int64_t r = 0; r < count; ++r)
            for (int64_t n = 0; n < columns; ++n)
              p.end.store(static_cast<int64_t>(static_cast<uint64_t>(sums[r * kColumns16 + n]) +
                                               static_cast<uint64_t>(p.end.bias[column + n])),
                          column + n, y, (first + r) * g.out_channels + column + n);
        }
      }
    }
  });
  return ok_status();
}

// ---- packed weights

namespace {

constexpr int64_t kWidestPanel = 32;
constexpr int64_t kRowsInPlace = 256;

int64_t wide_columns(const Plan16& p) { return divide_up(p.columns, kWidestPanel) * kWidestPanel; }

// Of one group.
bool packed_bytes16(const Plan16& p, int64_t* bytes) {
  int64_t depth = 0;
  return checked_add<int64_t>(p.packed_depth(), 16, &depth) && checked_mul(wide_columns(p), depth, bytes);
}

Q16Packed packed_at(const Plan16& p, int64_t group, std::byte* memory) {
  int64_t bytes = 0;
  if (!packed_bytes16(p, &bytes)) return {};
  const int64_t wide = wide_columns(p);
  std::byte* at = memory + group * bytes;
  Q16Packed packed;
  packed.columns = p.columns, packed.depth = p.packed_depth();
  packed.bias = reinterpret_cast<int64_t*>(at);
  packed.multipliers = reinterpret_cast<float*>(at + wide * 8);
  packed.narrow = reinterpret_cast<int32_t*>(at + wide * 12);
  packed.panels = reinterpret_cast<int8_t*>(at + wide * 16);
  return packed;
}

// Columns from `column` on, of all columns of the operation.
void pack_panel16(const OpCall& call, const Plan16& p, int64_t column, int64_t panel, const Q16Packed& to) {
  const int64_t width = q16_panel_width();
  int8_t* panel_at = to.panels + panel * width * to.depth;
  std::memset(panel_at, 0, static_cast<size_t>(width * to.depth));
  bool narrow = true;
  for (int64_t c = 0; c < width; ++c) {
    const int64_t own = panel * width + c;
    to.bias[own] = 0, to.multipliers[own] = 0;
    if (own >= p.columns) continue;
    const int8_t* w = call.in(1).as<const int8_t>() + (column + own) * p.depth;
    int64_t size = 0;
    for (int64_t l = 0; l < p.lines; ++l)
      for (int64_t i = 0; i < p.line; ++i, ++w) {
        const int64_t k = l * p.room + i;
        panel_at[(k / 2 * width + c) * 2 + k % 2] = *w;
        size += std::abs(int{*w});
      }
    const int64_t bias = p.end.bias[column + own];
    to.bias[own] = bias, to.multipliers[own] = p.end.multipliers[(column + own) * p.end.multiplier_step];
    // Depths are far below 2^40.
    const int64_t room = INT32_MAX - size * 32768;
    narrow &= bias <= room && bias >= -room;
  }
  to.narrow[panel] = narrow ? 1 : 0;
}

}  // namespace

bool q16_product_packing(const OpCall& call, int threads, Packing* packing, size_t* workspace) {
  if (!q16_multiplies_panels()) return false;
  const Plan16 p = plan_of(call);
  int64_t bytes = 0;
  if (p.depth == 0 || !packed_bytes16(p, &bytes) || !checked_mul(bytes, p.g.group, &bytes) ||
      bytes >= INT64_MAX / 2 || !q16_product_workspace(call, threads, workspace).ok())
    return false;
  *packing = {static_cast<size_t>(bytes),
              0b1110u,
              {kInteger16Panels, p.g.group, p.columns, p.depth, call.in(3).size()}};
  return true;
}

void pack_q16_product(const OpCall& call, std::byte* packed, ThreadPool* threads) {
  const Plan16 p = plan_of(call);
  const int64_t panels = divide_up(p.columns, q16_panel_width());
  parallel_for(threads, p.g.group * panels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit)
      pack_panel16(call, p, unit / panels * p.columns, unit % panels, packed_at(p, unit / panels, packed));
  });
}

namespace {

// The windows of `count` output pixels from `first` on, where they can be read in the input: all in one line,
// in no padding, and with a number behind each line of odd length, which is multiplied by zero. Else no
// lines.
Q16Rows rows_in_place(const Plan16& p, const int16_t* x, int64_t first, int64_t count) {
  const Geometry& g = p.g;
  const InsideRange inside = inside_range(g);
  const int64_t at = first % g.out[2];
  if (!p.in_lines() || g.kernel[0] != 1 || at < inside.begin || at + count > inside.end) return {};
  const WindowOf<int16_t> w = window_at(g, x, first);
  if (w.taps() != g.taps()) return {};
  const int64_t step = g.stride[2] * g.in_channels, line_step = g.dilation[1] * g.in[2] * g.in_channels,
                end = (w.x - x) + (count - 1) * step + (p.lines - 1) * line_step + p.room;
  if (end > g.batch * g.in[0] * g.in[1] * g.in[2] * g.in_channels) return {};
  return {w.x, count, step, g.out_channels, p.lines, p.room, line_step};
}

}  // namespace

Status run_packed_q16_product(std::byte* packed, const OpCall& call, RunContext& context) {
  const Plan16 p = plan_of(call);
  int64_t each = 0;
  if (call.out(0).size() == 0 || !scratch_bytes(p, &each)) return ok_status();
  const Geometry& g = p.g;
  const auto* x = call.in(0).as<const int16_t>();
  // Pixels that are read where they are, one after another.
  bool pointwise = g.group == 1 && p.depth % 2 == 0;
  for (int i = 0; i < 3; ++i)
    pointwise &= g.kernel[i] == 1 && g.stride[i] == 1 && g.pad[i] == 0 && g.in[i] == g.out[i];
  const int64_t block = pointwise ? kRowsInPlace : kRows16;
  const int64_t rows = g.batch * g.out_pixels(), blocks = divide_up(rows, block),
                threads = threads_of(context.threads);
  // Where there are few rows, columns are shared out.
  const int64_t panels = divide_up(p.columns, q16_panel_width());
  const int64_t parts = blocks >= threads ? 1 : std::min(panels, divide_up(threads, blocks));
  const int64_t units = blocks * parts, slots = std::min(units, threads);
  parallel_slots(context.threads, slots, units, [&](int64_t slot, int64_t begin, int64_t end) {
    auto* window = reinterpret_cast<int16_t*>(context.workspace.data() + slot * each);
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t first = unit / parts * block, count = std::min(block, rows - first), part = unit % parts;
      for (int64_t group = 0; group < g.group; ++group) {
        Q16Rows from{x + first * p.depth, count, p.depth, g.out_channels, 1, p.depth, 0};
        if (!pointwise) from = rows_in_place(p, x, first, count);
        if (from.lines == 0) {
          copy_windows(p, x, first, count, group, window);
          from = {window, count, p.stride, g.out_channels, 1, p.packed_depth(), 0};
        }
        const ProductResult result{p.end.to, p.end.zero, p.end.low, p.end.high,
                                   call.out(0).data + (first * g.out_channels + group * p.columns) *
                                                          static_cast<int64_t>(byte_width(p.end.to))};
        multiply_q16(packed_at(p, group, packed), from, panels * part / parts, panels * (part + 1) / parts,
                     result);
      }
    }
  });
  return ok_status();
}

}  // namespace sinter::simd
#endif  // HWY_ONCE
