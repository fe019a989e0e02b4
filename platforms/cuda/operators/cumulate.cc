// Cumulate.
#include "platforms/cuda/operators.h"
#include "runtime/core/op_enums.h"

namespace sinter::cuda {

Status lower_Cumulate(Lowering& l) {
  const auto& attrs = l.attrs<CumulateAttrs>();
  TensorView x = l.in(0), y = l.out(0);
  const auto axis = static_cast<size_t>(attrs.axis);
  CumulateArguments a;
  a.x = x.data, a.y = y.data, a.dtype = x.dtype;
  a.x_step = x.strides[axis], a.y_step = y.strides[axis];
  SINTER_RETURN_UNLESS(x.dims[axis] <= INT32_MAX / 2, unsupported("an axis has 2^30 elements or more"));
  a.length = static_cast<uint32_t>(x.dims[axis]);
  a.product = attrs.fn == static_cast<int64_t>(CumulateFn::kProd) ? 1 : 0;
  a.exclusive = attrs.exclusive != 0 ? 1 : 0;
  x.dims[axis] = y.dims[axis] = 1;
  SINTER_RETURN_IF_ERROR(box_of(x.shape(), &a.lines));
  if (a.length == 0 || a.lines.size == 0) return ok_status();
  a.x_lines = steps_of(x, a.lines), a.y_lines = steps_of(y, a.lines);
  Steps* const both[] = {&a.x_lines, &a.y_lines};
  merge_axes(&a.lines, both);
  if (attrs.reverse != 0) {
    if (a.x != nullptr) a.x += (a.length - 1) * a.x_step;
    if (a.y != nullptr) a.y += (a.length - 1) * a.y_step;
    a.x_step = -a.x_step, a.y_step = -a.y_step;
  }
  const auto magnitude = [](int64_t v) { return v < 0 ? -v : v; };
  const int last = a.lines.rank - 1;
  const bool across = last >= 0 && magnitude(a.x_lines.of[last]) < magnitude(a.x_step);
  a.teams = choose_teams(a.lines.size, a.length, 4, across);
  const Kernel kernel = x.dtype == DType::kFloat64 ? Kernel::k_cumulate_doubles
                        : is_integer(x.dtype)      ? Kernel::k_cumulate_integers
                                                   : Kernel::k_cumulate_floats;
  return l.launch_one_of(kernel,
                         {.blocks = {blocks_for(a.lines.size, a.teams.count)}, .shared_bytes = kTeamRoom}, a);
}

}  // namespace sinter::cuda
