// QDepthwiseConv.
#include "platforms/cuda/operators/q_products.h"
#include "platforms/cuda/operators/window_rows.h"

namespace sinter::cuda {

Status lower_QDepthwiseConv(Lowering& l) {
  const auto& attrs = l.attrs<QDepthwiseConvAttrs>();
  const WindowGeometry g = window_geometry<QDepthwiseConvAttrs>(l.call());
  const TensorView &x = l.in(0), &y = l.out(0);
  if (y.size() == 0) return ok_status();
  QDepthwiseArguments a;
  SINTER_RETURN_IF_ERROR(window_rows(g, &a.window));
  a.window.matrix = 0;  // pixels have positions
  SINTER_RETURN_UNLESS(y.size() <= INT32_MAX, unsupported("2^31 results or more"));
  a.y = y.data, a.x = x.data, a.w = l.in(1).as<int8_t>(), a.bias = l.in(2).data;
  a.multipliers = l.in(3).as<float>(), a.multiplier_step = l.in(3).size() == 1 ? 0 : 1;
  if (l.has_input(4)) a.w_zeros = l.in(4).as<int8_t>(), a.w_zero_step = l.in(4).size() == 1 ? 0 : 1;
  a.x_zero = static_cast<int32_t>(attrs.x_zero), a.x_width = static_cast<int32_t>(byte_width(x.dtype));
  for (int i = 0; i < kMaxWindowAxes; ++i) a.kernel[i] = static_cast<int32_t>(g.kernel[i]);
  SINTER_RETURN_UNLESS(g.taps() <= INT32_MAX - 4, unsupported("a window of 2^31 elements or more"));
  a.y_step = g.out_pixel();
  a.channel_multiplier = Divider(g.out_channels / g.in_channels);
  a.result = integer_result(attrs, y.dtype);

  // Words of x are whole if it begins at a multiple of their size, which dense operands do.
  const bool fours = x.dtype == DType::kInt8 && g.out_channels == g.in_channels &&
                     g.in_channels % kDepthwiseChannels == 0 && x.dense();
  const int64_t pixels = g.batch * g.out_pixels();
  if (!fours) {
    a.items = static_cast<uint32_t>(pixels * g.out_channels);
    a.channels = Divider(g.out_channels);
    return l.launch<Kernel::k_q_depthwise_any>(
        {.blocks = {blocks_for(a.items, threads_of(Kernel::k_q_depthwise_any))}}, a);
  }
  const int64_t groups = g.out_channels / kDepthwiseChannels,
                pieces = (g.out[2] + kQDepthwisePixels - 1) / kQDepthwisePixels;
  a.line = static_cast<uint32_t>(g.out[2]), a.planes = Divider(g.out[0]);
  a.line_pieces = Divider(pieces), a.channels = Divider(groups);
  a.items = static_cast<uint32_t>(pixels / g.out[2] * pieces * groups);
  return l.launch<Kernel::k_q_depthwise>({.blocks = {blocks_of(a.items, threads_of(Kernel::k_q_depthwise))}},
                                         a);
}

}  // namespace sinter::cuda
