// MaxPool (without indices) and AvgPool: channels side by side in a vector. int8: q_pool.cc.
#include "platforms/simd/int8.h"
#include "platforms/simd/window.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/pool.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// NaN wins over any number.
template <bool kMax>
HWY_INLINE V pooled(V sum, V v) {
  if constexpr (!kMax) return hn::Add(sum, v);
  return hn::IfThenElse(hn::Or(hn::Gt(v, sum), hn::IsNaN(v)), v, sum);
}

template <bool kMax, int kVectors>
HWY_INLINE void pool_strip(const Geometry& g, const Window& w, float factor, int64_t c, size_t count,
                           float* y) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const bool partial = kVectors == 1 && count < static_cast<size_t>(lanes);
  const auto load = [&](const float* p)
                        SINTER_SIMD_LAMBDA { return partial ? hn::LoadN(d, p, count) : hn::LoadU(d, p); };
  V s0 = set(kMax ? -HUGE_VALF : 0.0f), s1 = s0, s2 = s0, s3 = s0;
  const float* x0 = w.x + c;
  for (int64_t t0 = w.first[0]; t0 < w.end[0]; ++t0, x0 += g.dilation[0] * g.in[1] * g.in[2] * g.in_pixel()) {
    const float* x1 = x0;
    for (int64_t t1 = w.first[1]; t1 < w.end[1]; ++t1, x1 += g.dilation[1] * g.in[2] * g.in_pixel()) {
      const float* x2 = x1;
      for (int64_t t2 = w.first[2]; t2 < w.end[2]; ++t2, x2 += g.dilation[2] * g.in_pixel()) {
        s0 = pooled<kMax>(s0, load(x2));
        if constexpr (kVectors == 4) {
          s1 = pooled<kMax>(s1, load(x2 + lanes));
          s2 = pooled<kMax>(s2, load(x2 + 2 * lanes));
          s3 = pooled<kMax>(s3, load(x2 + 3 * lanes));
        }
      }
    }
  }
  const V f = set(factor);
  const auto finish = [&](V s, int64_t at) SINTER_SIMD_LAMBDA {
    if constexpr (!kMax) s = hn::Mul(s, f);
    if (partial)
      hn::StoreN(s, d, y + at, count);
    else
      hn::StoreU(s, d, y + at);
  };
  finish(s0, c);
  if constexpr (kVectors == 4) finish(s1, c + lanes), finish(s2, c + 2 * lanes), finish(s3, c + 3 * lanes);
}

template <bool kMax>
HWY_INLINE void pool(const Geometry& g, const Window& w, float factor, float* y) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(F()));
  int64_t c = 0;
  for (; c + 4 * lanes <= g.in_channels; c += 4 * lanes)
    pool_strip<kMax, 4>(g, w, factor, c, static_cast<size_t>(lanes), y);
  for (; c < g.in_channels; c += lanes)
    pool_strip<kMax, 1>(g, w, factor, c,
                        static_cast<size_t>(g.in_channels - c < lanes ? g.in_channels - c : lanes), y);
}

void pool_pixel(const Geometry& g, const Window& w, bool max, float factor, float* y) {
  if (max)
    pool<true>(g, w, factor, y);
  else
    pool<false>(g, w, factor, y);
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {
namespace {

HWY_EXPORT(pool_pixel);

Status accept_pool(const OpCall& call) {
  SINTER_RETURN_UNLESS(call.in(0).rank <= 5, unsupported("the simd kernel pools over at most three axes"));
  SINTER_RETURN_UNLESS(!call.has_output(1) && call.has_output(0),
                       unsupported("the simd kernel gives no indices"));
  if (call.op == Op::kMaxPool && call.in(0).dtype == DType::kInt8) return accept_dense(call);
  return accept_float_pixels(call);
}

// divisor(window): what the sum is divided by.
template <class Attrs, class Divisor>
Status run_pool(const OpCall& call, RunContext& context, bool max, Divisor divisor) {
  const Geometry g = window_geometry<Attrs>(call);
  const auto* x = call.in(0).as<const float>();
  auto* y = call.out(0).as<float>();
  if (call.out(0).size() == 0) return ok_status();
  const int64_t work = std::max<int64_t>(g.in_channels * g.taps(), 1);
  parallel_for(context.threads, g.batch * g.out_pixels(), std::max<int64_t>(16384 / work, 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t row = begin; row < end; ++row) {
                   const Window w = window_at(g, x, row);
                   const float factor = max ? 1.0f : 1.0f / static_cast<float>(divisor(g, w));
                   HWY_DYNAMIC_DISPATCH(pool_pixel)(g, w, max, factor, y + row * g.out_pixel());
                 }
               });
  return ok_status();
}

Status run_max_pool(const OpCall& call, RunContext& context) {
  if (call.in(0).dtype == DType::kInt8) return run_int8_max_pool(call, context);
  return run_pool<MaxPoolAttrs>(call, context, true,
                                [](const Geometry&, const Window&) { return int64_t{1}; });
}

Status run_avg_pool(const OpCall& call, RunContext& context) {
  const bool with_padding = call.attrs<AvgPoolAttrs>().count_include_pad != 0;
  return run_pool<AvgPoolAttrs>(call, context, false, [=](const Geometry& g, const Window& w) {
    return pool_divisor(g, w, with_padding);
  });
}

}  // namespace

const Kernel kMaxPoolKernel = {Op::kMaxPool, nullptr, nullptr, run_max_pool, accept_pool};
const Kernel kAvgPoolKernel = {Op::kAvgPool, nullptr, nullptr, run_avg_pool, accept_pool};

}  // namespace sinter::simd
#endif  // HWY_ONCE
