// The planning side of the emulator: platforms/cuda's, by another name.
#pragma once

#include "runtime/backend/platform.h"

namespace sinter {

extern const Platform cuda_emulated_platform;

}  // namespace sinter
