// Copy.
#include "platforms/cuda/operators.h"

namespace sinter::cuda {

// to and from have the same dims.
Status add_move(Lowering& l, const TensorView& from, const TensorView& to) {
  MoveArguments a;
  SINTER_RETURN_IF_ERROR(box_of(to.shape(), &a.box));
  a.to = to.data, a.from = from.data;
  a.to_steps = steps_of(to, a.box), a.from_steps = steps_of(from, a.box);
  a.width = static_cast<int32_t>(byte_width(to.dtype));
  SINTER_RETURN_UNLESS(a.width > 0, unsupported("elements are smaller than a byte"));
  Steps* const both[] = {&a.to_steps, &a.from_steps};
  merge_axes(&a.box, both);
  if (a.box.size == 0) return ok_status();
  return l.launch<Kernel::k_move>({.blocks = {blocks_for(a.box.size, threads_of(Kernel::k_move))}}, a);
}

Status lower_Copy(Lowering& l) { return add_move(l, l.in(0), l.out(0)); }

}  // namespace sinter::cuda
