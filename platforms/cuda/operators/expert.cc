// ExpertFullyConnected: a product for each row, with the matrix of its expert.
#include "platforms/cuda/operators/low_bit.h"
#include "platforms/cuda/operators/products.h"
#include "platforms/cuda/operators/sequence.h"

namespace sinter::cuda {
namespace {

// Launches products with weights that are floats, of x's type or narrower.
Status launch_floats(Lowering& l, const Experts& experts) {
  const TensorView &x = l.call().in(0), &w = l.call().in(2);
  const int64_t rows = x.dims[0], depth = x.dims[1], columns = w.dims[1];
  ProductArguments a;
  SINTER_RETURN_IF_ERROR(element_of(x.dtype, &a.element));
  SINTER_RETURN_UNLESS(depth < INT32_MAX && columns < INT32_MAX,
                       unsupported("a matrix of 2^31 rows, columns or more"));
  set_bounds(&a, -kInfinity, kInfinity);
  if (w.dtype != x.dtype) a.narrow = w.dtype;
  a.a = l.in(0).data, a.b = l.in(2).data, a.y = l.out(0).data;
  if (l.has_input(5)) a.bias = l.in(5).data;
  a.experts = experts, a.expert_step = columns * depth;
  const int64_t products[] = {rows};
  SINTER_RETURN_IF_ERROR(box_of(products, &a.products));
  a.a_steps.of[0] = depth;
  a.y_product = columns, a.y_step = columns, a.bias_product = static_cast<int32_t>(columns);
  a.columns = static_cast<uint32_t>(columns), a.b_step = depth;
  a.parts[0].rows = 1, a.parts[0].depth = static_cast<uint32_t>(depth);
  a.parts[0].window = matrix_rows(depth, depth);
  a.a_vectors = depth % vector_of(x.dtype) == 0, a.b_vectors = depth % vector_of(w.dtype) == 0;
  return launch_product(l, a, 1);
}

}  // namespace

Status lower_ExpertFullyConnected(Lowering& l) {
  const OpCall& call = l.call();
  const TensorView &x = call.in(0), &w = call.in(2);
  SINTER_RETURN_IF_ERROR(l.check_dense());
  const int64_t rows = x.dims[0], columns = w.dims[1];
  SINTER_RETURN_UNLESS(rows < INT32_MAX, unsupported("an operand has an axis of 2^31 elements or more"));
  if (rows == 0 || columns == 0 || w.dims[0] == 0)
    return check_range(l, l.in(1), w.dims[0] - 1, FaultCode::kIndex);
  const Experts experts = {l.in(1).as<const int64_t>(), w.dims[0], l.fault()};
  if (!l.has_input(3)) return launch_floats(l, experts);
  LowBitArguments a;
  a.rows = static_cast<uint32_t>(rows), a.experts = experts;
  a.low = -kInfinity, a.high = kInfinity;
  return launch_low_bit(l, a);
}

}  // namespace sinter::cuda
