// Which of two platforms is preferred for a call that both take: by memory, then by the times that they list.
#pragma once

#include "runtime/backend/platform.h"

namespace sinter::convert {

// Platform::kept_bytes.
size_t kept_bytes(const Platform& platform, const OpCall& call);

// What decides between two platforms before their times.
enum class Preference {
  kTime,    // memory decides where one keeps 4 MB or more and the other does not
  kMemory,  // the one that keeps less is preferred
};

// Whether a is preferred: it alone uses Winograd's algorithm, and the call permits that; or it alone reads
// large weights where they are; or by memory; or else both list a time for the call, and a's is lower.
bool is_preferred(const Platform& a, const Platform& b, Cpu cpu, const OpCall& call, Preference preference);

}  // namespace sinter::convert
