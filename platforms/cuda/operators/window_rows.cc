#include "platforms/cuda/operators/window_rows.h"

namespace sinter::cuda {
namespace {

constexpr int64_t kMost = int64_t{1} << 29;  // of a position, so that sums of three fit int32

bool fits(int64_t n) { return n < kMost && n > -kMost; }

// Sets one axis: windows begin at p * stride - pad for p < out, and read every dilation-th element.
Status set_axis(WindowRows* rows, int axis, int64_t in, int64_t out, int64_t kernel, int64_t stride,
                int64_t dilation, int64_t pad) {
  int64_t last_start = 0, last_tap = 0;
  SINTER_RETURN_UNLESS(checked_mul(out, stride, &last_start) && checked_mul(kernel, dilation, &last_tap) &&
                           fits(last_start) && fits(last_tap) && fits(pad) && fits(in) && fits(stride) &&
                           fits(dilation),
                       unsupported("positions of a window go beyond 2^29"));
  rows->in[axis] = static_cast<int32_t>(in);
  rows->stride[axis] = static_cast<int32_t>(stride);
  rows->dilation[axis] = static_cast<int32_t>(dilation);
  rows->pad[axis] = static_cast<int32_t>(pad);
  return ok_status();
}

// Sets the sizes by which the kernels divide: 1 for empty operands, for which no kernel is launched.
Status set_sizes(WindowRows* rows, const WindowGeometry& g, int64_t out0, int64_t out1, int64_t out2,
                 const int64_t (&kernel)[kMaxWindowAxes]) {
  const int64_t pixels = out0 * out1 * out2;
  SINTER_RETURN_UNLESS(
      pixels <= INT32_MAX && g.group_in() <= INT32_MAX && kernel[1] <= INT32_MAX && kernel[2] <= INT32_MAX,
      unsupported("a window of 2^31 elements or more"));
  const auto divider = [](int64_t n) { return Divider(n > 0 ? n : 1); };
  rows->pixels = divider(pixels), rows->out1 = divider(out1), rows->out2 = divider(out2);
  rows->channels = divider(g.group_in()), rows->kernel1 = divider(kernel[1]),
  rows->kernel2 = divider(kernel[2]);
  rows->in_step = g.in_pixel();
  rows->image_step = g.in_pixels() * g.in_pixel();
  return ok_status();
}

}  // namespace

Status window_rows(const WindowGeometry& g, WindowRows* rows) {
  *rows = {};
  SINTER_RETURN_IF_ERROR(set_sizes(rows, g, g.out[0], g.out[1], g.out[2], g.kernel));
  rows->matrix = g.taps() == 1;
  for (int i = 0; i < kMaxWindowAxes; ++i) {
    SINTER_RETURN_IF_ERROR(
        set_axis(rows, i, g.in[i], g.out[i], g.kernel[i], g.stride[i], g.dilation[i], g.pad[i]));
    if (g.pad[i] != 0 || g.in[i] != g.out[i] || (g.stride[i] != 1 && g.out[i] > 1)) rows->matrix = 0;
  }
  return ok_status();
}

Status phase_rows(const WindowGeometry& g, const TransposedPhase& phase, WindowRows* rows) {
  *rows = {};
  const PhaseAxis(&axes)[kMaxWindowAxes] = phase.axis;
  const int64_t kernel[] = {axes[0].taps, axes[1].taps, axes[2].taps};
  SINTER_RETURN_IF_ERROR(set_sizes(rows, g, axes[0].count, axes[1].count, axes[2].count, kernel));
  for (int i = 0; i < kMaxWindowAxes; ++i)
    SINTER_RETURN_IF_ERROR(
        set_axis(rows, i, g.in[i], axes[i].count, axes[i].taps, 1, -axes[i].input_step, -axes[i].base));
  return ok_status();
}

WindowRows matrix_rows(int64_t depth, int64_t row_step) {
  WindowRows rows;
  rows.channels = Divider(depth > 0 ? depth : 1);
  rows.in_step = row_step;
  rows.matrix = 1;
  return rows;
}

}  // namespace sinter::cuda
