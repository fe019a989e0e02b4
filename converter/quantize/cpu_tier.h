// The vector instructions that loops of the converter are compiled for (every_tier-inl.h), besides what every
// machine has.
#pragma once

namespace sinter::convert {

enum class CpuTier { kPortable, kAvx2, kAvx512 };

// Returns the best tier that this machine runs. Results are the same on every tier.
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

// The loop of this name for the best tier.
#if defined(__x86_64__)
#define SINTER_BEST_LOOP(loop) \
  (cpu_tier() == CpuTier::kAvx512 ? avx512::loop : cpu_tier() == CpuTier::kAvx2 ? avx2::loop : portable::loop)
#else
#define SINTER_BEST_LOOP(loop) portable::loop
#endif
