// The processors that costs are listed for. A target is planned with the costs of one of them, whichever
// machine converts.
#pragma once

#include <cstdint>

#include "runtime/backend/target.h"

namespace sinter {

enum class Cpu : uint8_t {
  kAvx512Vnni,  // x86-64 with dot products of bytes
  kAvx2,        // x86-64 with FMA, without dot products of bytes
  kDotprod,     // ARM with dot products of bytes
  kNeon,        // 64-bit ARM without dot products
  kArmv7,       // 32-bit ARM
  kPortable,    // any, on the reference kernels
  kCortexM,     // microcontrollers, on the reference kernels
};
inline constexpr Cpu kCpus[] = {Cpu::kAvx512Vnni, Cpu::kAvx2,     Cpu::kDotprod, Cpu::kNeon,
                                Cpu::kArmv7,      Cpu::kPortable, Cpu::kCortexM};

constexpr const char* cpu_name(Cpu cpu) {
  constexpr const char* kNames[] = {"avx512vnni", "avx2",     "dotprod",  "neon",
                                    "armv7",      "portable", "cortex-m4"};
  return kNames[static_cast<int>(cpu)];
}

// Returns whether the reference kernels compute everything there.
constexpr bool is_on_reference_kernels(Cpu cpu) { return cpu == Cpu::kPortable || cpu == Cpu::kCortexM; }

// Returns the processor of a plan for the reference kernels alone.
inline Cpu reference_cpu_of(const Target& target) {
  return target.architecture == Architecture::kCortexM ? Cpu::kCortexM : Cpu::kPortable;
}

// Returns the best processor whose features the target has.
inline Cpu cpu_of(const Target& target) {
  if (target.architecture == Architecture::kPortable || target.architecture == Architecture::kCortexM)
    return reference_cpu_of(target);
  if (target.architecture == Architecture::kArmv7) return Cpu::kArmv7;
  if (target.has(Feature::kAvx512Vnni)) return Cpu::kAvx512Vnni;
  if (target.has(Feature::kDotprod)) return Cpu::kDotprod;
  return target.architecture == Architecture::kAarch64 || target.has(Feature::kNeon) ? Cpu::kNeon
                                                                                     : Cpu::kAvx2;
}

// The origin of a number about a processor.
enum class Provenance : uint8_t {
  kMeasured,    // a time on a machine
  kCounted,     // instructions that an emulator executed: not cycles
  kUnmeasured,  // an estimate
};

}  // namespace sinter
