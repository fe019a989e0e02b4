// Reduce over neighbouring axes. int8/pool.cc has that of int8.
//
// Sums run in float32 over short pieces; the pieces are added with a correction term (Kahan), in a fixed
// order.
#include "platforms/simd/int8/int8.h"
#include "platforms/simd/reduce_plan.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/float/reduce.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/isa/math-inl.h"

#ifndef SINTER_SIMD_REDUCE_ONCE
#define SINTER_SIMD_REDUCE_ONCE
namespace sinter::simd {

enum class Fold { kSum, kSumSquare, kL1, kMax, kMin };

}  // namespace sinter::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

template <Fold kFold>
HWY_INLINE V term(V v) {
  if constexpr (kFold == Fold::kSumSquare) return hn::Mul(v, v);
  if constexpr (kFold == Fold::kL1) return hn::Abs(v);
  return v;
}
constexpr bool is_sum(Fold fold) { return fold != Fold::kMax && fold != Fold::kMin; }

// NaN wins over any number.
template <Fold kFold>
HWY_INLINE V fold(V sum, V v) {
  if constexpr (kFold == Fold::kMax) return hn::IfThenElse(hn::Or(hn::Gt(v, sum), hn::IsNaN(v)), v, sum);
  if constexpr (kFold == Fold::kMin) return hn::IfThenElse(hn::Or(hn::Lt(v, sum), hn::IsNaN(v)), v, sum);
  return hn::Add(sum, term<kFold>(v));
}
template <Fold kFold>
HWY_INLINE V start() {
  if constexpr (kFold == Fold::kMax) return set(-HUGE_VALF);
  if constexpr (kFold == Fold::kMin) return set(HUGE_VALF);
  return hn::Zero(F());
}
// Folds a value that was folded before.
template <Fold kFold>
HWY_INLINE V join(V a, V b) {
  if constexpr (is_sum(kFold)) return hn::Add(a, b);
  return fold<kFold>(a, b);
}

// Folds one row of n contiguous numbers.
template <Fold kFold>
float fold_row(const float* x, size_t n) {
  const F d;
  const size_t lanes = hn::Lanes(d);
  constexpr size_t kPiece = 2048;
  double total = 0;
  V s0 = start<kFold>(), s1 = s0, s2 = s0, s3 = s0;
  for (size_t first = 0; first < n; first += kPiece) {
    const size_t end = first + kPiece < n ? first + kPiece : n;
    if constexpr (is_sum(kFold)) s0 = s1 = s2 = s3 = start<kFold>();
    size_t i = first;
    for (; i + 4 * lanes <= end; i += 4 * lanes) {
      s0 = fold<kFold>(s0, hn::LoadU(d, x + i));
      s1 = fold<kFold>(s1, hn::LoadU(d, x + i + lanes));
      s2 = fold<kFold>(s2, hn::LoadU(d, x + i + 2 * lanes));
      s3 = fold<kFold>(s3, hn::LoadU(d, x + i + 3 * lanes));
    }
    for (; i < end; i += lanes) {
      const size_t count = end - i < lanes ? end - i : lanes;
      const auto valid = hn::FirstN(d, count);
      s0 = hn::IfThenElse(valid, fold<kFold>(s0, hn::LoadN(d, x + i, count)), s0);
    }
    if constexpr (is_sum(kFold)) total += static_cast<double>(sum4(s0, s1, s2, s3));
  }
  if constexpr (is_sum(kFold)) return static_cast<float>(total);
  HWY_ALIGN float last[hn::MaxLanes(F())];
  hn::Store(join<kFold>(join<kFold>(s0, s1), join<kFold>(s2, s3)), d, last);
  float result = last[0];
  for (size_t i = 1; i < lanes; ++i)
    if (last[i] != last[i] || (kFold == Fold::kMax ? last[i] > result : last[i] < result)) result = last[i];
  return result;
}

// Folds `count` neighbouring columns (at most 4 vectors) of `rows` rows.
template <Fold kFold>
HWY_INLINE void fold_columns(const float* x, size_t rows, size_t stride, size_t count, float* y) {
  const F d;
  const size_t lanes = hn::Lanes(d);
  constexpr size_t kPiece = 64;
  size_t c = 0;
  const auto strip = [&](auto load, auto store) SINTER_SIMD_LAMBDA {
    V total = start<kFold>(), lost = hn::Zero(d);
    for (size_t first = 0; first < rows; first += kPiece) {
      const size_t end = first + kPiece < rows ? first + kPiece : rows;
      V s = start<kFold>();
      for (size_t r = first; r < end; ++r) s = fold<kFold>(s, load(x + r * stride + c));
      if constexpr (is_sum(kFold)) {
        const V v = hn::Sub(s, lost), next = hn::Add(total, v);
        // An infinite total would make the correction NaN.
        const V loss = hn::Sub(hn::Sub(next, total), v);
        lost = hn::IfThenElseZero(hn::IsFinite(loss), loss);
        total = next;
      } else {
        total = join<kFold>(total, s);
      }
    }
    store(total);
  };
  for (; c + lanes <= count; c += lanes)
    strip([&](const float* p) SINTER_SIMD_LAMBDA { return hn::LoadU(d, p); },
          [&](V v) SINTER_SIMD_LAMBDA { hn::StoreU(v, d, y + c); });
  if (c < count)
    strip([&](const float* p) SINTER_SIMD_LAMBDA { return hn::LoadN(d, p, count - c); },
          [&](V v) SINTER_SIMD_LAMBDA { hn::StoreN(v, d, y + c, count - c); });
}

template <Fold kFold>
void reduce_block(const float* x, size_t rows, size_t stride, size_t count, float* y) {
  if (stride == 1 && count == 1) {
    *y = fold_row<kFold>(x, rows);
    return;
  }
  fold_columns<kFold>(x, rows, stride, count, y);
}

void reduce(Fold fold, const float* x, size_t rows, size_t stride, size_t count, float* y) {
  switch (fold) {
    case Fold::kSum:
      return reduce_block<Fold::kSum>(x, rows, stride, count, y);
    case Fold::kSumSquare:
      return reduce_block<Fold::kSumSquare>(x, rows, stride, count, y);
    case Fold::kL1:
      return reduce_block<Fold::kL1>(x, rows, stride, count, y);
    case Fold::kMax:
      return reduce_block<Fold::kMax>(x, rows, stride, count, y);
    case Fold::kMin:
      return reduce_block<Fold::kMin>(x, rows, stride, count, y);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {
namespace {

HWY_EXPORT(reduce);

Status accept_reduce(const OpCall& call) {
  const auto fn = static_cast<ReduceFn>(call.attrs<ReduceAttrs>().fn);
  const bool order = fn == ReduceFn::kMax || fn == ReduceFn::kMin;
  SINTER_RETURN_IF_ERROR(order && call.in(0).dtype == DType::kInt8 ? accept_dense(call)
                                                                   : accept_float_dense(call));
  SINTER_RETURN_UNLESS(fn != ReduceFn::kProd && fn != ReduceFn::kLogSumExp,
                       unsupported("the simd kernel has no such reduction"));
  ReducePlan p;
  SINTER_RETURN_UNLESS(reduce_plan(call.in(0), call.attrs<ReduceAttrs>().axes, &p),
                       unsupported("the reduced axes are not neighbours"));
  SINTER_RETURN_UNLESS(call.in(0).size() > 0, unsupported("the simd kernel takes no empty operands"));
  return ok_status();
}

Status run_reduce(const OpCall& call, RunContext& context) {
  ReducePlan p;
  if (!reduce_plan(call.in(0), call.attrs<ReduceAttrs>().axes, &p))
    return unsupported("the reduced axes are not neighbours");
  const auto fn = static_cast<ReduceFn>(call.attrs<ReduceAttrs>().fn);
  if (call.in(0).dtype == DType::kInt8) return run_int8_extreme(call, context, p, fn == ReduceFn::kMax);
  const Fold fold = fn == ReduceFn::kMax         ? Fold::kMax
                    : fn == ReduceFn::kMin       ? Fold::kMin
                    : fn == ReduceFn::kSumSquare ? Fold::kSumSquare
                    : fn == ReduceFn::kL1        ? Fold::kL1
                                                 : Fold::kSum;
  const auto* x = call.in(0).as<const float>();
  auto* y = call.out(0).as<float>();
  const int64_t block = 64, blocks = divide_up(p.inner, block);  // columns of one piece of work
  const int64_t work = std::min(block, p.inner) * p.length;
  parallel_for(context.threads, p.outer * blocks, std::max<int64_t>(16384 / work, 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t unit = begin; unit < end; ++unit) {
                   const int64_t row = unit / blocks, first = unit % blocks * block,
                                 count = std::min(block, p.inner - first);
                   float* to = y + row * p.inner + first;
                   HWY_DYNAMIC_DISPATCH(reduce)
                   (fold, x + row * p.length * p.inner + first, static_cast<size_t>(p.length),
                    static_cast<size_t>(p.inner), static_cast<size_t>(count), to);
                   if (fn == ReduceFn::kMean)
                     for (int64_t i = 0; i < count; ++i) to[i] /= static_cast<float>(p.length);
                 }
               });
  return ok_status();
}

}  // namespace

const Kernel kReduceKernel = {Op::kReduce, nullptr, nullptr, run_reduce, accept_reduce};

}  // namespace sinter::simd
#endif  // HWY_ONCE
