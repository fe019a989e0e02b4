// A machine that a model is planned for, as a value. Platforms accept calls and bound their needs for a
// target without running on it.
//
// A plan holds on every machine of the architecture. Features describe the processor whose times decide
// between kernels, and never what a plan relies on.
#pragma once

#include <cstdint>

namespace sinter {

enum class Architecture : uint8_t { kPortable, kX86_64, kAarch64, kArmv7, kCortexM };

// Bits of Target::features.
enum Feature : uint32_t {
  kNoFeature = 0,
  kAvx2 = 1 << 0,
  kAvx512 = 1 << 1,
  kAvx512Vnni = 1 << 2,
  kDotprod = 1 << 3,
  kI8mm = 1 << 4,
  kFp16 = 1 << 5,
};

struct Target {
  Architecture architecture = Architecture::kPortable;
  uint32_t features = kNoFeature;
  // Bytes of the vectors of the architecture's machines; 0: none.
  int min_vector_bytes = 0, max_vector_bytes = 0;
  int cores = 8;  // workspaces serve sessions of up to this many threads

  bool has(Feature feature) const { return (features & feature) != 0; }
  bool operator==(const Target&) const = default;
};

}  // namespace sinter
