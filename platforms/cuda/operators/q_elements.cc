// QAdd, QMul, QPRelu, QRequantize, Lut, QTable.
#include "platforms/cuda/operators/q_products.h"

namespace sinter::cuda {
namespace {

// Describes the elements of y and their places in each view, which has y's dims or is broadcast to them.
Status vector_box_of(std::span<const TensorView* const> views, std::span<VectorSteps* const> steps,
                     VectorBox* all) {
  Box box;
  SINTER_RETURN_IF_ERROR(box_of(views[0]->shape(), &box));
  Steps* items[3] = {};
  for (size_t i = 0; i < views.size(); ++i) {
    items[i] = &steps[i]->items;
    *items[i] = steps_of(*views[i], box);
  }
  merge_axes(&box, {items, views.size()});
  all->size = box.size;
  const int last = box.rank - 1;
  for (size_t i = 0; i < views.size(); ++i) steps[i]->along = last >= 0 ? items[i]->of[last] : 0;
  const int64_t length = last >= 0 ? box.dims[last].divisor : 1;
  all->per = last == 0 || (last > 0 && length % 4 == 0) ? 4 : 1;
  if (all->per == 4) {
    const int64_t count = (length + 3) / 4;
    box.size = static_cast<uint32_t>(box.size / length * count);
    box.dims[last] = Divider(count);
    for (size_t i = 0; i < views.size(); ++i) items[i]->of[last] *= 4;
  }
  all->box = box;
  return ok_status();
}
Status vector_box_of(const TensorView& y, const TensorView& x, VectorSteps* y_steps, VectorSteps* x_steps,
                     VectorBox* all) {
  const TensorView* const views[] = {&y, &x};
  VectorSteps* const steps[] = {y_steps, x_steps};
  return vector_box_of(views, steps, all);
}

template <Kernel kernel, class A>
Status launch_items(Lowering& l, const A& a, uint32_t shared_bytes = 0) {
  if (a.all.size == 0) return ok_status();
  return l.launch<kernel>(
      {.blocks = {blocks_for(a.all.box.size, threads_of(kernel))}, .shared_bytes = shared_bytes}, a);
}

template <class A>
Status set_pair(Lowering& l, const A& attrs, QPairArguments* a) {
  const TensorView &x = l.in(0), &other = l.in(1), &y = l.out(0);
  const TensorView* const views[] = {&y, &x, &other};
  VectorSteps* const steps[] = {&a->y_steps, &a->a_steps, &a->b_steps};
  SINTER_RETURN_IF_ERROR(vector_box_of(views, steps, &a->all));
  a->y = y.data, a->a = x.data, a->b = other.data;
  a->width = static_cast<int32_t>(byte_width(x.dtype));
  a->result = integer_result(attrs, y.dtype);
  return ok_status();
}

}  // namespace

Status lower_QAdd(Lowering& l) {
  const auto& attrs = l.attrs<QAddAttrs>();
  QPairArguments a;
  SINTER_RETURN_IF_ERROR(set_pair(l, attrs, &a));
  a.fn = PairFn::kAdd;
  a.a_zero = static_cast<int32_t>(attrs.a_zero), a.b_zero = static_cast<int32_t>(attrs.b_zero);
  a.a_multiplier = static_cast<int32_t>(attrs.a_multiplier);
  a.b_multiplier = static_cast<int32_t>(attrs.b_multiplier);
  a.shift = static_cast<int32_t>(attrs.shift);
  const float unit = 1.0f / static_cast<float>(int64_t{1} << attrs.shift);
  a.a_scale = static_cast<float>(attrs.a_multiplier) * unit;
  a.b_scale = static_cast<float>(attrs.b_multiplier) * unit;
  return launch_items<Kernel::k_q_pair>(l, a);
}

Status lower_QMul(Lowering& l) {
  const auto& attrs = l.attrs<QMulAttrs>();
  QPairArguments a;
  SINTER_RETURN_IF_ERROR(set_pair(l, attrs, &a));
  a.fn = PairFn::kMul;
  a.a_zero = static_cast<int32_t>(attrs.a_zero), a.b_zero = static_cast<int32_t>(attrs.b_zero);
  a.multiplier = static_cast<float>(attrs.multiplier);
  return launch_items<Kernel::k_q_pair>(l, a);
}

Status lower_QPRelu(Lowering& l) {
  const auto& attrs = l.attrs<QPReluAttrs>();
  QPairArguments a;
  SINTER_RETURN_IF_ERROR(set_pair(l, attrs, &a));
  a.fn = PairFn::kPRelu;
  a.a_zero = static_cast<int32_t>(attrs.x_zero);
  a.multiplier = static_cast<float>(attrs.multiplier);
  return launch_items<Kernel::k_q_pair>(l, a);
}

Status lower_QRequantize(Lowering& l) {
  const auto& attrs = l.attrs<QRequantizeAttrs>();
  const TensorView &x = l.in(0), &y = l.out(0);
  QRequantizeArguments a;
  SINTER_RETURN_IF_ERROR(vector_box_of(y, x, &a.y_steps, &a.x_steps, &a.all));
  a.y = y.data, a.x = x.data;
  a.x_width = static_cast<int32_t>(byte_width(x.dtype)), a.x_zero = static_cast<int32_t>(attrs.x_zero);
  a.multiplier = static_cast<float>(attrs.multiplier);
  a.result = integer_result(attrs, y.dtype);
  return launch_items<Kernel::k_q_requantize>(l, a);
}

Status lower_Lut(Lowering& l) {
  const TensorView &x = l.in(0), &table = l.in(1), &y = l.out(0);
  LutArguments a;
  SINTER_RETURN_IF_ERROR(vector_box_of(y, x, &a.y_steps, &a.x_steps, &a.all));
  a.y = y.data, a.x = x.data, a.table = table.data, a.table_step = table.strides[0];
  a.is_signed = x.dtype == DType::kInt8, a.width = static_cast<int32_t>(byte_width(table.dtype));
  return launch_items<Kernel::k_lut>(l, a, 256 * static_cast<uint32_t>(a.width));
}

Status lower_QTable(Lowering& l) {
  const auto& attrs = l.attrs<QTableAttrs>();
  const TensorView &x = l.in(0), &table = l.in(1), &y = l.out(0);
  QTableArguments a;
  SINTER_RETURN_IF_ERROR(vector_box_of(y, x, &a.y_steps, &a.x_steps, &a.all));
  a.y = y.data, a.x = x.data, a.table = table.data, a.table_step = table.strides[0];
  while (int64_t{1} << a.k < table.dims[0] - 1) ++a.k;
  a.low = static_cast<int32_t>(attrs.q_min), a.high = static_cast<int32_t>(attrs.q_max);
  return launch_items<Kernel::k_q_table>(l, a);
}

}  // namespace sinter::cuda
