// Pad: the value goes into the middle of the output; then, axis by axis, each plane beside it is copied from
// the plane inside that its mode names (or filled), over everything that the axes before have already padded.
#include "runtime/core/op_enums.h"
#include "runtime/kernels/indices.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

Status infer_pad(OpCall& call) {
  const auto& a = call.attrs<PadAttrs>();
  const TensorView& x = call.in(0);
  SINTER_RETURN_IF_ERROR(check_code(a.mode, 4));
  SINTER_RETURN_UNLESS(a.pads.size() == 2 * x.rank,
                       invalid("%a pads are given for rank %b", a.pads.size(), x.rank));
  Dims dims(x.shape());
  for (int i = 0; i < x.rank; ++i) {
    const int64_t begin = a.pads[i], end = a.pads[x.rank + i];
    SINTER_RETURN_UNLESS(begin >= 0 && end >= 0, invalid("pads %a and %b must not be negative", begin, end));
    SINTER_RETURN_UNLESS(checked_add(dims.d[i], begin, &dims.d[i]) && checked_add(dims.d[i], end, &dims.d[i]),
                         invalid("the result is too large"));
    SINTER_RETURN_UNLESS(
        a.mode == static_cast<int64_t>(PadMode::kConstant) || x.dims[i] > 0 || dims.d[i] == 0,
        invalid("an empty axis has no elements to pad with"));
  }
  if (call.has_input(1)) {
    const TensorView& fill = call.in(1);
    SINTER_RETURN_IF_ERROR(check_same_dtype(call, 1, 0));
    for (const int64_t d : fill.shape())
      SINTER_RETURN_UNLESS(d == 1, invalid("the fill value is not one element"));
  }
  return give_output(call, 0, x.dtype, dims.span());
}

// Returns the element, of n, at position i (negative: before them).
int64_t source(PadMode mode, int64_t i, int64_t n) {
  if (mode == PadMode::kEdge || n == 1) return std::clamp<int64_t>(i, 0, n - 1);
  const int64_t period = mode == PadMode::kWrap ? n : 2 * (n - 1);
  i %= period;
  if (i < 0) i += period;
  return i < n ? i : period - i;
}

Status run_pad(const OpCall& call, RunContext&) {
  const auto& a = call.attrs<PadAttrs>();
  const auto mode = static_cast<PadMode>(a.mode);
  const TensorView &x = call.in(0), &y = call.out(0);
  SINTER_RETURN_IF_ERROR(check_whole_bytes(x.dtype));
  if (y.size() == 0) return ok_status();
  std::byte zero[8] = {};
  TensorView fill;
  fill.dtype = x.dtype;
  fill.data = call.has_input(1) ? call.in(1).data : zero;

  TensorView done = y;  // the part that is filled so far
  for (int i = 0; i < y.rank; ++i) {
    done.dims[i] = x.dims[i];
    done.data += a.pads[i] * y.strides[i];
  }
  if (x.size() > 0) SINTER_RETURN_IF_ERROR(copy_elements(done, x));
  for (int i = 0; i < y.rank; ++i) {
    const int64_t begin = a.pads[i], end = a.pads[y.rank + i], n = x.dims[i], stride = y.strides[i];
    TensorView part = done;
    if (mode == PadMode::kConstant) {
      part.dims[i] = begin;
      part.data = done.data - begin * stride;
      SINTER_RETURN_IF_ERROR(copy_elements(part, fill));
      part.dims[i] = end;
      part.data = done.data + n * stride;
      SINTER_RETURN_IF_ERROR(copy_elements(part, fill));
    } else {
      // Neighbours whose sources are neighbours too (or the same) are copied together.
      const auto copy_run = [&](int64_t first, int64_t last) {
        while (first < last) {
          const int64_t at = source(mode, first, n);
          int64_t count = 1, step = 0;
          for (; first + count < last; ++count) {
            const int64_t next = source(mode, first + count, n);
            if (count == 1 && next - at >= -1 && next - at <= 1) step = next - at;
            if (next != at + count * step) break;
          }
          part.dims[i] = count;
          part.data = done.data + first * stride;
          TensorView from = part;
          from.dims[i] = step == 0 ? 1 : count;
          from.strides[i] = step * stride;
          from.data = done.data + at * stride;
          SINTER_RETURN_IF_ERROR(copy_elements(part, from));
          first += count;
        }
        return ok_status();
      };
      SINTER_RETURN_IF_ERROR(copy_run(-begin, 0));
      SINTER_RETURN_IF_ERROR(copy_run(n, n + end));
    }
    done.data -= begin * stride;
    done.dims[i] = y.dims[i];
  }
  return ok_status();
}

}  // namespace

const Kernel kPadKernel = reference_kernel({Op::kPad, infer_pad, nullptr, run_pad});

}  // namespace sinter
