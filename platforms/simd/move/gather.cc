// Gather of dense rows of whole bytes.
#include <cstring>

#include "platforms/simd/int8/int8.h"
#include "runtime/backend/index.h"

namespace sinter::simd {
namespace {

Status accept_gather(const OpCall& call) {
  SINTER_RETURN_IF_ERROR(accept_whole_bytes(call));
  return accept_dense(call);
}

// Copies rows of kBytes bytes, or of `bytes` if kBytes is 0.
template <size_t kBytes>
Status gather_rows(const OpCall& call, int64_t outer, int64_t bytes) {
  const TensorView &x = call.in(0), &indices = call.in(1);
  const int64_t length = x.dims[call.attrs<GatherAttrs>().axis], picks = indices.size(),
                width = static_cast<int64_t>(byte_width(indices.dtype));
  const std::byte* from = x.data;
  std::byte* to = call.out(0).data;
  for (int64_t i = 0; i < outer; ++i, from += length * bytes)
    for (int64_t k = 0; k < picks; ++k, to += bytes) {
      int64_t index = 0;
      SINTER_RETURN_IF_ERROR(read_index(indices.data + k * width, indices.dtype, length, &index));
      std::memcpy(to, from + index * bytes, kBytes != 0 ? kBytes : static_cast<size_t>(bytes));
    }
  return ok_status();
}

Status run_gather(const OpCall& call, RunContext&) {
  const TensorView& x = call.in(0);
  if (call.out(0).size() == 0) return ok_status();
  const auto axis = static_cast<int>(call.attrs<GatherAttrs>().axis);
  int64_t outer = 1, bytes = static_cast<int64_t>(byte_width(x.dtype));
  for (int i = 0; i < axis; ++i) outer *= x.dims[i];
  for (int i = axis + 1; i < x.rank; ++i) bytes *= x.dims[i];
  if (bytes == 4) return gather_rows<4>(call, outer, bytes);
  if (bytes == 8) return gather_rows<8>(call, outer, bytes);
  return gather_rows<0>(call, outer, bytes);
}

}  // namespace

const Kernel kGatherKernel = {Op::kGather, nullptr, nullptr, run_gather, accept_gather};

}  // namespace sinter::simd
