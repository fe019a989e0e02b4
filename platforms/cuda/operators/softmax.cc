// Softmax and QSoftmax.
#include "platforms/cuda/operators.h"

namespace sinter::cuda {
namespace {

Status lines_along(int64_t axis, const TensorView& x, const TensorView& y, SoftmaxArguments* a) {
  TensorView of_x = x, of_y = y;
  const auto i = static_cast<size_t>(axis);
  SINTER_RETURN_UNLESS(x.dims[i] <= INT32_MAX, unsupported("an axis has 2^31 elements or more"));
  of_x.dims[i] = of_y.dims[i] = 1;
  SINTER_RETURN_IF_ERROR(box_of(of_x.shape(), &a->lines));
  a->x = x.data, a->y = y.data;
  a->x_lines = steps_of(of_x, a->lines), a->y_lines = steps_of(of_y, a->lines);
  Steps* const both[] = {&a->x_lines, &a->y_lines};
  merge_axes(&a->lines, both);
  a->x_step = x.strides[i], a->y_step = y.strides[i];
  a->length = static_cast<uint32_t>(x.dims[i]);
  a->dtype = x.dtype;
  const auto magnitude = [](int64_t v) { return v < 0 ? -v : v; };
  const Box& box = a->lines;
  const bool across =
      box.rank > 0 && box.size > 1 && magnitude(a->x_lines.of[box.rank - 1]) < magnitude(a->x_step);
  // Threads keep 4 elements, or up to 8 where a line has more than 4 for each of a block.
  a->teams = choose_teams(box.size, a->length, 4, across);
  return ok_status();
}

}  // namespace

Status lower_Softmax(Lowering& l) {
  const auto& attrs = l.attrs<SoftmaxAttrs>();
  SoftmaxArguments a;
  SINTER_RETURN_IF_ERROR(lines_along(attrs.axis, l.in(0), l.out(0), &a));
  a.log = attrs.log != 0 ? 1 : 0;
  if (a.length == 0 || a.lines.size == 0) return ok_status();
  const LaunchShape shape = {.blocks = {blocks_for(a.lines.size, a.teams.count)}, .shared_bytes = kTeamRoom};
  return l.launch_one_of(a.dtype == DType::kFloat64 ? Kernel::k_softmax_doubles : Kernel::k_softmax_floats,
                         shape, a);
}

Status lower_QSoftmax(Lowering& l) {
  const auto& attrs = l.attrs<QSoftmaxAttrs>();
  const TensorView& table = l.in(1);
  QSoftmaxArguments a;
  SINTER_RETURN_IF_ERROR(lines_along(attrs.axis, l.in(0), l.out(0), &a.of));
  a.table = table.data, a.table_step = table.strides[0];
  a.multiplier = static_cast<uint32_t>(attrs.multiplier);
  a.shift = static_cast<int32_t>(attrs.shift), a.y_zero = static_cast<int32_t>(attrs.y_zero);
  a.low = static_cast<int32_t>(attrs.q_min), a.high = static_cast<int32_t>(attrs.q_max);
  if (a.of.length == 0 || a.of.lines.size == 0) return ok_status();
  return l.launch<Kernel::k_q_softmax>(
      {.blocks = {blocks_for(a.of.lines.size, a.of.teams.count)}, .shared_bytes = kTeamRoom}, a);
}

}  // namespace sinter::cuda
