// XNNPACK, for planning.
#pragma once

#include "runtime/backend/platform.h"

namespace sinter {

extern const Platform xnnpack_platform;

}  // namespace sinter
