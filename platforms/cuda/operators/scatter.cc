// ScatterElements, ScatterNd.
#include "platforms/cuda/operators.h"
#include "platforms/cuda/operators/move.h"
#include "runtime/core/op_enums.h"

namespace sinter::cuda {
namespace {

// Launches either operation, which sets link.indices to places, apply.block and the updates' places.
Status launch_scatter(Lowering& l, int64_t reduction, ScatterLinkArguments* link,
                      ScatterApplyArguments* apply) {
  const TensorView &x = l.in(0), &indices = l.in(1), &updates = l.in(2), &y = l.out(0);
  for (const TensorView* v : {&x, &indices, &updates, &y}) SINTER_RETURN_IF_ERROR(check_movable(*v));
  const bool combines = reduction != static_cast<int64_t>(ScatterReduction::kNone);
  apply->kind = static_cast<ScatterReduction>(reduction);
  apply->type = x.dtype;
  const bool combinable = is_wide_float(x.dtype) || is_integer(x.dtype) || x.dtype == DType::kBool;
  SINTER_RETURN_UNLESS(!combines || combinable,
                       unsupported("elements of %A are not combined", static_cast<int64_t>(x.dtype)));
  if (link->box.size == 0) return add_move(l, x, y);
  SINTER_RETURN_IF_ERROR(box_of(y.shape(), &apply->box));
  const size_t locations = apply->box.size / apply->block.divisor;
  auto* first = reinterpret_cast<int32_t*>(l.workspace(locations * sizeof(int32_t)));
  ScatterLists lists{first, nullptr};
  if (combines) lists.next = reinterpret_cast<int32_t*>(l.workspace(link->box.size * sizeof(int32_t)));
  SINTER_RETURN_IF_ERROR(l.fill(reinterpret_cast<std::byte*>(first), locations * sizeof(int32_t), 0xff));

  link->indices = indices.data, link->lists = lists, link->fault = l.fault();
  link->index_width = static_cast<int32_t>(byte_width(indices.dtype));
  SINTER_RETURN_IF_ERROR(l.launch<Kernel::k_scatter_link>(
      {.blocks = {blocks_for(link->box.size, threads_of(Kernel::k_scatter_link))}}, *link));
  if (apply->box.size == 0) return ok_status();  // indices are checked all the same
  if (combines && is_float(x.dtype)) {           // integers give the same in any order
    const ScatterOrderArguments order{lists, static_cast<uint32_t>(locations)};
    SINTER_RETURN_IF_ERROR(l.launch<Kernel::k_scatter_order>(
        {.blocks = {blocks_for(order.locations, threads_of(Kernel::k_scatter_order))}}, order));
  }

  apply->to = y.data, apply->from = x.data, apply->updates = updates.data, apply->lists = lists;
  apply->steps[0] = steps_of(y, apply->box), apply->steps[1] = steps_of(x, apply->box);
  Steps* const both[] = {&apply->steps[0], &apply->steps[1]};
  merge_axes(&apply->box, both);
  apply->width = static_cast<int32_t>(byte_width(x.dtype));
  if (!combines && apply->block.divisor > 1 && x.dense() && y.dense() && updates.dense()) {
    Box block;  // if it consists of wider elements, the other boxes do as well
    block.rank = 1, block.size = apply->block.divisor, block.dims[0] = apply->block;
    Steps step;
    step.of[0] = apply->width;
    Steps* const one[] = {&step};
    apply->width = widen_elements(&block, one, apply->width);
    apply->box.size = apply->box.size / apply->block.divisor * block.size;
    apply->box.dims[0] = Divider(apply->box.size);
    apply->steps[0].of[0] = apply->steps[1].of[0] = apply->width;
    apply->block = block.dims[0];
  }
  return l.launch_one_of(combines ? Kernel::k_scatter_combine : Kernel::k_scatter_write,
                         {.blocks = {blocks_for(apply->box.size, threads_of(Kernel::k_scatter_write))}},
                         *apply);
}

}  // namespace

Status lower_ScatterElements(Lowering& l) {
  const auto& attrs = l.attrs<ScatterElementsAttrs>();
  const auto axis = static_cast<int>(attrs.axis);
  const TensorView &x = l.in(0), &indices = l.in(1), &updates = l.in(2);
  ScatterLinkArguments link;
  ScatterApplyArguments apply;
  SINTER_RETURN_IF_ERROR(box_of(indices.shape(), &link.box));
  apply.update_box = link.box;
  apply.update_steps = steps_of(updates, link.box);
  link.steps[0] = steps_of(indices, link.box);
  int64_t place = 1;
  for (int i = x.rank - 1; i >= 0; --i) {
    if (i == axis)
      link.dims[0] = x.dims[i], link.places[0] = place;
    else
      link.steps[1].of[i] = place;
    place *= x.dims[i];
  }
  Steps* const linked[] = {&link.steps[0], &link.steps[1]};
  merge_axes(&link.box, linked);
  Steps* const updated[] = {&apply.update_steps};
  merge_axes(&apply.update_box, updated);
  return launch_scatter(l, attrs.reduction, &link, &apply);
}

Status lower_ScatterNd(Lowering& l) {
  const TensorView &x = l.in(0), &indices = l.in(1), &updates = l.in(2);
  SINTER_RETURN_UNLESS(indices.dense() && updates.dense(), unsupported("indices or updates are not dense"));
  ScatterLinkArguments link;
  ScatterApplyArguments apply;
  const auto width = static_cast<int64_t>(byte_width(x.dtype));
  link.depth = static_cast<int32_t>(indices.dims[indices.rank - 1]);
  int64_t block = 1, tuples = updates.size() > 0 ? 1 : 0, place = 1;
  for (int i = 0; i < indices.rank - 1; ++i) tuples *= indices.dims[i];
  for (int i = link.depth; i < x.rank; ++i) block *= x.dims[i];
  SINTER_RETURN_UNLESS(block <= INT32_MAX, unsupported("an operand has 2^31 elements or more"));
  SINTER_RETURN_IF_ERROR(box_of(std::span(&tuples, 1), &link.box));
  for (int k = link.depth - 1; k >= 0; --k) {
    link.dims[k] = x.dims[k], link.places[k] = place;
    place *= x.dims[k];
  }
  link.steps[0].of[0] = link.depth * static_cast<int64_t>(byte_width(indices.dtype));
  apply.block = Divider(block > 0 ? block : 1);
  apply.update_box = link.box;
  apply.update_steps.of[0] = block * width;
  return launch_scatter(l, l.attrs<ScatterNdAttrs>().reduction, &link, &apply);
}

}  // namespace sinter::cuda
