// Reduce, ArgReduce and QMean: folds of sets of elements, each by a team of threads.
#include "platforms/cuda/kernels/elements/element_types.h"
#include "platforms/cuda/kernels/elements/saturate_as.h"
#include "platforms/cuda/kernels/integer/requantize.h"
#include "platforms/cuda/kernels/reduce/reduce.h"
#include "platforms/cuda/kernels/reduce/reduce_functions.h"
#include "platforms/cuda/kernels/reduce/team_folds.h"

namespace sinter::cuda {
namespace {

// The loading of an element: begin() and, where its value is needed, value().
template <class V>
struct FloatLoad {
  DType t;
  SINTER_DEVICE Loaded<V> begin(const std::byte* p) const { return begin_load<V>(p, t); }
  SINTER_DEVICE V value(Loaded<V> v) const { return value_of<V>(v, t); }
};
struct IntegerLoad {
  DType t;
  int64_t flip;
  SINTER_DEVICE int64_t begin(const std::byte* p) const { return load_integer(p, t); }
  SINTER_DEVICE int64_t value(int64_t v) const { return v ^ flip; }
};
struct IntegerAsDouble {
  DType t;
  SINTER_DEVICE int64_t begin(const std::byte* p) const { return load_integer(p, t); }
  SINTER_DEVICE double value(int64_t v) const {
    return t == DType::kUint64 ? static_cast<double>(static_cast<uint64_t>(v)) : static_cast<double>(v);
  }
};

// Returns the offset of the first element of set k, or of its result, once for each set.
SINTER_CALLED int64_t kept_offset(const Box& box, const Steps& steps, uint32_t k) {
  return offset_of(box, steps, k);
}

// Folds this thread's elements of set k: every team-size-th one of the block's part of it.
template <class Fold, class Load>
SINTER_DEVICE typename Fold::State fold_elements(const ReduceArguments& a, int64_t k, Load load) {
  typename Fold::State s = Fold::start(a);
  const std::byte* x = a.x + kept_offset(a.kept, a.x_kept, static_cast<uint32_t>(k));
  const auto step = static_cast<uint32_t>(a.teams.size);
  const uint32_t first = block_y() * a.chunk;
  const uint32_t end = a.count - first < a.chunk ? a.count : first + a.chunk;
  uint32_t i = first + static_cast<uint32_t>(place_of(a.teams));
  if (a.one_axis != 0) {
    for (; i + 3 * step < end; i += 4 * step) {  // four loads are under way
      decltype(load.begin(x)) v[4];
      SINTER_UNROLL
      for (uint32_t j = 0; j < 4; ++j) v[j] = load.begin(x + (i + j * step) * a.x_step);
      SINTER_UNROLL
      for (uint32_t j = 0; j < 4; ++j) Fold::step(a, s, load.value(v[j]), i + j * step);
    }
  }
  for (; i < end; i += step) {
    const int64_t at = a.one_axis != 0 ? i * a.x_step : offset_of(a.set, a.x_set, i);
    Fold::step(a, s, load.value(load.begin(x + at)), i);
  }
  return s;
}

// Folds the parts of an earlier launch.
template <class Fold>
SINTER_DEVICE typename Fold::State fold_parts(const ReduceArguments& a, int64_t k) {
  typename Fold::State s = Fold::start(a);
  const auto* parts = reinterpret_cast<const typename Fold::State*>(a.partial);
  for (int p = place_of(a.teams); p < a.parts; p += a.teams.size)
    s = Fold::merge(a, s, parts[int64_t{p} * a.kept.size + k]);
  return s;
}

template <class Fold, class Load, class Finish>
SINTER_DEVICE void fold_sets(const ReduceArguments& a, Load load, Finish finish) {
  using State = typename Fold::State;
  const Shared<State> room = shared_memory<State>(0, kTeamBlock);
  const int64_t step = int64_t{blocks_x()} * a.teams.count;
  for (int64_t first = int64_t{block_x()} * a.teams.count; first < a.kept.size; first += step) {
    const int64_t k = first + team_of(a.teams);
    State s = Fold::start(a);
    if (k < a.kept.size) s = a.parts == 0 ? fold_elements<Fold>(a, k, load) : fold_parts<Fold>(a, k);
    s = fold_team(s, room, a.teams, [&](const State& t, const State& u) { return Fold::merge(a, t, u); });
    if (k >= a.kept.size || place_of(a.teams) != 0) continue;
    if (a.partial != nullptr && a.parts == 0)
      reinterpret_cast<State*>(a.partial)[block_y() * int64_t{a.kept.size} + k] = s;
    else
      finish(a.y + kept_offset(a.kept, a.y_kept, static_cast<uint32_t>(k)), s);
  }
}

template <class State>
SINTER_DEVICE void store_index(std::byte* y, const State& s) {
  *reinterpret_cast<int64_t*>(y) = s.index;
}

// ---- floats, folded as V

template <class V>
SINTER_DEVICE void reduce_float_sets(const ReduceArguments& a) {
  const FloatLoad<V> load = {a.dtype};
  const auto store = [&](std::byte* y, auto s) { store_float<V>(y, a.dtype, static_cast<V>(s)); };
  switch (a.fn) {
    case FoldFn::kMax:
    case FoldFn::kMin:
      return fold_sets<ExtremeFold<V>>(a, load, store);
    case FoldFn::kIndexOfMax:
    case FoldFn::kIndexOfMin:
      return fold_sets<IndexFold<V>>(a, load, [](std::byte* y, const auto& s) { store_index(y, s); });
    case FoldFn::kProd:
      return fold_sets<ProductFold<V>>(a, load, store);
    case FoldFn::kLogSumExp:
      return fold_sets<LogSumFold<V>>(a, load, [&](std::byte* y, const auto& s) { store(y, result_of(s)); });
    default:
      return fold_sets<SumFold<V>>(a, load, [&](std::byte* y, const auto& s) {
        const V sum = result_of(s);
        store(y, a.fn == FoldFn::kMean ? sum / static_cast<V>(a.count) : sum);
      });
  }
}

// ---- integers

SINTER_DEVICE int64_t mean_of(const ReduceArguments& a, uint64_t sum) {
  if (a.count == 0) return 0;
  return is_signed_integer(a.dtype) ? static_cast<int64_t>(sum) / a.count
                                    : static_cast<int64_t>(sum / a.count);
}
SINTER_DEVICE int64_t quantized_mean_of(const ReduceArguments& a, uint64_t sum) {
  const float value = static_cast<float>(static_cast<int32_t>(sum) - a.zeros) * a.multiplier;
  return round_clamped(value, a.low, a.high) + a.y_zero;
}

SINTER_DEVICE void reduce_integer_sets(const ReduceArguments& a) {
  const IntegerLoad load = {a.dtype, a.flip};
  const auto store = [&](std::byte* y, auto s) { store_integer(y, a.dtype, static_cast<int64_t>(s)); };
  switch (a.fn) {
    case FoldFn::kMax:
    case FoldFn::kMin:
      return fold_sets<ExtremeFold<int64_t>>(
          a, load, [&](std::byte* y, int64_t s) { store(y, a.count == 0 ? a.identity : s ^ a.flip); });
    case FoldFn::kIndexOfMax:
    case FoldFn::kIndexOfMin:
      return fold_sets<IndexFold<int64_t>>(a, load, [](std::byte* y, const auto& s) { store_index(y, s); });
    case FoldFn::kProd:
      return fold_sets<ProductFold<int64_t>>(a, load, store);
    case FoldFn::kLogSumExp:
      return fold_sets<LogSumFold<double>>(a, IntegerAsDouble{a.dtype}, [&](std::byte* y, const auto& s) {
        store(y, saturated_as(a.dtype, result_of(s)));
      });
    default:
      return fold_sets<SumFold<int64_t>>(a, load, [&](std::byte* y, uint64_t s) {
        store(y, a.fn == FoldFn::kMean            ? mean_of(a, s)
                 : a.fn == FoldFn::kQuantizedMean ? quantized_mean_of(a, s)
                                                  : static_cast<int64_t>(s));
      });
  }
}

}  // namespace

SINTER_KERNEL(reduce_floats, ReduceArguments) { reduce_float_sets<float>(a); }
SINTER_KERNEL(reduce_doubles, ReduceArguments) { reduce_float_sets<double>(a); }
SINTER_KERNEL(reduce_integers, ReduceArguments) { reduce_integer_sets(a); }

}  // namespace sinter::cuda
