// The planning sides of all platforms, including those whose device side this build lacks.
#pragma once

#include <span>

#include "runtime/backend/platform.h"

namespace sinter {

// Returns them best first, in the order of platforms.def.
std::span<const Platform* const> all_platforms();

}  // namespace sinter
