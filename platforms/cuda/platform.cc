#include "platforms/cuda/platform.h"

#include "platforms/cuda/chain.h"
#include "platforms/cuda/operators.h"

namespace sinter {
namespace cuda {

bool serves(const Target& target) { return target.architecture == Architecture::kCuda; }

bool has_kernel(const Target& target, Op op) { return serves(target) && operator_of(op) != nullptr; }

// The number of threads has no effect, because they are the host's.
Status accept(const Target& target, const OpCall& call, int, size_t* workspace) {
  *workspace = 0;
  SINTER_RETURN_UNLESS(serves(target), unsupported("the target does not have a CUDA device"));
  const auto lower = operator_of(call.op);
  SINTER_RETURN_UNLESS(lower != nullptr, unsupported("the CUDA platform does not compute this operation"));
  Lowering l(call);
  SINTER_RETURN_IF_ERROR(lower(l));
  SINTER_RETURN_UNLESS(!l.exhausted(),
                       unsupported("the call needs more memory or constants than a step can have"));
  *workspace = l.workspace_bytes();
  return ok_status();
}

bool computes_half(const Target& target, DType type) {
  return serves(target) && (type == DType::kFloat16 || type == DType::kBFloat16);
}

bool fuses(const OpCall& first, const OpCall& next) { return chains(first, next); }

}  // namespace cuda

constexpr Platform cuda_platform = {.name = "cuda",
                                    .serves = cuda::serves,
                                    .has_kernel = cuda::has_kernel,
                                    .accept = cuda::accept,
                                    .fuses = cuda::fuses,
                                    .computes_half = cuda::computes_half,
                                    .own_memory = true};

}  // namespace sinter
