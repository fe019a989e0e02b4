// NonZero, Unique.
#include "platforms/cuda/operators.h"
#include "platforms/cuda/operators/move.h"
#include "platforms/cuda/operators/sort.h"

namespace sinter::cuda {
namespace {

constexpr uint32_t kScanRoom = 32 * sizeof(uint32_t);

uint32_t select_chunks(uint32_t length) { return (length + kSelectChunk - 1) / kSelectChunk; }

uint32_t* take_numbers(Lowering& l, uint32_t count) {
  return reinterpret_cast<uint32_t*>(l.workspace(size_t{count} * sizeof(uint32_t)));
}

LaunchShape select_shape(uint32_t length) {
  return {.blocks = {blocks_for(select_chunks(length), 1)}, .shared_bytes = kScanRoom};
}

Status add_counts(Lowering& l, uint32_t* counts, uint32_t length, int64_t* total) {
  AddCountsArguments a;
  a.counts = counts, a.chunks = select_chunks(length), a.total = total;
  return l.launch<Kernel::k_add_counts>({.blocks = {1}, .shared_bytes = kScanRoom}, a);
}

Status clear(Lowering& l, size_t output) {
  if (!l.has_output(output)) return ok_status();
  SINTER_RETURN_UNLESS(l.out(output).dense(), unsupported("a result is not dense"));
  return l.fill(l.out(output).data, static_cast<size_t>(l.out(output).dense_bytes()), 0);
}

}  // namespace

Status lower_NonZero(Lowering& l) {
  const TensorView& x = l.in(0);
  SINTER_RETURN_IF_ERROR(check_movable(x));
  NonZeroArguments a;
  SINTER_RETURN_IF_ERROR(box_of(x.shape(), &a.box));
  for (size_t i : {0, 1}) SINTER_RETURN_IF_ERROR(clear(l, i));
  if (a.box.size == 0) return ok_status();
  a.rank = x.rank;
  for (int i = 0; i < x.rank; ++i) a.dims[i] = a.box.dims[i];
  a.x = x.data, a.steps = steps_of(x, a.box);
  Steps* const one[] = {&a.steps};
  merge_axes(&a.box, one);
  a.width = static_cast<int32_t>(byte_width(x.dtype)), a.is_float = is_float(x.dtype);
  a.counts = take_numbers(l, select_chunks(a.box.size));
  if (l.has_output(0)) a.indices = l.out(0).as<int64_t>();
  const LaunchShape shape = select_shape(a.box.size);
  SINTER_RETURN_IF_ERROR(l.launch<Kernel::k_count_non_zero>(shape, a));
  SINTER_RETURN_IF_ERROR(
      add_counts(l, a.counts, a.box.size, l.has_output(1) ? l.out(1).as<int64_t>() : nullptr));
  return l.has_output(0) ? l.launch<Kernel::k_place_non_zero>(shape, a) : ok_status();
}

Status lower_Unique(Lowering& l) {
  const auto& attrs = l.attrs<UniqueAttrs>();
  const TensorView& x = l.in(0);
  SINTER_RETURN_UNLESS(attrs.axis < 0 || x.rank == 1, unsupported("slices along an axis are not sorted"));
  SortChunksArguments s;
  s.type = x.dtype;
  SINTER_RETURN_UNLESS(is_sorted(x.dtype), unsupported("elements of this type are not sorted"));
  SINTER_RETURN_UNLESS(x.dense(), unsupported("the operand is not dense"));
  Box box;
  SINTER_RETURN_IF_ERROR(box_of(x.shape(), &box));
  for (size_t i = 0; i < 5; ++i) SINTER_RETURN_IF_ERROR(clear(l, i));
  if (box.size == 0) return ok_status();
  s.x = x.data, s.length = box.size, s.lines = 1;
  SortedLines sorted;
  SINTER_RETURN_IF_ERROR(add_sort(l, s, box.size, &sorted));

  UniqueArguments a;
  a.records = sorted.records, a.length = box.size, a.x = x.data;
  a.counts = take_numbers(l, select_chunks(a.length));
  a.group_of = take_numbers(l, a.length), a.start_of = take_numbers(l, a.length);
  if (attrs.sorted == 0) a.is_first = take_numbers(l, a.length);
  auto* groups =
      l.has_output(4) ? l.out(4).as<int64_t>() : reinterpret_cast<int64_t*>(l.workspace(sizeof(int64_t)));
  a.groups = groups;
  const auto result = [&](size_t i) { return l.has_output(i) ? l.out(i).as<int64_t>() : nullptr; };
  if (l.has_output(0)) a.values = l.out(0).data;
  a.firsts = result(1), a.inverse = result(2), a.sizes = result(3);
  a.width = static_cast<int32_t>(byte_width(x.dtype));
  const LaunchShape shape = select_shape(a.length);
  SINTER_RETURN_IF_ERROR(l.launch<Kernel::k_count_groups>(shape, a));
  SINTER_RETURN_IF_ERROR(add_counts(l, a.counts, a.length, groups));
  SINTER_RETURN_IF_ERROR(l.launch<Kernel::k_place_groups>(shape, a));
  if (attrs.sorted == 0) {
    a.rank_of = take_numbers(l, a.length);
    SINTER_RETURN_IF_ERROR(l.launch<Kernel::k_count_firsts>(shape, a));
    SINTER_RETURN_IF_ERROR(add_counts(l, a.counts, a.length, nullptr));
    SINTER_RETURN_IF_ERROR(l.launch<Kernel::k_place_firsts>(shape, a));
  }
  return l.launch<Kernel::k_write_unique>(
      {.blocks = {blocks_for(a.length, threads_of(Kernel::k_write_unique))}}, a);
}

}  // namespace sinter::cuda
