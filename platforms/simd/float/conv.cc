// Conv: the product of patches or lines of the image and filters, group by group. A filter of one tap over
// every pixel reads the image itself.
#include "platforms/simd/float/conv_few_channels.h"
#include "platforms/simd/float/gemm.h"
#include "platforms/simd/float/gemm_unpacked.h"
#include "platforms/simd/float/im2col.h"
#include "platforms/simd/float/input_lines.h"
#include "platforms/simd/variant.h"
#include "platforms/simd/window.h"
#include "runtime/core/narrow_weights.h"

namespace sinter::simd {
namespace {

// Counts the floats of a thread's patches or lines; false on overflow. Lines of few channels have more room
// than patches would take, up to a part of the call's operands.
bool slot_floats(const Geometry& g, int64_t threads, int64_t* floats) {
  *floats = 0;
  if (pointwise(g) || g.batch == 0) return true;
  const int64_t moved = g.in_pixels() * g.in_channels + g.out_pixels() * g.out_channels;
  if (!checked_mul(slot_rows(threads), g.taps() * (g.in_channels / g.group), floats)) return false;
  *floats = std::max(*floats, std::min(kLineFloats, moved / 8 / std::max<int64_t>(threads, 1)));
  return true;
}

// Returns the floats of copies of patches, which threads have on some instruction sets. Plans leave room for
// two threads at least, so that a second one takes no more memory than the first.
int64_t copy_floats(const Geometry& g) {
  return copied_floats(g.out_channels / g.group, g.taps() * (g.in_channels / g.group));
}
int64_t planned_copies(const Geometry& g, int64_t threads) {
  return std::max<int64_t>(threads, 2) * copy_floats(g);
}
int64_t used_copies(const Geometry& g, int64_t threads) {
  return row_unit(g.out_channels / g.group) > 1 ? std::max<int64_t>(threads, 1) * copy_floats(g) : 0;
}

// Filters that stay near the first cache where lines are read.
constexpr int64_t kFewFilters = 32768;

// Returns the rows of a tile. Half as many as there is room for leave space in the first cache for their
// patches, where the filters are few enough to be read again from the second one for each tile.
int64_t tile_rows(int64_t depth, int64_t filters, int64_t threads) {
  return std::min(slot_rows(threads), depth >= 128 && filters <= 65536 ? kRowTile / 2 : kRowTile);
}

// ---- narrow filters, which are widened in every run

bool has_narrow_filters(const OpCall& call) { return is_narrow_weight(call.in(1).dtype); }

UnpackedWeights narrow_filters(const OpCall& call, const Geometry& g) {
  const TensorView& w = call.in(1);
  return {w.data, w.dtype, g.out_channels, g.taps() * g.in_channels};
}

// The output channels whose filters are widened at a time: panels of some megabytes, for each of which it
// pays to gather the patches again.
constexpr int64_t kFewestWidened = 4 * kMaxPanel, kWidenedFloats = 1 << 20;
int64_t widened_columns(const Geometry& g) {
  const int64_t depth = std::max<int64_t>(g.taps() * g.in_channels, 1);
  const int64_t columns = std::max(kWidenedFloats / depth / kMaxPanel * kMaxPanel, kFewestWidened);
  return std::min(columns, divide_up(g.out_channels, kMaxPanel) * kMaxPanel);
}

Status accept_narrow_filters(const OpCall& call) {
  const auto& attrs = call.attrs<ConvAttrs>();
  TensorView like_x[3];
  for (size_t i = 0; i < call.inputs.size(); ++i) like_x[i] = call.in(i);
  like_x[1] = {};
  SINTER_RETURN_IF_ERROR(
      accept_float_pixels({call.op, call.attributes, {like_x, call.inputs.size()}, call.outputs}));
  SINTER_RETURN_UNLESS(
      call.in(1).dense() && attrs.group == 1 && attrs.winograd == 0 && call.in(1).dims[0] >= kMaxPanel,
      unsupported("narrow filters are read of one group, of %a output channels or more", kMaxPanel));
  return ok_status();
}

Status narrow_filters_bytes(const Geometry& g, int threads, int64_t copies, size_t* bytes) {
  if (pointwise(g)) {
    SINTER_RETURN_UNLESS(unpacked_workspace(g.batch * g.out_pixels(), threads, bytes), too_much_workspace());
    return ok_status();
  }
  int64_t floats = 0, slots = 0;
  SINTER_RETURN_UNLESS(packed_floats(widened_columns(g), g.taps() * g.in_channels, &floats) &&
                           slot_floats(g, threads, &slots) &&
                           checked_mul<int64_t>(slots, std::max(threads, 1), &slots) &&
                           checked_add(floats, slots, &floats) && checked_add(floats, copies, &floats) &&
                           checked_mul<int64_t>(floats, sizeof(float), &floats),
                       too_much_workspace());
  *bytes = static_cast<size_t>(floats);
  return ok_status();
}

// ---- the choice of a kernel, and its memory

// Strides do not change results, which rules out any other algorithm.
Status accept_conv(const OpCall& call) {
  if (has_narrow_filters(call)) return accept_narrow_filters(call);
  SINTER_RETURN_IF_ERROR(accept_float_pixels(call));
  SINTER_RETURN_UNLESS(call.in(0).dense() || !narrow_conv_takes(window_geometry<ConvAttrs>(call)),
                       unsupported("the simd kernel for few channels takes dense operands"));
  return ok_status();
}

// Counts the bytes of a slot for each thread, of copies, and of one group's packed filters if runs pack them;
// false on overflow.
bool patch_bytes(const Geometry& g, bool packs, int64_t threads, int64_t copies, int64_t* bytes) {
  const int64_t depth = g.taps() * (g.in_channels / g.group);
  int64_t packed = 0;
  return (!packs || packed_floats(g.out_channels / g.group, depth, &packed)) &&
         slot_floats(g, threads, bytes) &&
         checked_mul<int64_t>(*bytes, std::max<int64_t>(threads, 1), bytes) &&
         checked_add(*bytes, copies, bytes) && checked_add(*bytes, packed, bytes) &&
         checked_mul<int64_t>(*bytes, sizeof(float), bytes);
}

// The workspace suffices on any instruction set. Runs pack filters, except constant ones of few columns.
Status conv_workspace(const OpCall& call, int threads, size_t* bytes) {
  const Geometry g = window_geometry<ConvAttrs>(call);
  if (has_narrow_filters(call)) return narrow_filters_bytes(g, threads, planned_copies(g, threads), bytes);
  const int64_t depth = g.taps() * (g.in_channels / g.group);
  const bool few = narrow_conv_takes(g),
             packs = !call.in(1).constant || !few_columns(g.out_channels / g.group, depth);
  int64_t narrow = 0, patches = 0;
  SINTER_RETURN_UNLESS((!few || narrow_conv_workspace(call, threads, &narrow)) &&
                           ((few && g.out_channels <= kNarrowOnAll) ||
                            patch_bytes(g, packs, threads, planned_copies(g, threads), &patches)),
                       too_much_workspace());
  *bytes = static_cast<size_t>(std::max(narrow, patches));
  return ok_status();
}

// A group of a convolution, whose filters are packed or few columns.
struct ConvGroup {
  const Geometry& g;
  int64_t group;
  Gemm all;  // the product of all pixels, without its rows
  const float* x;
  const float* filters;  // the filters of few columns, unpacked; or null
  float* slots;          // of slot_size floats each
  int64_t slot_size;
  float* copies;  // or null
};

// A unit of work is a tile of pixels by a part of the panels.
void run_tiles(const ConvGroup& c, ThreadPool* pool) {
  const Geometry& g = c.g;
  const int64_t rows = g.batch * g.out_pixels(), columns = c.all.columns, depth = c.all.depth,
                threads = threads_of(pool), filters = columns * depth;
  // Tiles of whole units leave room for a unit that is not whole.
  const int64_t unit_rows = row_unit(columns), width = panel_width(), panels = divide_up(columns, width);
  const int64_t most = tile_rows(depth, filters, threads);
  Gemm all = c.all;
  LineTiles lines;
  const bool by_lines = c.filters == nullptr && filters <= kFewFilters &&
                        choose_line_tiles(g, c.slot_size, most, threads, &lines);
  if (by_lines) {
    auto* places = reinterpret_cast<int32_t*>(c.slots);
    list_places(g, lines, places, places + lines.pixels());
    all.row_at = places, all.depth_at = places + lines.pixels();
  }
  const int64_t tiles =
      by_lines ? lines.tiles(g) : divide_up(rows, (most - unit_rows + 1) / unit_rows * unit_rows);
  const int64_t parts =
      c.filters != nullptr || tiles >= threads ? 1 : std::min(panels, divide_up(threads, tiles));
  const int64_t units = tiles * parts, slots = std::min(units, std::max<int64_t>(threads, 1));
  parallel_slots(pool, slots, units, [&](int64_t slot, int64_t begin, int64_t end) {
    float* windows = c.slots + slot * c.slot_size + (by_lines ? list_floats(g, lines) : 0);
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t t = unit / parts, part = unit % parts;
      Gemm tile = all;
      if (c.copies != nullptr) tile.copies = c.copies + slot * copy_floats(g);
      int64_t row = tile_row(rows, t, tiles, unit_rows);
      tile.rows = tile_row(rows, t + 1, tiles, unit_rows) - row;
      tile.a = windows, tile.a_stride = depth;
      if (by_lines) {
        const LineTile at = line_tile(g, lines, t);
        row = at.row(g), tile.rows = at.lines * at.columns;
        copy_lines(g, lines, at, c.x, c.group, windows);
      } else if (pointwise(g)) {
        tile.a = c.x + row * g.in_pixel() + c.group * depth, tile.a_stride = g.in_pixel();
      } else {
        gather_patches(g, c.x, c.group, row, tile.rows, windows);
      }
      tile.y += row * g.out_pixel();
      if (c.filters != nullptr) {
        for (int64_t r = 0; r < tile.rows; ++r)
          gemv(c.filters, columns, depth, tile.a + r * tile.a_stride, tile.bias, tile.min, tile.max,
               tile.y + r * tile.y_stride);
      } else {
        gemm_columns(tile, panels * part / parts * width, panels * (part + 1) / parts * width);
      }
    }
  });
}

Status run_narrow_filters(const OpCall& call, RunContext& context) {
  const auto& attrs = call.attrs<ConvAttrs>();
  const Geometry g = window_geometry<ConvAttrs>(call);
  if (call.out(0).size() == 0) return ok_status();
  const UnpackedWeights w = narrow_filters(call, g);
  const float* bias = call.has_input(2) ? call.in(2).as<const float>() : nullptr;
  Gemm all;
  all.depth = w.depth, all.y_stride = g.out_pixel();
  all.min = static_cast<float>(attrs.act_min), all.max = static_cast<float>(attrs.act_max);
  if (pointwise(g)) {
    all.a = call.in(0).as<const float>(), all.a_stride = g.in_pixel(), all.rows = g.batch * g.out_pixels();
    all.columns = w.columns, all.bias = bias, all.y = call.out(0).as<float>();
    return run_unpacked(w, all, context), ok_status();
  }
  const int64_t threads = threads_of(context.threads), width = panel_width(), chunk = widened_columns(g);
  int64_t widened = 0, slot_size = 0;
  if (!packed_floats(chunk, w.depth, &widened) || !slot_floats(g, threads, &slot_size)) return ok_status();
  auto* panels = reinterpret_cast<float*>(context.workspace.data());
  float* slots = panels + widened;
  float* copies = used_copies(g, threads) > 0 ? slots + threads * slot_size : nullptr;
  for (int64_t first = 0; first < w.columns; first += chunk) {
    all.columns = std::min(chunk, w.columns - first);
    parallel_for(context.threads, divide_up(all.columns, width), 1, [&](int64_t begin, int64_t end) {
      for (int64_t panel = begin; panel < end; ++panel)
        widen_panel_piece(w, first + panel * width, 0, w.depth, panels + panel * width * w.depth);
    });
    all.b = panels, all.bias = bias != nullptr ? bias + first : nullptr;
    all.y = call.out(0).as<float>() + first;
    run_tiles({g, 0, all, call.in(0).as<const float>(), nullptr, slots, slot_size, copies}, context.threads);
  }
  return ok_status();
}

// `constant` has the filters of all groups, packed beforehand, or is null.
Status run_conv_with(const OpCall& call, RunContext& context, const float* constant) {
  const auto& attrs = call.attrs<ConvAttrs>();
  const Geometry g = window_geometry<ConvAttrs>(call);
  if (call.out(0).size() == 0) return ok_status();
  const auto *x = call.in(0).as<const float>(), *w = call.in(1).as<const float>();
  const float* bias = call.has_input(2) ? call.in(2).as<const float>() : nullptr;
  const int64_t columns = g.out_channels / g.group, depth = g.taps() * (g.in_channels / g.group),
                threads = threads_of(context.threads);
  const bool dots = constant == nullptr && few_columns(columns, depth);
  int64_t packed_size = 0, slot_size = 0;
  if (!packed_floats(columns, depth, &packed_size) || !slot_floats(g, threads, &slot_size))
    return ok_status();
  auto* scratch = reinterpret_cast<float*>(context.workspace.data());
  float* slots = constant != nullptr || dots ? scratch : scratch + packed_size;
  float* copies = used_copies(g, threads) > 0 ? slots + threads * slot_size : nullptr;
  Gemm all;
  all.columns = columns, all.depth = depth, all.y_stride = g.out_pixel();
  all.min = static_cast<float>(attrs.act_min), all.max = static_cast<float>(attrs.act_max);
  for (int64_t group = 0; group < g.group; ++group) {
    all.b = constant != nullptr ? constant + group * packed_size : scratch;
    if (constant == nullptr && !dots)
      pack_parallel(w + group * columns * depth, 1, depth, columns, depth, scratch, context.threads);
    all.bias = bias != nullptr ? bias + group * columns : nullptr;
    all.y = call.out(0).as<float>() + group * columns;
    if (pointwise(g) && !dots) {
      Gemm pixels = all;
      pixels.a = x + group * depth, pixels.a_stride = g.in_pixel(), pixels.rows = g.batch * g.out_pixels();
      pixels.copies = copies;
      gemm_parallel(pixels, context.threads);
      continue;
    }
    run_tiles({g, group, all, x, dots ? w + group * columns * depth : nullptr, slots, slot_size, copies},
              context.threads);
  }
  return ok_status();
}

Status run_conv(const OpCall& call, RunContext& context) {
  const Geometry g = window_geometry<ConvAttrs>(call);
  if (has_narrow_filters(call)) return run_narrow_filters(call, context);
  if (narrow_conv_takes(g) && narrow_conv_gains(g) && call.out(0).size() > 0)
    return run_narrow_conv(call, context);
  return run_conv_with(call, context, nullptr);
}

// ---- constant filters

Fit takes_conv_gemm(const OpCall& call, int threads, VariantNeeds* needs) {
  const Geometry g = window_geometry<ConvAttrs>(call);
  const int64_t columns = g.out_channels / g.group, depth = g.taps() * (g.in_channels / g.group);
  int64_t workspace = 0, planned = 0, bytes = 0;
  if (has_narrow_filters(call) || !patch_bytes(g, false, threads, used_copies(g, threads), &workspace) ||
      !patch_bytes(g, false, threads, planned_copies(g, threads), &planned) ||
      !packed_floats(columns, depth, &bytes) || !checked_mul(bytes, g.group, &bytes) ||
      !checked_mul<int64_t>(bytes, sizeof(float), &bytes))
    return Fit::kNever;
  needs->workspace = static_cast<size_t>(workspace), needs->planned = static_cast<size_t>(planned);
  needs->packing = form_of(bytes, 0b10, {g.group, columns, depth});
  return few_columns(columns, depth) ? Fit::kElsewhere : Fit::kEverywhere;
}

void pack_conv_gemm(const OpCall& call, std::byte* packed, ThreadPool* threads) {
  const Geometry g = window_geometry<ConvAttrs>(call);
  const int64_t columns = g.out_channels / g.group, depth = g.taps() * (g.in_channels / g.group);
  int64_t each = 0;
  if (!packed_floats(columns, depth, &each)) return;
  for (int64_t group = 0; group < g.group; ++group)
    pack_parallel(call.in(1).as<const float>() + group * columns * depth, 1, depth, columns, depth,
                  reinterpret_cast<float*>(packed) + group * each, threads);
}

Status run_conv_gemm(const VariantStep& step, const OpCall& call, RunContext& context) {
  return run_conv_with(call, context, reinterpret_cast<const float*>(step.packed));
}

}  // namespace

const Variant f32_conv_gemm = {
    .takes = takes_conv_gemm, .pack = pack_conv_gemm, .run = run_conv_gemm, .full_name = conv_gemm_name};
const Kernel kConvKernel = {Op::kConv, nullptr, conv_workspace, run_conv, accept_conv};

}  // namespace sinter::simd
