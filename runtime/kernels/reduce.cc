// Reduce: over the listed axes (none listed: each element by itself). Floats accumulate in double and round
// once; integers wrap. An empty set gives the identity (the mean of none: NaN, or 0 for integers).
#include <cmath>

#include "runtime/core/float_formats.h"
#include "runtime/core/op_enums.h"
#include "runtime/kernels/reference.h"
#include "runtime/kernels/support.h"

namespace sinter {
namespace {

// The listed axes as a bit set; refuses repeats.
Status axes_mask(const IntList& axes, int rank, uint32_t* mask) {
  *mask = 0;
  for (const int64_t axis : axes) {
    SINTER_RETURN_IF_ERROR(check_axis(axis, rank));
    SINTER_CHECK((*mask >> axis & 1) == 0, invalid("axis %a is listed twice", axis));
    *mask |= 1u << axis;
  }
  return ok_status();
}

Status infer_reduce(OpCall& call) {
  const auto& a = call.attrs<ReduceAttrs>();
  const TensorView& x = call.in(0);
  SINTER_RETURN_IF_ERROR(check_code(a.fn, 8));
  SINTER_RETURN_IF_ERROR(check_code(a.keepdims, 2));
  const bool order =
      a.fn == static_cast<int64_t>(ReduceFn::kMax) || a.fn == static_cast<int64_t>(ReduceFn::kMin);
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, is_number(x.dtype) || (order && x.dtype == DType::kBool)));
  uint32_t mask = 0;
  SINTER_RETURN_IF_ERROR(axes_mask(a.axes, x.rank, &mask));
  Dims dims;
  for (int axis = 0; axis < x.rank; ++axis) {
    if ((mask >> axis & 1) == 0)
      SINTER_RETURN_IF_ERROR(dims.push(x.dims[axis]));
    else if (a.keepdims != 0)
      SINTER_RETURN_IF_ERROR(dims.push(1));
  }
  return give_output(call, 0, x.dtype, dims.span());
}

// How a function folds elements of T: Acc start(), void step(Acc&, T), T finish(Acc, count).
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
struct MaxFold {  // NaN if any is
  using Acc = T;
  using Limits = std::numeric_limits<T>;
  static Acc start() { return Limits::has_infinity ? static_cast<T>(-Limits::infinity()) : Limits::lowest(); }
  static void step(Acc& acc, T v) {
    if (v > acc || v != v) acc = v;
  }
  static T finish(Acc acc, int64_t) { return acc; }
};
template <class T>
struct MinFold {
  using Acc = T;
  using Limits = std::numeric_limits<T>;
  static Acc start() { return Limits::has_infinity ? Limits::infinity() : Limits::max(); }
  static void step(Acc& acc, T v) {
    if (v < acc || v != v) acc = v;
  }
  static T finish(Acc acc, int64_t) { return acc; }
};

// The walk: `kept` visits (output element, first input element of its set), `set` the input elements of one
// set.
struct Walk {
  Nest<2> kept;
  Nest<1> set;
  int64_t count = 1;  // elements of a set
};

Walk make_walk(const OpCall& call) {
  const auto& a = call.attrs<ReduceAttrs>();
  const TensorView &x = call.in(0), &y = call.out(0);
  uint32_t mask = 0;
  for (const int64_t axis : a.axes) mask |= 1u << axis;
  Walk walk;
  walk.kept.data[0] = y.data, walk.kept.data[1] = x.data;
  int out_axis = 0;
  for (int axis = 0; axis < x.rank; ++axis) {
    if ((mask >> axis & 1) == 0) {
      walk.kept.push(x.dims[axis], {y.strides[out_axis], x.strides[axis]});
      ++out_axis;
    } else {
      if (a.keepdims != 0) ++out_axis;
      walk.count *= x.dims[axis];
      walk.set.push(x.dims[axis], {x.strides[axis]});
    }
  }
  return walk;
}

template <class T, template <class> class Fold>
Status fold_all(const OpCall& call) {
  using F = Fold<T>;
  Walk walk = make_walk(call);
  const auto inner = [](const auto& nest, int k) {
    return nest.rank > 0 ? std::abs(nest.strides[k][nest.rank - 1]) : 0;
  };
  if (walk.set.rank > 0 && (walk.kept.rank == 0 || inner(walk.set, 0) <= inner(walk.kept, 1))) {
    // A set's elements are near one another: one set after the other.
    for_each_element(walk.kept, [&](std::byte* const(&p)[2]) {
      walk.set.data[0] = p[1];
      typename F::Acc acc = F::start();
      for_each_row(walk.set, [&](std::byte* const(&q)[1], const int64_t(&s)[1], int64_t n) {
        for (int64_t i = 0; i < n; ++i) F::step(acc, load<T>(q[0] + i * s[0]));
      });
      store<T>(p[0], F::finish(acc, walk.count));
    });
    return ok_status();
  }
  // Neighbouring sets are interleaved (channels-last averages): some of them at a time, each in the same
  // order.
  constexpr int64_t kBlock = 64;
  for_each_row(walk.kept, [&](std::byte* const(&p)[2], const int64_t(&s)[2], int64_t n) {
    for (int64_t first = 0; first < n; first += kBlock) {
      const int64_t block = std::min(kBlock, n - first);
      typename F::Acc acc[kBlock];
      for (int64_t j = 0; j < block; ++j) acc[j] = F::start();
      walk.set.data[0] = p[1] + first * s[1];
      for_each_element(walk.set, [&](std::byte* const(&q)[1]) {
        for (int64_t j = 0; j < block; ++j) F::step(acc[j], load<T>(q[0] + j * s[1]));
      });
      for (int64_t j = 0; j < block; ++j) store<T>(p[0] + (first + j) * s[0], F::finish(acc[j], walk.count));
    }
  });
  return ok_status();
}

// log(sum(exp(x))), shifted by the largest element; integers through double.
template <class T>
Status log_sum_exp(const OpCall& call) {
  Walk walk = make_walk(call);
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

const Kernel kReduceKernel = {Op::kReduce, infer_reduce, nullptr, run_reduce};

}  // namespace sinter
