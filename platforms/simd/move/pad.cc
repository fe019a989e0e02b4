// Pad with a constant, of elements of whole bytes, with any strides.
#include <cstring>

#include "platforms/simd/move/copy_rows.h"

namespace sinter::simd {
namespace {

Status accept_pad(const OpCall& call) {
  SINTER_RETURN_IF_ERROR(accept_whole_bytes(call));
  SINTER_RETURN_UNLESS(call.attrs<PadAttrs>().mode == static_cast<int64_t>(PadMode::kConstant),
                       unsupported("the simd kernel pads with a constant"));
  return ok_status();
}

// Fills a part of the result, a few elements of its last axis at a time.
void fill_part(TensorView part, const std::byte* value, ThreadPool* threads) {
  constexpr int64_t kBytes = 1024;
  alignas(8) std::byte row[kBytes];
  const auto width = static_cast<int64_t>(byte_width(part.dtype));
  const int last = part.rank - 1;
  const int64_t length = part.dims[last], together = std::min(length, kBytes / width);
  for (int64_t i = 0; i < together; ++i) std::memcpy(row + i * width, value, static_cast<size_t>(width));
  TensorView from = part;
  for (int i = 0; i < last; ++i) from.dims[i] = 1;
  from.strides[last] = width, from.data = row;
  for (int64_t at = 0; at < length; at += together, part.data += together * part.strides[last]) {
    from.dims[last] = part.dims[last] = std::min(together, length - at);
    copy_view(part, from, threads);
  }
}

Status run_pad(const OpCall& call, RunContext& context) {
  const auto& a = call.attrs<PadAttrs>();
  const TensorView &x = call.in(0), &y = call.out(0);
  if (y.size() == 0) return ok_status();
  constexpr std::byte kZero[8] = {};
  const std::byte* value = call.has_input(1) ? call.in(1).data : kZero;
  TensorView done = y;  // the part that is filled so far
  for (int i = 0; i < y.rank; ++i) {
    done.dims[i] = x.dims[i];
    done.data += a.pads[i] * y.strides[i];
  }
  copy_view(done, x, context.threads);
  for (int i = y.rank - 1; i >= 0; --i) {
    const int64_t begin = a.pads[i], end = a.pads[y.rank + i];
    TensorView part = done;
    part.dims[i] = begin, part.data = done.data - begin * y.strides[i];
    if (part.size() > 0) fill_part(part, value, context.threads);
    part.dims[i] = end, part.data = done.data + x.dims[i] * y.strides[i];
    if (part.size() > 0) fill_part(part, value, context.threads);
    done.data -= begin * y.strides[i];
    done.dims[i] = y.dims[i];
  }
  return ok_status();
}

}  // namespace

const Kernel kPadKernel = {Op::kPad, nullptr, nullptr, run_pad, accept_pad};

}  // namespace sinter::simd
