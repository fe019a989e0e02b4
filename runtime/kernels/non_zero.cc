// NonZero: the index tuples of the elements that are not zero, one a column, in row-major order.
#include "runtime/kernels/indices.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

Status infer_non_zero(OpCall& call) {
  const TensorView& x = call.in(0);
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, is_number(x.dtype) || x.dtype == DType::kBool));
  int64_t size = 1;
  for (const int64_t d : x.shape())
    SINTER_RETURN_UNLESS(checked_mul(size, d, &size), invalid("the input is too large"));
  const int64_t dims[] = {x.rank, size};
  SINTER_RETURN_IF_ERROR(give_output(call, 0, DType::kInt64, dims));
  return give_output(call, 1, DType::kInt64, {});
}

Status run_non_zero(const OpCall& call, RunContext&) {
  const TensorView& x = call.in(0);
  const bool wants_indices = call.has_output(0);
  const int64_t size = x.size();
  auto* indices = wants_indices ? call.out(0).as<int64_t>() : nullptr;
  int64_t count = 0;
  const Status status = for_width(byte_width(x.dtype), [&](auto tag) {
    using T = typename decltype(tag)::type;
    // The mask leaves out the sign, because zero has two.
    const T mask = is_float(x.dtype) ? static_cast<T>(static_cast<T>(~T{0}) >> 1) : static_cast<T>(~T{0});

    int64_t index[kMaxRank] = {};
    const std::byte* p = x.data;
    for (int64_t i = 0; i < size; ++i) {
      if ((load<T>(p) & mask) != 0) {
        if (wants_indices)
          for (int k = 0; k < x.rank; ++k) indices[k * size + count] = index[k];
        ++count;
      }
      for (int k = x.rank - 1; k >= 0; --k) {
        p += x.strides[k];
        if (++index[k] < x.dims[k]) break;
        p -= x.strides[k] * x.dims[k];
        index[k] = 0;
      }
    }
    return ok_status();
  });
  SINTER_RETURN_IF_ERROR(status);
  if (wants_indices)
    for (int k = 0; k < x.rank; ++k) std::fill(indices + k * size + count, indices + (k + 1) * size, 0);
  if (call.has_output(1)) *call.out(1).as<int64_t>() = count;
  return ok_status();
}

}  // namespace

const Kernel kNonZeroKernel = reference_kernel({Op::kNonZero, infer_non_zero, nullptr, run_non_zero});

}  // namespace sinter
