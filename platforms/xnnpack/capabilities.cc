#include "platforms/xnnpack/capabilities.h"

#include <algorithm>

#include "runtime/core/op.h"
#include "runtime/core/op_enums.h"

namespace sinter::xnnpack {
namespace {

constexpr int64_t kMaxExtent = 1 << 20;  // of a spatial axis; the library computes coordinates in float32
constexpr int64_t kMaxWindow = 1 << 12;  // kernel, stride, dilation, padding
constexpr size_t kWidestTile = 32;       // output channels that a product kernel computes together, at most
constexpr int kMaxBroadcastRank = 6;

constexpr double kLargestHalf = 65504;

bool pixel_step(const TensorView& v, size_t* step) {
  int64_t elements = 0;
  if (!v.evenly_spaced(&elements)) return false;
  *step = static_cast<size_t>(elements);
  return true;
}

bool fits(const OpCall& call, const TensorView& v) {
  // The library has strides for pixels and rows, in operands 0, and no others.
  const OpInfo& info = *op_info(call.op);
  const bool pixels = &v == &call.inputs[0] ? info.in_strides == Strides::kPixel
                                            : &v == &call.outputs[0] && info.out_strides == Strides::kPixel;
  size_t step = 0;
  return v.size() > 0 && (v.dense() || (pixels && pixel_step(v, &step)));
}

// Dense (or evenly spaced) operands with elements, all float32 or all float16; a Cast is from the one to the
// other.
Status plain_operands(const OpCall& call) {
  const auto check = [&](const TensorView& v) {
    if (!v.present()) return ok_status();
    SINTER_CHECK(v.dtype == DType::kFloat32 || v.dtype == DType::kFloat16,
                 unsupported("only float32 and float16 operands"));
    SINTER_CHECK(fits(call, v), unsupported("only dense operands with elements"));
    SINTER_CHECK(call.op == Op::kCast || v.dtype == call.in(0).dtype,
                 unsupported("only operands of one type"));
    return ok_status();
  };
  for (const TensorView& v : call.inputs) SINTER_RETURN_IF_ERROR(check(v));
  for (const TensorView& v : call.outputs) SINTER_RETURN_IF_ERROR(check(v));
  return ok_status();
}

// What the library has in float16 only; in float32 there are faster kernels elsewhere.
Status half_only(const OpCall& call) {
  SINTER_CHECK(is_half(call), unsupported("used for float16 only; other backends are faster in float32"));
  return ok_status();
}

Status constant_inputs(const OpCall& call) {
  SINTER_CHECK(call.in(1).constant && (!call.has_input(2) || call.in(2).constant),
               unsupported("weights must be constant"));
  return ok_status();
}

template <class A>
Status clamp_is_proper(const A& a) {
  SINTER_CHECK(static_cast<float>(a.act_min) < static_cast<float>(a.act_max),
               unsupported("the clamp's bounds are equal or crossed"));
  return ok_status();
}

// dims[1 .. rank - 2] as height and width.
bool spatial(const TensorView& v, size_t* h, size_t* w) {
  if (v.rank != 3 && v.rank != 4) return false;
  *h = v.rank == 4 ? static_cast<size_t>(v.dims[1]) : 1;
  *w = static_cast<size_t>(v.dims[v.rank - 2]);
  return *h <= kMaxExtent && *w <= kMaxExtent;
}

// A list with one number per spatial axis; empty: all `fallback`.
bool pair(const IntList& list, int axes, int64_t fallback, uint32_t* h, uint32_t* w, int from = 0) {
  const auto at = [&](int i) { return list.empty() ? fallback : list[from + i]; };
  if (!list.empty() && list.size() < from + axes) return false;
  const int64_t y = axes == 2 ? at(0) : fallback, x = at(axes - 1);
  if (y < 0 || x < 0 || y > kMaxWindow || x > kMaxWindow) return false;
  *h = static_cast<uint32_t>(y), *w = static_cast<uint32_t>(x);
  return true;
}

template <class A>
bool steps(const A& a, int axes, Window* w) {
  return pair(a.strides, axes, 1, &w->stride_h, &w->stride_w) &&
         pair(a.dilations, axes, 1, &w->dilation_h, &w->dilation_w) &&
         pair(a.pads, axes, 0, &w->top, &w->left) && pair(a.pads, axes, 0, &w->bottom, &w->right, axes) &&
         w->stride_h > 0 && w->stride_w > 0 && w->dilation_h > 0 && w->dilation_w > 0;
}

template <class A>
bool grouped_window(const A& a, int axes, Window* w) {
  w->group = static_cast<uint32_t>(a.group);
  return steps(a, axes, w) && a.group <= INT32_MAX;
}

template <class A>
bool transposed_window(const A& a, int axes, Window* w) {
  return grouped_window(a, axes, w) && pair(a.output_padding, axes, 0, &w->adjust_h, &w->adjust_w);
}

Status check_transposed(const Window& w) {
  SINTER_CHECK(
      w.adjust_h < w.stride_h && w.adjust_w < w.stride_w && w.out_h >= w.stride_h && w.out_w >= w.stride_w,
      unsupported("output padding or stride exceed what the library takes"));
  return ok_status();
}

// int8 from int8 with symmetric weights.
template <class A>
Status accept_integers(const OpCall& call) {
  const auto& a = call.attrs<A>();
  for (size_t i = 1; i < call.inputs.size(); ++i)
    SINTER_CHECK(!call.has_input(i) || call.in(i).constant, unsupported("weights must be constant"));
  SINTER_CHECK(call.in(0).dtype == DType::kInt8 && a.to == static_cast<int64_t>(DType::kInt8),
               unsupported("only int8 from int8"));
  SINTER_CHECK(!call.has_input(4), unsupported("the weights have zero points"));
  SINTER_CHECK(call.in(3).dims[0] == call.in(2).dims[0],
               unsupported("the output channels share one multiplier"));
  SINTER_CHECK(a.q_min < a.q_max, unsupported("the clamp's bounds are equal"));
#if defined(__arm__) || defined(__aarch64__)
  SINTER_CHECK(!has_wide_weights(call), unsupported("a weight is -128"));
#endif
  for (const auto* views : {&call.inputs, &call.outputs})
    for (const TensorView& v : *views)
      SINTER_CHECK(!v.present() || fits(call, v), unsupported("only dense operands with elements"));
  return ok_status();
}

// The padding at the end that gives exactly `out` positions.
uint32_t end_padding(size_t in, size_t out, uint32_t kernel, uint32_t stride, uint32_t dilation,
                     uint32_t begin) {
  const auto covered = static_cast<int64_t>((out - 1) * stride + size_t{kernel - 1} * dilation + 1);
  return static_cast<uint32_t>(std::max<int64_t>(0, covered - static_cast<int64_t>(in) - begin));
}

template <class A>
Status pool_window(const A& a, int axes, Window* w) {
  SINTER_CHECK(pair(a.kernel, axes, 1, &w->kernel_h, &w->kernel_w) && steps(a, axes, w),
               unsupported("the window is out of the library's range"));
  w->bottom = end_padding(w->in_h, w->out_h, w->kernel_h, w->stride_h, w->dilation_h, w->top);
  w->right = end_padding(w->in_w, w->out_w, w->kernel_w, w->stride_w, w->dilation_w, w->left);
  const uint32_t reach_h = (w->kernel_h - 1) * w->dilation_h + 1,
                 reach_w = (w->kernel_w - 1) * w->dilation_w + 1;
  SINTER_CHECK(w->kernel_size() > 1 && w->stride_h <= w->kernel_h && w->stride_w <= w->kernel_w,
               unsupported("the library has no windows of one element or with gaps between them"));
  // The library fills a dilated window that leaves the input with pixels of its own choice.
  SINTER_CHECK(!w->padded() || (w->dilation_h == 1 && w->dilation_w == 1),
               unsupported("dilated pooling may not be padded here"));
  SINTER_CHECK(w->top < reach_h && w->bottom < reach_h && w->left < reach_w && w->right < reach_w,
               unsupported("a window is entirely in the padding"));
  return ok_status();
}

size_t aligned(size_t bytes) { return align_up(bytes, kBufferAlignment); }

Status accept_resize(const OpCall& call) {
  const auto& a = call.attrs<ResizeAttrs>();
  const TensorView &x = call.in(0), &y = call.out(0);
  Window w;
  SINTER_CHECK(static_cast<ResizeMode>(a.mode) == ResizeMode::kLinear && a.antialias == 0 &&
                   a.exclude_outside == 0 && spatial(x, &w.in_h, &w.in_w) && spatial(y, &w.out_h, &w.out_w),
               unsupported("only linear resizing of one or two axes"));
  SINTER_CHECK(x.dims[0] == y.dims[0] && x.dims[x.rank - 1] == y.dims[y.rank - 1],
               unsupported("only spatial axes may be resized"));
  const auto coordinates = static_cast<ResizeCoordinates>(a.coordinates);
  const bool corners = coordinates == ResizeCoordinates::kAlignCorners;
  SINTER_CHECK(corners || coordinates == ResizeCoordinates::kHalfPixel ||
                   coordinates == ResizeCoordinates::kPytorchHalfPixel ||
                   coordinates == ResizeCoordinates::kAsymmetric,
               unsupported("only half_pixel, align_corners and asymmetric coordinates"));
  for (int i = 1; i < x.rank - 1; ++i) {
    SINTER_CHECK(y.dims[i] > 1 || x.dims[i] == 1, unsupported("an axis is resized to one element"));
    // The library takes the scale from the sizes.
    if (i < a.scales.size() && a.scales[i] != 0 && !corners) {
      const double ratio = static_cast<double>(y.dims[i]) / static_cast<double>(x.dims[i]);
      SINTER_CHECK(static_cast<float>(a.scales[i]) == static_cast<float>(ratio),
                   unsupported("the scale is not the ratio of the sizes"));
    }
  }
  return ok_status();
}

// min and max are float16 numbers or infinite, and proper.
Status accept_half_clamp(const OpCall& call) {
  SINTER_RETURN_IF_ERROR(half_only(call));
  const auto& a = call.attrs<ClampAttrs>();
  const auto holds = [](double v) {
    return v == kInfinity || v == -kInfinity || (v >= -kLargestHalf && v <= kLargestHalf);
  };
  SINTER_CHECK(holds(a.min) && holds(a.max) && a.min < a.max,
               unsupported("the bounds are not float16 numbers"));
  return ok_status();
}

Status accept_broadcast(const OpCall& call) {
  for (int i = 0; i < 2; ++i)
    SINTER_CHECK(call.in(static_cast<size_t>(i)).rank <= kMaxBroadcastRank, unsupported("more than 6 axes"));
  return ok_status();
}

template <class A>
Status accept_arithmetic(const OpCall& call) {
  const auto& a = call.attrs<A>();
  SINTER_CHECK(a.act_min == -kInfinity && a.act_max == kInfinity,
               unsupported("arithmetic has no clamp here"));
  return accept_broadcast(call);
}

Status accept_pad(const OpCall& call) {
  const auto& a = call.attrs<PadAttrs>();
  SINTER_CHECK(static_cast<PadMode>(a.mode) == PadMode::kConstant && call.in(0).rank >= 1 &&
                   call.in(0).rank <= kMaxBroadcastRank && (!call.has_input(1) || call.in(1).constant),
               unsupported("only constant padding of up to 6 axes"));
  return ok_status();
}

}  // namespace

bool is_half(const OpCall& call) { return call.in(0).dtype == DType::kFloat16; }

bool has_wide_weights(const OpCall& call) {
  switch (call.op) {
    case Op::kQConv:
      return call.attrs<QConvAttrs>().wide_weights != 0;
    case Op::kQDepthwiseConv:
      return call.attrs<QDepthwiseConvAttrs>().wide_weights != 0;
    case Op::kQConvTranspose:
      return call.attrs<QConvTransposeAttrs>().wide_weights != 0;
    case Op::kQFullyConnected:
      return call.attrs<QFullyConnectedAttrs>().wide_weights != 0;
    default:
      return false;
  }
}

Status window_of(const OpCall& call, Window* w) {
  const TensorView &x = call.in(0), &y = call.out(0);
  SINTER_CHECK(spatial(x, &w->in_h, &w->in_w) && spatial(y, &w->out_h, &w->out_w),
               unsupported("only one or two spatial axes"));
  const int axes = x.rank - 2;
  w->batch = static_cast<size_t>(x.dims[0]);
  w->in_c = static_cast<size_t>(x.dims[x.rank - 1]);
  w->out_c = static_cast<size_t>(y.dims[y.rank - 1]);
  SINTER_CHECK(pixel_step(x, &w->in_step) && pixel_step(y, &w->out_step),
               unsupported("pixels are not evenly spaced"));
  const auto kernel = [&](int first) {
    const TensorView& f = call.in(1);
    if (f.dims[first] > kMaxWindow || f.dims[first + axes - 1] > kMaxWindow) return false;
    w->kernel_h = axes == 2 ? static_cast<uint32_t>(f.dims[first]) : 1;
    w->kernel_w = static_cast<uint32_t>(f.dims[first + axes - 1]);
    return true;
  };
  const Status range = unsupported("the window is out of the library's range");
  switch (call.op) {
    case Op::kConv:
      SINTER_CHECK(kernel(1) && grouped_window(call.attrs<ConvAttrs>(), axes, w), range);
      return ok_status();
    case Op::kQConv:
      SINTER_CHECK(kernel(1) && grouped_window(call.attrs<QConvAttrs>(), axes, w), range);
      return ok_status();
    case Op::kDepthwiseConv:
    case Op::kQDepthwiseConv:
      SINTER_CHECK(kernel(0) && w->in_c <= INT32_MAX &&
                       (call.op == Op::kDepthwiseConv ? steps(call.attrs<DepthwiseConvAttrs>(), axes, w)
                                                      : steps(call.attrs<QDepthwiseConvAttrs>(), axes, w)),
                   range);
      w->group = static_cast<uint32_t>(w->in_c);
      return ok_status();
    case Op::kConvTranspose:
      SINTER_CHECK(kernel(1) && transposed_window(call.attrs<ConvTransposeAttrs>(), axes, w), range);
      return check_transposed(*w);
    case Op::kQConvTranspose:
      SINTER_CHECK(kernel(1) && transposed_window(call.attrs<QConvTransposeAttrs>(), axes, w), range);
      return check_transposed(*w);
    case Op::kMaxPool:
      return pool_window(call.attrs<MaxPoolAttrs>(), axes, w);
    case Op::kAvgPool: {
      const auto& a = call.attrs<AvgPoolAttrs>();
      SINTER_RETURN_IF_ERROR(pool_window(a, axes, w));
      SINTER_CHECK(w->dilation_h == 1 && w->dilation_w == 1,
                   unsupported("average pooling has no dilation here"));
      SINTER_CHECK(!w->padded() || a.count_include_pad == 0, unsupported("padding is not counted here"));
      return ok_status();
    }
    default:
      return unsupported("not a window operation");
  }
}

Status product_of(const OpCall& call, Product* p) {
  const TensorView &a = call.in(0), &b = call.in(1);
  if (call.op == Op::kFullyConnected || call.op == Op::kQFullyConnected) {
    p->constant = true;
    p->k = static_cast<size_t>(b.dims[1]);
    p->n = static_cast<size_t>(b.dims[0]);
    p->rows = static_cast<size_t>(a.size()) / p->k;
    SINTER_CHECK(pixel_step(a, &p->in_step) && pixel_step(call.out(0), &p->out_step),
                 unsupported("rows are not evenly spaced"));
    return ok_status();
  }
  const auto& attrs = call.attrs<MatMulAttrs>();
  SINTER_CHECK(attrs.transpose_a == 0, unsupported("the first operand may not be transposed"));
  p->transposed = attrs.transpose_b != 0;
  p->k = static_cast<size_t>(a.dims[a.rank - 1]);
  p->n = static_cast<size_t>(b.dims[b.rank - (p->transposed ? 2 : 1)]);
  if (b.constant && b.size() == static_cast<int64_t>(p->k * p->n)) {
    p->constant = true;
    p->rows = static_cast<size_t>(a.size()) / p->k;
    p->in_step = p->k, p->out_step = p->n;
    return ok_status();
  }
  p->rows = static_cast<size_t>(a.dims[a.rank - 2]);
  p->batch_rank = std::max(a.rank, b.rank) - 2;
  SINTER_CHECK(p->batch_rank <= kMaxBroadcastRank, unsupported("more than 6 batch axes"));
  const auto batch = [&](const TensorView& v, int i) {
    const int axis = i - (p->batch_rank - (v.rank - 2));
    return axis < 0 ? size_t{1} : static_cast<size_t>(v.dims[axis]);
  };
  for (int i = 0; i < p->batch_rank; ++i) p->batch_a[i] = batch(a, i), p->batch_b[i] = batch(b, i);
  return ok_status();
}

Status accept(const OpCall& call, int threads, size_t* workspace) {
  *workspace = 0;
  const size_t workers = static_cast<size_t>(std::max(threads, 1));
  Window w;
  // Depthwise kernels of many taps keep a row of int32 sums per thread.
  const auto integer_rows = [&] {
    if (w.group == w.in_c && w.group == w.out_c && w.kernel_size() >= 5)
      *workspace = workers * aligned((w.in_c + 64) * sizeof(int32_t));
    return ok_status();
  };
  switch (call.op) {
    case Op::kQConv:
      SINTER_RETURN_IF_ERROR(accept_integers<QConvAttrs>(call));
      SINTER_RETURN_IF_ERROR(window_of(call, &w));
      return integer_rows();
    case Op::kQDepthwiseConv:
      SINTER_RETURN_IF_ERROR(accept_integers<QDepthwiseConvAttrs>(call));
      SINTER_RETURN_IF_ERROR(window_of(call, &w));
      return integer_rows();
    case Op::kQConvTranspose:
      SINTER_RETURN_IF_ERROR(accept_integers<QConvTransposeAttrs>(call));
      return window_of(call, &w);
    case Op::kQFullyConnected:
      return accept_integers<QFullyConnectedAttrs>(call);
    default:
      SINTER_RETURN_IF_ERROR(plain_operands(call));
  }
  switch (call.op) {
    case Op::kConv:
      SINTER_RETURN_IF_ERROR(constant_inputs(call));
      SINTER_RETURN_IF_ERROR(clamp_is_proper(call.attrs<ConvAttrs>()));
      SINTER_RETURN_IF_ERROR(window_of(call, &w));
      if (w.group == w.in_c && w.group == w.out_c && w.kernel_size() >= 5)
        *workspace = workers * aligned((w.in_c + 16) * sizeof(float));
      return ok_status();
    case Op::kDepthwiseConv:
      SINTER_RETURN_IF_ERROR(constant_inputs(call));
      SINTER_RETURN_IF_ERROR(clamp_is_proper(call.attrs<DepthwiseConvAttrs>()));
      SINTER_RETURN_IF_ERROR(window_of(call, &w));
      // Kernels of many taps keep a row of sums per thread.
      if (w.in_c == w.out_c && w.kernel_size() >= 5)
        *workspace = workers * aligned((w.in_c + 16) * sizeof(float));
      return ok_status();
    case Op::kConvTranspose:
      SINTER_RETURN_IF_ERROR(constant_inputs(call));
      SINTER_RETURN_IF_ERROR(clamp_is_proper(call.attrs<ConvTransposeAttrs>()));
      return window_of(call, &w);
    case Op::kFullyConnected:
      SINTER_RETURN_IF_ERROR(constant_inputs(call));
      return clamp_is_proper(call.attrs<FullyConnectedAttrs>());
    case Op::kMatMul: {
      Product p;
      SINTER_RETURN_IF_ERROR(product_of(call, &p));
      if (p.constant) return ok_status();
      size_t bytes =
          align_up(p.n, kWidestTile) * sizeof(float);  // packed each time, one matrix of b after another
      if (!checked_mul(bytes, p.k + 1, &bytes)) return unsupported("the product is too large");
      for (int i = 0; i < p.batch_rank; ++i)
        if (!checked_mul(bytes, p.batch_b[i], &bytes)) return unsupported("the product is too large");
      *workspace = aligned(bytes);
      return ok_status();
    }
    case Op::kMaxPool:
      SINTER_CHECK(!call.has_output(1), unsupported("max pooling gives no indices here"));
      return window_of(call, &w);
    case Op::kAvgPool:
      SINTER_RETURN_IF_ERROR(window_of(call, &w));
      // Windows of many pixels keep a row of sums per thread; without padding the library takes four times
      // that.
      if (w.kernel_size() > 4)
        *workspace = workers * aligned((w.in_c + 16) * (w.padded() ? 1 : 4) * sizeof(float));
      return ok_status();
    case Op::kResize:
      return accept_resize(call);
    case Op::kAdd:
      return accept_arithmetic<AddAttrs>(call);
    case Op::kSub:
      return accept_arithmetic<SubAttrs>(call);
    case Op::kMul:
      return accept_arithmetic<MulAttrs>(call);
    case Op::kDiv:
      return accept_arithmetic<DivAttrs>(call);
    case Op::kPRelu:
      return accept_broadcast(call);
    case Op::kMin:
    case Op::kMax:
      SINTER_RETURN_IF_ERROR(half_only(call));
      return accept_broadcast(call);
    case Op::kAbs:
    case Op::kNeg:
    case Op::kSigmoid:
    case Op::kTanh:
    case Op::kHardSwish:
    case Op::kLeakyRelu:
      return half_only(call);
    case Op::kClamp:
      return accept_half_clamp(call);
    case Op::kCast:
      SINTER_CHECK(call.in(0).dtype != call.out(0).dtype, unsupported("only between float32 and float16"));
      return ok_status();
    case Op::kTranspose:
      SINTER_RETURN_IF_ERROR(half_only(call));
      SINTER_CHECK(call.in(0).rank >= 1 && call.in(0).rank <= kMaxBroadcastRank,
                   unsupported("more than 6 axes"));
      return ok_status();
    case Op::kPad:
      return accept_pad(call);
    default:
      return unsupported("the library has no such operator");
  }
}

}  // namespace sinter::xnnpack
