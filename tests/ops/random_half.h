// Cases in float16, which XNNPACK takes on processors that compute in it, and in bfloat16.
#pragma once

#include <cstdlib>
#include <string_view>
#include <vector>

#include "tests/op_harness/backends.h"
#include "tests/op_harness/half_test.h"
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace sinter::test {

inline bool computes_in_half() {
#if defined(__aarch64__)
  const char* cap = std::getenv("SINTER_CPU_CAP");
  return (getauxval(AT_HWCAP) & HWCAP_ASIMDHP) != 0 && (cap == nullptr || std::string_view(cap) != "neon");
#else
  return false;
#endif
}

// By oneDNN.
inline bool computes_in_bfloat16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") && std::getenv("SINTER_CPU_CAP") == nullptr;
#else
  return false;
#endif
}

// The call in both types. Processors without float16 arithmetic refuse that.
template <class A>
void check_half(const A& attrs, const std::vector<Tensor>& inputs) {
  const std::vector<Tensor> halves = halved(inputs);
  if (computes_in_half())
    check_taken_by("xnnpack", attrs, halves);
  else
    EXPECT_FALSE(takes("xnnpack", attrs, halves)) << op_name(A::kOp);
  run_op(attrs, halved(inputs, DType::kBFloat16));
}

}  // namespace sinter::test
