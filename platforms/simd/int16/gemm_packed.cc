// int16 products by weights that are packed once, for instruction sets that multiply panels.
#include <cstring>

#include "platforms/simd/int16/gemm.h"
#include "platforms/simd/int16/gemm_panels.h"
#include "platforms/simd/int16/windows.h"
#include "platforms/simd/int8/int8.h"
#include "platforms/simd/variant.h"

namespace sinter::simd {
namespace {

constexpr int64_t kWidestPanel = 32;
constexpr int64_t kRowsInPlace = 256;

int64_t wide_columns(const Plan16& p) { return divide_up(p.columns, kWidestPanel) * kWidestPanel; }

// Counts the packed bytes of one group.
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

// Packs columns from `column` on, of all columns of the operation.
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
    // Depths are far below 2^40, so that this does not overflow.
    const int64_t room = INT32_MAX - size * 32768;
    narrow &= bias <= room && bias >= -room;
  }
  to.narrow[panel] = narrow ? 1 : 0;
}

bool multiplies_panels(const OpCall& call) {
  return call.in(0).dtype == DType::kInt16 && q16_multiplies_panels() && has_constant_rest(call);
}

Fit takes_q16_panels(const OpCall& call, int threads, VariantNeeds* needs) {
  if (!multiplies_panels(call)) return Fit::kNever;
  const Plan16 p = plan_q16(call);
  int64_t bytes = 0;
  if (p.depth == 0 || !packed_bytes16(p, &bytes) || !checked_mul(bytes, p.g.group, &bytes) ||
      bytes >= INT64_MAX / 2 || !q16_product_workspace(call, threads, &needs->workspace).ok())
    return Fit::kNever;
  needs->packing = form_of(bytes, 0b1110u, {p.g.group, p.columns, p.depth, call.in(3).size()});
  return Fit::kEverywhere;
}

void pack_q16_panels(const OpCall& call, std::byte* packed, ThreadPool* threads) {
  const Plan16 p = plan_q16(call);
  const int64_t panels = divide_up(p.columns, q16_panel_width());
  parallel_for(threads, p.g.group * panels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit)
      pack_panel16(call, p, unit / panels * p.columns, unit % panels, packed_at(p, unit / panels, packed));
  });
}

// Returns the windows of `count` output pixels from `first` on, if they can be read in the input: all in one
// line, in no padding, and with a number behind each line of odd length, which is multiplied by zero.
// Otherwise there are no lines.
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

Status run_q16_panels(const VariantStep& step, const OpCall& call, RunContext& context) {
  const Plan16 p = plan_q16(call);
  int64_t each = 0;
  if (call.out(0).size() == 0 || !q16_scratch_bytes(p, &each)) return ok_status();
  const Geometry& g = p.g;
  const auto* x = call.in(0).as<const int16_t>();
  // Such pixels are read in place, one after another.
  bool pointwise = g.group == 1 && p.depth % 2 == 0;
  for (int i = 0; i < 3; ++i)
    pointwise &= g.kernel[i] == 1 && g.stride[i] == 1 && g.pad[i] == 0 && g.in[i] == g.out[i];
  const int64_t block = pointwise ? kRowsInPlace : kRows16;
  const int64_t rows = g.batch * g.out_pixels(), blocks = divide_up(rows, block),
                threads = threads_of(context.threads);
  // If there are few rows, columns are shared out.
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
          copy_q16_windows(p, x, first, count, group, window);
          from = {window, count, p.stride, g.out_channels, 1, p.packed_depth(), 0};
        }
        const ProductResult result{p.end.to, p.end.zero, p.end.low, p.end.high,
                                   call.out(0).data + (first * g.out_channels + group * p.columns) *
                                                          static_cast<int64_t>(byte_width(p.end.to))};
        multiply_q16(packed_at(p, group, step.packed), from, panels * part / parts,
                     panels * (part + 1) / parts, result);
      }
    }
  });
  return ok_status();
}

}  // namespace

// This is for x86; other processors multiply weights as they are.
const Variant qs16_gemm = {.takes = takes_q16_panels, .pack = pack_q16_panels, .run = run_q16_panels};

}  // namespace sinter::simd
