// The target of this machine.
#pragma once

#include "runtime/backend/target.h"

namespace sinter::convert {

// Returns this machine's architecture with the features of its processor that SINTER_CPU_CAP leaves; at least
// avx2 or neon, for which the lowest costs are listed.
Target native_target();

}  // namespace sinter::convert
