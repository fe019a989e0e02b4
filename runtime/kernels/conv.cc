// Conv: a product of image patches (rows: output pixels) and filters (columns), group by group.
#include "runtime/kernels/conv_geometry.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

using namespace linear;

ConvSettings settings(const OpCall& call) {
  const auto& a = call.attrs<ConvAttrs>();
  return {a.strides, a.dilations, a.pads, nullptr, a.group, a.act_min, a.act_max, false, false};
}

Status infer_call(OpCall& call) { return infer_conv(call, settings(call)); }

Product product(const ConvGeometry& g) {
  return {g.batch * g.out_pixels(), g.group_out(), g.taps * g.group_in()};
}

Status workspace(const OpCall& call, int threads, size_t* bytes) {
  ConvGeometry g;
  int64_t dims[kMaxRank];
  SINTER_RETURN_IF_ERROR(conv_geometry(call, settings(call), &g, dims));
  return product_workspace<double>(product(g), threads, bytes);  // no accumulator is wider
}

template <class T>
void conv(const OpCall& call, const ConvGeometry& g, RunContext& context) {
  using Acc = Accumulator<T>;
  const auto& a = call.attrs<ConvAttrs>();
  const T* x = call.in(0).as<T>();
  const T* w = call.in(1).as<T>();
  const T* bias = call.has_input(2) ? call.in(2).as<T>() : nullptr;
  T* y = call.out(0).as<T>();
  const Bounds<T> bounds(a.act_min, a.act_max);
  const Product p = product(g);
  const int64_t c_in = g.group_in(), c_out = g.group_out(), pixels = g.out_pixels();
  const int64_t image = g.in[0] * g.in[1] * g.in[2] * g.in_channels;

  for (int64_t group = 0; group < g.group; ++group) {
    const auto pack_row = [&](int64_t row, Acc* dst) {
      const T* source = x + row / pixels * image + group * c_in;
      const int64_t pixel = row % pixels;
      const int64_t start[3] = {pixel / (g.out[1] * g.out[2]) * g.stride[0] - g.pad[0],
                                pixel / g.out[2] % g.out[1] * g.stride[1] - g.pad[1],
                                pixel % g.out[2] * g.stride[2] - g.pad[2]};
      for (int64_t t0 = 0; t0 < g.kernel[0]; ++t0) {
        const int64_t i0 = start[0] + t0 * g.dilation[0];
        for (int64_t t1 = 0; t1 < g.kernel[1]; ++t1) {
          const int64_t i1 = start[1] + t1 * g.dilation[1];
          const bool inside = i0 >= 0 && i0 < g.in[0] && i1 >= 0 && i1 < g.in[1];
          for (int64_t t2 = 0; t2 < g.kernel[2]; ++t2, dst += c_in) {
            const int64_t i2 = start[2] + t2 * g.dilation[2];
            if (inside && i2 >= 0 && i2 < g.in[2]) {
              const T* from = source + ((i0 * g.in[1] + i1) * g.in[2] + i2) * g.in_channels;
              for (int64_t c = 0; c < c_in; ++c) dst[c] = static_cast<Acc>(from[c]);
            } else {
              for (int64_t c = 0; c < c_in; ++c) dst[c] = 0;
            }
          }
        }
      }
    };
    const auto pack_column = [&](int64_t column, int64_t k0, int64_t k1, Acc* dst) {
      const T* filter = w + (group * c_out + column) * p.depth;
      for (int64_t k = k0; k < k1; ++k, dst += kTile) *dst = static_cast<Acc>(filter[k]);
    };
    const auto store = [&](int64_t row, int64_t column, Acc sum) {
      const int64_t o = group * c_out + column;
      if (bias != nullptr) sum += static_cast<Acc>(bias[o]);
      y[row * g.out_channels + o] = bounds(sum);
    };
    multiply<Acc>(p, context, pack_row, pack_column, store);
  }
}

Status run(const OpCall& call, RunContext& context) {
  ConvGeometry g;
  int64_t dims[kMaxRank];
  SINTER_RETURN_IF_ERROR(conv_geometry(call, settings(call), &g, dims));
  return dispatch(call.in(0).dtype, [&](auto t) { return conv<decltype(t)>(call, g, context), ok_status(); });
}

}  // namespace

const Kernel kConvKernel = {Op::kConv, infer_call, workspace, run};

}  // namespace sinter
