// The bound of a primitive's scratch memory, for planning.
#pragma once

#include <cstddef>

#include "platforms/onednn/planning/problem.h"

namespace sinter::onednn {

// The library divides its work into this many parts, each with scratch memory of its own, whatever the number
// of threads: the division decides the last bits of a result.
inline constexpr int kParts = 4;

// The memory that the library allocates while a primitive runs (closures, tables of arguments).
inline constexpr size_t kRunMemory = 16 << 10;

// Returns bytes that no primitive exceeds on processors with AVX2 or AVX-512, as far as is known: a backend
// refuses a call that needs more. They include kRunMemory.
size_t workspace_bound(const Problem& p);

}  // namespace sinter::onednn
