// ConvTranspose: each phase is a product of input patches and the taps that reach it, like Conv.
#include <cstring>

#include "platforms/simd/gemm.h"
#include "platforms/simd/window.h"
#include "runtime/backend/transposed_phase.h"

namespace sinter::simd {
namespace {

// The deepest product that a phase can be, and one thread's patches and results.
int64_t full_depth(const Geometry& g) { return g.taps() * (g.in_channels / g.group); }
[[nodiscard]] bool slot_floats(const Geometry& g, int64_t* n) {
  int64_t results = 0;
  return checked_mul(kRowTile, full_depth(g), n) &&
         checked_mul(kRowTile, g.out_channels / g.group, &results) && checked_add(*n, results, n);
}

Status workspace(const OpCall& call, int threads, size_t* bytes) {
  const Geometry g = window_geometry<ConvTransposeAttrs>(call);
  int64_t packed = 0, slots = 0;
  SINTER_RETURN_UNLESS(
      packed_floats(g.out_channels / g.group, full_depth(g), &packed) && slot_floats(g, &slots) &&
          checked_mul<int64_t>(slots, std::max(threads, 1), &slots) && checked_add(packed, slots, &packed) &&
          checked_mul<int64_t>(packed, sizeof(float), &packed),
      invalid("the operation needs more workspace than the step has"));
  *bytes = static_cast<size_t>(packed);
  return ok_status();
}

void pack_phase(const Geometry& g, const TransposedPhase& p, const float* w, float* packed,
                ThreadPool* threads) {
  const int64_t channels = g.in_channels / g.group, columns = g.out_channels / g.group,
                depth = p.taps() * channels;
  const int64_t width = panel_width(), panels = divide_up(columns, width);
  parallel_for(threads, panels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t tap = 0; tap < p.taps(); ++tap) {
      const int64_t k1 = p.axis[1].taps, k2 = p.axis[2].taps;
      const int64_t t0 = p.axis[0].tap + tap / (k1 * k2) * p.axis[0].tap_step;
      const int64_t t1 = p.axis[1].tap + tap / k2 % k1 * p.axis[1].tap_step;
      const int64_t t2 = p.axis[2].tap + tap % k2 * p.axis[2].tap_step;
      pack_panels(w + ((t0 * g.kernel[1] + t1) * g.kernel[2] + t2) * channels, 1, g.taps() * channels,
                  columns, channels, depth, packed + tap * channels * width, begin, end);
    }
  });
}

void gather_patch(const Geometry& g, const TransposedPhase& p, const float* image, int64_t pixel, float* to) {
  const int64_t channels = g.in_channels / g.group, n1 = p.axis[1].count, n2 = p.axis[2].count;
  const int64_t at[3] = {p.axis[0].base + pixel / (n1 * n2), p.axis[1].base + pixel / n2 % n1,
                         p.axis[2].base + pixel % n2};
  const auto bytes = static_cast<size_t>(channels) * sizeof(float);
  for (int64_t t0 = 0; t0 < p.axis[0].taps; ++t0) {
    const int64_t i0 = at[0] - t0 * p.axis[0].input_step;
    for (int64_t t1 = 0; t1 < p.axis[1].taps; ++t1) {
      const int64_t i1 = at[1] - t1 * p.axis[1].input_step;
      for (int64_t t2 = 0; t2 < p.axis[2].taps; ++t2, to += channels) {
        const int64_t i2 = at[2] - t2 * p.axis[2].input_step;
        if (i0 >= 0 && i0 < g.in[0] && i1 >= 0 && i1 < g.in[1] && i2 >= 0 && i2 < g.in[2])
          std::memcpy(to, image + ((i0 * g.in[1] + i1) * g.in[2] + i2) * g.in_pixel(), bytes);
        else
          std::memset(to, 0, bytes);
      }
    }
  }
}

void run_phase(const OpCall& call, const Geometry& g, const TransposedPhase& p, int64_t group,
               RunContext& context) {
  const auto& attrs = call.attrs<ConvTransposeAttrs>();
  const int64_t channels = g.in_channels / g.group, columns = g.out_channels / g.group,
                depth = p.taps() * channels;
  const int64_t pixels = p.pixels(), rows = g.batch * pixels;
  int64_t packed_size = 0, slot_size = 0;
  if (rows == 0 || columns == 0 || !packed_floats(columns, full_depth(g), &packed_size) ||
      !slot_floats(g, &slot_size))
    return;
  auto* packed = reinterpret_cast<float*>(context.workspace.data());
  pack_phase(g, p, call.in(1).as<const float>() + group * columns * g.taps() * channels, packed,
             context.threads);
  Gemm all;
  all.a_stride = depth, all.b = packed, all.columns = columns, all.depth = depth, all.y_stride = columns;
  all.bias = call.has_input(2) ? call.in(2).as<const float>() + group * columns : nullptr;
  all.min = static_cast<float>(attrs.act_min), all.max = static_cast<float>(attrs.act_max);
  const auto* x = call.in(0).as<const float>();
  auto* y = call.out(0).as<float>();
  const int64_t threads = threads_of(context.threads);
  const int64_t tiles = divide_up(rows, kRowTile), slots = std::min(tiles, std::max<int64_t>(threads, 1));
  parallel_slots(context.threads, slots, tiles, [&](int64_t slot, int64_t begin, int64_t end) {
    float* patches = packed + packed_size + slot * slot_size;
    float* results = patches + kRowTile * full_depth(g);
    for (int64_t t = begin; t < end; ++t) {
      Gemm tile = all;
      const int64_t first = t * kRowTile;
      tile.rows = std::min(kRowTile, rows - first);
      tile.a = patches, tile.y = results;
      for (int64_t r = 0; r < tile.rows; ++r)
        gather_patch(g, p, x + (first + r) / pixels * g.in_pixels() * g.in_pixel() + group * channels,
                     (first + r) % pixels, patches + r * depth);
      gemm_columns(tile, 0, columns);
      for (int64_t r = 0; r < tile.rows; ++r) {
        const int64_t pixel = (first + r) % pixels, n1 = p.axis[1].count, n2 = p.axis[2].count;
        const int64_t q0 = p.axis[0].first + pixel / (n1 * n2) * g.stride[0];
        const int64_t q1 = p.axis[1].first + pixel / n2 % n1 * g.stride[1];
        const int64_t q2 = p.axis[2].first + pixel % n2 * g.stride[2];
        const int64_t at = (((first + r) / pixels * g.out[0] + q0) * g.out[1] + q1) * g.out[2] + q2;
        std::memcpy(y + at * g.out_pixel() + group * columns, results + r * columns,
                    static_cast<size_t>(columns) * sizeof(float));
      }
    }
  });
}

Status run(const OpCall& call, RunContext& context) {
  const Geometry g = window_geometry<ConvTransposeAttrs>(call);
  if (call.out(0).size() == 0) return ok_status();
  for_phases(g, [&](const TransposedPhase& p) {
    for (int64_t group = 0; group < g.group; ++group) run_phase(call, g, p, group, context);
  });
  return ok_status();
}

}  // namespace

const Kernel kConvTransposeKernel = {Op::kConvTranspose, nullptr, workspace, run, accept_float_pixels};

}  // namespace sinter::simd
