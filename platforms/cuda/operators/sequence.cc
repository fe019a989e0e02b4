// ReverseSequence, CacheUpdate.
#include "platforms/cuda/operators/sequence.h"

#include "platforms/cuda/operators/move.h"

namespace sinter::cuda {

Status check_range(Lowering& l, const TensorView& numbers, int64_t most, FaultCode code) {
  SINTER_RETURN_UNLESS(numbers.dims[0] <= INT32_MAX, unsupported("an operand has 2^31 elements or more"));
  CheckRangeArguments a;
  a.numbers = numbers.data, a.step = numbers.strides[0], a.most = most;
  a.count = static_cast<uint32_t>(numbers.dims[0]);
  a.width = static_cast<int32_t>(byte_width(numbers.dtype));
  a.fault = l.fault(), a.code = code;
  if (a.count == 0) return ok_status();
  return l.launch<Kernel::k_check_range>({.blocks = {blocks_for(a.count, threads_of(Kernel::k_check_range))}},
                                         a);
}

Status lower_ReverseSequence(Lowering& l) {
  const auto& attrs = l.attrs<ReverseSequenceAttrs>();
  const auto time = static_cast<int>(attrs.time_axis), batch = static_cast<int>(attrs.batch_axis);
  const TensorView &x = l.in(0), &lengths = l.in(1), &y = l.out(0);
  for (const TensorView* v : {&x, &lengths, &y}) SINTER_RETURN_IF_ERROR(check_movable(*v));
  ReverseSequenceArguments a;
  SINTER_RETURN_IF_ERROR(box_of(y.shape(), &a.box));
  if (a.box.size == 0) return check_range(l, lengths, x.dims[time], FaultCode::kLength);
  a.to = y.data, a.from = x.data, a.lengths = lengths.data;
  a.steps[0] = steps_of(y, a.box), a.steps[1] = steps_of(x, a.box);
  if (x.dims[batch] > 1) a.steps[2].of[batch] = lengths.strides[0];
  a.steps[3].of[time] = 1;
  a.time = x.dims[time], a.from_time_step = a.steps[1].of[time];
  a.length_width = static_cast<int32_t>(byte_width(lengths.dtype));
  a.width = static_cast<int32_t>(byte_width(x.dtype));
  a.fault = l.fault();
  Steps* const all[] = {&a.steps[0], &a.steps[1], &a.steps[2], &a.steps[3]};
  merge_axes(&a.box, all);
  const int last = a.box.rank - 1;
  if (last >= 0 && a.steps[2].of[last] == 0 && a.steps[3].of[last] == 0 && x.dense() && y.dense())
    a.width = widen_elements(&a.box, std::span(all, 2), a.width);
  return l.launch<Kernel::k_reverse_sequence>(
      {.blocks = {blocks_for(a.box.size, threads_of(Kernel::k_reverse_sequence))}}, a);
}

Status lower_CacheUpdate(Lowering& l) {
  const auto& attrs = l.attrs<CacheUpdateAttrs>();
  const auto axis = static_cast<int>(attrs.axis);
  const TensorView &past = l.in(0), &update = l.in(1), &y = l.out(0);
  for (const TensorView* v : {&past, &update, &y}) SINTER_RETURN_IF_ERROR(check_movable(*v));
  SINTER_RETURN_UNLESS(past.dense() && update.dense() && y.dense(), unsupported("a cache is not dense"));
  SINTER_RETURN_UNLESS(!l.has_input(2) || l.in(2).dense(), unsupported("write indices are not dense"));
  Box size;
  SINTER_RETURN_IF_ERROR(box_of(y.shape(), &size));
  const int64_t steps = update.dims[axis], capacity = past.dims[axis];
  if (steps == 0) return add_move(l, past, y);
  if (size.size == 0)
    return l.has_input(2) && attrs.circular == 0
               ? check_range(l, l.in(2), capacity - steps, FaultCode::kIndex)
               : ok_status();
  CacheUpdateArguments a;
  a.to = y.data, a.past = past.data, a.update = update.data;
  int64_t rows = 1;
  for (int i = 1; i < axis; ++i) rows *= past.dims[i];
  Box block;
  SINTER_RETURN_IF_ERROR(box_of(past.shape().subspan(static_cast<size_t>(axis) + 1), &block));
  a.width = static_cast<int32_t>(byte_width(past.dtype));
  Steps step;
  block.rank = 1, block.dims[0] = Divider(block.size), step.of[0] = a.width;
  Steps* const one[] = {&step};
  const int wide = widen_elements(&block, one, a.width);
  a.size = size.size / static_cast<uint32_t>(wide / a.width), a.width = wide;
  a.rows = Divider(rows), a.capacity = Divider(capacity), a.block = Divider(block.size);
  a.steps = static_cast<int32_t>(steps), a.circular = static_cast<int32_t>(attrs.circular);
  if (l.has_input(2)) {
    a.starts = l.in(2).data, a.start_width = static_cast<int32_t>(byte_width(l.in(2).dtype));
    if (attrs.circular == 0) a.fault = l.fault();
  }
  // In place, most blocks of a launch for every element would have nothing to do.
  constexpr uint32_t kMostBlocks = 512;
  const uint32_t blocks = blocks_for(a.size, threads_of(Kernel::k_cache_update));
  return l.launch<Kernel::k_cache_update>({.blocks = {blocks < kMostBlocks ? blocks : kMostBlocks}}, a);
}

}  // namespace sinter::cuda
