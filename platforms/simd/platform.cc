#include "platforms/simd/platform.h"

#include <algorithm>

#include "platforms/simd/float/gemm_unpacked.h"
#include "platforms/simd/simd_backend.h"
#include "platforms/simd/simd_kernels.h"
#include "platforms/times/kernel_time.h"

namespace sinter {
namespace {

bool serves(const Target& target) {
  return target.architecture == Architecture::kX86_64 || target.architecture == Architecture::kAarch64 ||
         target.architecture == Architecture::kArmv7;
}

constexpr kernel_time::KernelTime kTimes[] = {
#include "platforms/simd/kernel_times.def"
};

// These are computed element by element, beside products that other platforms compute.
bool computes_half(const Target& target, DType type) {
  return type == DType::kBFloat16 && target.has(Feature::kAvx512Bf16);
}

bool has_kernel(const Target& target, Op op) {
  const int row = op_index(op);
  return row >= 0 && is_exact_simd(op, target.architecture) &&
         simd_kernels()[static_cast<size_t>(row)] != nullptr;
}

Status accept(const Target& target, const OpCall& call, int threads, size_t* workspace) {
  *workspace = 0;
  SINTER_RETURN_UNLESS(is_exact_simd(call.op, target.architecture),
                       unsupported("the simd kernel is inexact on 32-bit ARM"));
  for (int n = 1; n <= threads; ++n) {
    StepNeeds needs;
    size_t planned = 0;
    SINTER_RETURN_IF_ERROR(SimdBackend::measure_and_plan(call, n, &needs, &planned));
    *workspace = std::max(*workspace, planned);
  }
  return ok_status();
}

// With few output channels, transforms would take most of the time.
bool computes_winograd(const OpCall& call) {
  return kernel_time::class_of(call) != kernel_time::CallClass::kFewChannels;
}

bool reads_large_weights(const OpCall& call) {
  return call.op == Op::kFullyConnected && call.in(1).constant && simd::reads_unpacked(call);
}

}  // namespace

const Platform simd_platform = {.name = "simd",
                                .serves = serves,
                                .has_kernel = has_kernel,
                                .accept = accept,
                                .reads_large_weights = reads_large_weights,
                                .fuses = SimdBackend::fuses,
                                .time = kernel_time::time_by<kTimes>,
                                .computes_half = computes_half,
                                .computes_winograd = computes_winograd};

}  // namespace sinter
