// ConvTranspose: each phase is a product of input patches and the taps that reach it, like Conv.
#include "platforms/simd/gemm.h"
#include "platforms/simd/patches.h"
#include "platforms/simd/window.h"
#include "runtime/backend/transposed_phase.h"

namespace sinter::simd {
namespace {

// The deepest product that a phase can be.
int64_t full_depth(const Geometry& g) { return g.taps() * (g.in_channels / g.group); }

Status workspace(const OpCall& call, int threads, size_t* bytes) {
  const Geometry g = window_geometry<ConvTransposeAttrs>(call);
  int64_t packed = 0, slots = 0;
  SINTER_RETURN_UNLESS(packed_floats(g.out_channels / g.group, full_depth(g), &packed) &&
                           checked_mul(slot_rows(threads), full_depth(g), &slots) &&
                           checked_mul<int64_t>(slots, std::max(threads, 1), &slots) &&
                           checked_add(packed, slots, &packed) &&
                           checked_mul<int64_t>(packed, sizeof(float), &packed),
                       invalid("the operation needs more workspace than the step has"));
  *bytes = static_cast<size_t>(packed);
  return ok_status();
}

// A phase as a convolution with stride 1, whose taps are in the opposite order.
Geometry as_convolution(const Geometry& g, const TransposedPhase& p) {
  Geometry conv = g;
  for (int i = 0; i < 3; ++i) {
    const PhaseAxis& a = p.axis[i];
    conv.kernel[i] = a.taps, conv.stride[i] = 1, conv.dilation[i] = a.input_step, conv.out[i] = a.count;
    conv.pad[i] = (a.taps - 1) * a.input_step - a.base;  // may be negative
  }
  return conv;
}

void pack_phase(const Geometry& g, const TransposedPhase& p, const float* w, float* packed,
                ThreadPool* threads) {
  const int64_t channels = g.in_channels / g.group, columns = g.out_channels / g.group,
                depth = p.taps() * channels;
  const int64_t width = panel_width(), panels = divide_up(columns, width);
  const auto tap_of = [&](int axis, int64_t i) {
    const PhaseAxis& a = p.axis[axis];
    return a.tap + (a.taps - 1 - i) * a.tap_step;
  };
  parallel_for(threads, panels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t tap = 0; tap < p.taps(); ++tap) {
      const int64_t k1 = p.axis[1].taps, k2 = p.axis[2].taps;
      const int64_t t0 = tap_of(0, tap / (k1 * k2)), t1 = tap_of(1, tap / k2 % k1), t2 = tap_of(2, tap % k2);
      pack_panels(w + ((t0 * g.kernel[1] + t1) * g.kernel[2] + t2) * channels, 1, g.taps() * channels,
                  columns, channels, depth, packed + tap * channels * width, begin, end);
    }
  });
}

void run_phase(const OpCall& call, const Geometry& g, const TransposedPhase& p, int64_t group,
               RunContext& context) {
  const auto& attrs = call.attrs<ConvTransposeAttrs>();
  const int64_t channels = g.in_channels / g.group, columns = g.out_channels / g.group,
                depth = p.taps() * channels;
  int64_t packed_size = 0;
  if (p.pixels() == 0 || g.batch == 0 || columns == 0 || !packed_floats(columns, full_depth(g), &packed_size))
    return;
  auto* packed = reinterpret_cast<float*>(context.workspace.data());
  pack_phase(g, p, call.in(1).as<const float>() + group * columns * g.taps() * channels, packed,
             context.threads);
  const Geometry conv = as_convolution(g, p);
  Gemm all;
  all.a_stride = depth, all.b = packed, all.columns = columns, all.depth = depth;
  all.y_stride = g.stride[2] * g.out_pixel();
  all.bias = call.has_input(2) ? call.in(2).as<const float>() + group * columns : nullptr;
  all.min = static_cast<float>(attrs.act_min), all.max = static_cast<float>(attrs.act_max);
  const auto* x = call.in(0).as<const float>();
  auto* y = call.out(0).as<float>() + group * columns;
  const int64_t threads = threads_of(context.threads), rows = slot_rows(threads);
  // Pieces of a phase's lines: their results are stored where they belong.
  const int64_t n0 = conv.out[0], n1 = conv.out[1], n2 = conv.out[2], pieces = divide_up(n2, rows);
  const int64_t units = g.batch * n0 * n1 * pieces, slots = std::min(units, threads);
  parallel_slots(context.threads, slots, units, [&](int64_t slot, int64_t begin, int64_t end) {
    float* patches = packed + packed_size + slot * rows * full_depth(g);
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t line = unit / pieces, first = n2 * (unit % pieces) / pieces;
      Gemm tile = all;
      tile.rows = n2 * (unit % pieces + 1) / pieces - first;
      gather_patches(conv, x, group, line * n2 + first, tile.rows, patches);
      const int64_t q0 = p.axis[0].first + line / n1 % n0 * g.stride[0];
      const int64_t q1 = p.axis[1].first + line % n1 * g.stride[1];
      const int64_t q2 = p.axis[2].first + first * g.stride[2];
      tile.a = patches;
      tile.y = y + (((line / (n0 * n1) * g.out[0] + q0) * g.out[1] + q1) * g.out[2] + q2) * g.out_pixel();
      gemm_columns(tile, 0, columns);
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
