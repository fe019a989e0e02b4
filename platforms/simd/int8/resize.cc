// QResize of int8 and int16, with the bits of the reference kernel and channels side by side in a vector;
// int16 is float32 in between. The last vector of a pixel is read whole (kReadPadding), and its part is
// stored.
#include "platforms/simd/int8/int8.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/int8/resize.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/int8/int8-inl.h"

#ifndef SINTER_SIMD_Q_RESIZE_ONCE
#define SINTER_SIMD_Q_RESIZE_ONCE
namespace sinter::simd {

// Two neighbouring elements of an axis, and the weight of the second.
struct ResizeTaps {
  int64_t first, second;
  int32_t weight;
};
inline ResizeTaps resize_taps(const int32_t* table, int64_t at, int64_t dim) {
  const int64_t first = std::clamp<int64_t>(table[2 * at], 0, dim - 1);
  return {first, std::min(first + 1, dim - 1), std::clamp(table[2 * at + 1], 0, 2048)};
}

// The operands of one output row, from two input rows of `width` pixels.
template <class T>
struct ResizeRow {
  const T *top, *bottom;
  const int32_t* columns;
  int64_t width, out_width, channels;
  int32_t weight;
};

}  // namespace sinter::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

void resize_row8(const ResizeRow<int8_t>& r, int8_t* y) {
  const D32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(D8())), half = lanes / 2;
  const V16 v = hn::BitCast(D16(), hn::Set(d, r.weight << 16 | (2048 - r.weight)));
  const V32 one = hn::Set(d, 1), below_half = hn::Set(d, (1 << 21) - 1);
  for (int64_t column = 0; column < r.out_width; ++column, y += r.channels) {
    const ResizeTaps taps = resize_taps(r.columns, column, r.width);
    const int64_t a = taps.first * r.channels, b = taps.second * r.channels;
    const V32 u0 = hn::Set(d, 2048 - taps.weight), u1 = hn::Set(d, taps.weight);
    const auto mixed = [=](V16 left, V16 right) SINTER_SIMD_LAMBDA {
      const V32 sum = hn::Add(hn::Mul(hn::WidenMulPairwiseAdd(d, left, v), u0),
                              hn::Mul(hn::WidenMulPairwiseAdd(d, right, v), u1));
      const V32 tie = hn::And(hn::ShiftRight<22>(sum), one);
      return hn::ShiftRight<22>(hn::Add(hn::Add(sum, below_half), tie));
    };
    const auto part = [&](int64_t c) SINTER_SIMD_LAMBDA {
      const V16 top_a = load16(r.top + a + c), top_b = load16(r.top + b + c);
      const V16 bottom_a = load16(r.bottom + a + c), bottom_b = load16(r.bottom + b + c);
      const D16 d16;
      return rejoin(
          mixed(hn::InterleaveLower(d16, top_a, bottom_a), hn::InterleaveLower(d16, top_b, bottom_b)),
          mixed(hn::InterleaveUpper(d16, top_a, bottom_a), hn::InterleaveUpper(d16, top_b, bottom_b)));
    };
    int64_t c = 0;
    for (; c + lanes <= r.channels; c += lanes)
      hn::StoreU(hn::OrderedDemote2To(D8(), part(c), part(c + half)), D8(), y + c);
    if (c == r.channels) continue;
    const V16 low = part(c), high = c + half < r.channels ? part(c + half) : low;
    hn::StoreN(hn::OrderedDemote2To(D8(), low, high), D8(), y + c, static_cast<size_t>(r.channels - c));
  }
}

void resize_row16(const ResizeRow<int16_t>& r, int16_t* y) {
  const D32 d;
  const DF df;
  const hn::Rebind<int16_t, D32> d16;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V32 v0 = hn::Set(d, 2048 - r.weight), v1 = hn::Set(d, r.weight);
  const VF unit = hn::Set(df, 0x1p-22f);
  for (int64_t column = 0; column < r.out_width; ++column, y += r.channels) {
    const ResizeTaps taps = resize_taps(r.columns, column, r.width);
    const int64_t a = taps.first * r.channels, b = taps.second * r.channels;
    const VF u0 = hn::Set(df, static_cast<float>(2048 - taps.weight)),
             u1 = hn::Set(df, static_cast<float>(taps.weight));
    const auto mixed = [=](int64_t at) SINTER_SIMD_LAMBDA {
      const V32 top = hn::PromoteTo(d, hn::LoadU(d16, r.top + at)),
                bottom = hn::PromoteTo(d, hn::LoadU(d16, r.bottom + at));
      return hn::ConvertTo(df, hn::Add(hn::Mul(v0, top), hn::Mul(v1, bottom)));
    };
    for (int64_t c = 0; c < r.channels; c += lanes) {
      const VF sum = hn::Add(hn::Mul(mixed(a + c), u0), hn::Mul(mixed(b + c), u1));
      const auto value = hn::DemoteTo(d16, nearest(hn::Mul(sum, unit)));
      if (c + lanes <= r.channels)
        hn::StoreU(value, d16, y + c);
      else
        hn::StoreN(value, d16, y + c, static_cast<size_t>(r.channels - c));
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {
namespace {

HWY_EXPORT(resize_row8);
HWY_EXPORT(resize_row16);

template <class T>
Status resize_rows(const OpCall& call, RunContext& context, void (*run)(const ResizeRow<T>&, T*)) {
  const TensorView &x = call.in(0), &y = call.out(0);
  if (y.size() == 0) return ok_status();
  const int64_t height = x.dims[1], width = x.dims[2], channels = x.dims[3];
  const int64_t out_height = y.dims[1], out_width = y.dims[2], line = width * channels;
  const auto *rows = call.in(1).as<const int32_t>(), *columns = call.in(2).as<const int32_t>();
  parallel_for(context.threads, y.dims[0] * out_height, std::max<int64_t>(16384 / (out_width * channels), 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t row = begin; row < end; ++row) {
                   const ResizeTaps v = resize_taps(rows, row % out_height, height);
                   const T* image = x.as<const T>() + row / out_height * height * line;
                   run({image + v.first * line, image + v.second * line, columns, width, out_width, channels,
                        v.weight},
                       y.as<T>() + row * out_width * channels);
                 }
               });
  return ok_status();
}

Status run_resize(const OpCall& call, RunContext& context) {
  return call.in(0).dtype == DType::kInt16
             ? resize_rows<int16_t>(call, context, HWY_DYNAMIC_POINTER(resize_row16))
             : resize_rows<int8_t>(call, context, HWY_DYNAMIC_POINTER(resize_row8));
}

}  // namespace

const Kernel kQResizeKernel = {Op::kQResize, nullptr, nullptr, run_resize, accept_dense};

}  // namespace sinter::simd
#endif  // HWY_ONCE
