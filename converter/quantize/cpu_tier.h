// The vector instructions that loops of the converter are compiled for (every_tier-inl.h), besides what every
// machine has.
#pragma once

#include "converter/target/x86_features.h"

namespace sinter::convert {

enum class CpuTier { kPortable, kAvx2, kAvx512 };

// Returns the best tier that this machine runs. Results are the same on every tier.
inline CpuTier cpu_tier() {
#if defined(__x86_64__)
  static const X86Features has = x86_features();
  if (has.avx512f && has.avx512vl && has.avx512dq && has.avx512bw) return CpuTier::kAvx512;
  if (has.avx2) return CpuTier::kAvx2;
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
