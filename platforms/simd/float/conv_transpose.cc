// ConvTranspose: each phase is a product of input patches and the taps that reach it, as in Conv.
#include "platforms/simd/float/gemm.h"
#include "platforms/simd/float/im2col.h"
#include "platforms/simd/window.h"
#include "runtime/backend/transposed_phase.h"

namespace sinter::simd {
namespace {

// Returns the depth of the deepest product of a phase.
int64_t full_depth(const Geometry& g) { return g.taps() * (g.in_channels / g.group); }

Status workspace(const OpCall& call, int threads, size_t* bytes) {
  const Geometry g = window_geometry<ConvTransposeAttrs>(call);
  int64_t packed = 0, slots = 0;
  SINTER_RETURN_UNLESS(packed_floats(g.out_channels / g.group, full_depth(g), &packed) &&
                           checked_mul(slot_rows(threads), full_depth(g), &slots) &&
                           checked_mul<int64_t>(slots, std::max(threads, 1), &slots) &&
                           checked_add(packed, slots, &packed) &&
                           checked_mul<int64_t>(packed, sizeof(float), &packed),
                       too_much_workspace());
  *bytes = static_cast<size_t>(packed);
  return ok_status();
}

// Returns a phase as a convolution with stride 1, whose taps are in the opposite order.
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

// The data that the phases of one group share.
struct Shared {
  const OpCall& call;
  const Geometry& g;
  Gemm product;
  const float* x;
  float* y;  // that of the group
  float* packed;
  int64_t group, channels, columns;

  int64_t packed_size(int64_t depth) const {
    int64_t floats = 0;
    return packed_floats(columns, depth, &floats) ? floats : 0;  // the workspace has been computed from it
  }
};

// Returns the patches of a phase's pixels if they are the input itself (windows of one line, all inside it),
// or null.
const float* patches_in_place(const Shared& s, const Geometry& conv, int64_t image, const int64_t* at,
                              int64_t rows) {
  const Geometry& g = s.g;
  if (conv.kernel[0] != 1 || conv.kernel[1] != 1) return nullptr;
  if (conv.kernel[2] != 1 && conv.dilation[2] * g.in_pixel() != s.channels) return nullptr;
  const int64_t i0 = at[0] - conv.pad[0], i1 = at[1] - conv.pad[1], i2 = at[2] - conv.pad[2];
  if (i0 < 0 || i0 >= g.in[0] || i1 < 0 || i1 >= g.in[1] || i2 < 0 ||
      i2 + rows - 1 + conv.kernel[2] > g.in[2])
    return nullptr;
  return s.x + (((image * g.in[0] + i0) * g.in[1] + i1) * g.in[2] + i2) * g.in_pixel() + s.group * s.channels;
}

// Computes pixels at[2], ... (`rows` of them) of line at[0], at[1] of a phase of image `image`.
void compute_pixels(const Shared& s, const TransposedPhase& p, const float* packed, int64_t image,
                    const int64_t* at, int64_t rows, float* patches) {
  const Geometry& g = s.g;
  const Geometry conv = as_convolution(g, p);
  Gemm tile = s.product;
  tile.rows = rows, tile.b = packed, tile.depth = p.taps() * s.channels;
  tile.a = patches_in_place(s, conv, image, at, rows);
  tile.a_stride = g.in_pixel();
  if (tile.a == nullptr) {
    const int64_t line = (image * conv.out[0] + at[0]) * conv.out[1] + at[1];
    gather_patches(conv, s.x, s.group, line * conv.out[2] + at[2], rows, patches);
    tile.a = patches, tile.a_stride = tile.depth;
  }
  int64_t to = image;
  for (int i = 0; i < 3; ++i) to = to * g.out[i] + p.axis[i].first + at[i] * g.stride[i];
  tile.y = s.y + to * g.out_pixel();
  gemm_columns(tile, 0, s.columns);
}

// Computes some phases, piece by piece of their lines: phases(f) calls f(phase, packed weights) for each.
// `count` is the largest number of positions that one of them has along each axis. The phases of neighbouring
// pixels follow each other, while their input and output are in the caches.
template <class Phases>
void compute_phases(const Shared& s, RunContext& context, const int64_t* count, float* patches,
                    const Phases& phases) {
  const Geometry& g = s.g;
  const int64_t threads = threads_of(context.threads), rows = slot_rows(threads),
                pieces = divide_up(count[2], rows);
  const int64_t units = g.batch * count[0] * count[1] * pieces, slots = std::min(units, threads);
  parallel_slots(context.threads, slots, units, [&](int64_t slot, int64_t begin, int64_t end) {
    float* own = patches + slot * rows * full_depth(g);
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t piece = unit % pieces, line = unit / pieces;
      int64_t at[3] = {line / count[1] % count[0], line % count[1], 0};
      phases([&](const TransposedPhase& p, const float* packed) {
        if (at[0] >= p.axis[0].count || at[1] >= p.axis[1].count) return;
        at[2] = p.axis[2].count * piece / pieces;
        const int64_t pixels = p.axis[2].count * (piece + 1) / pieces - at[2];
        if (pixels > 0) compute_pixels(s, p, packed, line / (count[0] * count[1]), at, pixels, own);
      });
    }
  });
}

void run_group(Shared& s, RunContext& context) {
  const Geometry& g = s.g;
  const float* w = s.call.in(1).as<const float>() + s.group * s.columns * g.taps() * s.channels;
  float* patches = s.packed + s.packed_size(full_depth(g));
  int64_t taps = 0, count[3] = {};
  for_phases(g, [&](const TransposedPhase& p) {
    taps += p.taps();
    for (int i = 0; i < 3; ++i) count[i] = std::max(count[i], p.axis[i].count);
  });
  if (taps <= g.taps()) {  // the weights of all phases fit
    const auto phases = [&](auto f) {
      float* packed = s.packed;
      for_phases(g, [&](const TransposedPhase& p) {
        f(p, packed);
        packed += s.packed_size(p.taps() * s.channels);
      });
    };
    phases([&](const TransposedPhase& p, float* packed) { pack_phase(g, p, w, packed, context.threads); });
    return compute_phases(s, context, count, patches, phases);
  }
  for_phases(g, [&](const TransposedPhase& p) {
    pack_phase(g, p, w, s.packed, context.threads);
    const int64_t own[3] = {p.axis[0].count, p.axis[1].count, p.axis[2].count};
    compute_phases(s, context, own, patches, [&](auto f) { f(p, s.packed); });
  });
}

Status run(const OpCall& call, RunContext& context) {
  const auto& attrs = call.attrs<ConvTransposeAttrs>();
  const Geometry g = window_geometry<ConvTransposeAttrs>(call);
  if (call.out(0).size() == 0) return ok_status();
  const int64_t columns = g.out_channels / g.group;
  for (int64_t group = 0; group < g.group; ++group) {
    Shared s{call,
             g,
             {},
             call.in(0).as<const float>(),
             call.out(0).as<float>() + group * columns,
             reinterpret_cast<float*>(context.workspace.data()),
             group,
             g.in_channels / g.group,
             columns};
    s.product.columns = columns;
    s.product.y_stride = g.stride[2] * g.out_pixel();
    s.product.bias = call.has_input(2) ? call.in(2).as<const float>() + group * columns : nullptr;
    s.product.min = static_cast<float>(attrs.act_min), s.product.max = static_cast<float>(attrs.act_max);
    run_group(s, context);
  }
  return ok_status();
}

}  // namespace

const Kernel kConvTransposeKernel = {Op::kConvTranspose, nullptr, workspace, run, accept_float_pixels};

}  // namespace sinter::simd
