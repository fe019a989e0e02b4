// The processors that costs are listed for. A target is planned with the costs of one of them, whatever
// machine converts.
#pragma once

#include <cstdint>

#include "runtime/backend/target.h"

namespace sinter {

enum class Cpu : uint8_t {
  kAvx512Vnni,  // x86-64 with dot products of bytes
  kAvx2,        // x86-64 with FMA, without dot products of bytes
  kDotprod,     // ARM with dot products of bytes
  kNeon,        // ARM without
};
inline constexpr Cpu kCpus[] = {Cpu::kAvx512Vnni, Cpu::kAvx2, Cpu::kDotprod, Cpu::kNeon};

constexpr const char* cpu_name(Cpu cpu) {
  constexpr const char* kNames[] = {"avx512vnni", "avx2", "dotprod", "neon"};
  return kNames[static_cast<int>(cpu)];
}

// The best one that the target has the features for.
inline Cpu cpu_of(const Target& target) {
  if (target.has(Feature::kAvx512Vnni)) return Cpu::kAvx512Vnni;
  if (target.has(Feature::kDotprod)) return Cpu::kDotprod;
  const bool arm = target.architecture == Architecture::kAarch64 ||
                   target.architecture == Architecture::kArmv7 ||
                   target.architecture == Architecture::kCortexM;
  return arm || target.has(Feature::kNeon) ? Cpu::kNeon : Cpu::kAvx2;
}

}  // namespace sinter
