// The vector instructions that loops of the converter are compiled for, besides what every machine has.
#pragma once

namespace sinter::convert {

enum class CpuTier { kPortable, kAvx2, kAvx512 };

// The best that this machine runs. Results are the same on every tier.
inline CpuTier cpu_tier() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"))
    return CpuTier::kAvx512;
  if (__builtin_cpu_supports("avx2")) return CpuTier::kAvx2;
#endif
  return CpuTier::kPortable;
}

}  // namespace sinter::convert
