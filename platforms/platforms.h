// The planning sides of all platforms, those among them whose device side this build lacks.
#pragma once

#include <span>

#include "runtime/backend/platform.h"

namespace sinter {

// Best first: the order of platforms.def.
std::span<const Platform* const> all_platforms();

}  // namespace sinter
