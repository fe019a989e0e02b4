// How much work a step is, roughly: enough to decide how many threads are worth waking.
#pragma once

#include "runtime/backend/kernel.h"

namespace sinter::convert {

// Multiply-adds for products, weighted element counts for the rest.
double estimated_work(const OpCall& call);

// 1 where a second thread would cost more than it brings, else 0 (all).
uint32_t worthwhile_threads(const OpCall& call);

// A backend that computes in memory of its own has threads of its own.
inline constexpr int kDeviceThreads = 1;
// Workspaces are planned for `most` threads, and for one where a step is not worth more.
inline int planned_threads(const OpCall& call, int most) { return worthwhile_threads(call) == 1 ? 1 : most; }

}  // namespace sinter::convert
