// Conversions between bool, integers and float32, as Cast defines them.
#pragma once

#include <cstddef>

#include "runtime/core/dtype.h"

namespace sinter::simd {

// Converts `n` dense elements.
using PlainCast = void (*)(const void* from, void* to, size_t n);

// Returns null for other types, and for equal ones.
PlainCast plain_cast(DType from, DType to);

}  // namespace sinter::simd
