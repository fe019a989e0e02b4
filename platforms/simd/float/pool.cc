// MaxPool (without indices), of bfloat16 too, and AvgPool: channels are side by side in a vector.
// int8/pool.cc has those of int8.
#include "platforms/simd/int8/int8.h"
#include "platforms/simd/window.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/float/pool.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/isa/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// Computes the greatest number of a window, or NaN if it has one; or the sum.
template <bool kMax>
struct Pooled {
  V value;
  hn::Mask<F> nan;

  HWY_INLINE Pooled() : value(set(kMax ? -HUGE_VALF : 0.0f)), nan(hn::MaskFalse(F())) {}
  HWY_INLINE void add(V v) {
    if constexpr (!kMax) {
      value = hn::Add(value, v);
      return;
    }
#if HWY_ARCH_ARM_A64
    value = V(vmaxq_f32(v.raw, value.raw));  // NaN if one of them is
    return;
#endif
    nan = hn::Or(nan, hn::IsNaN(v));
#if HWY_ARCH_X86
    value = hn::Max(v, value);  // `value` if v is NaN, or both are zero
#else
    value = hn::IfThenElse(hn::Gt(v, value), v, value);
#endif
  }
  HWY_INLINE V get(V factor) const {
    if constexpr (!kMax) return hn::Mul(value, factor);
    return HWY_ARCH_ARM_A64 ? value : hn::IfThenElse(nan, hn::NaN(F()), value);
  }
};

// Elements are float32, or the bits of bfloat16, which are widened; a maximum of them loses nothing when it
// is narrowed again.
HWY_INLINE V widened(hn::Vec<hn::Rebind<uint16_t, F>> bits) {
  const hn::RebindToUnsigned<F> wide;
  return hn::BitCast(F(), hn::ShiftLeft<16>(hn::PromoteTo(wide, bits)));
}
HWY_INLINE V load_some(const float* p, size_t n) { return hn::LoadN(F(), p, n); }
HWY_INLINE V load_some(const uint16_t* p, size_t n) {
  return widened(hn::LoadN(hn::Rebind<uint16_t, F>(), p, n));
}
HWY_INLINE V load_all(const float* p) { return hn::LoadU(F(), p); }
HWY_INLINE V load_all(const uint16_t* p) { return widened(hn::LoadU(hn::Rebind<uint16_t, F>(), p)); }
HWY_INLINE hn::Vec<hn::Rebind<uint16_t, F>> narrowed(V v) {
  const hn::RebindToUnsigned<F> wide;
  return hn::TruncateTo(hn::Rebind<uint16_t, F>(), hn::ShiftRight<16>(hn::BitCast(wide, v)));
}
HWY_INLINE void store_some(V v, float* p, size_t n) { hn::StoreN(v, F(), p, n); }
HWY_INLINE void store_some(V v, uint16_t* p, size_t n) {
  hn::StoreN(narrowed(v), hn::Rebind<uint16_t, F>(), p, n);
}
HWY_INLINE void store_all(V v, float* p) { hn::StoreU(v, F(), p); }
HWY_INLINE void store_all(V v, uint16_t* p) { hn::StoreU(narrowed(v), hn::Rebind<uint16_t, F>(), p); }

// The steps from one tap of an axis to the next, in elements.
struct TapSteps {
  int64_t plane, line, column;
};

template <bool kMax, int kVectors, class T>
HWY_INLINE void pool_strip(const TapSteps& step, const WindowOf<T>& w, float factor, int64_t c, size_t count,
                           T* y) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(F()));
  const bool partial = kVectors == 1 && count < static_cast<size_t>(lanes);
  const auto load = [&](const T* p)
                        SINTER_SIMD_LAMBDA { return partial ? load_some(p, count) : load_all(p); };
  Pooled<kMax> s0, s1, s2, s3;
  const T* x0 = w.x + c;
  for (int64_t t0 = w.first[0]; t0 < w.end[0]; ++t0, x0 += step.plane) {
    const T* x1 = x0;
    for (int64_t t1 = w.first[1]; t1 < w.end[1]; ++t1, x1 += step.line) {
      const T* x2 = x1;
      const auto next = [&]() SINTER_SIMD_LAMBDA {
        s0.add(load(x2));
        if constexpr (kVectors > 1) s1.add(load(x2 + lanes));
        if constexpr (kVectors > 2) s2.add(load(x2 + 2 * lanes)), s3.add(load(x2 + 3 * lanes));
        x2 += step.column;
      };
      int64_t t2 = w.first[2];
      for (; t2 + 2 <= w.end[2]; t2 += 2) next(), next();
      if (t2 < w.end[2]) next();
    }
  }
  const V f = set(factor);
  const auto finish = [&](const Pooled<kMax>& s, int64_t at) SINTER_SIMD_LAMBDA {
    if (partial)
      store_some(s.get(f), y + at, count);
    else
      store_all(s.get(f), y + at);
  };
  finish(s0, c);
  if constexpr (kVectors > 1) finish(s1, c + lanes);
  if constexpr (kVectors > 2) finish(s2, c + 2 * lanes), finish(s3, c + 3 * lanes);
}

#if HWY_ARCH_ARM_A64
// Computes the maxima of windows three columns wide and two apart, for one vector of channels: a column that
// two windows share is read once. x and y are those of the first window.
template <int kTapLines>
HWY_INLINE void max_of_three_columns(const float* x, int64_t line, int64_t pixel, int64_t count, float* y,
                                     int64_t out) {
  const F d;
  const auto column = [&](const float* p) SINTER_SIMD_LAMBDA {
    V v = hn::LoadU(d, p);
    if constexpr (kTapLines > 1) v = V(vmaxq_f32(v.raw, hn::LoadU(d, p + line).raw));
    if constexpr (kTapLines > 2) v = V(vmaxq_f32(v.raw, hn::LoadU(d, p + 2 * line).raw));
    return v;
  };
  V first = column(x);
  for (; count > 0; --count, y += out) {
    const V second = column(x += pixel), third = column(x += pixel);
    hn::StoreU(V(vmaxq_f32(vmaxq_f32(first.raw, second.raw), third.raw)), d, y);
    first = third;
  }
}

// Returns false if windows have another form.
HWY_INLINE bool shared_columns(const Geometry& g, const Window& w, int64_t count, float* y) {
  const int64_t lines = w.end[1] - w.first[1], pixel = g.in_pixel(), channels = g.in_channels;
  if (w.end[0] - w.first[0] != 1 || w.end[2] - w.first[2] != 3 || g.stride[2] != 2 || g.dilation[2] != 1 ||
      lines < 1 || lines > 3 || channels % 4 != 0)
    return false;
  const int64_t line = g.dilation[1] * g.in[2] * pixel, out = g.out_pixel();
  for (int64_t c = 0; c < channels; c += 4) {
    if (lines == 1) max_of_three_columns<1>(w.x + c, line, pixel, count, y + c, out);
    if (lines == 2) max_of_three_columns<2>(w.x + c, line, pixel, count, y + c, out);
    if (lines == 3) max_of_three_columns<3>(w.x + c, line, pixel, count, y + c, out);
  }
  return true;
}
#endif

// Computes `count` neighbours along the last axis, whose windows have the same taps.
template <bool kMax, class T>
HWY_INLINE void pool(const Geometry& g, WindowOf<T> w, int64_t count, float factor, T* y) {
#if HWY_ARCH_ARM_A64
  if constexpr (kMax && sizeof(T) == sizeof(float))
    if (shared_columns(g, w, count, y)) return;
#endif
  const auto lanes = static_cast<int64_t>(hn::Lanes(F()));
  const int64_t channels = g.in_channels, pixel = g.in_pixel(), next = g.stride[2] * pixel,
                out = g.out_pixel();
  const TapSteps step = {g.dilation[0] * g.in[1] * g.in[2] * pixel, g.dilation[1] * g.in[2] * pixel,
                         g.dilation[2] * pixel};
  const auto whole = static_cast<size_t>(lanes);
  for (int64_t i = 0; i < count; ++i, w.x += next, y += out) {
    int64_t c = 0;
    for (; c + 4 * lanes <= channels; c += 4 * lanes) pool_strip<kMax, 4>(step, w, factor, c, whole, y);
    for (; c + 2 * lanes <= channels; c += 2 * lanes) pool_strip<kMax, 2>(step, w, factor, c, whole, y);
    for (; c < channels; c += lanes)
      pool_strip<kMax, 1>(step, w, factor, c,
                          channels - c < lanes ? static_cast<size_t>(channels - c) : whole, y);
  }
}

void pool_pixels(const Geometry& g, const Window& w, int64_t count, bool max, float factor, float* y) {
  if (max)
    pool<true>(g, w, count, factor, y);
  else
    pool<false>(g, w, count, factor, y);
}
void max_halves(const Geometry& g, const WindowOf<uint16_t>& w, int64_t count, uint16_t* y) {
  pool<true>(g, w, count, 1, y);
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {
namespace {

HWY_EXPORT(pool_pixels);
HWY_EXPORT(max_halves);

Status accept_pool(const OpCall& call) {
  SINTER_RETURN_UNLESS(call.in(0).rank <= 5, unsupported("the simd kernel pools over at most three axes"));
  SINTER_RETURN_UNLESS(!call.has_output(1) && call.has_output(0),
                       unsupported("the simd kernel gives no indices"));
  const DType type = call.in(0).dtype;
  if (call.op == Op::kMaxPool && (type == DType::kInt8 || type == DType::kBFloat16))
    return accept_dense(call);
  return accept_float_pixels(call);
}

// Calls run(g, window, count, y) for `count` neighbours from `window`, to y.
template <class Attrs, class T, class Run>
Status run_pool(const OpCall& call, RunContext& context, Run run) {
  const Geometry g = window_geometry<Attrs>(call);
  const auto* x = call.in(0).as<const T>();
  auto* y = call.out(0).as<T>();
  if (call.out(0).size() == 0) return ok_status();
  const int64_t work = std::max<int64_t>(g.in_channels * g.taps(), 1);
  for_each_run_of_windows(
      g, x, context.threads, std::max<int64_t>(16384 / work, 1),
      [&](const WindowOf<T>& w, int64_t row, int64_t count) { run(g, w, count, y + row * g.out_pixel()); });
  return ok_status();
}

Status run_max_pool(const OpCall& call, RunContext& context) {
  if (call.in(0).dtype == DType::kInt8) return run_int8_max_pool(call, context);
  if (call.in(0).dtype == DType::kBFloat16)
    return run_pool<MaxPoolAttrs, uint16_t>(call, context, HWY_DYNAMIC_POINTER(max_halves));
  const auto pool = HWY_DYNAMIC_POINTER(pool_pixels);
  return run_pool<MaxPoolAttrs, float>(
      call, context,
      [=](const Geometry& g, const Window& w, int64_t count, float* y) { pool(g, w, count, true, 1, y); });
}

Status run_avg_pool(const OpCall& call, RunContext& context) {
  const bool with_padding = call.attrs<AvgPoolAttrs>().count_include_pad != 0;
  const auto pool = HWY_DYNAMIC_POINTER(pool_pixels);
  return run_pool<AvgPoolAttrs, float>(
      call, context, [=](const Geometry& g, const Window& w, int64_t count, float* y) {
        pool(g, w, count, false, 1.0f / static_cast<float>(pool_divisor(g, w, with_padding)), y);
      });
}

}  // namespace

const Kernel kMaxPoolKernel = {Op::kMaxPool, nullptr, nullptr, run_max_pool, accept_pool};
const Kernel kAvgPoolKernel = {Op::kAvgPool, nullptr, nullptr, run_avg_pool, accept_pool};

}  // namespace sinter::simd
#endif  // HWY_ONCE
