// How many threads a step is worth.
#pragma once

#include "runtime/backend/kernel.h"
#include "runtime/backend/target.h"

namespace sinter::convert {

// 1 where a second thread would cost more than it brings, else 0 (all).
uint32_t worthwhile_threads(const Target& target, const OpCall& call);

// Workspaces are planned for all of the target's cores, and for one where a step is not worth more.
int planned_threads(const Target& target, const OpCall& call);

// A backend that computes in memory of its own has threads of its own.
inline constexpr int kDeviceThreads = 1;

}  // namespace sinter::convert
