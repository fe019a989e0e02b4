// The planning side of the emulator, which is platforms/cuda's under another name.
#pragma once

#include "runtime/backend/platform.h"

namespace sinter {

extern const Platform cuda_emulated_platform;

}  // namespace sinter
