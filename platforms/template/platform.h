// The template's planning side.
#pragma once

#include "runtime/backend/platform.h"

namespace sinter {

extern const Platform template_platform;

}  // namespace sinter
