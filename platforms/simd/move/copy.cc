// Copy, Broadcast, Slice and Concat of elements of whole bytes, with any strides.
#include "platforms/simd/move/copy_rows.h"
#include "runtime/backend/slice_window.h"

namespace sinter::simd {
namespace {

Status run_copy(const OpCall& call, RunContext& context) {
  copy_view(call.out(0), call.in(0), context.threads);
  return ok_status();
}

Status run_slice(const OpCall& call, RunContext& context) {
  if (call.out(0).size() > 0) copy_view(call.out(0), slice_window(call), context.threads);
  return ok_status();
}

Status run_concat(const OpCall& call, RunContext& context) {
  const auto axis = static_cast<int>(call.attrs<ConcatAttrs>().axis);
  TensorView part = call.out(0);
  for (const TensorView& x : call.inputs) {
    part.dims[axis] = x.dims[axis];
    copy_view(part, x, context.threads);
    part.data += x.dims[axis] * part.strides[axis];
  }
  return ok_status();
}

}  // namespace

const Kernel kCopyKernel = {Op::kCopy, nullptr, nullptr, run_copy, accept_whole_bytes};
const Kernel kBroadcastKernel = {Op::kBroadcast, nullptr, nullptr, run_copy, accept_whole_bytes};
const Kernel kSliceKernel = {Op::kSlice, nullptr, nullptr, run_slice, accept_whole_bytes};
const Kernel kConcatKernel = {Op::kConcat, nullptr, nullptr, run_concat, accept_whole_bytes};

}  // namespace sinter::simd
