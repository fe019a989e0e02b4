#include "platforms/onednn/platform.h"

#include "platforms/onednn/planning/problem.h"
#include "platforms/onednn/planning/workspace.h"
#include "platforms/times/kernel_time.h"

namespace sinter {
namespace onednn {
namespace {

constexpr kernel_time::KernelTime kTimes[] = {
#include "platforms/onednn/planning/kernel_times.def"
};

bool serves(const Target& target) { return target.architecture == Architecture::kX86_64; }

// Without dot products of bytes the library's sums of int8 saturate.
bool takes_bytes(const Target& target) { return target.has(Feature::kAvx512Vnni); }

bool computes_half(const Target& target, DType type) {
  return type == DType::kBFloat16 && serves(target) && target.has(Feature::kAvx512Bf16);
}

bool has_kernel(const Target& target, Op op) {
  return serves(target) && is_known(op) && (takes_bytes(target) || !is_of_integers(op));
}

// The workspace serves any number of threads, because the library always divides its work into kParts.
Status accept(const Target& target, const OpCall& call, int, size_t* workspace) {
  *workspace = 0;
  SINTER_RETURN_UNLESS(serves(target), unsupported("oneDNN is for x86-64"));
  Problem p;
  SINTER_RETURN_IF_ERROR(problem_of(call, &p));
  SINTER_RETURN_UNLESS(!p.integer || takes_bytes(target),
                       unsupported("int8 needs a processor with dot products of bytes"));
  SINTER_RETURN_UNLESS(!p.bfloat16 || computes_half(target, DType::kBFloat16),
                       unsupported("bfloat16 needs a processor with dot products of it"));
  SINTER_RETURN_IF_ERROR(check_constants(call, p));
  *workspace = workspace_bound(p);
  return ok_status();
}

}  // namespace
}  // namespace onednn

constexpr Platform onednn_platform = {.name = "onednn",
                                      .serves = onednn::serves,
                                      .has_kernel = onednn::has_kernel,
                                      .accept = onednn::accept,
                                      .time = kernel_time::time_by<onednn::kTimes>,
                                      .computes_half = onednn::computes_half,
                                      .on_request = true};

}  // namespace sinter
