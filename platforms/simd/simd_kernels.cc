// All instruction sets that a kernel is compiled for.
#define SINTER_SIMD_BYTE_TABLES
#define SINTER_SIMD_BYTE_DOTS

#include "platforms/simd/simd_kernels.h"

#include "platforms/simd/simd_backend.h"
#include "platforms/simd/table.h"

// After config.h, which table.h includes.
#include "hwy/targets.h"

#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace sinter {
namespace {

template <Op>
constexpr const Kernel* kEntry = nullptr;
#define SINTER_SIMD_KERNEL(name) \
  template <>                    \
  constexpr const Kernel* kEntry<Op::k##name> = &simd::k##name##Kernel;
#include "platforms/simd/kernels.def"
#undef SINTER_SIMD_KERNEL

struct Tier {
  const char* name;
  int64_t best;  // highway counts down: better targets have lower bits
};
constexpr Tier kTiers[] = {{"sse2", HWY_SSE2},   {"sse4", HWY_SSE4},           {"avx2", HWY_AVX2},
                           {"avx512", HWY_AVX3}, {"avx512_vbmi", HWY_AVX3_DL}, {"neon", HWY_NEON_WITHOUT_AES},
                           {"dotprod", HWY_NEON}};

bool same(const char* a, const char* b) {
  for (; *a != '\0' && *a == *b; ++a) ++b;
  return *a == *b;
}

// The best target in use, or 0 before it has been chosen. Highway is not asked for it again: that takes long,
// and while it answers, what is disabled is chosen.
int64_t chosen = 0;

// What Highway would choose though the processor lacks what it stands for here (config.h).
int64_t misnamed_targets() {
#if defined(__aarch64__) && defined(__linux__)
  return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0 ? 0 : HWY_NEON;
#elif defined(__ARM_FEATURE_DOTPROD)
  return 0;
#else
  return HWY_NEON;
#endif
}

// The target is chosen here, not by the next call: two threads that call first could see it half chosen.
int64_t choose_again() {
  const int64_t all = hwy::SupportedTargets() & ~misnamed_targets(), have = all & HWY_TARGETS;
  hwy::GetChosenTarget().Update(all);
  __atomic_store_n(&chosen, have & -have, __ATOMIC_RELEASE);
  return have & -have;
}

bool disable_targets(int64_t targets) {
  hwy::DisableTargets(targets);
  choose_again();
  return true;
}

// A pointer to a kernel that is taken before Highway has chosen leads to the choice again, at every call
// through it.
void choose_target() { (void)simd_instruction_set(); }

}  // namespace

KernelTable simd_kernels() {
  static constexpr const Kernel* kTable[] = {
#define SINTER_OP(name, ...) is_exact_simd(Op::k##name, kHostArchitecture) ? kEntry<Op::k##name> : nullptr,
#include "schemas/ops.def"
#undef SINTER_OP
  };
  choose_target();
  return kTable;
}

Status SimdBackend::open(BumpArena&, BumpArena&) {
  choose_target();
  return ok_status();
}

bool set_simd_cap(const char* name) {
  if (name == nullptr) return disable_targets(0);
  for (const Tier& tier : kTiers) {
    if (!same(tier.name, name)) continue;
    disable_targets(0);
    return (hwy::SupportedTargets() & ~misnamed_targets() & HWY_TARGETS & tier.best) != 0 &&
           disable_targets(tier.best - 1);
  }
  return false;
}

int64_t simd_instruction_set() {
  const int64_t best = __atomic_load_n(&chosen, __ATOMIC_ACQUIRE);
  return best != 0 ? best : choose_again();
}

const char* simd_target() {
  const int64_t best = simd_instruction_set();
  for (const Tier& tier : kTiers)
    if (tier.best == best) return tier.name;
  return "other";
}

}  // namespace sinter
