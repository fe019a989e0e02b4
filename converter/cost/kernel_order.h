// Which of two platforms is preferred for a call that both take: by memory, then by the times that they list.
#pragma once

#include "runtime/backend/platform.h"

namespace sinter::convert {

CallClass class_of(const OpCall& call);

// The platform's row for this call; null: it lists none.
const KernelTime* listed_time(const Platform& platform, Cpu cpu, const OpCall& call);

// Whether b's kernel takes much memory and a's does not, or else both list a time for the call, and a's is
// lower.
bool is_preferred(const Platform& a, const Platform& b, Cpu cpu, const OpCall& call);

}  // namespace sinter::convert
