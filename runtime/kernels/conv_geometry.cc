#include "runtime/kernels/conv_geometry.h"

#include "runtime/kernels/narrow_weights.h"

namespace sinter::linear {
namespace {

constexpr int64_t kMaxStep = int64_t{1} << 31;  // for strides, dilations and pads

// Computes an output axis's length: floor((in + pads - window) / stride) + 1, or ConvTranspose's inverse.
Status output_length(const WindowAxis& w, bool transposed, int axis, int64_t in, int64_t* out) {
  const auto [kernel, stride, dilation, begin, end, extra] = w;
  SINTER_RETURN_UNLESS(kernel >= 1, invalid("kernel axis %a is empty", axis));
  SINTER_RETURN_UNLESS(stride >= 1 && stride < kMaxStep,
                       invalid("stride %a of axis %b is out of range", stride, axis));
  SINTER_RETURN_UNLESS(dilation >= 1 && dilation < kMaxStep,
                       invalid("dilation %a of axis %b is out of range", dilation, axis));
  for (const int64_t pad : {begin, end})
    SINTER_RETURN_UNLESS(pad < kMaxStep && pad > (transposed ? -kMaxStep : -1),
                         invalid("padding %a of axis %b is out of range", pad, axis));
  int64_t window = 0, length = 0;
  const bool fits = checked_mul(kernel - 1, dilation, &window) && checked_add<int64_t>(window, 1, &window);
  SINTER_RETURN_UNLESS(fits, invalid("the window of axis %a is too large", axis));
  if (!transposed) {
    SINTER_RETURN_UNLESS(checked_add(in, begin + end, &length), invalid("axis %a is too long", axis));
    if (in == 0 && length < window) return *out = 0, ok_status();
    SINTER_RETURN_UNLESS(length >= window, invalid("a window of %a does not fit into %b", window, length));
    *out = (length - window) / stride + 1;
    return ok_status();
  }
  SINTER_RETURN_UNLESS(extra >= 0 && extra < kMaxStep,
                       invalid("output padding %a of axis %b is out of range", extra, axis));
  if (in == 0) return *out = 0, ok_status();
  SINTER_RETURN_UNLESS(checked_mul(in - 1, stride, &length) && checked_add(length, window, &length) &&
                           checked_add(length, extra - begin - end, &length),
                       invalid("axis %a is too long", axis));
  SINTER_RETURN_UNLESS(length >= 0, invalid("output axis %a would have length %b", axis, length));
  *out = length;
  return ok_status();
}

}  // namespace

Status conv_geometry(const OpCall& call, const ConvSettings& s, WindowGeometry* g, int64_t* out_dims) {
  const TensorView& x = call.in(0);
  const TensorView& w = call.in(1);
  const int axes = x.rank - 2;
  SINTER_RETURN_UNLESS(axes >= 1 && axes <= 3,
                       invalid("a convolution must have 1 to 3 spatial axes; the input has rank %a", x.rank));
  const int w_rank = s.depthwise ? x.rank - 1 : x.rank;
  SINTER_RETURN_UNLESS(w.rank == w_rank, invalid("the weights have rank %a, not %b", w.rank, w_rank));
  SINTER_RETURN_UNLESS(
      s.lists_fit,
      invalid("strides, dilations and pads do not have one entry for each of %a spatial axes", axes));
  SINTER_RETURN_IF_ERROR(check_dims(x));
  SINTER_RETURN_IF_ERROR(check_dims(w));
  SINTER_RETURN_IF_ERROR(check_bounds(s.act_min, s.act_max));

  g->batch = x.dims[0];
  g->in_channels = x.dims[x.rank - 1];
  g->out_channels = s.depthwise ? w.dims[w.rank - 1] : w.dims[0];
  g->group = s.depthwise ? g->in_channels : s.group;
  if (s.depthwise) {
    SINTER_RETURN_UNLESS(g->in_channels >= 1 && g->out_channels % g->in_channels == 0,
                         invalid("%a output channels are not a multiple of %b input channels",
                                 g->out_channels, g->in_channels));
  } else {
    SINTER_RETURN_UNLESS(g->group >= 1 && g->in_channels % g->group == 0 && g->out_channels % g->group == 0,
                         invalid("%a groups do not divide the channels", g->group));
    SINTER_RETURN_UNLESS(
        w.dims[w.rank - 1] == g->group_in(),
        invalid("the weights read %a channels of each group of %b", w.dims[w.rank - 1], g->group_in()));
  }

  out_dims[0] = x.dims[0];
  out_dims[x.rank - 1] = g->out_channels;
  for (int i = 0; i < axes; ++i) {
    SINTER_RETURN_IF_ERROR(output_length(s.axis[i], s.transposed, i, x.dims[1 + i], &out_dims[1 + i]));
    g->set_axis(axes, i, s.axis[i], x.dims[1 + i], out_dims[1 + i]);
  }
  return check_dims(x.dtype, {out_dims, static_cast<size_t>(x.rank)});
}

Status infer_conv(OpCall& call, const ConvSettings& settings) {
  const DType t = call.in(0).dtype;
  SINTER_RETURN_UNLESS(is_compute_float(t) || t == DType::kInt32 || t == DType::kInt64,
                       invalid("a convolution takes floats, int32 or int64"));
  if (call.op == Op::kConv)
    SINTER_RETURN_IF_ERROR(check_weight_dtype(t, call.in(1).dtype));
  else
    SINTER_RETURN_UNLESS(call.in(1).dtype == t, invalid("input and weights differ in type"));
  WindowGeometry g;
  int64_t dims[kMaxRank];
  SINTER_RETURN_IF_ERROR(conv_geometry(call, settings, &g, dims));
  if (call.has_input(2)) {
    const TensorView& b = call.in(2);
    SINTER_RETURN_UNLESS(b.dtype == t, invalid("bias and input differ in type"));
    SINTER_RETURN_UNLESS(b.rank == 1 && b.dims[0] == g.out_channels,
                         invalid("the bias is not one value per output channel"));
  }
  set_output(call, 0, t, {dims, static_cast<size_t>(call.in(0).rank)});
  return ok_status();
}

}  // namespace sinter::linear
