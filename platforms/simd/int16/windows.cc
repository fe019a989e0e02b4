#include "platforms/simd/int16/windows.h"

#include <cstring>

#include "platforms/simd/int8/int8.h"

namespace sinter::simd {

Plan16 plan_q16(const OpCall& call) {
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

namespace {

// Copies the window of output pixel `row`, one group's channels, as [lines, room].
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

}  // namespace

// Windows inside the input are copied line by line if their taps are adjacent.
void copy_q16_windows(const Plan16& p, const int16_t* x, int64_t first, int64_t count, int64_t group,
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

bool q16_scratch_bytes(const Plan16& p, int64_t* bytes) {
  constexpr auto kAligned = static_cast<int64_t>(kBufferAlignment);
  if (!checked_mul<int64_t>(p.stride, kRows16 * static_cast<int64_t>(sizeof(int16_t)), bytes) ||
      !checked_add<int64_t>(*bytes, kRows16 * kColumns16 * 8 + kAligned, bytes))
    return false;
  *bytes = *bytes / kAligned * kAligned;
  return true;
}

}  // namespace sinter::simd
