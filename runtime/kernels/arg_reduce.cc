// ArgReduce: the index of the largest or smallest element along an axis. NaN counts as the extreme, as in
// NumPy.
#include "runtime/core/op_enums.h"
#include "runtime/kernels/reference.h"
#include "runtime/kernels/support.h"

namespace sinter {
namespace {

Status infer_arg_reduce(OpCall& call) {
  const auto& a = call.attrs<ArgReduceAttrs>();
  const TensorView& x = call.in(0);
  SINTER_RETURN_IF_ERROR(check_code(a.fn, 2));
  SINTER_RETURN_IF_ERROR(check_code(a.keepdims, 2));
  SINTER_RETURN_IF_ERROR(check_code(a.select_last, 2));
  SINTER_RETURN_IF_ERROR(check_axis(a.axis, x.rank));
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, is_number(x.dtype)));
  Dims dims;
  bool empty = false;
  for (int axis = 0; axis < x.rank; ++axis) {
    if (axis != a.axis) {
      SINTER_RETURN_IF_ERROR(dims.push(x.dims[axis]));
      empty = empty || x.dims[axis] == 0;
    } else if (a.keepdims != 0) {
      SINTER_RETURN_IF_ERROR(dims.push(1));
    }
  }
  SINTER_RETURN_UNLESS(empty || x.dims[a.axis] > 0,
                       invalid("axis %a is empty: no element has an index", a.axis));
  return give_output(call, 0, DType::kInt64, dims.span());
}

template <class T, class Better>
void arg_reduce(const OpCall& call, Better better) {
  const auto& a = call.attrs<ArgReduceAttrs>();
  const TensorView& x = call.in(0);
  // y has the axis as one of size 1 here, so that both have the same axes.
  TensorView y = call.out(0);
  if (a.keepdims == 0) {
    y.rank = x.rank;
    for (int i = x.rank - 1; i > a.axis; --i) y.dims[i] = y.dims[i - 1], y.strides[i] = y.strides[i - 1];
    y.dims[a.axis] = 1, y.strides[a.axis] = 0;
  }
  const int64_t n = x.dims[a.axis], step = x.strides[a.axis];
  for_each_element(make_nest_over(~(1u << a.axis), x, y, x), [&](std::byte* const(&p)[2]) {
    int64_t best = 0;
    T value = load<T>(p[1]);
    for (int64_t i = 1; i < n; ++i) {
      const T v = load<T>(p[1] + i * step);
      const bool nan = v != v, best_nan = value != value;
      const bool same = v == value || (nan && best_nan);
      if (same ? a.select_last != 0 : !best_nan && (nan || better(v, value))) best = i, value = v;
    }
    store<int64_t>(p[0], best);
  });
}

Status run_arg_reduce(const OpCall& call, RunContext&) {
  const bool largest = call.attrs<ArgReduceAttrs>().fn == static_cast<int64_t>(ArgReduceFn::kMax);
  return for_number(call.in(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (largest)
      arg_reduce<T>(call, [](T v, T than) { return v > than; });
    else
      arg_reduce<T>(call, [](T v, T than) { return v < than; });
    return ok_status();
  });
}

}  // namespace

const Kernel kArgReduceKernel = reference_kernel({Op::kArgReduce, infer_arg_reduce, nullptr, run_arg_reduce});

}  // namespace sinter
