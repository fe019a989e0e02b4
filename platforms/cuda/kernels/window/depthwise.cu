// Depthwise convolutions: a thread sums 16 bytes of channels of four pixels next to each other, whose windows
// overlap: elements of a line that several windows share are read once. For other types, and filters that
// share a channel, a thread computes one sum.
#include "platforms/cuda/kernels/product/epilogue.h"
#include "platforms/cuda/kernels/window/depthwise.h"

namespace sinter::cuda {
namespace {

constexpr int kPixels = kDepthwisePixels;

struct DepthwisePlace {
  int32_t channel, pixel;  // the first ones
  int32_t start[3];
  int64_t image, line;
};
SINTER_DEVICE DepthwisePlace place_of(const DepthwiseArguments& a, uint32_t thread, int channels,
                                      int pixels) {
  DepthwisePlace p;
  uint32_t group, pixel_group, p1;
  const uint32_t rest = a.channel_groups.divide(thread, &group);
  const uint32_t line = a.pixel_groups.divide(rest, &pixel_group);
  // The lines of all images are [image][p0][p1].
  uint32_t in_image;
  const uint32_t image = a.lines.divide(line, &in_image);
  const uint32_t p0 = a.line_axis.divide(in_image, &p1);
  p.channel = static_cast<int32_t>(group) * channels;
  p.pixel = static_cast<int32_t>(pixel_group) * pixels;
  p.start[0] = static_cast<int32_t>(p0) * a.stride[0] - a.pad[0];
  p.start[1] = static_cast<int32_t>(p1) * a.stride[1] - a.pad[1];
  p.start[2] = p.pixel * a.stride[2] - a.pad[2];
  p.image = image * a.image_step;
  p.line = line;
  return p;
}
SINTER_DEVICE bool inside(int32_t at, int32_t length) {
  return static_cast<uint32_t>(at) < static_cast<uint32_t>(length);
}

// Reads 16 bytes, which views may have at odd places.
template <class T>
SINTER_DEVICE Piece<T> read_piece(const T* from, bool aligned) {
  if (aligned) return *reinterpret_cast<const Piece<T>*>(from);
  Piece<T> p;
  SINTER_UNROLL
  for (int i = 0; i < Piece<T>::kCount; ++i) p.v[i] = from[i];
  return p;
}

template <class T>
SINTER_DEVICE void add_piece(float (&sum)[Piece<T>::kCount], const Piece<T>& x, const Piece<T>& w) {
  SINTER_UNROLL
  for (int i = 0; i < Piece<T>::kCount; ++i) sum[i] = m_fma(widen(x.v[i]), widen(w.v[i]), sum[i]);
}

// kTaps are the taps along a line, kStride pixels apart; 0 taps: any number, at any distance and dilation.
template <class T, int kTaps, int kStride>
SINTER_DEVICE void sum_lines(const DepthwiseArguments& a) {
  constexpr int kChannels = Piece<T>::kCount;
  const bool x_aligned = begins_sixteen(a.x), w_aligned = begins_sixteen(a.w),
             y_aligned = begins_sixteen(a.y);
  for (int64_t n = global_thread(); n < a.threads; n += global_threads()) {
    const DepthwisePlace p = place_of(a, static_cast<uint32_t>(n), kChannels, kPixels);
    const T* image = reinterpret_cast<const T*>(a.x) + p.image + p.channel;
    float sum[kPixels][kChannels] = {};
    SINTER_ROLLED
    for (int32_t t0 = 0; t0 < a.kernel[0]; ++t0) {
      const int32_t i0 = p.start[0] + t0 * a.dilation[0];
      if (!inside(i0, a.in[0])) continue;
      SINTER_ROLLED
      for (int32_t t1 = 0; t1 < a.kernel[1]; ++t1) {
        const int32_t i1 = p.start[1] + t1 * a.dilation[1];
        if (!inside(i1, a.in[1])) continue;
        const T* line = image + (int64_t{i0} * a.in[1] + i1) * a.in[2] * a.in_step;
        const T* filter = reinterpret_cast<const T*>(a.w) +
                          (int64_t{t0} * a.kernel[1] + t1) * a.kernel[2] * a.channels + p.channel;
        if constexpr (kTaps > 0) {
          constexpr int kWindow = (kPixels - 1) * kStride + kTaps;
          Piece<T> window[kWindow];
          uint32_t is_inside = 0;
          SINTER_UNROLL
          for (int i = 0; i < kWindow; ++i) {
            window[i] = {};
            if (!inside(p.start[2] + i, a.in[2])) continue;
            window[i] = read_piece(line + (p.start[2] + i) * a.in_step, x_aligned);
            is_inside |= 1u << i;
          }
          SINTER_UNROLL
          for (int t = 0; t < kTaps; ++t) {
            const Piece<T> w = read_piece(filter + int64_t{t} * a.channels, w_aligned);
            SINTER_UNROLL
            for (int i = 0; i < kPixels; ++i)
              if ((is_inside >> (i * kStride + t) & 1) != 0) add_piece(sum[i], window[i * kStride + t], w);
          }
        } else {
          SINTER_ROLLED
          for (int32_t t2 = 0; t2 < a.kernel[2]; ++t2) {
            const Piece<T> w = read_piece(filter + int64_t{t2} * a.channels, w_aligned);
            SINTER_UNROLL
            for (int i = 0; i < kPixels; ++i) {
              const int32_t i2 = p.start[2] + i * a.stride[2] + t2 * a.dilation[2];
              if (inside(i2, a.in[2])) add_piece(sum[i], read_piece(line + i2 * a.in_step, x_aligned), w);
            }
          }
        }
      }
    }
    SINTER_UNROLL
    for (int i = 0; i < kPixels; ++i) {
      if (p.pixel + i >= a.line_pixels) continue;
      T* to = reinterpret_cast<T*>(a.y) + (p.line * a.line_pixels + p.pixel + i) * a.out_step + p.channel;
      Piece<T> v;
      SINTER_UNROLL
      for (int c = 0; c < kChannels; ++c) narrow(finish_float<T>(a, sum[i][c], p.channel + c), &v.v[c]);
      if (y_aligned) {
        *reinterpret_cast<Piece<T>*>(to) = v;
      } else {
        SINTER_UNROLL
        for (int c = 0; c < kChannels; ++c) to[c] = v.v[c];
      }
    }
  }
}

template <class T>
SINTER_DEVICE void sum_pieces(const DepthwiseArguments& a) {
  if (a.dilation[2] == 1 && a.kernel[2] == 3 && a.stride[2] == 1) return sum_lines<T, 3, 1>(a);
  if (a.dilation[2] == 1 && a.kernel[2] == 3 && a.stride[2] == 2) return sum_lines<T, 3, 2>(a);
  if (a.dilation[2] == 1 && a.kernel[2] == 5 && a.stride[2] == 1) return sum_lines<T, 5, 1>(a);
  sum_lines<T, 0, 0>(a);
}

// Sums one channel of one pixel: add(element of x, element of w).
template <class T, class Add>
SINTER_DEVICE void sum_one(const DepthwiseArguments& a, const DepthwisePlace& p, Add add) {
  const T* image =
      reinterpret_cast<const T*>(a.x) + p.image + a.multiplier.divide(static_cast<uint32_t>(p.channel));
  const T* filter = reinterpret_cast<const T*>(a.w) + p.channel;
  for (int32_t t0 = 0; t0 < a.kernel[0]; ++t0)
    for (int32_t t1 = 0; t1 < a.kernel[1]; ++t1)
      for (int32_t t2 = 0; t2 < a.kernel[2]; ++t2, filter += a.channels) {
        const int32_t i0 = p.start[0] + t0 * a.dilation[0], i1 = p.start[1] + t1 * a.dilation[1];
        const int32_t i2 = p.start[2] + t2 * a.dilation[2];
        if (inside(i0, a.in[0]) && inside(i1, a.in[1]) && inside(i2, a.in[2]))
          add(image[((int64_t{i0} * a.in[1] + i1) * a.in[2] + i2) * a.in_step], *filter);
      }
}

template <class T>
SINTER_DEVICE void sum_floats(const DepthwiseArguments& a) {
  for (int64_t n = global_thread(); n < a.threads; n += global_threads()) {
    const DepthwisePlace p = place_of(a, static_cast<uint32_t>(n), 1, 1);
    float sum = 0;
    sum_one<T>(a, p, [&](T x, T w) { sum = m_fma(widen(x), widen(w), sum); });
    narrow(finish_float<T>(a, sum, p.channel),
           reinterpret_cast<T*>(a.y) + (p.line * a.line_pixels + p.pixel) * a.out_step + p.channel);
  }
}

template <class T>
SINTER_DEVICE void sum_others(const DepthwiseArguments& a) {
  using U = typename SumOf<T>::Type;
  for (int64_t n = global_thread(); n < a.threads; n += global_threads()) {
    const DepthwisePlace p = place_of(a, static_cast<uint32_t>(n), 1, 1);
    U sum = 0;
    sum_one<T>(a, p, [&](T x, T w) { sum = add_product(static_cast<U>(x), static_cast<U>(w), sum); });
    reinterpret_cast<T*>(a.y)[(p.line * a.line_pixels + p.pixel) * a.out_step + p.channel] =
        finish_any<T>(a, sum, p.channel);
  }
}

}  // namespace

SINTER_KERNEL(depthwise_float, DepthwiseArguments) { sum_pieces<float>(a); }
SINTER_KERNEL(depthwise_float16, DepthwiseArguments) { sum_pieces<Float16>(a); }
SINTER_KERNEL(depthwise_bfloat16, DepthwiseArguments) { sum_pieces<BFloat16>(a); }
SINTER_KERNEL(depthwise_any, DepthwiseArguments) {
  switch (a.element) {
    case Element::kFloat32:
      return sum_floats<float>(a);
    case Element::kFloat16:
      return sum_floats<Float16>(a);
    case Element::kBFloat16:
      return sum_floats<BFloat16>(a);
    case Element::kFloat64:
      return sum_others<double>(a);
    case Element::kInt32:
      return sum_others<int32_t>(a);
    case Element::kUint32:
      return sum_others<uint32_t>(a);
    case Element::kInt64:
      return sum_others<int64_t>(a);
    case Element::kUint64:
      return sum_others<uint64_t>(a);
  }
}

}  // namespace sinter::cuda
