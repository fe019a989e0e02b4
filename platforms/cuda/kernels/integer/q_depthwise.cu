// QDepthwiseConv.
//
// Four channels of int8 are computed at a time: four taps of each are put into one word (a transposition of
// 4x4 bytes), so that one instruction adds four products. A thread computes four adjacent pixels with the
// weights that it has arranged. Other calls take one channel of a pixel at a time.
#include "platforms/cuda/kernels/integer/q_depthwise.h"
#include "platforms/cuda/kernels/integer/requantize.h"

namespace sinter::cuda {
namespace {

// v[i] becomes byte i of the four words.
SINTER_DEVICE void turn_bytes(uint32_t (&v)[4]) {
  const uint32_t a = select_bytes(v[0], v[1], 0x5140), b = select_bytes(v[2], v[3], 0x5140);
  const uint32_t c = select_bytes(v[0], v[1], 0x7362), d = select_bytes(v[2], v[3], 0x7362);
  v[0] = select_bytes(a, b, 0x5410), v[1] = select_bytes(a, b, 0x7632);
  v[2] = select_bytes(c, d, 0x5410), v[3] = select_bytes(c, d, 0x7632);
}

// The taps of a window in order.
struct Tap {
  int32_t at[3] = {0, 0, 0};
  SINTER_DEVICE void next(const int32_t (&kernel)[3]) {
    if (++at[2] < kernel[2]) return;
    at[2] = 0;
    if (++at[1] < kernel[1]) return;
    at[1] = 0, ++at[0];
  }
};

SINTER_DEVICE bool inside(int32_t i, int32_t n) {
  return static_cast<uint32_t>(i) < static_cast<uint32_t>(n);
}

}  // namespace

SINTER_KERNEL(q_depthwise, QDepthwiseArguments) {
  constexpr int kPixels = kQDepthwisePixels, kChannels = kDepthwiseChannels;
  constexpr uint32_t kOne = 0x01010101;
  const int64_t item = global_thread();
  if (item >= a.items) return;
  uint32_t group, piece, p1;
  const uint32_t pieces = a.channels.divide(static_cast<uint32_t>(item), &group);
  const uint32_t line = a.line_pieces.divide(pieces, &piece);
  uint32_t p0;
  const uint32_t image = a.planes.divide(a.window.out1.divide(line, &p1), &p0);
  const uint32_t p2 = piece * kPixels, channel = group * kChannels;
  const int32_t start[3] = {static_cast<int32_t>(p0) * a.window.stride[0] - a.window.pad[0],
                            static_cast<int32_t>(p1) * a.window.stride[1] - a.window.pad[1],
                            static_cast<int32_t>(p2) * a.window.stride[2] - a.window.pad[2]};
  const std::byte* x = a.x + image * a.window.image_step + channel;
  const int8_t* w = a.w + channel;
  const bool x_aligned = is_aligned(a.x, 4), w_aligned = is_aligned(a.w, 4);
  const uint32_t channels = a.channels.divisor * kChannels;
  const uint32_t padding = (static_cast<uint32_t>(a.x_zero) & 0xff) * kOne;
  const bool sum_x = a.w_zeros != nullptr, sum_w = a.x_zero != 0;

  int32_t sums[kPixels][kChannels] = {}, x_sums[kPixels][kChannels] = {}, w_sums[kChannels] = {};
  const int32_t taps = a.kernel[0] * a.kernel[1] * a.kernel[2];
  Tap tap;
  for (int32_t first = 0; first < taps; first += 4) {
    uint32_t ws[4], xs[kPixels][4];
    SINTER_UNROLL
    for (int t = 0; t < 4; ++t) {
      const bool some = first + t < taps;
      ws[t] = some ? load_words<4>(reinterpret_cast<const std::byte*>(w) + int64_t{first + t} * channels,
                                   w_aligned)
                         .w[0]
                   : 0;
      const int32_t i0 = start[0] + tap.at[0] * a.window.dilation[0],
                    i1 = start[1] + tap.at[1] * a.window.dilation[1],
                    i2 = start[2] + tap.at[2] * a.window.dilation[2];
      const bool in_line = some && inside(i0, a.window.in[0]) && inside(i1, a.window.in[1]);
      const std::byte* from = x + (int64_t{i0} * a.window.in[1] + i1) * a.window.in[2] * a.window.in_step;
      SINTER_UNROLL
      for (int p = 0; p < kPixels; ++p) {
        const int32_t i = i2 + p * a.window.stride[2];
        xs[p][t] = in_line && inside(i, a.window.in[2])
                       ? load_words<4>(from + i * a.window.in_step, x_aligned).w[0]
                   : some ? padding
                          : 0;
      }
      tap.next(a.kernel);
    }
    turn_bytes(ws);
    SINTER_UNROLL
    for (int c = 0; c < kChannels; ++c)
      if (sum_w) w_sums[c] = dot4(static_cast<int32_t>(ws[c]), kOne, w_sums[c]);
    SINTER_UNROLL
    for (int p = 0; p < kPixels; ++p) {
      turn_bytes(xs[p]);
      SINTER_UNROLL
      for (int c = 0; c < kChannels; ++c) {
        sums[p][c] = dot4(static_cast<int32_t>(xs[p][c]), static_cast<int32_t>(ws[c]), sums[p][c]);
        if (sum_x) x_sums[p][c] = dot4(static_cast<int32_t>(xs[p][c]), kOne, x_sums[p][c]);
      }
    }
  }

  uint32_t terms[kChannels], zeros[kChannels];
  float multipliers[kChannels];
  SINTER_UNROLL
  for (int c = 0; c < kChannels; ++c) {
    const int64_t o = int64_t{channel} + c;
    zeros[c] = a.w_zeros != nullptr ? static_cast<uint32_t>(a.w_zeros[o * a.w_zero_step]) : 0;
    terms[c] = static_cast<uint32_t>(static_cast<const int32_t*>(a.bias)[o]) +
               static_cast<uint32_t>(a.x_zero) *
                   (static_cast<uint32_t>(taps) * zeros[c] - static_cast<uint32_t>(w_sums[c]));
    multipliers[c] = a.multipliers[o * a.multiplier_step];
  }
  SINTER_UNROLL
  for (int p = 0; p < kPixels; ++p) {
    if (p2 + static_cast<uint32_t>(p) >= a.line) break;
    float values[kChannels];
    SINTER_UNROLL
    for (int c = 0; c < kChannels; ++c) {
      const uint32_t sum =
          static_cast<uint32_t>(sums[p][c]) + terms[c] - zeros[c] * static_cast<uint32_t>(x_sums[p][c]);
      values[c] = static_cast<float>(static_cast<int32_t>(sum)) * multipliers[c];
    }
    const int64_t at = (int64_t{line} * a.line + p2 + p) * a.y_step + channel;
    if (is_aligned(a.y + at * a.result.width, static_cast<uint32_t>(kChannels * a.result.width))) {
      store_results(a.result, a.y, at, values);
    } else {
      SINTER_UNROLL
      for (int c = 0; c < kChannels; ++c) store_result(a.result, a.y, at + c, values[c]);
    }
  }
}

namespace {

template <class X>
SINTER_DEVICE void one_channel(const QDepthwiseArguments& a) {
  using Wide = std::conditional_t<sizeof(X) == 1, int32_t, int64_t>;
  using Wraps = std::make_unsigned_t<Wide>;
  for (int64_t item = global_thread(); item < a.items; item += global_threads()) {
    uint32_t o;
    const uint32_t pixel = a.channels.divide(static_cast<uint32_t>(item), &o);
    const WindowStart start = window_start(a.window, pixel);
    const X* x = reinterpret_cast<const X*>(a.x) + start.image + a.channel_multiplier.divide(o);
    const int32_t zero = a.w_zeros != nullptr ? a.w_zeros[int64_t{o} * a.w_zero_step] : 0;
    auto sum = static_cast<Wraps>(static_cast<const Wide*>(a.bias)[o]);
    const int8_t* w = a.w + o;
    for (int32_t t0 = 0; t0 < a.kernel[0]; ++t0)
      for (int32_t t1 = 0; t1 < a.kernel[1]; ++t1)
        for (int32_t t2 = 0; t2 < a.kernel[2]; ++t2, w += a.channels.divisor) {
          const int32_t i0 = start.at[0] + t0 * a.window.dilation[0],
                        i1 = start.at[1] + t1 * a.window.dilation[1],
                        i2 = start.at[2] + t2 * a.window.dilation[2];
          if (!inside(i0, a.window.in[0]) || !inside(i1, a.window.in[1]) || !inside(i2, a.window.in[2]))
            continue;
          const int32_t v = x[((int64_t{i0} * a.window.in[1] + i1) * a.window.in[2] + i2) * a.window.in_step];
          // The difference is below 2^25 in size.
          sum += static_cast<Wraps>(static_cast<Wide>((v - a.x_zero) * (*w - zero)));
        }
    store_result(a.result, a.y, pixel * a.y_step + o,
                 static_cast<float>(static_cast<Wide>(sum)) * a.multipliers[int64_t{o} * a.multiplier_step]);
  }
}

}  // namespace

SINTER_KERNEL(q_depthwise_any, QDepthwiseArguments) {
  if (a.x_width == 1)
    one_channel<int8_t>(a);
  else
    one_channel<int16_t>(a);
}

}  // namespace sinter::cuda
