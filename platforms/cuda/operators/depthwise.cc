// DepthwiseConv.
#include "platforms/cuda/operators/products.h"

namespace sinter::cuda {

Status lower_DepthwiseConv(Lowering& l) {
  const auto& attrs = l.attrs<DepthwiseConvAttrs>();
  const WindowGeometry g = window_geometry<DepthwiseConvAttrs>(l.call());
  const DType type = l.call().in(0).dtype;
  const int64_t vector = vector_of(type);
  WindowRows rows;  // checks that positions fit
  SINTER_RETURN_IF_ERROR(window_rows(g, &rows));
  ProductArguments bounds;
  SINTER_RETURN_IF_ERROR(element_of(type, &bounds.element));
  SINTER_RETURN_IF_ERROR(check_dense_weights(l.call()));
  set_bounds(&bounds, attrs.act_min, attrs.act_max);
  DepthwiseArguments a;
  a.element = bounds.element;
  a.low = bounds.low, a.high = bounds.high, a.low_int = bounds.low_int, a.high_int = bounds.high_int;
  for (int i = 0; i < kMaxWindowAxes; ++i) {
    a.in[i] = rows.in[i], a.kernel[i] = static_cast<int32_t>(g.kernel[i]);
    a.stride[i] = rows.stride[i], a.dilation[i] = rows.dilation[i], a.pad[i] = rows.pad[i];
  }
  a.in_step = g.in_pixel(), a.out_step = g.out_pixel(), a.image_step = rows.image_step;
  a.channels = static_cast<int32_t>(g.out_channels);
  if (g.batch * g.out_pixels() * g.out_channels == 0) return ok_status();
  a.multiplier = Divider(g.out_channels / g.in_channels);

  const bool floats =
      a.element == Element::kFloat32 || a.element == Element::kFloat16 || a.element == Element::kBFloat16;
  const bool vectors = floats && g.in_channels == g.out_channels && g.out_channels % vector == 0 &&
                       a.in_step % vector == 0 && a.out_step % vector == 0;
  const int64_t channel_groups = g.out_channels / (vectors ? vector : 1);
  const int64_t pixel_groups = vectors ? (g.out[2] + kDepthwisePixels - 1) / kDepthwisePixels : g.out[2];
  const int64_t lines = g.out[0] * g.out[1];
  int64_t threads = 0;
  SINTER_RETURN_UNLESS(checked_mul(channel_groups * pixel_groups, lines * g.batch, &threads) &&
                           threads <= INT32_MAX && g.out_channels <= INT32_MAX,
                       unsupported("a result of 2^31 elements or more"));
  a.channel_groups = Divider(channel_groups), a.pixel_groups = Divider(pixel_groups);
  a.lines = Divider(lines), a.line_axis = Divider(g.out[1]);
  a.line_pixels = static_cast<int32_t>(g.out[2]);
  a.threads = static_cast<uint32_t>(threads);
  a.x = l.in(0).data, a.w = l.in(1).data, a.y = l.out(0).data;
  if (l.has_input(2)) a.bias = l.in(2).data;
  const Kernel kernel = !vectors                          ? Kernel::k_depthwise_any
                        : a.element == Element::kFloat16  ? Kernel::k_depthwise_float16
                        : a.element == Element::kBFloat16 ? Kernel::k_depthwise_bfloat16
                                                          : Kernel::k_depthwise_float;
  return l.launch_one_of(kernel, {.blocks = {blocks_for(threads, threads_of(kernel))}}, a);
}

}  // namespace sinter::cuda
