// ReverseSequence, CacheUpdate: operations along a time axis, with a position for each batch row.
#include "runtime/kernels/indices.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

Status infer_reverse_sequence(OpCall& call) {
  const auto& a = call.attrs<ReverseSequenceAttrs>();
  const TensorView &x = call.in(0), &lengths = call.in(1);
  SINTER_RETURN_IF_ERROR(check_dtype(call, 1, is_index_type(lengths.dtype)));
  SINTER_RETURN_IF_ERROR(check_axis(a.time_axis, x.rank));
  SINTER_RETURN_IF_ERROR(check_axis(a.batch_axis, x.rank));
  SINTER_RETURN_UNLESS(a.time_axis != a.batch_axis, invalid("axis %a is both time and batch", a.time_axis));
  SINTER_RETURN_UNLESS(lengths.rank == 1 && lengths.dims[0] == x.dims[a.batch_axis],
                       invalid("the lengths are not one for each of %a rows", x.dims[a.batch_axis]));
  return infer_like_input(call);
}

Status run_reverse_sequence(const OpCall& call, RunContext&) {
  const auto& a = call.attrs<ReverseSequenceAttrs>();
  const TensorView &x = call.in(0), &lengths = call.in(1), &y = call.out(0);
  SINTER_RETURN_IF_ERROR(check_whole_bytes(x.dtype));
  const int64_t batches = x.dims[a.batch_axis], steps = x.dims[a.time_axis];
  for (int64_t b = 0; b < batches; ++b) {
    const int64_t length = load_index(lengths.data + b * lengths.strides[0], lengths.dtype);
    SINTER_RETURN_UNLESS(length >= 0 && length <= steps,
                         error(Code::kOutOfRange, "a sequence has %a steps, the axis %b", length, steps));
    if (y.size() == 0) continue;
    TensorView to = y, from = x;
    to.dims[a.batch_axis] = from.dims[a.batch_axis] = 1;
    to.data += b * y.strides[a.batch_axis];
    from.data += b * x.strides[a.batch_axis];
    TensorView rest_to = to, rest_from = from;
    to.dims[a.time_axis] = from.dims[a.time_axis] = length;
    if (length > 0) {
      from.data += (length - 1) * x.strides[a.time_axis];
      from.strides[a.time_axis] = -x.strides[a.time_axis];
      SINTER_RETURN_IF_ERROR(copy_elements(to, from));
    }
    if (length == steps) continue;
    rest_to.dims[a.time_axis] = rest_from.dims[a.time_axis] = steps - length;
    rest_to.data += length * y.strides[a.time_axis];
    rest_from.data += length * x.strides[a.time_axis];
    SINTER_RETURN_IF_ERROR(copy_elements(rest_to, rest_from));
  }
  return ok_status();
}

Status infer_cache_update(OpCall& call) {
  const auto& a = call.attrs<CacheUpdateAttrs>();
  const TensorView &past = call.in(0), &update = call.in(1);
  SINTER_RETURN_IF_ERROR(check_same_dtype(call, 1, 0));
  SINTER_RETURN_UNLESS(
      past.rank >= 2 && update.rank == past.rank,
      invalid("a cache of rank %a and an update of rank %b do not match", past.rank, update.rank));
  SINTER_RETURN_UNLESS(a.axis >= 1 && a.axis < past.rank,
                       invalid("axis %a is outside a cache of rank %b", a.axis, past.rank));
  SINTER_RETURN_IF_ERROR(check_code(a.circular, 2));
  for (int i = 0; i < past.rank; ++i)
    SINTER_RETURN_UNLESS(
        i == a.axis ? update.dims[i] <= past.dims[i] : update.dims[i] == past.dims[i],
        invalid("an update has %a elements along an axis of %b", update.dims[i], past.dims[i]));
  if (call.has_input(2)) {
    const TensorView& at = call.in(2);
    SINTER_RETURN_IF_ERROR(check_dtype(call, 2, is_index_type(at.dtype)));
    SINTER_RETURN_UNLESS(at.rank == 1 && at.dims[0] == past.dims[0],
                         invalid("the write indices are not one for each of %a rows", past.dims[0]));
  }
  return infer_like_input(call);
}

Status run_cache_update(const OpCall& call, RunContext&) {
  const auto& a = call.attrs<CacheUpdateAttrs>();
  const TensorView &past = call.in(0), &update = call.in(1), &y = call.out(0);
  const auto axis = static_cast<int>(a.axis);
  SINTER_RETURN_IF_ERROR(check_whole_bytes(past.dtype));
  SINTER_RETURN_IF_ERROR(copy_elements(y, past));
  const int64_t capacity = past.dims[axis], steps = update.dims[axis];
  const int64_t rows = product(past, 1, axis),
                block = product(past, axis + 1, past.rank) * static_cast<int64_t>(byte_width(past.dtype));
  if (steps == 0 || (y.size() == 0 && !call.has_input(2))) return ok_status();
  for (int64_t b = 0; b < past.dims[0]; ++b) {
    int64_t start = 0;
    if (call.has_input(2)) {
      const TensorView& at = call.in(2);
      start = load_index(at.data + b * static_cast<int64_t>(byte_width(at.dtype)), at.dtype);
    }
    if (a.circular != 0) {
      start %= capacity;  // capacity >= steps > 0
      if (start < 0) start += capacity;
    } else {
      SINTER_RETURN_UNLESS(
          start >= 0 && start <= capacity - steps,
          error(Code::kOutOfRange, "an update at %a exceeds a cache of %b", start, capacity));
    }
    const int64_t first = std::min(steps, capacity - start);  // up to the end; the rest goes to the beginning
    if (block == 0) continue;
    for (int64_t r = b * rows; r < (b + 1) * rows; ++r) {
      std::byte* to = y.data + r * capacity * block;
      const std::byte* from = update.data + r * steps * block;
      std::memcpy(to + start * block, from, static_cast<size_t>(first * block));
      if (first < steps) std::memcpy(to, from + first * block, static_cast<size_t>((steps - first) * block));
    }
  }
  return ok_status();
}

}  // namespace

const Kernel kReverseSequenceKernel =
    reference_kernel({Op::kReverseSequence, infer_reverse_sequence, nullptr, run_reverse_sequence});
const Kernel kCacheUpdateKernel =
    reference_kernel({Op::kCacheUpdate, infer_cache_update, nullptr, run_cache_update});

}  // namespace sinter
