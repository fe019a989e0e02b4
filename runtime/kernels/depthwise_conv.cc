// DepthwiseConv: every output channel has a filter of its own over one input channel; channels are the inner
// loop.
#include "runtime/kernels/conv_geometry.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

using namespace linear;

ConvSettings settings(const OpCall& call) {
  const auto& a = call.attrs<DepthwiseConvAttrs>();
  return {a.strides, a.dilations, a.pads, nullptr, 1, a.act_min, a.act_max, true, false};
}

Status infer_call(OpCall& call) { return infer_conv(call, settings(call)); }

constexpr int64_t kLanes = 16;  // output channels summed side by side

// One output pixel: `start` is the window's first input position.
template <class T>
void pixel(const ConvGeometry& g, const T* x, const T* w, const T* bias, const Bounds<T>& bounds,
           const int64_t (&start)[3], T* y) {
  using Acc = Accumulator<T>;
  const int64_t multiplier = g.out_channels / g.in_channels;
  for (int64_t o0 = 0; o0 < g.out_channels; o0 += kLanes) {
    const int64_t lanes = std::min(kLanes, g.out_channels - o0);
    Acc sum[kLanes] = {};
    for (int64_t t0 = 0; t0 < g.kernel[0]; ++t0) {
      const int64_t i0 = start[0] + t0 * g.dilation[0];
      if (i0 < 0 || i0 >= g.in[0]) continue;
      for (int64_t t1 = 0; t1 < g.kernel[1]; ++t1) {
        const int64_t i1 = start[1] + t1 * g.dilation[1];
        if (i1 < 0 || i1 >= g.in[1]) continue;
        for (int64_t t2 = 0; t2 < g.kernel[2]; ++t2) {
          const int64_t i2 = start[2] + t2 * g.dilation[2];
          if (i2 < 0 || i2 >= g.in[2]) continue;
          const T* from = x + ((i0 * g.in[1] + i1) * g.in[2] + i2) * g.in_channels;
          const T* filter = w + ((t0 * g.kernel[1] + t1) * g.kernel[2] + t2) * g.out_channels + o0;
          if (multiplier == 1 && lanes == kLanes) {
            for (int64_t c = 0; c < kLanes; ++c)
              sum[c] += static_cast<Acc>(from[o0 + c]) * static_cast<Acc>(filter[c]);
          } else {
            for (int64_t c = 0; c < lanes; ++c)
              sum[c] += static_cast<Acc>(from[(o0 + c) / multiplier]) * static_cast<Acc>(filter[c]);
          }
        }
      }
    }
    for (int64_t c = 0; c < lanes; ++c) {
      if (bias != nullptr) sum[c] += static_cast<Acc>(bias[o0 + c]);
      y[o0 + c] = bounds(sum[c]);
    }
  }
}

template <class T>
void depthwise(const OpCall& call, const ConvGeometry& g, RunContext& context) {
  const auto& a = call.attrs<DepthwiseConvAttrs>();
  const T* x = call.in(0).as<T>();
  const T* w = call.in(1).as<T>();
  const T* bias = call.has_input(2) ? call.in(2).as<T>() : nullptr;
  T* y = call.out(0).as<T>();
  const Bounds<T> bounds(a.act_min, a.act_max);
  const int64_t image = g.in[0] * g.in[1] * g.in[2] * g.in_channels;
  const int64_t lines = g.out[0] * g.out[1];
  parallel_for(context.threads, g.batch * lines, 1, [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      const T* from = x + line / lines * image;
      const int64_t p0 = line % lines / g.out[1], p1 = line % lines % g.out[1];
      for (int64_t p2 = 0; p2 < g.out[2]; ++p2) {
        const int64_t start[3] = {p0 * g.stride[0] - g.pad[0], p1 * g.stride[1] - g.pad[1],
                                  p2 * g.stride[2] - g.pad[2]};
        pixel(g, from, w, bias, bounds, start, y + (line * g.out[2] + p2) * g.out_channels);
      }
    }
  });
}

Status run(const OpCall& call, RunContext& context) {
  ConvGeometry g;
  int64_t dims[kMaxRank];
  SINTER_RETURN_IF_ERROR(conv_geometry(call, settings(call), &g, dims));
  return dispatch(call.in(0).dtype,
                  [&](auto t) { return depthwise<decltype(t)>(call, g, context), ok_status(); });
}

}  // namespace

const Kernel kDepthwiseConvKernel = {Op::kDepthwiseConv, infer_call, nullptr, run};

}  // namespace sinter
