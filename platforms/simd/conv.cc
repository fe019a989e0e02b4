// Conv: image patches times filters, group by group; a filter of one tap over every pixel needs no patches.
#include "platforms/simd/gemm.h"
#include "platforms/simd/narrow_conv.h"
#include "platforms/simd/packed.h"
#include "platforms/simd/patches.h"
#include "platforms/simd/window.h"

namespace sinter::simd {
namespace {

// Every pixel of the input, in order, is a row.
bool pointwise(const Geometry& g) {
  for (int i = 0; i < 3; ++i)
    if (g.kernel[i] != 1 || g.stride[i] != 1 || g.pad[i] != 0 || g.in[i] != g.out[i]) return false;
  return true;
}

int64_t patch_floats(const Geometry& g) {
  return pointwise(g) ? 0 : kRowTile * g.taps() * (g.in_channels / g.group);
}

// Besides its patches, a thread has copies of some of them.
int64_t copy_floats(const Geometry& g) {
  return copied_floats(g.out_channels / g.group, g.taps() * (g.in_channels / g.group));
}

// Rows of a tile. Half as many leave room in the first cache for their patches, where the filters are few
// enough to be read again from the second one for each tile.
int64_t tile_rows(int64_t depth, int64_t filters) {
  return depth >= 128 && filters <= 65536 ? kRowTile / 2 : kRowTile;
}

// No patches, no packing. The same choice on every instruction set, for workspaces are planned ahead.
bool reads_in_place(const Geometry& g) { return !pointwise(g) && narrow_conv_takes(g); }

// Results do not depend on strides, which rules out any other algorithm.
Status accept_conv(const OpCall& call) {
  SINTER_RETURN_IF_ERROR(accept_float_pixels(call));
  SINTER_RETURN_UNLESS(call.in(0).dense() || !reads_in_place(window_geometry<ConvAttrs>(call)),
                       unsupported("the simd kernel for few channels takes dense operands"));
  return ok_status();
}

// Packed filters of one group, unless they are read in place, and a slot of patches for each thread.
Status conv_bytes(const Geometry& g, bool packs, int threads, size_t* bytes) {
  const int64_t depth = g.taps() * (g.in_channels / g.group);
  int64_t packed = 0, patches = 0;
  if (reads_in_place(g)) {
    *bytes = 0;
    return ok_status();
  }
  SINTER_RETURN_UNLESS((!packs || packed_floats(g.out_channels / g.group, depth, &packed)) &&
                           checked_mul(pointwise(g) ? 0 : kRowTile, depth, &patches) &&
                           checked_add(patches, copy_floats(g), &patches) &&
                           checked_mul<int64_t>(patches, std::max(threads, 1), &patches) &&
                           checked_add(packed, patches, &packed) &&
                           checked_mul<int64_t>(packed, sizeof(float), &packed),
                       invalid("the operation needs more workspace than the step has"));
  *bytes = static_cast<size_t>(packed);
  return ok_status();
}

Status conv_workspace(const OpCall& call, int threads, size_t* bytes) {
  const Geometry g = window_geometry<ConvAttrs>(call);
  const int64_t depth = g.taps() * (g.in_channels / g.group);
  return conv_bytes(g, !few_columns(g.out_channels / g.group, depth), threads, bytes);
}

// `constant`: the filters of all groups, packed beforehand, or null.
Status run_conv_with(const OpCall& call, RunContext& context, const float* constant) {
  const auto& attrs = call.attrs<ConvAttrs>();
  const Geometry g = window_geometry<ConvAttrs>(call);
  if (call.out(0).size() == 0) return ok_status();
  const auto *x = call.in(0).as<const float>(), *w = call.in(1).as<const float>();
  const float* bias = call.has_input(2) ? call.in(2).as<const float>() : nullptr;
  const int64_t columns = g.out_channels / g.group, depth = g.taps() * (g.in_channels / g.group);
  const int64_t rows = g.batch * g.out_pixels();
  const bool dots = few_columns(columns, depth);
  if (reads_in_place(g)) {
    run_narrow_conv(g,
                    {x, w, bias, static_cast<float>(attrs.act_min), static_cast<float>(attrs.act_max),
                     call.out(0).as<float>()},
                    context.threads);
    return ok_status();
  }
  int64_t packed_size = 0;
  if (!packed_floats(columns, depth, &packed_size)) return ok_status();
  auto* scratch = reinterpret_cast<float*>(context.workspace.data());
  float* all_patches = constant != nullptr || dots ? scratch : scratch + packed_size;
  Gemm all;
  all.a = x, all.a_stride = g.in_pixel(), all.rows = rows, all.columns = columns, all.depth = depth;
  all.y_stride = g.out_pixel();
  all.min = static_cast<float>(attrs.act_min), all.max = static_cast<float>(attrs.act_max);
  for (int64_t group = 0; group < g.group; ++group) {
    all.b = constant != nullptr ? constant + group * packed_size : scratch;
    if (constant == nullptr && !dots)
      pack_parallel(w + group * columns * depth, 1, depth, columns, depth, scratch, context.threads);
    all.bias = bias != nullptr ? bias + group * columns : nullptr;
    all.y = call.out(0).as<float>() + group * columns;
    if (pointwise(g) && !dots) {
      all.a = x + group * depth, all.copies = copy_floats(g) > 0 ? all_patches : nullptr;
      gemm_parallel(all, context.threads);
      continue;
    }
    // A slot per thread: its own patches. Tiles of whole units leave room for a unit that is not whole.
    const int64_t threads = threads_of(context.threads);
    const int64_t unit_rows = row_unit(columns), width = panel_width(), panels = divide_up(columns, width),
                  tiles = divide_up(rows,
                                    (tile_rows(depth, packed_size) - unit_rows + 1) / unit_rows * unit_rows);
    const int64_t parts = dots || tiles >= threads ? 1 : std::min(panels, divide_up(threads, tiles));
    const int64_t units = tiles * parts, slots = std::min(units, std::max<int64_t>(threads, 1));
    parallel_slots(context.threads, slots, units, [&](int64_t slot, int64_t begin, int64_t end) {
      float* patches = all_patches + slot * (patch_floats(g) + copy_floats(g));
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t t = unit / parts, row = tile_row(rows, t, tiles, unit_rows), part = unit % parts;
        Gemm tile = all;
        tile.copies = copy_floats(g) > 0 ? patches + patch_floats(g) : nullptr;
        tile.rows = tile_row(rows, t + 1, tiles, unit_rows) - row;
        tile.y += row * g.out_pixel();
        if (pointwise(g)) {
          tile.a = x + row * g.in_pixel() + group * depth;
        } else {
          gather_patches(g, x, group, row, tile.rows, patches);
          tile.a = patches, tile.a_stride = depth;
        }
        if (dots) {
          for (int64_t r = 0; r < tile.rows; ++r)
            gemv(w + group * columns * depth, columns, depth, tile.a + r * tile.a_stride, tile.bias, tile.min,
                 tile.max, tile.y + r * tile.y_stride);
          continue;
        }
        gemm_columns(tile, panels * part / parts * width, panels * (part + 1) / parts * width);
      }
    });
  }
  return ok_status();
}

Status run_conv(const OpCall& call, RunContext& context) { return run_conv_with(call, context, nullptr); }

}  // namespace

Status conv_bound(const OpCall& call, int threads, size_t* workspace) {
  return conv_bytes(window_geometry<ConvAttrs>(call), !call.in(1).constant, threads, workspace);
}

bool conv_packing(const OpCall& call, int threads, Packing* packing, size_t* workspace) {
  const Geometry g = window_geometry<ConvAttrs>(call);
  const int64_t columns = g.out_channels / g.group, depth = g.taps() * (g.in_channels / g.group);
  int64_t floats = 0, patches = 0;
  if (reads_in_place(g) || few_columns(columns, depth) || !packed_floats(columns, depth, &floats) ||
      !checked_mul(floats, g.group, &floats) || !checked_mul<int64_t>(floats, sizeof(float), &floats) ||
      !checked_mul<int64_t>(patch_floats(g) + copy_floats(g), std::max(threads, 1), &patches) ||
      !checked_mul<int64_t>(patches, sizeof(float), &patches))
    return false;
  *packing = {static_cast<size_t>(floats), 0b10, {kFloatPanels, g.group, columns, depth}};
  *workspace = static_cast<size_t>(patches);
  return true;
}

void pack_conv(const OpCall& call, std::byte* packed, ThreadPool* threads) {
  const Geometry g = window_geometry<ConvAttrs>(call);
  const int64_t columns = g.out_channels / g.group, depth = g.taps() * (g.in_channels / g.group);
  int64_t each = 0;
  if (!packed_floats(columns, depth, &each)) return;
  for (int64_t group = 0; group < g.group; ++group)
    pack_parallel(call.in(1).as<const float>() + group * columns * depth, 1, depth, columns, depth,
                  reinterpret_cast<float*>(packed) + group * each, threads);
}

Status run_packed_conv(void* packed, const OpCall& call, RunContext& context) {
  return run_conv_with(call, context, static_cast<const float*>(packed));
}

const Kernel kConvKernel = {Op::kConv, nullptr, conv_workspace, run_conv, accept_conv};

}  // namespace sinter::simd
