// The distance by which an operand must begin behind the result that is written over it (Kernel::lead), for
// kernels that go through their output in order.
#pragma once

#include "runtime/kernels/conv_geometry.h"
#include "runtime/kernels/pool_window.h"

namespace sinter {

// Computes the lead for windows over up to three spatial axes, whose output lines read whole input rows.
// `ahead` counts the output pixels that may be written before the line's last input is read for the last
// time.
inline Status windows_lead(const WindowGeometry& g, int64_t in_pixel_bytes, int64_t out_pixel_bytes,
                           int64_t ahead, size_t* bytes) {
  constexpr int64_t kMostLines = 1 << 16;
  int64_t lines = 0;
  SINTER_RETURN_UNLESS(
      checked_mul(g.batch, g.out[0], &lines) && checked_mul(lines, g.out[1], &lines) && lines <= kMostLines,
      unsupported("too many lines to follow"));
  const int64_t in_line = g.in[2] * in_pixel_bytes, out_line = g.out[2] * out_pixel_bytes;
  int64_t lead = 0, first_read = INT64_MAX;
  for (int64_t line = lines - 1; line >= 0; --line) {
    const int64_t n = line / (g.out[0] * g.out[1]), p0 = line / g.out[1] % g.out[0], p1 = line % g.out[1];
    const auto start = [&](int axis, int64_t p) {
      return std::clamp<int64_t>(p * g.stride[axis] - g.pad[axis], 0, g.in[axis]);
    };
    first_read = std::min(first_read, ((n * g.in[0] + start(0, p0)) * g.in[1] + start(1, p1)) * in_line);
    lead = std::max(lead, (line + 1) * out_line + ahead * out_pixel_bytes - first_read);
  }
  *bytes = static_cast<size_t>(lead);
  return ok_status();
}

// Takes the pixel sizes of operand 0 and result 0.
inline Status windows_lead(const OpCall& call, const WindowGeometry& g, int64_t ahead, size_t* bytes) {
  return windows_lead(g, g.in_channels * static_cast<int64_t>(byte_width(call.in(0).dtype)),
                      g.out_channels * static_cast<int64_t>(byte_width(call.out(0).dtype)), ahead, bytes);
}

inline Status pool_lead(const OpCall& call, const pool::Window& w, size_t* bytes) {
  SINTER_RETURN_UNLESS(w.axes <= kMaxWindowAxes, unsupported("more than three spatial axes"));
  WindowGeometry g;
  const TensorView& x = call.in(0);
  g.batch = x.dims[0];
  g.in_channels = g.out_channels = x.dims[x.rank - 1];
  for (int i = 0; i < w.axes; ++i) g.set_axis(w.axes, i, w.axis[i], w.axis[i].in, w.axis[i].out);
  return windows_lead(call, g, 0, bytes);
}

}  // namespace sinter
