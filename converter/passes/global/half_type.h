// The types of 16 bits that a conversion may be asked to compute in, and where they differ.
#pragma once

#include <cstdint>
#include <limits>

#include "converter/ir/ledger.h"
#include "runtime/core/dtype.h"

namespace sinter::convert {

struct HalfType {
  DType dtype;
  TypeRule rule;
  const char* name;
  const char* flag;
  const char* machines;   // that have kernels for it
  double largest;         // finite number; no less than that of float32: ranges need no care
  double largest_addend;  // beyond it, numbers are more than 1 apart
  int64_t most_terms;     // of a sum
  bool composed;          // whether SiLU, and arithmetic that clamps its result, are two operations

  bool is_narrow() const { return largest < std::numeric_limits<float>::max(); }
};

// XNNPACK's sums are float16 as well: equal terms add up in 11 bits until there are 2048 of them.
inline constexpr HalfType kFloat16Half = {.dtype = DType::kFloat16,
                                          .rule = TypeRule::kComputeFloat16,
                                          .name = "float16",
                                          .flag = "--prefer-float16",
                                          .machines = "64-bit ARM and CUDA have",
                                          .largest = 65504,
                                          .largest_addend = 2048,
                                          .most_terms = 2048,
                                          .composed = true};
// Sums are float32.
inline constexpr HalfType kBFloat16Half = {.dtype = DType::kBFloat16,
                                           .rule = TypeRule::kComputeBfloat16,
                                           .name = "bfloat16",
                                           .flag = "--prefer-bfloat16",
                                           .machines = "x86_64+avx512bf16 and CUDA have",
                                           .largest = std::numeric_limits<double>::infinity(),
                                           .largest_addend = 256,
                                           .most_terms = std::numeric_limits<int64_t>::max(),
                                           .composed = false};

}  // namespace sinter::convert
