// ConvTranspose: output pixels of the same phase (position modulo the stride, per axis) are reached by the
// same taps of the filter; each phase is a product of input patches and those taps.
#include "runtime/kernels/conv_geometry.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

using namespace linear;

ConvSettings settings(const OpCall& call) {
  const auto& a = call.attrs<ConvTransposeAttrs>();
  return {a.strides, a.dilations, a.pads, &a.output_padding, a.group, a.act_min, a.act_max, false, true};
}

Status infer_call(OpCall& call) { return infer_conv(call, settings(call)); }

Status workspace(const OpCall& call, int threads, size_t* bytes) {
  ConvGeometry g;
  int64_t dims[kMaxRank];
  SINTER_RETURN_IF_ERROR(conv_geometry(call, settings(call), &g, dims));
  // No phase has more pixels or taps than this.
  return product_workspace<double>({g.batch * g.out_pixels(), g.group_out(), g.taps * g.group_in()}, threads,
                                   bytes);
}

// One axis of a phase: output positions first, first + stride, ... (count of them), and the taps that reach
// them: tap, tap + tap_step, ... (taps of them). Position i under tap j reads the input at base + i - j *
// input_step.
struct PhaseAxis {
  int64_t first = 0, count = 0, tap = 0, tap_step = 1, taps = 0, base = 0, input_step = 0;
};

int64_t gcd(int64_t a, int64_t b) {
  while (b != 0) {
    const int64_t r = a % b;
    a = b, b = r;
  }
  return a;
}

// Output p reads input (p + pad - t * dilation) / stride where that is whole.
PhaseAxis phase_axis(const ConvGeometry& g, int axis, int64_t phase) {
  const int64_t stride = g.stride[axis], dilation = g.dilation[axis];
  PhaseAxis a;
  a.first = phase;
  a.count = phase < g.out[axis] ? (g.out[axis] - 1 - phase) / stride + 1 : 0;
  const int64_t divisor = gcd(stride, dilation);
  a.tap_step = stride / divisor;
  a.input_step = dilation / divisor;
  const int64_t limit = std::min(a.tap_step, g.kernel[axis]);
  for (int64_t t = 0; t < limit; ++t) {
    const int64_t offset = phase + g.pad[axis] - t * dilation;
    if (offset % stride != 0) continue;
    a.tap = t, a.base = offset / stride;
    a.taps = (g.kernel[axis] - 1 - t) / a.tap_step + 1;
    break;
  }
  return a;
}

template <class T>
class Transposed {
 public:
  using Acc = Accumulator<T>;
  Transposed(const OpCall& call, const ConvGeometry& g, RunContext& context)
      : g_(g),
        context_(context),
        x_(call.in(0).as<T>()),
        w_(call.in(1).as<T>()),
        bias_(call.has_input(2) ? call.in(2).as<T>() : nullptr),
        y_(call.out(0).as<T>()),
        bounds_(call.attrs<ConvTransposeAttrs>().act_min, call.attrs<ConvTransposeAttrs>().act_max) {}

  void run() {
    // Phases beyond the output's length hold no pixel.
    for (int64_t p0 = 0; p0 < std::min(g_.stride[0], g_.out[0]); ++p0)
      for (int64_t p1 = 0; p1 < std::min(g_.stride[1], g_.out[1]); ++p1)
        for (int64_t p2 = 0; p2 < std::min(g_.stride[2], g_.out[2]); ++p2) {
          axes_[0] = phase_axis(g_, 0, p0), axes_[1] = phase_axis(g_, 1, p1),
          axes_[2] = phase_axis(g_, 2, p2);
          for (int64_t group = 0; group < g_.group; ++group) run_phase(group);
        }
  }

 private:
  void run_phase(int64_t group) {
    const int64_t c_in = g_.group_in(), c_out = g_.group_out();
    const int64_t n1 = axes_[1].count, n2 = axes_[2].count, pixels = axes_[0].count * n1 * n2;
    const int64_t k1 = axes_[1].taps, k2 = axes_[2].taps;
    const Product p = {g_.batch * pixels, c_out, axes_[0].taps * k1 * k2 * c_in};
    const auto pack_row = [&](int64_t row, Acc* dst) {
      const T* image = x_ + row / pixels * g_.in[0] * g_.in[1] * g_.in[2] * g_.in_channels + group * c_in;
      const int64_t pixel = row % pixels;
      const int64_t at[3] = {axes_[0].base + pixel / (n1 * n2), axes_[1].base + pixel / n2 % n1,
                             axes_[2].base + pixel % n2};
      for (int64_t t0 = 0; t0 < axes_[0].taps; ++t0) {
        const int64_t i0 = at[0] - t0 * axes_[0].input_step;
        for (int64_t t1 = 0; t1 < k1; ++t1) {
          const int64_t i1 = at[1] - t1 * axes_[1].input_step;
          const bool inside = i0 >= 0 && i0 < g_.in[0] && i1 >= 0 && i1 < g_.in[1];
          for (int64_t t2 = 0; t2 < k2; ++t2, dst += c_in) {
            const int64_t i2 = at[2] - t2 * axes_[2].input_step;
            if (inside && i2 >= 0 && i2 < g_.in[2]) {
              const T* from = image + ((i0 * g_.in[1] + i1) * g_.in[2] + i2) * g_.in_channels;
              for (int64_t c = 0; c < c_in; ++c) dst[c] = static_cast<Acc>(from[c]);
            } else {
              for (int64_t c = 0; c < c_in; ++c) dst[c] = 0;
            }
          }
        }
      }
    };
    const auto pack_column = [&](int64_t column, int64_t from, int64_t to, Acc* dst) {
      const T* filter = w_ + (group * c_out + column) * g_.taps * c_in;
      int64_t tap = from / c_in, c = from % c_in;
      for (int64_t k = from; k < to; ++tap, c = 0) {
        const int64_t t0 = axes_[0].tap + tap / (k1 * k2) * axes_[0].tap_step;
        const int64_t t1 = axes_[1].tap + tap / k2 % k1 * axes_[1].tap_step;
        const int64_t t2 = axes_[2].tap + tap % k2 * axes_[2].tap_step;
        const T* values = filter + ((t0 * g_.kernel[1] + t1) * g_.kernel[2] + t2) * c_in;
        for (; c < c_in && k < to; ++c, ++k, dst += kTile) *dst = static_cast<Acc>(values[c]);
      }
    };
    const auto store = [&](int64_t row, int64_t column, Acc sum) {
      const int64_t pixel = row % pixels, o = group * c_out + column;
      const int64_t q0 = axes_[0].first + pixel / (n1 * n2) * g_.stride[0];
      const int64_t q1 = axes_[1].first + pixel / n2 % n1 * g_.stride[1];
      const int64_t q2 = axes_[2].first + pixel % n2 * g_.stride[2];
      if (bias_ != nullptr) sum += static_cast<Acc>(bias_[o]);
      y_[(((row / pixels * g_.out[0] + q0) * g_.out[1] + q1) * g_.out[2] + q2) * g_.out_channels + o] =
          bounds_(sum);
    };
    multiply<Acc>(p, context_, pack_row, pack_column, store);
  }

  const ConvGeometry& g_;
  RunContext& context_;
  const T* x_;
  const T* w_;
  const T* bias_;
  T* y_;
  Bounds<T> bounds_;
  PhaseAxis axes_[3];
};

Status run(const OpCall& call, RunContext& context) {
  ConvGeometry g;
  int64_t dims[kMaxRank];
  SINTER_RETURN_IF_ERROR(conv_geometry(call, settings(call), &g, dims));
  return dispatch(call.in(0).dtype,
                  [&](auto t) { return Transposed<decltype(t)>(call, g, context).run(), ok_status(); });
}

}  // namespace

const Kernel kConvTransposeKernel = {Op::kConvTranspose, infer_call, workspace, run};

}  // namespace sinter
