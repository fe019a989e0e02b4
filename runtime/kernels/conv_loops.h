// The loops of the three kinds of convolution, for any numerics (Direct in linear.h, Quantized in
// quantized_linear.h).
#pragma once

#include "runtime/backend/transposed_phase.h"
#include "runtime/kernels/conv_geometry.h"
#include "runtime/kernels/lead.h"
#include "runtime/kernels/product.h"
#include "runtime/kernels/simd32.h"

namespace sinter::linear {

// Conv is a product of image patches (rows: output pixels) and filters (columns), group by group.
inline Product conv_product(const WindowGeometry& g) {
  return {g.batch * g.out_pixels(), g.group_out(), g.taps() * g.group_in()};
}

// Returns whether the image itself holds the patches: the filter has one element and there is no padding.
inline bool patches_in_place(const WindowGeometry& g) {
  return g.taps() == 1 && g.pad[0] == 0 && g.pad[1] == 0 && g.pad[2] == 0 &&
         (g.out[0] - 1) * g.stride[0] < g.in[0] && (g.out[1] - 1) * g.stride[1] < g.in[1] &&
         (g.out[2] - 1) * g.stride[2] < g.in[2];
}
inline Status conv_workspace(const OpCall& call, const WindowGeometry& g, int threads, size_t* bytes) {
  return product_workspace(conv_product(g), call.in(0).dtype, patches_in_place(g), threads, bytes);
}

inline Status conv_lead(const OpCall& call, const WindowGeometry& g, size_t* bytes) {
  SINTER_RETURN_UNLESS(g.group == 1, unsupported("the groups are computed one after the other"));
  SINTER_RETURN_IF_ERROR(check_in_order(conv_product(g), call.in(1).dtype));
  return windows_lead(call, g, kTile - 1, bytes);
}

template <class N>
void conv(const OpCall& call, const WindowGeometry& g, const N& numerics, RunContext& context) {
  using Input = typename N::Input;
  const auto* x = call.in(0).as<Input>();
  const auto* w = call.in(1).as<typename N::Weight>();
  const Product p = conv_product(g);
  const int64_t c_in = g.group_in(), c_out = g.group_out(), pixels = g.out_pixels();
  const int64_t image = g.in[0] * g.in[1] * g.in[2] * g.in_step;
  const bool in_place = patches_in_place(g);
  const Input padding = numerics.padding();

  for (int64_t group = 0; group < g.group; ++group) {
    struct Start {
      const Input* source;
      int64_t at[3];
    };
    const auto start_of = [&](int64_t row) -> Start {
      const int64_t pixel = row % pixels;
      return {
          x + row / pixels * image + group * c_in,
          {pixel / (g.out[1] * g.out[2]) * g.stride[0] - g.pad[0],
           pixel / g.out[2] % g.out[1] * g.stride[1] - g.pad[1], pixel % g.out[2] * g.stride[2] - g.pad[2]}};
    };
    const auto place = [&](int64_t row) -> const Input* {
      if (!in_place) return nullptr;
      const Start s = start_of(row);
      return s.source + ((s.at[0] * g.in[1] + s.at[1]) * g.in[2] + s.at[2]) * g.in_step;
    };
    const auto gather = [&](int64_t row, auto* dst, int64_t step) {
      const Start s = start_of(row);
      for (int64_t t0 = 0; t0 < g.kernel[0]; ++t0) {
        const int64_t i0 = s.at[0] + t0 * g.dilation[0];
        for (int64_t t1 = 0; t1 < g.kernel[1]; ++t1) {
          const int64_t i1 = s.at[1] + t1 * g.dilation[1];
          const bool inside = i0 >= 0 && i0 < g.in[0] && i1 >= 0 && i1 < g.in[1];
          for (int64_t t2 = 0; t2 < g.kernel[2]; ++t2, dst += c_in * step) {
            const int64_t i2 = s.at[2] + t2 * g.dilation[2];
            const bool within = inside && i2 >= 0 && i2 < g.in[2];
            spread(within ? s.source + ((i0 * g.in[1] + i1) * g.in[2] + i2) * g.in_step : nullptr, padding,
                   c_in, dst, step);
          }
        }
      }
    };
    const auto column = [&](int64_t c, int64_t /*piece*/) { return w + (group * c_out + c) * p.depth; };
    const auto reader = [&](int64_t c) { return numerics.column_reader(group * c_out + c); };
    const auto store = [&](int64_t row, int64_t c, typename N::Acc sum) {
      const int64_t o = group * c_out + c;
      numerics.store(row * g.out_step + o, o, sum);
    };
    multiply(p, 1, numerics, context, place, gather, column, reader, store);
  }
}

// DepthwiseConv has the channels as its inner loop.
constexpr int64_t kDepthwiseLanes = 16;  // output channels summed side by side

// Computes an output pixel, stored from index y on; `start` is the window's first input position.
template <class N>
void depthwise_pixel(const WindowGeometry& g, const typename N::Input* x, const typename N::Weight* w,
                     const int64_t (&start)[3], const N& numerics, int64_t y) {
  using Acc = typename N::Acc;
  const int64_t multiplier = g.out_channels / g.in_channels;
  const auto input = numerics.row_reader();
  for (int64_t o0 = 0; o0 < g.out_channels; o0 += kDepthwiseLanes) {
    const int64_t lanes = std::min(kDepthwiseLanes, g.out_channels - o0);
    Acc sum[kDepthwiseLanes] = {};
    typename N::Reader weight[kDepthwiseLanes];
    for (int64_t c = 0; c < lanes; ++c) weight[c] = numerics.column_reader(o0 + c);
#if SINTER_SIMD32
    // The weights have no zero points, and there is one filter for each input channel.
    bool plain = N::kDots && sizeof(*x) == 1 && sizeof(*w) == 1 && multiplier == 1 && lanes % 4 == 0;
    if constexpr (N::kDots)
      for (int64_t c = 0; c < lanes; ++c) plain = plain && weight[c].zero == 0;
#endif
    for (int64_t t0 = 0; t0 < g.kernel[0]; ++t0) {
      const int64_t i0 = start[0] + t0 * g.dilation[0];
      if (i0 < 0 || i0 >= g.in[0]) continue;
      for (int64_t t1 = 0; t1 < g.kernel[1]; ++t1) {
        const int64_t i1 = start[1] + t1 * g.dilation[1];
        if (i1 < 0 || i1 >= g.in[1]) continue;
        for (int64_t t2 = 0; t2 < g.kernel[2]; ++t2) {
          const int64_t i2 = start[2] + t2 * g.dilation[2];
          if (i2 < 0 || i2 >= g.in[2]) continue;
          const auto* from = x + ((i0 * g.in[1] + i1) * g.in[2] + i2) * g.in_step;
          const auto* filter = w + ((t0 * g.kernel[1] + t1) * g.kernel[2] + t2) * g.out_channels + o0;
#if SINTER_SIMD32
          if constexpr (N::kDots && sizeof(*x) == 1 && sizeof(*w) == 1)
            if (plain) {
              simd32::add_products(from + o0, input.zero, filter, static_cast<size_t>(lanes), sum);
              continue;
            }
#endif
          if (multiplier == 1 && lanes == kDepthwiseLanes) {
            for (int64_t c = 0; c < kDepthwiseLanes; ++c)
              sum[c] += input(from[o0 + c]) * weight[c](filter[c]);
          } else {
            for (int64_t c = 0; c < lanes; ++c)
              sum[c] += input(from[(o0 + c) / multiplier]) * weight[c](filter[c]);
          }
        }
      }
    }
    for (int64_t c = 0; c < lanes; ++c) numerics.store(y + o0 + c, o0 + c, sum[c]);
  }
}

template <class N>
void depthwise(const OpCall& call, const WindowGeometry& g, const N& numerics, RunContext& context) {
  const auto* x = call.in(0).as<typename N::Input>();
  const auto* w = call.in(1).as<typename N::Weight>();
  const int64_t image = g.in[0] * g.in[1] * g.in[2] * g.in_step;
  const int64_t lines = g.out[0] * g.out[1];
  parallel_for(context.threads, g.batch * lines, 1, [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      const auto* from = x + line / lines * image;
      const int64_t p0 = line % lines / g.out[1], p1 = line % lines % g.out[1];
      for (int64_t p2 = 0; p2 < g.out[2]; ++p2) {
        const int64_t start[3] = {p0 * g.stride[0] - g.pad[0], p1 * g.stride[1] - g.pad[1],
                                  p2 * g.stride[2] - g.pad[2]};
        depthwise_pixel(g, from, w, start, numerics, (line * g.out[2] + p2) * g.out_step);
      }
    }
  });
}

// ConvTranspose: each phase is a product of input patches and the taps that reach it.
template <class N>
class Transposed {
 public:
  using Acc = typename N::Acc;
  using Input = typename N::Input;
  using Weight = typename N::Weight;
  Transposed(const OpCall& call, const WindowGeometry& g, const N& numerics, RunContext& context)
      : g_(g),
        numerics_(numerics),
        context_(context),
        x_(call.in(0).as<Input>()),
        w_(call.in(1).as<Weight>()) {}

  void run() {
    for_phases(g_, [&](const TransposedPhase& phase) {
      for (int64_t group = 0; group < g_.group; ++group) run_phase(phase, group);
    });
  }

 private:
  void run_phase(const TransposedPhase& phase, int64_t group) {
    const PhaseAxis(&axes)[kMaxWindowAxes] = phase.axis;
    const int64_t c_in = g_.group_in(), c_out = g_.group_out(), taps = g_.taps();
    const int64_t n1 = axes[1].count, n2 = axes[2].count, pixels = phase.pixels();
    const int64_t k1 = axes[1].taps, k2 = axes[2].taps;
    const Product p = {g_.batch * pixels, c_out, phase.taps() * c_in};
    const auto place = [](int64_t) -> const Input* { return nullptr; };
    const auto gather = [&](int64_t row, auto* dst, int64_t step) {
      const Input* image = x_ + row / pixels * g_.in[0] * g_.in[1] * g_.in[2] * g_.in_step + group * c_in;
      const int64_t pixel = row % pixels;
      const int64_t at[3] = {axes[0].base + pixel / (n1 * n2), axes[1].base + pixel / n2 % n1,
                             axes[2].base + pixel % n2};
      for (int64_t t0 = 0; t0 < axes[0].taps; ++t0) {
        const int64_t i0 = at[0] - t0 * axes[0].input_step;
        for (int64_t t1 = 0; t1 < k1; ++t1) {
          const int64_t i1 = at[1] - t1 * axes[1].input_step;
          const bool inside = i0 >= 0 && i0 < g_.in[0] && i1 >= 0 && i1 < g_.in[1];
          for (int64_t t2 = 0; t2 < k2; ++t2, dst += c_in * step) {
            const int64_t i2 = at[2] - t2 * axes[2].input_step;
            const bool within = inside && i2 >= 0 && i2 < g_.in[2];
            spread(within ? image + ((i0 * g_.in[1] + i1) * g_.in[2] + i2) * g_.in_step : nullptr,
                   numerics_.padding(), c_in, dst, step);
          }
        }
      }
    };
    const auto column = [&](int64_t c, int64_t tap) {
      const int64_t t0 = axes[0].tap + tap / (k1 * k2) * axes[0].tap_step;
      const int64_t t1 = axes[1].tap + tap / k2 % k1 * axes[1].tap_step;
      const int64_t t2 = axes[2].tap + tap % k2 * axes[2].tap_step;
      return w_ + ((group * c_out + c) * taps + (t0 * g_.kernel[1] + t1) * g_.kernel[2] + t2) * c_in;
    };
    const auto reader = [&](int64_t c) { return numerics_.column_reader(group * c_out + c); };
    const auto store = [&](int64_t row, int64_t c, Acc sum) {
      const int64_t pixel = row % pixels, o = group * c_out + c;
      const int64_t q0 = axes[0].first + pixel / (n1 * n2) * g_.stride[0];
      const int64_t q1 = axes[1].first + pixel / n2 % n1 * g_.stride[1];
      const int64_t q2 = axes[2].first + pixel % n2 * g_.stride[2];
      const int64_t at = ((row / pixels * g_.out[0] + q0) * g_.out[1] + q1) * g_.out[2] + q2;
      numerics_.store(at * g_.out_step + o, o, sum);
    };
    multiply(p, phase.taps(), numerics_, context_, place, gather, column, reader, store);
  }

  const WindowGeometry& g_;
  const N& numerics_;
  RunContext& context_;
  const Input* x_;
  const Weight* w_;
};

}  // namespace sinter::linear
