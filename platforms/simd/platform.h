// The planning side of the Highway kernels.
#pragma once

#include "runtime/backend/platform.h"

namespace sinter {

extern const Platform simd_platform;

}  // namespace sinter
