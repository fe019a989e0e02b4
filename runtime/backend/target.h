// A machine that a model is planned for, as a value. Platforms accept calls and bound their needs for a
// target without running on it.
//
// A plan holds on every machine of the architecture. Features describe the processor whose timings decide
// between kernels, and between float and integers; no plan relies on them.
#pragma once

#include <cstdint>

namespace sinter {

// kCuda: a host of any kind with a CUDA device.
enum class Architecture : uint8_t { kPortable, kX86_64, kAarch64, kArmv7, kCortexM, kCuda };

// Bits of Target::features.
struct Feature {
  enum Bit : uint32_t {
    kAvx2 = 1 << 0,        // with FMA
    kAvx512 = 1 << 1,      // F, BW, CD, DQ, VL
    kAvx512Vnni = 1 << 2,  // dot products of four bytes
    kNeon = 1 << 3,
    kFp16 = 1 << 4,        // arithmetic in float16
    kDotprod = 1 << 5,     // dot products of four bytes
    kI8mm = 1 << 6,        // products of matrices of bytes
    kAvx512Bf16 = 1 << 7,  // dot products of two bfloat16
    // Compute capabilities of CUDA devices; a device of one has those before it as well.
    kSm75 = 1 << 8,
    kSm80 = 1 << 9,
    kSm86 = 1 << 10,
    kSm87 = 1 << 11,
    kSm89 = 1 << 12,
    kSm90 = 1 << 13,
    kSm100 = 1 << 14,
    kSm120 = 1 << 15,
  };
};

// The number of threads that workspaces are planned for by default.
inline constexpr int kPlannedCores = 8;

// The architecture that this code is compiled for.
inline constexpr Architecture kHostArchitecture =
#if defined(__x86_64__)
    Architecture::kX86_64;
#elif defined(__aarch64__)
    Architecture::kAarch64;
#elif defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
    Architecture::kCortexM;
#elif defined(__arm__)
    Architecture::kArmv7;
#else
    Architecture::kPortable;
#endif

struct Target {
  Architecture architecture = Architecture::kPortable;
  uint32_t features = 0;
  int cores = kPlannedCores;  // workspaces serve sessions of up to this many threads

  bool has(Feature::Bit feature) const { return (features & feature) != 0; }
  bool operator==(const Target&) const = default;
};

}  // namespace sinter
