// Includes the file SINTER_LOOPS once for each CpuTier: its loops are in the namespace SINTER_TIER, and each
// begins with SINTER_TIER_TARGET. SINTER_BEST_LOOP (cpu_tier.h) chooses one of them.

#define SINTER_TIER portable
#define SINTER_TIER_TARGET
#include SINTER_LOOPS
#undef SINTER_TIER
#undef SINTER_TIER_TARGET
#if defined(__x86_64__)
#define SINTER_TIER avx2
#define SINTER_TIER_TARGET __attribute__((target("avx2")))
#include SINTER_LOOPS
#undef SINTER_TIER
#undef SINTER_TIER_TARGET
#define SINTER_TIER avx512
#define SINTER_TIER_TARGET __attribute__((target("avx512f,avx512vl,avx512dq,avx512bw")))
#include SINTER_LOOPS
#undef SINTER_TIER
#undef SINTER_TIER_TARGET
#endif
#undef SINTER_LOOPS
