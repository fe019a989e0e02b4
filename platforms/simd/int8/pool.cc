// Sums and extremes of int8 over windows and axes: QAvgPool, QMean, and MaxPool and Reduce of int8, with the
// bits of the reference kernels.
//
// A vector holds neighbouring channels. Sums are made in int16 over 256 elements at most, then in int32. The
// last vector of a row is read whole (kReadPadding), and its part is stored.
#include "platforms/simd/int16/elements.h"
#include "platforms/simd/int8/int8.h"
#include "platforms/simd/window.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/int8/pool.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/int8/int8-inl.h"

#ifndef SINTER_SIMD_Q_POOL_ONCE
#define SINTER_SIMD_Q_POOL_ONCE
namespace sinter::simd {

// The elements of one set, as three nested loops; steps are in elements.
struct Int8Set {
  const int8_t* x;
  int64_t n[3], step[3];
};
struct MeanSettings {
  int32_t zeros;     // the zero points' part of the sum
  float multiplier;  // over the divisor
  Int8Range range;
};

}  // namespace sinter::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// The sums of neighbouring columns.
struct Sums {
  V16 low, high;
  V32 s[4];

  HWY_INLINE Sums() {
    low = high = hn::Zero(D16());
    s[0] = s[1] = s[2] = s[3] = hn::Zero(D32());
  }
  HWY_INLINE void add(const int8_t* p) {
    low = hn::Add(low, load16(p));
    high = hn::Add(high, load16(p + hn::Lanes(D16())));
  }
  HWY_INLINE void flush() {
    const D32 d;
    s[0] = hn::Add(s[0], hn::PromoteLowerTo(d, low)), s[1] = hn::Add(s[1], hn::PromoteUpperTo(d, low));
    s[2] = hn::Add(s[2], hn::PromoteLowerTo(d, high)), s[3] = hn::Add(s[3], hn::PromoteUpperTo(d, high));
    low = high = hn::Zero(D16());
  }
};

constexpr int64_t kShortSum = 256;

HWY_INLINE void sum_set(const Int8Set& set, const int8_t* x, Sums* sums) {
  int64_t used = 0;
  for (int64_t i = 0; i < set.n[0]; ++i) {
    for (int64_t j = 0; j < set.n[1]; ++j) {
      const int8_t* p = x + i * set.step[0] + j * set.step[1];
      for (int64_t k = 0; k < set.n[2];) {
        const int64_t left = kShortSum - used, count = set.n[2] - k < left ? set.n[2] - k : left;
        for (int64_t m = 0; m < count; ++m, p += set.step[2]) sums->add(p);
        k += count, used += count;
        if (used == kShortSum) sums->flush(), used = 0;
      }
    }
  }
  sums->flush();
}

// Computes the means of `columns` neighbouring columns.
void mean_columns(const Int8Set& set, const MeanSettings& s, size_t columns, int8_t* y) {
  const size_t lanes = hn::Lanes(D8());
  const Result result(s.range);
  const V32 zeros = hn::Set(D32(), s.zeros);
  const VF m = hn::Set(DF(), s.multiplier);
  const auto scaled = [=](V32 sum)
                          SINTER_SIMD_LAMBDA { return hn::Mul(hn::ConvertTo(DF(), hn::Sub(sum, zeros)), m); };
  for (size_t c = 0; c < columns; c += lanes) {
    Sums sums;
    sum_set(set, set.x + c, &sums);
    const V8 v = result.bytes(scaled(sums.s[0]), scaled(sums.s[1]), scaled(sums.s[2]), scaled(sums.s[3]));
    if (c + lanes <= columns)
      hn::StoreU(v, D8(), y + c);
    else
      hn::StoreN(v, D8(), y + c, columns - c);
  }
}

// Returns the sum of n neighbouring elements, n <= 2^23: of x + 128, as unsigned bytes.
int32_t sum_row(const int8_t* x, size_t n) {
  const hn::ScalableTag<uint8_t> d;
  const hn::ScalableTag<uint64_t> d64;
  const auto flip = hn::Set(d, uint8_t{128});
  const size_t lanes = hn::Lanes(d);
  const auto* p = reinterpret_cast<const uint8_t*>(x);
  auto a = hn::Zero(d64), b = a;
  size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    a = hn::Add(a, hn::SumsOf8(hn::Xor(hn::LoadU(d, p + i), flip)));
    b = hn::Add(b, hn::SumsOf8(hn::Xor(hn::LoadU(d, p + i + lanes), flip)));
  }
  auto sum = static_cast<int64_t>(hn::ReduceSum(d64, hn::Add(a, b))) - 128 * static_cast<int64_t>(i);
  for (; i < n; ++i) sum += x[i];
  return static_cast<int32_t>(sum);
}

template <bool kMax>
HWY_INLINE V8 extreme(V8 a, V8 b) {
  return kMax ? hn::Max(a, b) : hn::Min(a, b);
}

// Folds the columns of a vector, from c on.
template <bool kMax>
HWY_INLINE V8 extreme_vector(const Int8Set& set, size_t c) {
  const D8 d;
  V8 v = hn::LoadU(d, set.x + c);
  for (int64_t i = 0; i < set.n[0]; ++i)
    for (int64_t j = 0; j < set.n[1]; ++j) {
      const int8_t* p = set.x + i * set.step[0] + j * set.step[1] + c;
      for (int64_t k = 0; k < set.n[2]; ++k, p += set.step[2]) v = extreme<kMax>(v, hn::LoadU(d, p));
    }
  return v;
}

template <bool kMax>
HWY_INLINE void extreme_columns(const Int8Set& set, size_t columns, int8_t* y) {
  const D8 d;
  const size_t lanes = hn::Lanes(d);
  for (size_t c = 0; c < columns; c += lanes) {
    const V8 v = extreme_vector<kMax>(set, c);
    if (c + lanes <= columns)
      hn::StoreU(v, d, y + c);
    else
      hn::StoreN(v, d, y + c, columns - c);
  }
}

void int8_extreme_columns(const Int8Set& set, bool max, size_t columns, int8_t* y) {
  return max ? extreme_columns<true>(set, columns, y) : extreme_columns<false>(set, columns, y);
}

template <bool kMax>
HWY_INLINE int8_t extreme_row(const int8_t* x, size_t n) {
  const D8 d;
  const size_t lanes = hn::Lanes(d);
  int8_t result = x[0];
  size_t i = 0;
  if (n >= lanes) {
    V8 v = hn::LoadU(d, x);
    for (; i + lanes <= n; i += lanes) v = extreme<kMax>(v, hn::LoadU(d, x + i));
    HWY_ALIGN int8_t last[hn::MaxLanes(d)];
    hn::Store(v, d, last);
    for (size_t k = 0; k < lanes; ++k)
      result = (kMax ? last[k] > result : last[k] < result) ? last[k] : result;
  }
  for (; i < n; ++i) result = (kMax ? x[i] > result : x[i] < result) ? x[i] : result;
  return result;
}

// Computes the greatest numbers of `pixels` windows, `next` elements apart. kLines and kTaps are those of
// each window, which then has one plane; or 0 for any.
template <int kLines, int kTaps>
HWY_INLINE void max_windows(const Int8Set& set, size_t columns, int64_t pixels, int64_t next, int8_t* y) {
  const D8 d;
  const size_t lanes = hn::Lanes(d);
  for (size_t c = 0; c < columns; c += lanes) {
    Int8Set of = set;
    of.x += c;
    int8_t* to = y + c;
    const size_t count = columns - c;
    for (int64_t i = 0; i < pixels; ++i, of.x += next, to += columns) {
      V8 v;
      if constexpr (kLines == 0) {
        v = extreme_vector<true>(of, 0);
      } else {
        v = hn::LoadU(d, of.x);
        for (int line = 0; line < kLines; ++line)
          for (int tap = 0; tap < kTaps; ++tap)
            if (line + tap > 0) v = hn::Max(v, hn::LoadU(d, of.x + line * of.step[1] + tap * of.step[2]));
      }
      if (count >= lanes)
        hn::StoreU(v, d, to);
      else
        hn::StoreN(v, d, to, count);
    }
  }
}

void int8_max_windows(const Int8Set& set, size_t columns, int64_t pixels, int64_t next, int8_t* y) {
  const auto is = [&](int64_t n) { return set.n[0] == 1 && set.n[1] == n && set.n[2] == n; };
  if (is(2))
    max_windows<2, 2>(set, columns, pixels, next, y);
  else if (is(3))
    max_windows<3, 3>(set, columns, pixels, next, y);
  else
    max_windows<0, 0>(set, columns, pixels, next, y);
}

int8_t int8_extreme_row(const int8_t* x, bool max, size_t n) {
  return max ? extreme_row<true>(x, n) : extreme_row<false>(x, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {

HWY_EXPORT(mean_columns);
HWY_EXPORT(sum_row);
HWY_EXPORT(int8_extreme_columns);
HWY_EXPORT(int8_extreme_row);
HWY_EXPORT(int8_max_windows);

namespace {

constexpr int64_t kPoolWork = 65536;  // elements of a piece of work

// Calls f(g, window, set, count, output) for output pixels whose windows have the same taps; the set is that
// of the first pixel.
template <class Attrs, class F>
void for_each_run(const OpCall& call, RunContext& context, F f) {
  const Geometry g = window_geometry<Attrs>(call);
  const auto* x = call.in(0).as<const int8_t>();
  auto* y = call.out(0).as<int8_t>();
  if (call.out(0).size() == 0) return;
  const int64_t step2 = g.in_channels, step1 = g.in[2] * step2, step0 = g.in[1] * step1;
  const int64_t work = std::max<int64_t>(g.in_channels * g.taps(), 1);
  for_each_run_of_windows(g, x, context.threads, std::max<int64_t>(kPoolWork / work, 1),
                          [&](const WindowOf<int8_t>& w, int64_t row, int64_t count) {
                            const Int8Set set{
                                w.x,
                                {w.end[0] - w.first[0], w.end[1] - w.first[1], w.end[2] - w.first[2]},
                                {g.dilation[0] * step0, g.dilation[1] * step1, g.dilation[2] * step2}};
                            f(g, w, set, count, y + row * g.in_channels);
                          });
}

// Calls columns(set, count, output) for pieces of the result where sets are adjacent, else row(x, length,
// output) for each set.
template <class Columns, class Row>
void for_each_set(const OpCall& call, RunContext& context, const ReducePlan& p, Columns columns, Row row) {
  const auto* x = call.in(0).as<const int8_t>();
  auto* y = call.out(0).as<int8_t>();
  if (p.inner == 1) {
    parallel_for(context.threads, p.outer, std::max<int64_t>(kPoolWork / p.length, 1),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i)
                     row(x + i * p.length, static_cast<size_t>(p.length), y + i);
                 });
    return;
  }
  const int64_t block = 256, blocks = divide_up(p.inner, block);
  parallel_for(context.threads, p.outer * blocks,
               std::max<int64_t>(kPoolWork / (std::min(block, p.inner) * p.length), 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t unit = begin; unit < end; ++unit) {
                   const int64_t at = unit / blocks, first = unit % blocks * block;
                   columns(Int8Set{x + at * p.length * p.inner + first, {1, 1, p.length}, {0, 0, p.inner}},
                           static_cast<size_t>(std::min(block, p.inner - first)), y + at * p.inner + first);
                 }
               });
}

Status accept_avg_pool(const OpCall& call) {
  SINTER_RETURN_UNLESS(call.in(0).rank <= 5, unsupported("the simd kernel pools over at most three axes"));
  return accept_dense(call);
}

Status run_q_avg_pool(const OpCall& call, RunContext& context) {
  if (call.in(0).dtype == DType::kInt16) return run_q16_avg_pool(call, context);
  const auto& a = call.attrs<QAvgPoolAttrs>();
  const auto run = HWY_DYNAMIC_POINTER(mean_columns);
  for_each_run<QAvgPoolAttrs>(
      call, context,
      [&](const Geometry& g, const WindowOf<int8_t>& w, Int8Set set, int64_t count, int8_t* y) {
        const int64_t n = pool_divisor(g, w, a.count_include_pad != 0);
        const MeanSettings s{static_cast<int32_t>(a.x_zero * w.taps()),
                             static_cast<float>(a.multiplier / static_cast<double>(n)), int8_range(a)};
        for (; count > 0; --count, set.x += g.stride[2] * g.in_channels, y += g.in_channels)
          run(set, s, static_cast<size_t>(g.in_channels), y);
      });
  return ok_status();
}

Status accept_mean(const OpCall& call) {
  ReducePlan p;
  SINTER_RETURN_UNLESS(reduce_plan(call.in(0), call.attrs<QMeanAttrs>().axes, &p),
                       unsupported("the reduced axes are not neighbours"));
  SINTER_RETURN_UNLESS(call.in(0).size() > 0, unsupported("the simd kernel takes no empty operands"));
  return accept_dense(call);
}

Status run_mean(const OpCall& call, RunContext& context) {
  const auto& a = call.attrs<QMeanAttrs>();
  ReducePlan p;
  if (!reduce_plan(call.in(0), a.axes, &p)) return unsupported("the reduced axes are not neighbours");
  if (call.in(0).dtype == DType::kInt16) return run_q16_mean(call, context, p);
  const Int8Range range = int8_range(a);
  const MeanSettings s{static_cast<int32_t>(a.x_zero * p.length),
                       static_cast<float>(a.multiplier / static_cast<double>(p.length)), range};
  const auto mean = HWY_DYNAMIC_POINTER(mean_columns);
  const auto sum = HWY_DYNAMIC_POINTER(sum_row);
  for_each_set(
      call, context, p, [&](const Int8Set& set, size_t count, int8_t* y) { mean(set, s, count, y); },
      [&](const int8_t* x, size_t n, int8_t* y) {
        const auto low = static_cast<float>(range.min - range.zero),
                   high = static_cast<float>(range.max - range.zero);
        const float v = static_cast<float>(sum(x, n) - s.zeros) * s.multiplier;
        constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23: a sum with it is rounded to an integer
        *y = static_cast<int8_t>(static_cast<int32_t>((std::clamp(v, low, high) + kMagic) - kMagic) +
                                 range.zero);
      });
  return ok_status();
}

}  // namespace

// No window is without an element.
Status run_int8_max_pool(const OpCall& call, RunContext& context) {
  const auto run = HWY_DYNAMIC_POINTER(int8_max_windows);
  for_each_run<MaxPoolAttrs>(
      call, context,
      [&](const Geometry& g, const WindowOf<int8_t>&, const Int8Set& set, int64_t count, int8_t* y) {
        run(set, static_cast<size_t>(g.in_channels), count, g.stride[2] * g.in_channels, y);
      });
  return ok_status();
}

Status run_int8_extreme(const OpCall& call, RunContext& context, const ReducePlan& plan, bool max) {
  const auto columns = HWY_DYNAMIC_POINTER(int8_extreme_columns);
  const auto row = HWY_DYNAMIC_POINTER(int8_extreme_row);
  for_each_set(
      call, context, plan, [=](const Int8Set& set, size_t count, int8_t* y) { columns(set, max, count, y); },
      [=](const int8_t* x, size_t n, int8_t* y) { *y = row(x, max, n); });
  return ok_status();
}

const Kernel kQAvgPoolKernel = {Op::kQAvgPool, nullptr, nullptr, run_q_avg_pool, accept_avg_pool};
const Kernel kQMeanKernel = {Op::kQMean, nullptr, nullptr, run_mean, accept_mean};

}  // namespace sinter::simd
#endif  // HWY_ONCE
