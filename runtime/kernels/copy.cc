// View, Copy, Broadcast: the same elements under other dims, strides or repeated.
#include "runtime/kernels/indices.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

Status check_rank(const IntList& dims) {
  SINTER_RETURN_UNLESS(dims.size() <= kMaxRank,
                       unsupported("a value has %a axes, more than %b", dims.size(), kMaxRank));
  return ok_status();
}

Status infer_view(OpCall& call) {
  const auto& a = call.attrs<ViewAttrs>();
  const TensorView& x = call.in(0);
  SINTER_RETURN_IF_ERROR(check_rank(a.dims));
  DType dtype = x.dtype;
  if (a.dtype != -1) {
    SINTER_RETURN_IF_ERROR(check_code(a.dtype, static_cast<int64_t>(DType::kCount)));
    dtype = static_cast<DType>(a.dtype);
    SINTER_RETURN_UNLESS(dtype != DType::kNone, invalid("a view needs an element type"));
  }
  int64_t bytes_in = 0, bytes_out = 0;
  SINTER_RETURN_UNLESS(checked_bytes(x.dtype, x.shape(), &bytes_in), invalid("the input is too large"));
  SINTER_RETURN_UNLESS(checked_bytes(dtype, a.dims.span(), &bytes_out), invalid("the result is too large"));
  SINTER_RETURN_UNLESS(bytes_in == bytes_out,
                       invalid("a view has %a bytes, its operand %b", bytes_out, bytes_in));
  if (bit_width(dtype) == bit_width(x.dtype)) {  // the last byte of packed types may be partly used
    int64_t n_in = 1, n_out = 1;
    for (const int64_t d : x.shape()) n_in *= d;
    for (const int64_t d : a.dims.span()) n_out *= d;
    SINTER_RETURN_UNLESS(n_in == n_out, invalid("a view has %a elements, its operand %b", n_out, n_in));
  }
  return give_output(call, 0, dtype, a.dims.span());
}

Status copy_bytes(const TensorView& out, const TensorView& in) {
  const int64_t n = in.dense_bytes();
  if (n > 0 && out.data != in.data) std::memmove(out.data, in.data, static_cast<size_t>(n));
  return ok_status();
}

Status run_view(const OpCall& call, RunContext&) { return copy_bytes(call.out(0), call.in(0)); }

Status run_copy(const OpCall& call, RunContext&) {
  const TensorView &x = call.in(0), &y = call.out(0);
  if (is_sub_byte(x.dtype)) {
    SINTER_RETURN_UNLESS(x.dense() && y.dense(),
                         unsupported("packed elements are copied only where they are dense"));
    return copy_bytes(y, x);
  }
  return copy_elements(y, x);
}

Status infer_broadcast_copy(OpCall& call) {
  const auto& a = call.attrs<BroadcastAttrs>();
  SINTER_RETURN_IF_ERROR(check_rank(a.dims));
  SINTER_RETURN_IF_ERROR(check_broadcasts_to(call.in(0).shape(), a.dims.span()));
  return give_output(call, 0, call.in(0).dtype, a.dims.span());
}

Status run_broadcast(const OpCall& call, RunContext&) {
  SINTER_RETURN_IF_ERROR(check_whole_bytes(call.in(0).dtype));
  return copy_elements(call.out(0), call.in(0));
}

}  // namespace

const Kernel kViewKernel = reference_kernel({Op::kView, infer_view, nullptr, run_view});
const Kernel kCopyKernel = reference_kernel({Op::kCopy, infer_like_input, nullptr, run_copy});
const Kernel kBroadcastKernel =
    reference_kernel({Op::kBroadcast, infer_broadcast_copy, nullptr, run_broadcast});

}  // namespace sinter
