// The file uses all instruction sets that a kernel is compiled for.
#define SINTER_SIMD_BYTE_TABLES
#define SINTER_SIMD_BYTE_DOTS

#include "platforms/simd/simd_kernels.h"

#include "platforms/simd/simd_backend.h"
#include "platforms/simd/table.h"
#include "runtime/core/built.h"

// This follows isa/config.h, which table.h includes.
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
constexpr Tier kTiers[] = {{"sse4", HWY_SSE4},
                           {"avx2", HWY_AVX2},
                           {"avx512", HWY_AVX3},
                           {"avx512_vbmi", HWY_AVX3_DL},
                           {"neon", HWY_NEON_WITHOUT_AES},
                           {"dotprod", HWY_NEON},
                           {"i8mm", HWY_NEON_BF16},
                           {"wasm", HWY_WASM}};

bool same(const char* a, const char* b) {
  for (; *a != '\0' && *a == *b; ++a) ++b;
  return *a == *b;
}

// The best target in use, or 0 before the choice, or where the processor has none. Highway is not asked
// again: that takes long, and while it answers, disabled targets are chosen.
int64_t chosen = 0;

// The targets that set_simd_cap has disabled.
int64_t disabled = 0;

// Returns the sets that HWY_NEON and HWY_NEON_BF16 stand for here (isa/config.h), if the processor has them.
int64_t renamed_targets() {
#if defined(__aarch64__) && defined(__linux__)
  if ((getauxval(AT_HWCAP) & HWCAP_ASIMDDP) == 0) return 0;
  return HWY_NEON | ((getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0 ? HWY_NEON_BF16 : 0);
#elif defined(__ARM_FEATURE_MATMUL_INT8) && defined(__ARM_FEATURE_DOTPROD)
  return HWY_NEON | HWY_NEON_BF16;
#elif defined(__ARM_FEATURE_DOTPROD)
  return HWY_NEON;
#else
  return 0;
#endif
}

// Returns the targets that can be chosen.
int64_t targets() {
  const int64_t renamed = renamed_targets(),
                have = hwy::SupportedTargets() & HWY_TARGETS & ~(HWY_NEON & ~renamed);
  return have | ((have & HWY_NEON) != 0 ? HWY_NEON_BF16 & renamed & ~disabled : 0);
}

// The target is chosen here, not by the next call: two threads that call first could see half of the choice.
int64_t choose_again() {
  const int64_t have = targets();
  hwy::GetChosenTarget().Update(have & HWY_TARGETS);
  __atomic_store_n(&chosen, have & -have, __ATOMIC_RELEASE);
  return have & -have;
}

bool disable_targets(int64_t which) {
  disabled = which;
  hwy::DisableTargets(which);
  choose_again();
  return true;
}

// A pointer to a kernel that is taken before Highway has chosen makes the choice again, at every call through
// it.
void choose_target() { (void)simd_instruction_set(); }

}  // namespace

KernelTable simd_kernels() {
  static constexpr const Kernel* kTable[] = {
#define SINTER_OP(name, ...) \
  is_built(Op::k##name) && is_exact_simd(Op::k##name, kHostArchitecture) ? kEntry<Op::k##name> : nullptr,
#include "schemas/ops.def"
#undef SINTER_OP
  };
  choose_target();
  return kTable;
}

Status SimdBackend::open(BumpArena&) {
  SINTER_RETURN_UNLESS(
      simd_instruction_set() != 0,
      unsupported("the processor has none of the simd kernels' instruction sets (SSE4.2 or later)"));
  return ok_status();
}

bool set_simd_cap(const char* name) {
  if (name == nullptr) return disable_targets(0);
  for (const Tier& tier : kTiers) {
    if (!same(tier.name, name)) continue;
    disable_targets(0);
    return (targets() & tier.best) != 0 && disable_targets(tier.best - 1);
  }
  return false;
}

int64_t simd_instruction_set() {
  const int64_t best = __atomic_load_n(&chosen, __ATOMIC_ACQUIRE);
  return best != 0 ? best : choose_again();
}

bool simd_has_i8mm() { return simd_instruction_set() == HWY_NEON_BF16; }

const char* simd_target() {
  const int64_t best = simd_instruction_set();
  for (const Tier& tier : kTiers)
    if (tier.best == best) return tier.name;
  return "none";
}

}  // namespace sinter
