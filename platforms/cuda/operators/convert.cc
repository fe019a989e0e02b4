#include "platforms/cuda/operators/convert.h"

namespace sinter::cuda {
namespace {

// Returns, for types of less than a byte, the elements from one to the next of a dense value.
Steps steps_in(const TensorView& view, const Box& box) {
  if (!is_sub_byte(view.dtype)) return steps_of(view, box);
  TensorView positions = view;
  int64_t step = 1;
  for (int i = view.rank - 1; i >= 0; --i) positions.strides[i] = step, step *= view.dims[i];
  return steps_of(positions, box);
}

ConvertOperand operand(const TensorView& view, const Box& box) {
  return {view.data, steps_in(view, box), view.dtype};
}

Status launch(Lowering& l, const ConvertArguments& a) {
  if (a.box.size == 0) return ok_status();
  return l.launch<Kernel::k_convert>({.blocks = {blocks_for(a.box.size, threads_of(Kernel::k_convert))}}, a);
}

}  // namespace

Status add_cast(Lowering& l) {
  const TensorView &x = l.in(0), &y = l.out(0);
  ConvertArguments a;
  SINTER_RETURN_IF_ERROR(box_of(y.shape(), &a.box));
  a.saturates = l.attrs<CastAttrs>().saturate != 0;
  a.x = operand(x, a.box), a.y = operand(y, a.box);
  Steps* const both[] = {&a.x.steps, &a.y.steps};
  merge_axes(&a.box, both);
  return launch(l, a);
}

QuantizeCall quantize_call(const OpCall& call, int64_t axis, int64_t block_size) {
  const bool blocked = block_size > 0 && call.in(1).rank > 0;
  return {axis, blocked ? block_size : 1, blocked, !blocked && call.in(1).size() == 1};
}

// Parameters have x's rank if they are blocked, or one axis, which corresponds to x's.
Status add_quantization(Lowering& l, Conversion conversion, const QuantizeCall& q, bool wide,
                        bool saturates) {
  ConvertArguments a;
  a.conversion = conversion, a.wide = wide, a.saturates = saturates;
  SINTER_RETURN_IF_ERROR(box_of(l.out(0).shape(), &a.box));
  a.x = operand(l.in(0), a.box), a.y = operand(l.out(0), a.box);
  const auto parameter = [&](const TensorView& v) {
    ConvertOperand o{v.data, {}, v.dtype};
    if (q.single) return o;
    const Steps own = steps_in(v, a.box);
    if (q.blocked)
      o.steps = own;
    else
      o.steps.of[q.axis] = own.of[a.box.rank - 1];
    return o;
  };
  a.scale = parameter(l.in(1));
  if (l.has_input(2)) a.zero = parameter(l.in(2));
  if (!q.single)
    a.axis = static_cast<int32_t>(q.axis), a.block = Divider(q.block < INT32_MAX ? q.block : INT32_MAX);
  return launch(l, a);
}

}  // namespace sinter::cuda
