// Counts calls of operator new and malloc by this program, all threads. Only in the executable that links
// allocation_count.cc.
#pragma once

#include <cstdint>

namespace sinter::testing {

int64_t allocation_count();

}  // namespace sinter::testing
