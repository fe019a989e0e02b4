// Gather, GatherElements, GatherNd.
#include "platforms/cuda/operators.h"
#include "platforms/cuda/operators/move.h"

namespace sinter::cuda {
namespace {

Status check_operands(Lowering& l) {
  for (size_t i : {0, 1}) SINTER_RETURN_IF_ERROR(check_movable(l.in(i)));
  return check_movable(l.out(0));
}

// Merges axes, and widens elements where all operands of the move are dense.
Status launch_gather(Lowering& l, GatherArguments* a) {
  const TensorView &x = l.in(0), &indices = l.in(1);
  if (a->box.size == 0) return ok_status();
  a->to = l.out(0).data, a->from = x.data, a->indices = indices.data;
  a->width = static_cast<int32_t>(byte_width(x.dtype));
  a->index_width = static_cast<int32_t>(byte_width(indices.dtype));
  a->fault = l.fault();
  Steps* const all[] = {&a->steps[0], &a->steps[1], &a->steps[2]};
  merge_axes(&a->box, all);
  // An axis that indices choose from consists of whole rows then.
  if (a->box.rank > 0 && a->steps[2].of[a->box.rank - 1] == 0 && x.dense() && l.out(0).dense())
    a->width = widen_elements(&a->box, std::span(all, 2), a->width);
  return l.launch<Kernel::k_gather>({.blocks = {blocks_for(a->box.size, threads_of(Kernel::k_gather))}}, *a);
}

}  // namespace

Status lower_Gather(Lowering& l) {
  const auto axis = static_cast<int>(l.attrs<GatherAttrs>().axis);
  SINTER_RETURN_IF_ERROR(check_operands(l));
  const TensorView &x = l.in(0), &indices = l.in(1), &y = l.out(0);
  GatherArguments a;
  SINTER_RETURN_IF_ERROR(box_of(y.shape(), &a.box));
  a.steps[0] = steps_of(y, a.box);
  for (int i = 0; i < y.rank; ++i) {
    if (i < axis)
      a.steps[1].of[i] = x.strides[i];
    else if (i < axis + indices.rank)
      a.steps[2].of[i] = indices.strides[i - axis];
    else
      a.steps[1].of[i] = x.strides[i - indices.rank + 1];
  }
  a.dims[0] = x.dims[axis], a.places[0] = x.strides[axis];
  return launch_gather(l, &a);
}

Status lower_GatherElements(Lowering& l) {
  const auto axis = static_cast<int>(l.attrs<GatherElementsAttrs>().axis);
  SINTER_RETURN_IF_ERROR(check_operands(l));
  const TensorView &x = l.in(0), &indices = l.in(1), &y = l.out(0);
  GatherArguments a;
  SINTER_RETURN_IF_ERROR(box_of(y.shape(), &a.box));
  a.steps[0] = steps_of(y, a.box), a.steps[2] = steps_of(indices, a.box);
  for (int i = 0; i < x.rank; ++i)
    if (i != axis) a.steps[1].of[i] = x.strides[i];
  a.dims[0] = x.dims[axis], a.places[0] = x.strides[axis];
  return launch_gather(l, &a);
}

Status lower_GatherNd(Lowering& l) {
  const auto batch = static_cast<int>(l.attrs<GatherNdAttrs>().batch_dims);
  SINTER_RETURN_IF_ERROR(check_operands(l));
  const TensorView &x = l.in(0), &indices = l.in(1), &y = l.out(0);
  const int tuple_axes = indices.rank - 1;
  GatherArguments a;
  SINTER_RETURN_IF_ERROR(box_of(y.shape(), &a.box));
  a.steps[0] = steps_of(y, a.box);
  a.depth = static_cast<int32_t>(indices.dims[tuple_axes]);
  for (int i = 0; i < y.rank; ++i) {
    if (i < batch) a.steps[1].of[i] = x.strides[i];
    if (i < tuple_axes)
      a.steps[2].of[i] = indices.strides[i];
    else
      a.steps[1].of[i] = x.strides[i - tuple_axes + batch + a.depth];
  }
  for (int k = 0; k < a.depth; ++k) a.dims[k] = x.dims[batch + k], a.places[k] = x.strides[batch + k];
  return launch_gather(l, &a);
}

}  // namespace sinter::cuda
