// MaxPool, AvgPool, QAvgPool.
#include <utility>

#include "platforms/cuda/operators.h"
#include "platforms/cuda/operators/move.h"
#include "runtime/backend/window.h"

namespace sinter::cuda {
namespace {

// Sets everything but the attributes of averages. An absent result 0 has the dims of `y`.
template <class A>
Status make_pool(Lowering& l, const TensorView& y, PoolArguments* p) {
  constexpr int64_t kMost = int64_t{1} << 30;  // of a window, so that sums of two are an int32
  const TensorView& x = l.in(0);
  SINTER_RETURN_UNLESS(is_number(x.dtype), unsupported("elements of this type are not pooled"));
  p->type = x.dtype;
  SINTER_RETURN_UNLESS(x.rank - 2 <= kMaxWindowAxes, unsupported("more than three spatial axes"));
  int64_t x_step = 0, y_step = 0;
  SINTER_RETURN_UNLESS(x.evenly_spaced(&x_step) && y.evenly_spaced(&y_step),
                       unsupported("pixels are not evenly spaced"));
  Box box;
  SINTER_RETURN_IF_ERROR(box_of(x.shape(), &box));
  SINTER_RETURN_IF_ERROR(box_of(y.shape(), &box));
  const auto width = static_cast<int64_t>(byte_width(x.dtype));
  const int64_t channels = x.dims[x.rank - 1];
  p->x = x.data, p->y = y.data;
  p->x_pixel = x_step * width, p->y_pixel = y_step * width;
  if (box.size == 0) return ok_status();
  p->windows = box.size / static_cast<uint32_t>(channels);
  p->channels = Divider(channels);
  if (channels * width % kPoolBytes == 0 && p->x_pixel % kPoolBytes == 0 && p->y_pixel % kPoolBytes == 0)
    p->vectors = static_cast<uint32_t>(channels * width / kPoolBytes);
  p->vector_divider = Divider(p->vectors > 0 ? p->vectors : 1);
  const int axes = x.rank - 2;
  int64_t taps = 1;
  for (int i = 0; i < kMaxWindowAxes; ++i) {
    const int own = i - (kMaxWindowAxes - axes);
    WindowAxis w;
    int64_t in = 1, out = 1;
    if (own >= 0)
      w = window_axis(l.attrs<A>(), nullptr, axes, own), in = x.dims[1 + own], out = y.dims[1 + own];
    // An axis without elements is padding only.
    if (in == 0) w.pad += 1, in = 1;
    SINTER_RETURN_UNLESS(checked_mul(taps, w.kernel, &taps) && taps < kMost && w.extent() < kMost &&
                             w.pad < kMost && w.end_pad < kMost && in + w.end_pad + w.pad < kMost &&
                             out * w.stride < kMost,
                         unsupported("a window, pad or axis is 2^30 or larger"));
    p->in[i] = Divider(in), p->out[i] = Divider(out), p->dilation[i] = Divider(w.dilation);
    p->kernel[i] = static_cast<int32_t>(w.kernel), p->stride[i] = static_cast<int32_t>(w.stride);
    p->pad[i] = static_cast<int32_t>(w.pad), p->end_pad[i] = static_cast<int32_t>(w.end_pad);
  }
  p->usual_count = static_cast<int32_t>(taps);
  return ok_status();
}

// Returns whether the axis has one element, of which there is one window.
bool is_single(const PoolArguments& p, int axis) {
  return p.in[axis].divisor == 1 && p.out[axis].divisor == 1 && p.kernel[axis] == 1 && p.pad[axis] == 0 &&
         p.end_pad[axis] == 0;
}

// Makes windows as wide as the image longer windows of an image of one row: `from` takes in `to`.
void join_axes(PoolArguments* p, int to, int from) {
  const int64_t width = p->in[from].divisor;
  const bool whole = p->kernel[from] == width && p->pad[from] == 0 && p->end_pad[from] == 0 &&
                     p->out[from].divisor == 1 && p->dilation[from].divisor == 1 &&
                     p->dilation[to].divisor == 1;
  int64_t longest = 0;  // the largest number along the axis
  if (!whole || !checked_mul(int64_t{p->in[to].divisor} + p->pad[to] + p->end_pad[to], width, &longest) ||
      longest > INT32_MAX / 2)
    return;
  int64_t stride = 0;
  if (!checked_mul(int64_t{p->stride[to]} * p->out[to].divisor, width, &stride) || stride > INT32_MAX / 2)
    return;
  p->in[from] = Divider(int64_t{p->in[to].divisor} * width), p->in[to] = Divider(1);
  p->out[from] = p->out[to], p->out[to] = Divider(1);
  p->kernel[from] = static_cast<int32_t>(p->kernel[to] * width), p->kernel[to] = 1;
  p->stride[from] = static_cast<int32_t>(p->stride[to] * width), p->stride[to] = 1;
  p->pad[from] = static_cast<int32_t>(p->pad[to] * width), p->pad[to] = 0;
  p->end_pad[from] = static_cast<int32_t>(p->end_pad[to] * width), p->end_pad[to] = 0;
}

Status launch_pool(Lowering& l, Kernel kernel, PoolArguments p) {
  if (p.windows == 0) return ok_status();
  const int64_t items =
      int64_t{p.windows} * (p.vectors > 0 && p.indices == nullptr ? p.vectors : p.channels.divisor);
  constexpr int32_t kWarp = 32;
  constexpr int64_t kFewItems = 1 << 14;  // a device with this many threads is busy
  int64_t threads = items;
  if (p.indices == nullptr) {
    join_axes(&p, 1, 2);
    if (is_single(p, 1)) {
      // The middle axis is empty; the first one is next to the last.
      std::swap(p.in[0], p.in[1]), std::swap(p.out[0], p.out[1]), std::swap(p.dilation[0], p.dilation[1]);
      std::swap(p.kernel[0], p.kernel[1]), std::swap(p.stride[0], p.stride[1]);
      std::swap(p.pad[0], p.pad[1]), std::swap(p.end_pad[0], p.end_pad[1]);
      join_axes(&p, 1, 2);
    }
    while (is_single(p, 0) && is_single(p, 1) && p.teams.size < kWarp && threads < kFewItems &&
           p.kernel[2] >= 4 * p.teams.size)
      p.teams.size *= 2, threads *= 2;
  }
  p.teams.count = kTeamBlock / p.teams.size;
  return l.launch_one_of(kernel, {.blocks = {blocks_for(threads, threads_of(kernel))}}, p);
}

}  // namespace

Status lower_MaxPool(Lowering& l) {
  PoolArguments p;
  SINTER_RETURN_UNLESS(l.has_output(0) || l.has_output(1), unsupported("there is no result"));
  SINTER_RETURN_IF_ERROR(make_pool<MaxPoolAttrs>(l, l.out(l.has_output(0) ? 0 : 1), &p));
  if (l.call().in(0).size() == 0) return ok_status();
  if (!l.has_output(1)) return launch_pool(l, Kernel::k_max_pool, p);
  SINTER_RETURN_UNLESS(l.out(1).dense(), unsupported("the indices are not dense"));
  if (!l.has_output(0)) p.y = nullptr;
  p.indices = l.out(1).as<int64_t>();
  p.column_major = static_cast<int32_t>(l.attrs<MaxPoolAttrs>().storage_order);
  return launch_pool(l, Kernel::k_max_pool_indices, p);
}

Status lower_AvgPool(Lowering& l) {
  PoolArguments p;
  SINTER_RETURN_UNLESS(is_float(l.in(0).dtype), unsupported("elements are not floats"));
  SINTER_RETURN_IF_ERROR(make_pool<AvgPoolAttrs>(l, l.out(0), &p));
  p.counts_padding = static_cast<int32_t>(l.attrs<AvgPoolAttrs>().count_include_pad);
  return launch_pool(l, Kernel::k_avg_pool, p);
}

Status lower_QAvgPool(Lowering& l) {
  const auto& a = l.attrs<QAvgPoolAttrs>();
  PoolArguments p;
  SINTER_RETURN_IF_ERROR(make_pool<QAvgPoolAttrs>(l, l.out(0), &p));
  p.counts_padding = static_cast<int32_t>(a.count_include_pad);
  p.x_zero = static_cast<int32_t>(a.x_zero), p.y_zero = static_cast<int32_t>(a.y_zero);
  p.low = static_cast<float>(a.q_min - a.y_zero), p.high = static_cast<float>(a.q_max - a.y_zero);
  p.multiplier = a.multiplier;
  p.usual_multiplier = static_cast<float>(a.multiplier / static_cast<double>(p.usual_count));
  return launch_pool(l, Kernel::k_q_avg_pool, p);
}

}  // namespace sinter::cuda
