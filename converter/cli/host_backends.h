// The backends linked into this program.
#pragma once

#include <vector>

#include "runtime/backend/backend.h"

namespace sinter::convert {

// Best first, without the reference kernels (a session always has these).
std::vector<Backend*> linked_backends();

}  // namespace sinter::convert
