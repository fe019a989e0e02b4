// Reduce, ArgReduce and QMean.
#include <bit>
#include <limits>

#include "platforms/cuda/operators.h"
#include "runtime/core/float_formats.h"
#include "runtime/core/op_enums.h"

namespace sinter::cuda {
namespace {

bool is_device_float(DType t) {
  return t == DType::kFloat32 || t == DType::kFloat64 || t == DType::kFloat16 || t == DType::kBFloat16;
}

int64_t magnitude(int64_t v) { return v < 0 ? -v : v; }

// Returns the smallest step of a box whose axes are merged, which is that of its last axis.
int64_t inner_step(const Box& box, const Steps& steps) {
  return box.rank > 0 ? magnitude(steps.of[box.rank - 1]) : INT64_MAX;
}

// Makes the boxes of x's axes that are listed in `axes` (a bit each) and of the others. y's axes are the
// latter and, if `keepdims`, one of size 1 for each of the former.
Status set_boxes(const TensorView& x, const TensorView& y, uint32_t axes, bool keepdims, ReduceArguments* a) {
  int64_t kept[kMaxRank], set[kMaxRank];
  size_t kept_rank = 0, set_rank = 0;
  int out = 0;
  for (int i = 0; i < x.rank; ++i) {
    if ((axes >> i & 1) != 0) {
      a->x_set.of[set_rank] = x.dims[i] == 1 ? 0 : x.strides[i];
      set[set_rank++] = x.dims[i];
      out += keepdims ? 1 : 0;
    } else {
      a->x_kept.of[kept_rank] = x.dims[i] == 1 ? 0 : x.strides[i];
      a->y_kept.of[kept_rank] = x.dims[i] == 1 ? 0 : y.strides[out];
      kept[kept_rank++] = x.dims[i];
      ++out;
    }
  }
  SINTER_RETURN_IF_ERROR(box_of({kept, kept_rank}, &a->kept));
  SINTER_RETURN_IF_ERROR(box_of({set, set_rank}, &a->set));
  Steps *const of_kept[] = {&a->x_kept, &a->y_kept}, *const of_set[] = {&a->x_set};
  merge_axes(&a->kept, of_kept);
  merge_axes(&a->set, of_set);
  a->count = a->set.size;
  a->one_axis = a->set.rank <= 1 ? 1 : 0;
  a->x_step = a->set.rank == 1 ? a->x_set.of[0] : 0;
  return ok_status();
}

Kernel kernel_of(DType t) {
  return t == DType::kFloat64 ? Kernel::k_reduce_doubles
         : is_device_float(t) ? Kernel::k_reduce_floats
                              : Kernel::k_reduce_integers;
}

Status add_fold(Lowering& l, ReduceArguments& a) {
  if (a.kept.size == 0) return ok_status();
  const Kernel kernel = kernel_of(a.dtype);
  constexpr int64_t kEach = 16;        // elements that a thread should fold
  constexpr int64_t kBlocks = 128;     // blocks that there should be
  constexpr uint32_t kPartBytes = 16;  // bytes of a fold's state, at most
  const bool across = a.kept.size > 1 && inner_step(a.kept, a.x_kept) < inner_step(a.set, a.x_set);
  a.teams = choose_teams(a.kept.size, a.count, kEach, across);
  const auto blocks_of = [&] { return blocks_for(a.kept.size, a.teams.count); };
  // Few sets of many elements are folded by several blocks each, and their results by a second launch.
  const int64_t length = int64_t{a.teams.size} * kEach;
  int64_t parts = (kBlocks + blocks_of() - 1) / blocks_of();
  if (parts > a.count / (4 * length)) parts = a.count / (4 * length);
  a.chunk = a.count;
  if (parts <= 1) return l.launch_one_of(kernel, {.blocks = {blocks_of()}, .shared_bytes = kTeamRoom}, a);
  a.chunk = static_cast<uint32_t>((a.count + parts - 1) / parts);
  parts = (a.count + a.chunk - 1) / a.chunk;
  a.partial = l.workspace(static_cast<size_t>(parts) * a.kept.size * kPartBytes);
  SINTER_RETURN_IF_ERROR(l.launch_one_of(
      kernel, {.blocks = {blocks_of(), static_cast<uint32_t>(parts)}, .shared_bytes = kTeamRoom}, a));
  a.parts = static_cast<int32_t>(parts);
  a.teams = choose_teams(a.kept.size, parts, 1, true);
  return l.launch_one_of(kernel, {.blocks = {blocks_of()}, .shared_bytes = kTeamRoom}, a);
}

uint32_t bits_of_axes(const IntList& axes) {
  uint32_t bits = 0;
  for (const int64_t axis : axes) bits |= 1u << axis;
  return bits;
}

// Returns the largest or smallest number of an integer type, by its bits.
int64_t end_of(DType t, bool largest) {
  if (t == DType::kBool) return largest ? 1 : 0;
  const int bits = bit_width(t);
  if (!is_signed_integer(t)) return largest ? static_cast<int64_t>(UINT64_MAX >> (64 - bits)) : 0;
  const auto most = static_cast<int64_t>(UINT64_MAX >> (65 - bits));
  return largest ? most : -most - 1;
}

}  // namespace

Status lower_Reduce(Lowering& l) {
  const auto& attrs = l.attrs<ReduceAttrs>();
  const TensorView &x = l.in(0), &y = l.out(0);
  SINTER_RETURN_UNLESS(is_device_float(x.dtype) || is_integer(x.dtype) || x.dtype == DType::kBool,
                       unsupported("elements are of a type that the device does not compute in"));
  ReduceArguments a;
  SINTER_RETURN_IF_ERROR(set_boxes(x, y, bits_of_axes(attrs.axes), attrs.keepdims != 0, &a));
  a.x = x.data, a.y = y.data, a.dtype = x.dtype;
  a.fn = static_cast<FoldFn>(attrs.fn);
  const bool order = a.fn == FoldFn::kMax || a.fn == FoldFn::kMin;
  if (x.dtype == DType::kUint64 && order) a.flip = INT64_MIN;
  if (order && !is_device_float(x.dtype)) a.identity = end_of(x.dtype, a.fn == FoldFn::kMin);
  return add_fold(l, a);
}

Status lower_ArgReduce(Lowering& l) {
  const auto& attrs = l.attrs<ArgReduceAttrs>();
  const TensorView &x = l.in(0), &y = l.out(0);
  SINTER_RETURN_UNLESS(is_device_float(x.dtype) || is_integer(x.dtype),
                       unsupported("elements are of a type that the device does not compute in"));
  ReduceArguments a;
  SINTER_RETURN_IF_ERROR(set_boxes(x, y, 1u << attrs.axis, attrs.keepdims != 0, &a));
  a.x = x.data, a.y = y.data, a.dtype = x.dtype;
  const bool largest = attrs.fn == static_cast<int64_t>(ArgReduceFn::kMax);
  a.fn = largest ? FoldFn::kIndexOfMax : FoldFn::kIndexOfMin;
  a.select_last = attrs.select_last != 0 ? 1 : 0;
  if (x.dtype == DType::kUint64) a.flip = INT64_MIN;
  return add_fold(l, a);
}

Status lower_QMean(Lowering& l) {
  const auto& attrs = l.attrs<QMeanAttrs>();
  const TensorView &x = l.in(0), &y = l.out(0);
  ReduceArguments a;
  SINTER_RETURN_IF_ERROR(set_boxes(x, y, bits_of_axes(attrs.axes), attrs.keepdims != 0, &a));
  a.x = x.data, a.y = y.data, a.dtype = x.dtype;
  a.fn = FoldFn::kQuantizedMean;
  a.zeros = static_cast<int32_t>(attrs.x_zero * a.count);
  a.y_zero = static_cast<int32_t>(attrs.y_zero);
  a.multiplier = static_cast<float>(attrs.multiplier / static_cast<double>(a.count));
  a.low = static_cast<float>(attrs.q_min - attrs.y_zero),
  a.high = static_cast<float>(attrs.q_max - attrs.y_zero);
  return add_fold(l, a);
}

}  // namespace sinter::cuda
