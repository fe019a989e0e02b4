// ConvTranspose as products: output positions of one phase (position modulo the stride, per axis) are reached
// by the same taps of the filter, so that each phase is a product of input patches and these taps.
#pragma once

#include <algorithm>
#include <numeric>

#include "runtime/backend/window.h"

namespace sinter {

// One axis of a phase: output positions first, first + stride, ... (`count` of them), and the taps that reach
// them: tap, tap + tap_step, ... (`taps` of them). Position i under tap j reads the input at base + i - j *
// input_step; outside the input that is padding.
struct PhaseAxis {
  int64_t first = 0, count = 0, tap = 0, tap_step = 1, taps = 0, base = 0, input_step = 1;
};

// Returns phase `phase`, which is less than the stride and than the output's length. Output position p under
// tap t reads the input at (p + pad - t * dilation) / stride where that is whole.
inline PhaseAxis phase_axis(const WindowGeometry& g, int axis, int64_t phase) {
  const int64_t stride = g.stride[axis], dilation = g.dilation[axis], divisor = std::gcd(stride, dilation);
  PhaseAxis a;
  a.first = phase;
  a.count = (g.out[axis] - 1 - phase) / stride + 1;
  a.tap_step = stride / divisor, a.input_step = dilation / divisor;
  for (int64_t t = 0; t < std::min(a.tap_step, g.kernel[axis]); ++t) {
    const int64_t offset = phase + g.pad[axis] - t * dilation;
    if (offset % stride != 0) continue;
    a.tap = t, a.base = offset / stride, a.taps = (g.kernel[axis] - 1 - t) / a.tap_step + 1;
    break;
  }
  return a;
}

// Returns positions begin .. end - 1, with the taps that read the input (of length `in`) at one of them.
inline PhaseAxis phase_part(const PhaseAxis& a, int64_t stride, int64_t in, int64_t begin, int64_t end) {
  // Tap j reads the input at position i if 0 <= base + i - j * input_step < in.
  const int64_t lowest = a.base + begin - in + 1, highest = a.base + end - 1;
  const int64_t first = lowest <= 0 ? 0 : std::min((lowest - 1) / a.input_step + 1, a.taps);
  const int64_t last = highest < 0 ? first : std::clamp(highest / a.input_step + 1, first, a.taps);
  PhaseAxis part = a;
  part.first = a.first + begin * stride, part.count = end - begin;
  part.tap = a.tap + first * a.tap_step, part.taps = last - first;
  part.base = a.base + begin - first * a.input_step;
  return part;
}

// Returns the number of positions of an axis that are computed together: all of them, or, where a filter
// longer than the input would read padding for the most part, N for an input of N elements.
inline int64_t phase_part_length(const PhaseAxis& a, int64_t in) {
  const bool long_filter = a.taps > 2 * ((in - 1) / a.input_step + 1);
  return std::max<int64_t>(long_filter ? in : a.count, 1);
}

struct TransposedPhase {
  PhaseAxis axis[kMaxWindowAxes];
  int64_t pixels() const { return axis[0].count * axis[1].count * axis[2].count; }
  int64_t taps() const { return axis[0].taps * axis[1].taps * axis[2].taps; }
};

// Calls f(phase) for each phase; each output position of one image is in exactly one of them. No phase has
// more positions or taps than the geometry.
template <class F>
void for_phases(const WindowGeometry& g, F&& f) {
  TransposedPhase p;
  const auto over_axis = [&](auto&& self, int axis) -> void {
    if (axis == kMaxWindowAxes) return f(static_cast<const TransposedPhase&>(p));
    const int64_t in = g.in[axis];
    for (int64_t phase = 0; phase < std::min(g.stride[axis], g.out[axis]); ++phase) {
      const PhaseAxis all = phase_axis(g, axis, phase);
      const int64_t length = phase_part_length(all, in);
      for (int64_t begin = 0; begin < all.count; begin += length) {
        p.axis[axis] = phase_part(all, g.stride[axis], in, begin, std::min(begin + length, all.count));
        self(self, axis + 1);
      }
    }
  };
  over_axis(over_axis, 0);
}

}  // namespace sinter
