// The planning side of the platform with packed weights.
#pragma once

#include "runtime/backend/platform.h"

namespace sinter {

extern const Platform template_packed_platform;

}  // namespace sinter
