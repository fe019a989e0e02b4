// QAdd, QMul, QPRelu, QAvgPool and QMean of int16, QRequantize and QTable: float32 between, but for QTable.
// Rests of less than a vector are loaded and stored in part.
#include "platforms/simd/int16/elements.h"

#include "platforms/simd/broadcast.h"
#include "runtime/core/integer_limits.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/int16/elements.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/int8/int8-inl.h"

#ifndef SINTER_SIMD_Q16_ONCE
#define SINTER_SIMD_Q16_ONCE
namespace sinter::simd {

// Bounds less the zero point, and that.
struct Bounds16 {
  float low, high;
  int32_t zero = 0;
};
struct Row16 {
  const int16_t *a, *b;
  int16_t* y;
  int64_t a_step, b_step;  // 1, or 0 for one number
};
// The elements of one set: three nested loops, steps in elements.
struct Set16 {
  const int16_t* x;
  int64_t n[3], step[3];
};

}  // namespace sinter::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

using H16 = hn::Rebind<int16_t, D32>;  // as many int16 as there are lanes of int32

template <class T>
HWY_INLINE V32 load(const T* p) {
  return hn::PromoteTo(D32(), hn::LoadU(hn::Rebind<T, D32>(), p));
}
template <class T>
HWY_INLINE V32 load(const T* p, size_t n) {
  return hn::PromoteTo(D32(), hn::LoadN(hn::Rebind<T, D32>(), p, n));
}
HWY_INLINE VF floats(V32 v) { return hn::ConvertTo(DF(), v); }

// Clamped, rounded, narrowed; v is a number.
template <class T>
struct End {
  VF low, high;
  V32 zero;
  HWY_INLINE explicit End(const Bounds16& b)
      : low(hn::Set(DF(), b.low)), high(hn::Set(DF(), b.high)), zero(hn::Set(D32(), b.zero)) {}
  HWY_INLINE auto operator()(VF v) const {
    const V32 q = nearest(hn::Min(hn::Max(v, low), high));
    return hn::DemoteTo(hn::Rebind<T, D32>(), hn::Add(q, zero));
  }
};

// whole(i) for vectors of D32's lanes, then rest(i, count).
template <class Whole, class Rest>
HWY_INLINE void each(size_t n, Whole whole, Rest rest) {
  const size_t lanes = hn::Lanes(D32());
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) whole(i);
  if (i < n) rest(i, n - i);
}

template <class Fn>
HWY_INLINE void zip(const Row16& r, size_t n, const Bounds16& bounds, Fn fn) {
  const End<int16_t> end(bounds);
  const V32 one_a = hn::Set(D32(), *r.a), one_b = hn::Set(D32(), *r.b);
  each(
      n,
      [&](size_t i) SINTER_SIMD_LAMBDA {
        const V32 a = r.a_step != 0 ? load(r.a + i) : one_a, b = r.b_step != 0 ? load(r.b + i) : one_b;
        hn::StoreU(end(fn(a, b)), H16(), r.y + i);
      },
      [&](size_t i, size_t count) SINTER_SIMD_LAMBDA {
        const V32 a = r.a_step != 0 ? load(r.a + i, count) : one_a,
                  b = r.b_step != 0 ? load(r.b + i, count) : one_b;
        hn::StoreN(end(fn(a, b)), H16(), r.y + i, count);
      });
}

void q16_add(const Row16& r, size_t n, float a_multiplier, float b_multiplier, const Bounds16& bounds) {
  const VF am = hn::Set(DF(), a_multiplier), bm = hn::Set(DF(), b_multiplier);
  zip(r, n, bounds, [=](V32 a, V32 b) SINTER_SIMD_LAMBDA {
    return hn::Add(hn::Mul(floats(a), am), hn::Mul(floats(b), bm));
  });
}

void q16_mul(const Row16& r, size_t n, float multiplier, const Bounds16& bounds) {
  const VF m = hn::Set(DF(), multiplier);
  zip(r, n, bounds, [=](V32 a, V32 b) SINTER_SIMD_LAMBDA { return hn::Mul(floats(hn::Mul(a, b)), m); });
}

// `step` is 0 for one slope.
void q16_prelu(const int16_t* x, const float* slopes, int16_t* y, int64_t step, size_t n, float multiplier,
               float max_slope, const Bounds16& bounds) {
  const DF df;
  const End<int16_t> end(bounds);
  const VF m = hn::Set(df, multiplier), most = hn::Set(df, max_slope), one = hn::Set(df, *slopes);
  const auto value = [=](V32 v, VF slope) SINTER_SIMD_LAMBDA {
    const VF f = floats(v), below = hn::IfThenElseZero(hn::Le(hn::Abs(slope), most), slope);
    return hn::Mul(f, hn::IfThenElse(hn::Lt(f, hn::Zero(DF())), below, m));
  };
  each(
      n,
      [&](size_t i) SINTER_SIMD_LAMBDA {
        hn::StoreU(end(value(load(x + i), step != 0 ? hn::LoadU(df, slopes + i) : one)), H16(), y + i);
      },
      [&](size_t i, size_t count) SINTER_SIMD_LAMBDA {
        const VF slope = step != 0 ? hn::LoadN(df, slopes + i, count) : one;
        hn::StoreN(end(value(load(x + i, count), slope)), H16(), y + i, count);
      });
}

template <class X, class Y>
HWY_INLINE void requantize_as(const void* from, void* to, size_t n, int32_t x_zero, float multiplier,
                              const Bounds16& bounds) {
  const auto* x = static_cast<const X*>(from);
  auto* y = static_cast<Y*>(to);
  const End<Y> end(bounds);
  const hn::Rebind<Y, D32> d;
  const V32 zero = hn::Set(D32(), x_zero);
  const VF m = hn::Set(DF(), multiplier);
  const auto value = [=](V32 v) SINTER_SIMD_LAMBDA { return hn::Mul(floats(hn::Sub(v, zero)), m); };
  each(
      n, [&](size_t i) SINTER_SIMD_LAMBDA { hn::StoreU(end(value(load(x + i))), d, y + i); },
      [&](size_t i, size_t count)
          SINTER_SIMD_LAMBDA { hn::StoreN(end(value(load(x + i, count))), d, y + i, count); });
}
void q16_requantize(const void* x, void* y, size_t n, bool wide_x, bool wide_y, int32_t x_zero,
                    float multiplier, const Bounds16& bounds) {
  if (wide_x)
    return wide_y ? requantize_as<int16_t, int16_t>(x, y, n, x_zero, multiplier, bounds)
                  : requantize_as<int16_t, int8_t>(x, y, n, x_zero, multiplier, bounds);
  return wide_y ? requantize_as<int8_t, int16_t>(x, y, n, x_zero, multiplier, bounds)
                : requantize_as<int8_t, int8_t>(x, y, n, x_zero, multiplier, bounds);
}

// Entries `at` and the ones behind them.
HWY_INLINE void neighbours(const int32_t* table, V32 at, V32& a, V32& b) {
#if HWY_ARCH_ARM_A64
  // Two entries are one load.
  const uint64x2_t pairs = vreinterpretq_u64_s32(at.raw);
  const auto entries = [=](uint64_t two) SINTER_SIMD_LAMBDA {
    return vcombine_s32(vld1_s32(table + static_cast<uint32_t>(two)), vld1_s32(table + (two >> 32)));
  };
  const int32x4_t low = entries(vgetq_lane_u64(pairs, 0)), high = entries(vgetq_lane_u64(pairs, 1));
  a = V32(vuzp1q_s32(low, high)), b = V32(vuzp2q_s32(low, high));
#else
  const D32 d;
  a = hn::GatherIndex(d, table, at), b = hn::GatherIndex(d, table, hn::Add(at, hn::Set(d, 1)));
#endif
}

// A table of 2^k + 1 entries.
void q16_table(const int16_t* x, const int32_t* table, int k, int16_t* y, size_t n, int32_t low,
               int32_t high) {
  const D32 d;
  const int rest = 16 - k;
  const V32 most = hn::Set(d, max_table_entry(k)), least = hn::Set(d, -max_table_entry(k)),
            width = hn::Set(d, 1 << rest), mask = hn::Set(d, (1 << rest) - 1), move = hn::Set(d, 32768),
            one = hn::Set(d, 1), below_half = hn::Set(d, (1 << 14) - 1), min = hn::Set(d, low),
            max = hn::Set(d, high);
  const auto value = [=](V32 v) SINTER_SIMD_LAMBDA {
    const V32 u = hn::Add(v, move), at = hn::ShiftRightSame(u, rest), f = hn::And(u, mask);
    V32 a, b;
    neighbours(table, at, a, b);
    a = hn::Min(hn::Max(a, least), most), b = hn::Min(hn::Max(b, least), most);
    const V32 sum = hn::Add(hn::Mul(a, hn::Sub(width, f)), hn::Mul(b, f));
    const V32 tie = hn::And(hn::ShiftRight<15>(sum), one);
    const V32 q = hn::ShiftRight<15>(hn::Add(hn::Add(sum, below_half), tie));
    return hn::DemoteTo(H16(), hn::Min(hn::Max(q, min), max));
  };
  each(
      n, [&](size_t i) SINTER_SIMD_LAMBDA { hn::StoreU(value(load(x + i)), H16(), y + i); },
      [&](size_t i, size_t count)
          SINTER_SIMD_LAMBDA { hn::StoreN(value(load(x + i, count)), H16(), y + i, count); });
}

// Means of `columns` neighbouring columns.
void q16_means(const Set16& set, size_t columns, float multiplier, const Bounds16& bounds, int16_t* y) {
  const End<int16_t> end(bounds);
  const VF m = hn::Set(DF(), multiplier);
  const auto sum = [&](size_t c, auto read) SINTER_SIMD_LAMBDA {
    V32 s = hn::Zero(D32());
    for (int64_t i = 0; i < set.n[0]; ++i)
      for (int64_t j = 0; j < set.n[1]; ++j) {
        const int16_t* p = set.x + i * set.step[0] + j * set.step[1] + c;
        for (int64_t k = 0; k < set.n[2]; ++k, p += set.step[2]) s = hn::Add(s, read(p));
      }
    return hn::Mul(floats(s), m);
  };
  each(
      columns,
      [&](size_t c) SINTER_SIMD_LAMBDA {
        hn::StoreU(end(sum(c, [](const int16_t* p) SINTER_SIMD_LAMBDA { return load(p); })), H16(), y + c);
      },
      [&](size_t c, size_t count) SINTER_SIMD_LAMBDA {
        hn::StoreN(end(sum(c, [=](const int16_t* p) SINTER_SIMD_LAMBDA { return load(p, count); })), H16(),
                   y + c, count);
      });
}

// The sum of n neighbouring elements, n <= 2^16.
int32_t q16_sum(const int16_t* x, size_t n) {
  V32 s = hn::Zero(D32());
  each(
      n, [&](size_t i) SINTER_SIMD_LAMBDA { s = hn::Add(s, load(x + i)); },
      [&](size_t i, size_t count) SINTER_SIMD_LAMBDA { s = hn::Add(s, load(x + i, count)); });
  return hn::ReduceSum(D32(), s);
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {

HWY_EXPORT(q16_add);
HWY_EXPORT(q16_mul);
HWY_EXPORT(q16_prelu);
HWY_EXPORT(q16_requantize);
HWY_EXPORT(q16_table);
HWY_EXPORT(q16_means);
HWY_EXPORT(q16_sum);

namespace {

constexpr int64_t kInt16Piece = 16384, kWork = 65536;

template <class A>
Bounds16 bounds16(const A& a) {
  return {static_cast<float>(a.q_min), static_cast<float>(a.q_max)};
}

// row(Row16, n)
template <class Row>
Status run_pair(const OpCall& call, RunContext& context, Row row) {
  for_each_pair_row<int16_t, int16_t, int16_t>(
      call, context.threads,
      [=](const int16_t* a, const int16_t* b, int16_t* y, int64_t a_step, int64_t b_step, size_t n) {
        row(Row16{a, b, y, a_step, b_step}, n);
      });
  return ok_status();
}

}  // namespace

Status run_q16_add(const OpCall& call, RunContext& context) {
  const auto& a = call.attrs<QAddAttrs>();
  const float unit = 1.0f / static_cast<float>(int64_t{1} << a.shift);
  const float am = static_cast<float>(a.a_multiplier) * unit, bm = static_cast<float>(a.b_multiplier) * unit;
  const auto run = HWY_DYNAMIC_POINTER(q16_add);
  const Bounds16 bounds = bounds16(a);
  return run_pair(call, context, [=](const Row16& r, size_t n) { run(r, n, am, bm, bounds); });
}

Status run_q16_mul(const OpCall& call, RunContext& context) {
  const auto& a = call.attrs<QMulAttrs>();
  const auto run = HWY_DYNAMIC_POINTER(q16_mul);
  const auto m = static_cast<float>(a.multiplier);
  const Bounds16 bounds = bounds16(a);
  return run_pair(call, context, [=](const Row16& r, size_t n) { run(r, n, m, bounds); });
}

Status run_q16_prelu(const OpCall& call, RunContext& context) {
  const auto& a = call.attrs<QPReluAttrs>();
  const auto run = HWY_DYNAMIC_POINTER(q16_prelu);
  const auto m = static_cast<float>(a.multiplier), max_slope = static_cast<float>(kMaxIntegerMultiplier);
  const Bounds16 bounds = bounds16(a);
  for_each_pair_row<int16_t, float, int16_t>(
      call, context.threads,
      [=](const int16_t* x, const float* slopes, int16_t* y, int64_t x_step, int64_t step, size_t n) {
        // One number and many slopes: as many rows of one.
        if (x_step != 0 || n == 1) return run(x, slopes, y, step, n, m, max_slope, bounds);
        for (size_t i = 0; i < n; ++i)
          run(x, slopes + (step != 0 ? i : 0), y + i, 0, 1, m, max_slope, bounds);
      });
  return ok_status();
}

Status run_q16_avg_pool(const OpCall& call, RunContext& context) {
  const auto& a = call.attrs<QAvgPoolAttrs>();
  if (call.out(0).size() == 0) return ok_status();
  const Geometry g = window_geometry<QAvgPoolAttrs>(call);
  const auto* x = call.in(0).as<const int16_t>();
  auto* y = call.out(0).as<int16_t>();
  const auto run = HWY_DYNAMIC_POINTER(q16_means);
  const Bounds16 bounds = bounds16(a);
  const int64_t step2 = g.in_channels, step1 = g.in[2] * step2, step0 = g.in[1] * step1;
  const int64_t work = std::max<int64_t>(g.in_channels * g.taps(), 1);
  parallel_for(context.threads, g.batch * g.out_pixels(), std::max<int64_t>(kWork / work, 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t row = begin; row < end; ++row) {
                   const WindowOf<int16_t> w = window_at(g, x, row);
                   const int64_t n = pool_divisor(g, w, a.count_include_pad != 0);
                   run({w.x,
                        {w.end[0] - w.first[0], w.end[1] - w.first[1], w.end[2] - w.first[2]},
                        {g.dilation[0] * step0, g.dilation[1] * step1, g.dilation[2] * step2}},
                       static_cast<size_t>(g.in_channels),
                       static_cast<float>(a.multiplier / static_cast<double>(n)), bounds,
                       y + row * g.in_channels);
                 }
               });
  return ok_status();
}

Status run_q16_mean(const OpCall& call, RunContext& context, const ReducePlan& p) {
  const auto& a = call.attrs<QMeanAttrs>();
  const auto* x = call.in(0).as<const int16_t>();
  auto* y = call.out(0).as<int16_t>();
  const auto m = static_cast<float>(a.multiplier / static_cast<double>(p.length));
  const Bounds16 bounds = bounds16(a);
  const auto means = HWY_DYNAMIC_POINTER(q16_means);
  const auto sum = HWY_DYNAMIC_POINTER(q16_sum);
  if (p.inner == 1) {
    parallel_for(
        context.threads, p.outer, std::max<int64_t>(kWork / p.length, 1), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const float v = static_cast<float>(sum(x + i * p.length, static_cast<size_t>(p.length))) * m;
            constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23: rounds what is added to it
            y[i] = static_cast<int16_t>((std::clamp(v, bounds.low, bounds.high) + kMagic) - kMagic);
          }
        });
    return ok_status();
  }
  const int64_t block = 256, blocks = divide_up(p.inner, block);
  parallel_for(
      context.threads, p.outer * blocks, std::max<int64_t>(kWork / (std::min(block, p.inner) * p.length), 1),
      [&](int64_t begin, int64_t end) {
        for (int64_t unit = begin; unit < end; ++unit) {
          const int64_t at = unit / blocks, first = unit % blocks * block;
          means({x + at * p.length * p.inner + first, {1, 1, p.length}, {0, 0, p.inner}},
                static_cast<size_t>(std::min(block, p.inner - first)), m, bounds, y + at * p.inner + first);
        }
      });
  return ok_status();
}

namespace {

Status run_requantize(const OpCall& call, RunContext& context) {
  const auto& a = call.attrs<QRequantizeAttrs>();
  const TensorView &x = call.in(0), &y = call.out(0);
  const auto run = HWY_DYNAMIC_POINTER(q16_requantize);
  const auto x_size = static_cast<int64_t>(byte_width(x.dtype)),
             y_size = static_cast<int64_t>(byte_width(y.dtype));
  const Bounds16 bounds{static_cast<float>(a.q_min - a.y_zero), static_cast<float>(a.q_max - a.y_zero),
                        static_cast<int32_t>(a.y_zero)};
  parallel_for(context.threads, y.size(), kInt16Piece, [&](int64_t begin, int64_t end) {
    run(x.data + begin * x_size, y.data + begin * y_size, static_cast<size_t>(end - begin), x_size == 2,
        y_size == 2, static_cast<int32_t>(a.x_zero), static_cast<float>(a.multiplier), bounds);
  });
  return ok_status();
}

Status run_table(const OpCall& call, RunContext& context) {
  const auto& a = call.attrs<QTableAttrs>();
  const auto* x = call.in(0).as<const int16_t>();
  const auto* table = call.in(1).as<const int32_t>();
  auto* y = call.out(0).as<int16_t>();
  int k = 8;
  while (int64_t{1} << k < call.in(1).dims[0] - 1) ++k;
  const auto run = HWY_DYNAMIC_POINTER(q16_table);
  parallel_for(context.threads, call.out(0).size(), kInt16Piece, [&](int64_t begin, int64_t end) {
    run(x + begin, table, k, y + begin, static_cast<size_t>(end - begin), static_cast<int32_t>(a.q_min),
        static_cast<int32_t>(a.q_max));
  });
  return ok_status();
}

}  // namespace

const Kernel kQRequantizeKernel = {Op::kQRequantize, nullptr, nullptr, run_requantize, accept_dense};
const Kernel kQTableKernel = {Op::kQTable, nullptr, nullptr, run_table, accept_dense};

}  // namespace sinter::simd
#endif  // HWY_ONCE
