// Reduce: over the listed axes (none listed: each element by itself). Floats accumulate in double and round
// once; integers wrap. An empty set gives the identity (the mean of none: NaN, or 0 for integers).
#include <cmath>

#include "runtime/core/float_formats.h"
#include "runtime/core/op_enums.h"
#include "runtime/kernels/reduce_walk.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

Status infer_reduce(OpCall& call) {
  const auto& a = call.attrs<ReduceAttrs>();
  const TensorView& x = call.in(0);
  SINTER_RETURN_IF_ERROR(check_code(a.fn, 8));
  const bool order =
      a.fn == static_cast<int64_t>(ReduceFn::kMax) || a.fn == static_cast<int64_t>(ReduceFn::kMin);
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, is_number(x.dtype) || (order && x.dtype == DType::kBool)));
  Dims dims;
  SINTER_RETURN_IF_ERROR(reduced_dims(x, a.axes, a.keepdims, &dims));
  return give_output(call, 0, x.dtype, dims.span());
}

// A function folds elements of T by Acc start(), void step(Acc&, T), T finish(Acc, count).
template <class T>
using Sum = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;

template <class T>
struct SumFold {
  using Acc = Sum<T>;
  static Acc start() { return 0; }
  static void step(Acc& acc, T v) { acc += static_cast<Acc>(v); }
  static T finish(Acc acc, int64_t) { return static_cast<T>(acc); }
};
template <class T>
struct MeanFold : SumFold<T> {
  using typename SumFold<T>::Acc;
  static T finish(Acc acc, int64_t count) {
    if constexpr (std::is_floating_point_v<T>) {
      return static_cast<T>(acc / static_cast<double>(count));
    } else if constexpr (std::is_signed_v<T>) {
      return count == 0 ? T(0) : static_cast<T>(static_cast<int64_t>(acc) / count);
    } else {
      return count == 0 ? T(0) : static_cast<T>(acc / static_cast<uint64_t>(count));
    }
  }
};
template <class T>
struct SumSquareFold : SumFold<T> {
  using typename SumFold<T>::Acc;
  static void step(Acc& acc, T v) { acc += static_cast<Acc>(v) * static_cast<Acc>(v); }
};
template <class T>
struct L1Fold : SumFold<T> {
  using typename SumFold<T>::Acc;
  static void step(Acc& acc, T v) {
    const Acc wide = static_cast<Acc>(v);
    if constexpr (std::is_floating_point_v<T>)
      acc += std::fabs(wide);
    else
      acc += v < T(0) ? Acc(0) - wide : wide;
  }
};
template <class T>
struct ProdFold {
  using Acc = Sum<T>;
  static Acc start() { return 1; }
  static void step(Acc& acc, T v) { acc *= static_cast<Acc>(v); }
  static T finish(Acc acc, int64_t) { return static_cast<T>(acc); }
};
template <class T>
struct MaxFold {  // NaN if an element is
  using Acc = T;
  using Limits = std::numeric_limits<T>;
  static Acc start() { return Limits::has_infinity ? static_cast<T>(-Limits::infinity()) : Limits::lowest(); }
  static void step(Acc& acc, T v) {
    if (v > acc || v != v) acc = v;
  }
  static T finish(Acc acc, int64_t) { return acc; }
};
template <class T>
struct MinFold : MaxFold<T> {
  using typename MaxFold<T>::Acc;
  using Limits = std::numeric_limits<T>;
  static Acc start() { return Limits::has_infinity ? Limits::infinity() : Limits::max(); }
  static void step(Acc& acc, T v) {
    if (v < acc || v != v) acc = v;
  }
};

ReduceWalk walk_of(const OpCall& call) {
  const auto& a = call.attrs<ReduceAttrs>();
  return make_reduce_walk(call, a.axes, a.keepdims != 0);
}
template <class T, template <class> class Fold>
Status fold_all(const OpCall& call) {
  fold_sets<T, T>(walk_of(call), Fold<T>());
  return ok_status();
}

// Computes log(sum(exp(x))), shifted by the largest element; integers through double.
template <class T>
Status log_sum_exp(const OpCall& call) {
  ReduceWalk walk = walk_of(call);
  for_each_element(walk.kept, [&](std::byte* const(&p)[2]) {
    walk.set.data[0] = p[1];
    double largest = -kInfinity, sum = 0;
    for_each_element(walk.set, [&](std::byte* const(&q)[1]) {
      const double v = static_cast<double>(load<T>(q[0]));
      if (v > largest || v != v) largest = v;
    });
    double result = largest;
    if (std::isfinite(largest)) {
      for_each_element(walk.set, [&](std::byte* const(&q)[1]) {
        sum += std::exp(static_cast<double>(load<T>(q[0])) - largest);
      });
      result = largest + std::log(sum);
    }
    if constexpr (std::is_floating_point_v<T>)
      store<T>(p[0], static_cast<T>(result));
    else
      store<T>(p[0], saturate_to<T>(result));
  });
  return ok_status();
}

Status run_reduce(const OpCall& call, RunContext&) {
  const auto fn = static_cast<ReduceFn>(call.attrs<ReduceAttrs>().fn);
  if (call.in(0).dtype == DType::kBool)
    return fn == ReduceFn::kMax ? fold_all<bool, MaxFold>(call) : fold_all<bool, MinFold>(call);
  return for_number(call.in(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    switch (fn) {
      case ReduceFn::kSum:
        return fold_all<T, SumFold>(call);
      case ReduceFn::kMean:
        return fold_all<T, MeanFold>(call);
      case ReduceFn::kMax:
        return fold_all<T, MaxFold>(call);
      case ReduceFn::kMin:
        return fold_all<T, MinFold>(call);
      case ReduceFn::kProd:
        return fold_all<T, ProdFold>(call);
      case ReduceFn::kSumSquare:
        return fold_all<T, SumSquareFold>(call);
      case ReduceFn::kL1:
        return fold_all<T, L1Fold>(call);
      case ReduceFn::kLogSumExp:
        return log_sum_exp<T>(call);
    }
    return ok_status();
  });
}

}  // namespace

const Kernel kReduceKernel = reference_kernel({Op::kReduce, infer_reduce, nullptr, run_reduce});

}  // namespace sinter
