#include "converter/target/native_target.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string_view>

#include "converter/target/target_names.h"
#include "converter/target/x86_features.h"

#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace sinter::convert {
namespace {

uint32_t processor_features() {
#if defined(__x86_64__)
  uint32_t features = Feature::kAvx2;
  const X86Features has = x86_features();
  const bool avx512 = has.avx512f && has.avx512bw && has.avx512cd && has.avx512dq && has.avx512vl;
  if (avx512) features |= Feature::kAvx512;
  if (avx512 && has.avx512vnni) {
    features |= Feature::kAvx512Vnni;
    if (has.avx512bf16) features |= Feature::kAvx512Bf16;
  }
  return features;
#elif defined(__aarch64__) && defined(__linux__)
  uint32_t features = Feature::kNeon;
  const unsigned long has = getauxval(AT_HWCAP), has2 = getauxval(AT_HWCAP2);
  if ((has & HWCAP_ASIMDHP) != 0) features |= Feature::kFp16;
  if ((has & HWCAP_ASIMDDP) != 0) features |= Feature::kDotprod;
  if ((has & HWCAP_ASIMDDP) != 0 && (has2 & HWCAP2_I8MM) != 0) features |= Feature::kI8mm;
  return features;
#else
  return host_target().features;
#endif
}

// The values of SINTER_CPU_CAP that limit features, and the features that each leaves.
struct Cap {
  std::string_view name;
  uint32_t features;
};
constexpr Cap kCaps[] = {
    {"sse41", Feature::kAvx2},
    {"avx2", Feature::kAvx2},
    {"avx512", Feature::kAvx2 | Feature::kAvx512},
    {"avx512vnni", Feature::kAvx2 | Feature::kAvx512 | Feature::kAvx512Vnni},
    {"neon", Feature::kNeon},
    {"dotprod", Feature::kNeon | Feature::kFp16 | Feature::kDotprod},
};

uint32_t features_within_cap() {
  const char* name = std::getenv("SINTER_CPU_CAP");
  const auto* cap = name == nullptr ? std::end(kCaps) : std::ranges::find(kCaps, name, &Cap::name);
  return cap == std::end(kCaps) ? ~0u : cap->features;
}

}  // namespace

Target native_target() {
  Target target = host_target();
  target.features = processor_features();
  // A cap of another architecture limits nothing.
  if (const uint32_t left = target.features & features_within_cap(); left != 0) target.features = left;
  return target;
}

}  // namespace sinter::convert
