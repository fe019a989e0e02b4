// Slice, Concat, Tile: a window of a value, values side by side, a value repeated.
#include <cstring>

#include "runtime/backend/slice_window.h"
#include "runtime/kernels/indices.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

Status infer_slice(OpCall& call) {
  const auto& a = call.attrs<SliceAttrs>();
  const TensorView& x = call.in(0);
  SINTER_RETURN_UNLESS(a.starts.size() == x.rank && a.steps.size() == x.rank && a.sizes.size() == x.rank,
                       invalid("starts, steps and sizes are not one per axis of rank %a", x.rank));
  for (int i = 0; i < x.rank; ++i) {
    const int64_t size = a.sizes[i], start = a.starts[i];
    SINTER_RETURN_UNLESS(size >= 0, invalid("a slice's size %a is negative", size));
    if (size == 0) continue;
    int64_t last = 0;
    SINTER_RETURN_UNLESS(start >= 0 && start < x.dims[i],
                         invalid("a slice starts at %a in an axis of %b elements", start, x.dims[i]));
    SINTER_RETURN_UNLESS(size == 1 || a.steps[i] != 0, invalid("a slice has step 0"));
    SINTER_RETURN_UNLESS(size == 1 || (checked_mul(size - 1, a.steps[i], &last) &&
                                       checked_add(last, start, &last) && last >= 0 && last < x.dims[i]),
                         invalid("a slice of %a elements exceeds an axis of %b", size, x.dims[i]));
  }
  return give_output(call, 0, x.dtype, a.sizes.span());
}

Status run_slice(const OpCall& call, RunContext&) {
  const TensorView& y = call.out(0);
  SINTER_RETURN_IF_ERROR(check_whole_bytes(call.in(0).dtype));
  return y.size() == 0 ? ok_status() : copy_elements(y, slice_window(call));
}

Status infer_concat(OpCall& call) {
  const auto& a = call.attrs<ConcatAttrs>();
  const TensorView& first = call.in(0);
  SINTER_RETURN_IF_ERROR(check_axis(a.axis, first.rank));
  Dims dims(first.shape());
  for (size_t i = 1; i < call.inputs.size(); ++i) {
    const TensorView& x = call.in(i);
    SINTER_RETURN_UNLESS(x.present(), invalid("it is missing").of_input(i));
    SINTER_RETURN_IF_ERROR(check_same_dtype(call, i, 0));
    SINTER_RETURN_UNLESS(x.rank == first.rank,
                         invalid("rank %a cannot be joined with rank %b", x.rank, first.rank));
    for (int k = 0; k < x.rank; ++k) {
      if (k == a.axis) continue;
      SINTER_RETURN_UNLESS(
          x.dims[k] == first.dims[k],
          invalid("dims %a and %b differ and cannot be joined", x.dims[k], first.dims[k]).of_input(i));
    }
    SINTER_RETURN_UNLESS(checked_add(dims.d[a.axis], x.dims[a.axis], &dims.d[a.axis]),
                         invalid("the result is too large"));
  }
  return give_output(call, 0, first.dtype, dims.span());
}

Status run_concat(const OpCall& call, RunContext&) {
  const auto& a = call.attrs<ConcatAttrs>();
  const TensorView& y = call.out(0);
  SINTER_RETURN_IF_ERROR(check_whole_bytes(y.dtype));
  if (y.size() == 0) return ok_status();
  TensorView part = y;
  for (const TensorView& x : call.inputs) {
    part.dims[a.axis] = x.dims[a.axis];
    // The first operand may be a later part of the result's own bytes (concat_lead).
    if (x.size() != 0 && x.dense() && part.dense())
      std::memmove(part.data, x.data, static_cast<size_t>(x.dense_bytes()));
    else if (x.size() != 0)
      SINTER_RETURN_IF_ERROR(copy_elements(part, x));
    part.data += x.dims[a.axis] * y.strides[a.axis];
  }
  return ok_status();
}

// If the join is along the outermost axis that has several entries, operand 0 is one piece of the result. It
// is moved before anything else is written: towards the start, by any number of bytes.
Status concat_lead(const OpCall& call, size_t* bytes) {
  const auto& a = call.attrs<ConcatAttrs>();
  for (int64_t i = 0; i < a.axis; ++i)
    SINTER_RETURN_UNLESS(call.out(0).dims[i] == 1,
                         unsupported("the operands are joined along an inner axis"));
  *bytes = 0;
  return ok_status();
}

Status infer_tile(OpCall& call) {
  const auto& a = call.attrs<TileAttrs>();
  const TensorView& x = call.in(0);
  SINTER_RETURN_UNLESS(a.repeats.size() == x.rank,
                       invalid("%a repeats are given for rank %b", a.repeats.size(), x.rank));
  Dims dims(x.shape());
  for (int i = 0; i < x.rank; ++i)
    SINTER_RETURN_UNLESS(a.repeats[i] >= 0 && checked_mul(x.dims[i], a.repeats[i], &dims.d[i]),
                         invalid("%a elements repeated %b times are too many", x.dims[i], a.repeats[i]));
  return give_output(call, 0, x.dtype, dims.span());
}

// The input goes into the output's first corner; then, axis by axis, the part written so far is doubled until
// the axis is full.
Status run_tile(const OpCall& call, RunContext&) {
  const TensorView &x = call.in(0), &y = call.out(0);
  SINTER_RETURN_IF_ERROR(check_whole_bytes(x.dtype));
  if (y.size() == 0) return ok_status();
  TensorView done = y;
  for (int i = 0; i < y.rank; ++i) done.dims[i] = x.dims[i];
  SINTER_RETURN_IF_ERROR(copy_elements(done, x));
  for (int i = y.rank - 1; i >= 0; --i) {
    while (done.dims[i] < y.dims[i]) {
      TensorView from = done;
      from.dims[i] = std::min(done.dims[i], y.dims[i] - done.dims[i]);
      TensorView to = from;
      to.data += done.dims[i] * y.strides[i];
      SINTER_RETURN_IF_ERROR(copy_elements(to, from));
      done.dims[i] += from.dims[i];
    }
  }
  return ok_status();
}

}  // namespace

const Kernel kSliceKernel = reference_kernel({Op::kSlice, infer_slice, nullptr, run_slice});
const Kernel kConcatKernel =
    reference_kernel({Op::kConcat, infer_concat, nullptr, run_concat, nullptr, concat_lead});
const Kernel kTileKernel = reference_kernel({Op::kTile, infer_tile, nullptr, run_tile});

}  // namespace sinter
