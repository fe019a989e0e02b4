// All that some kernel is compiled for.
#define SINTER_SIMD_BYTE_TABLES

#include "platforms/simd/simd_kernels.h"

#include "platforms/simd/simd_backend.h"
#include "platforms/simd/table.h"

// After config.h, which table.h includes.
#include "hwy/targets.h"

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
constexpr Tier kTiers[] = {{"sse2", HWY_SSE2},           {"sse4", HWY_SSE4},
                           {"avx2", HWY_AVX2},           {"avx512", HWY_AVX3},
                           {"avx512_vbmi", HWY_AVX3_DL}, {"neon", HWY_NEON_WITHOUT_AES}};

bool same(const char* a, const char* b) {
  for (; *a != '\0' && *a == *b; ++a) ++b;
  return *a == *b;
}

// The target is chosen here, not by the next call: two threads that call first could see it half chosen.
bool disable_targets(int64_t targets) {
  hwy::DisableTargets(targets);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  return true;
}

// A pointer to a kernel that is taken before Highway has chosen leads to the choice again, at every call
// through it.
void choose_target() {
  if (!hwy::GetChosenTarget().IsInitialized()) hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

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
    return (hwy::SupportedTargets() & HWY_TARGETS & tier.best) != 0 && disable_targets(tier.best - 1);
  }
  return false;
}

int64_t simd_instruction_set() {
  const int64_t have = hwy::SupportedTargets() & HWY_TARGETS;
  return have & -have;
}

const char* simd_target() {
  const int64_t all = hwy::SupportedTargets(), best = simd_instruction_set();
  hwy::GetChosenTarget().Update(all);  // asking makes Highway choose anew, whatever is disabled
  for (const Tier& tier : kTiers)
    if (tier.best == best) return tier.name;
  return "other";
}

}  // namespace sinter
