// ScatterElements, ScatterNd: the data, then the updates written over (or combined with) chosen elements, in
// row-major order of the indices, so that repeated indices have one meaning.
#include "runtime/core/op_enums.h"
#include "runtime/kernels/indices.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

// Returns the larger or smaller of two; NaN if either is NaN.
template <class T>
T larger(T a, T b) {
  return a != a || a > b ? a : b;
}
template <class T>
T smaller(T a, T b) {
  return a != a || a < b ? a : b;
}

// Calls f(combine) with combine(T old, T update) for the reduction. On bools Add and Max are "or", Mul and
// Min "and"; integers wrap.
template <class T, class F>
Status with_combine(ScatterReduction reduction, F&& f) {
  switch (reduction) {
    case ScatterReduction::kNone:
      return f([](T, T b) { return b; });
    case ScatterReduction::kAdd:
      return f([](T a, T b) -> T {
        if constexpr (std::is_same_v<T, bool>)
          return a || b;
        else
          return wrap_add(a, b);
      });
    case ScatterReduction::kMul:
      return f([](T a, T b) -> T {
        if constexpr (std::is_same_v<T, bool>)
          return a && b;
        else
          return wrap_mul(a, b);
      });
    case ScatterReduction::kMax:
      return f([](T a, T b) { return larger(a, b); });
    case ScatterReduction::kMin:
      return f([](T a, T b) { return smaller(a, b); });
  }
  return invalid("%a is not a reduction", static_cast<int64_t>(reduction));
}

// Dispatches on the type, or without a reduction on the width alone.
template <class F>
Status for_combine(DType t, ScatterReduction reduction, F&& f) {
  if (reduction == ScatterReduction::kNone) return for_width(byte_width(t), f);
  return for_number_or_bool(t, f);
}

Status check_scatter(const OpCall& call, int64_t reduction) {
  SINTER_RETURN_IF_ERROR(check_dtype(call, 1, is_index_type(call.in(1).dtype)));
  SINTER_RETURN_IF_ERROR(check_same_dtype(call, 2, 0));
  SINTER_RETURN_IF_ERROR(check_code(reduction, 5));
  const DType t = call.in(0).dtype;
  if (reduction != 0) SINTER_RETURN_IF_ERROR(check_dtype(call, 0, is_number(t) || t == DType::kBool));
  return ok_status();
}

Status infer_scatter_elements(OpCall& call) {
  const auto& a = call.attrs<ScatterElementsAttrs>();
  const TensorView &x = call.in(0), &indices = call.in(1);
  SINTER_RETURN_IF_ERROR(check_scatter(call, a.reduction));
  SINTER_RETURN_IF_ERROR(check_axis(a.axis, x.rank));
  SINTER_RETURN_UNLESS(indices.rank == x.rank,
                       invalid("the indices have rank %a, the data rank %b", indices.rank, x.rank));
  SINTER_RETURN_UNLESS(call.in(2).same_shape(indices),
                       invalid("the updates have another shape than the indices"));
  for (int i = 0; i < x.rank; ++i)
    SINTER_RETURN_UNLESS(
        i == a.axis || indices.dims[i] <= x.dims[i],
        invalid("the indices have %a rows, the axis %b elements", indices.dims[i], x.dims[i]));
  return infer_like_input(call);
}

Status run_scatter_elements(const OpCall& call, RunContext&) {
  const auto& a = call.attrs<ScatterElementsAttrs>();
  const auto axis = static_cast<int>(a.axis);
  const auto reduction = static_cast<ScatterReduction>(a.reduction);
  const TensorView &x = call.in(0), &indices = call.in(1), &updates = call.in(2), &y = call.out(0);
  SINTER_RETURN_IF_ERROR(check_whole_bytes(x.dtype));
  SINTER_RETURN_IF_ERROR(copy_elements(y, x));
  TensorView line = indices;  // the start of the line along `axis` that each index points into
  line.data = y.data;
  for (int i = 0; i < y.rank; ++i) line.strides[i] = i == axis ? 0 : y.strides[i];
  return for_combine(x.dtype, reduction, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return with_combine<T>(reduction, [&](auto combine) {
      Status status;
      for_each_element(make_nest(indices.shape(), line, indices, updates), [&](std::byte* const(&p)[3]) {
        int64_t index = 0;
        if (!status.ok()) return;
        status = read_index(p[1], indices.dtype, y.dims[axis], &index);
        if (!status.ok()) return;
        std::byte* to = p[0] + index * y.strides[axis];
        store<T>(to, combine(load<T>(to), load<T>(p[2])));
      });
      return status;
    });
  });
}

Status infer_scatter_nd(OpCall& call) {
  const TensorView &x = call.in(0), &indices = call.in(1), &updates = call.in(2);
  SINTER_RETURN_IF_ERROR(check_scatter(call, call.attrs<ScatterNdAttrs>().reduction));
  SINTER_RETURN_UNLESS(
      x.rank >= 1 && indices.rank >= 1,
      invalid("data of rank %a and indices of rank %b must have an axis each", x.rank, indices.rank));
  const int64_t depth = indices.dims[indices.rank - 1];
  SINTER_RETURN_UNLESS(depth >= 0 && depth <= x.rank,
                       invalid("index tuples have %a elements for rank %b", depth, x.rank));
  Dims expected;
  for (int i = 0; i < indices.rank - 1; ++i) SINTER_RETURN_IF_ERROR(expected.push(indices.dims[i]));
  for (auto i = static_cast<int>(depth); i < x.rank; ++i) SINTER_RETURN_IF_ERROR(expected.push(x.dims[i]));
  SINTER_RETURN_UNLESS(
      std::equal(updates.dims, updates.dims + updates.rank, expected.d, expected.d + expected.rank),
      invalid("the updates do not have the shape that indices and data give"));
  return infer_like_input(call);
}

Status run_scatter_nd(const OpCall& call, RunContext&) {
  const auto reduction = static_cast<ScatterReduction>(call.attrs<ScatterNdAttrs>().reduction);
  const TensorView &x = call.in(0), &indices = call.in(1), &updates = call.in(2), &y = call.out(0);
  SINTER_RETURN_IF_ERROR(check_whole_bytes(x.dtype));
  SINTER_RETURN_IF_ERROR(copy_elements(y, x));
  if (updates.size() == 0) return ok_status();
  const auto depth = static_cast<int>(indices.dims[indices.rank - 1]);
  const int64_t tuples = product(indices, 0, indices.rank - 1), block = product(x, depth, x.rank);
  const auto index_width = static_cast<int64_t>(byte_width(indices.dtype));
  return for_combine(x.dtype, reduction, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr int64_t kWidth = sizeof(T);
    return with_combine<T>(reduction, [&](auto combine) {
      const std::byte *pick = indices.data, *from = updates.data;
      for (int64_t t = 0; t < tuples; ++t) {
        int64_t at = 0, index = 0;
        for (int k = 0; k < depth; ++k, pick += index_width) {
          SINTER_RETURN_IF_ERROR(read_index(pick, indices.dtype, x.dims[k], &index));
          at = at * x.dims[k] + index;
        }
        std::byte* to = y.data + at * block * kWidth;
        for (int64_t i = 0; i < block; ++i, to += kWidth, from += kWidth)
          store<T>(to, combine(load<T>(to), load<T>(from)));
      }
      return ok_status();
    });
  });
}

}  // namespace

const Kernel kScatterElementsKernel =
    reference_kernel({Op::kScatterElements, infer_scatter_elements, nullptr, run_scatter_elements});
const Kernel kScatterNdKernel = reference_kernel({Op::kScatterNd, infer_scatter_nd, nullptr, run_scatter_nd});

}  // namespace sinter
