// Conversions between bool, integers and float32, as Cast defines them.
#pragma once

#include <cstddef>

#include "runtime/core/dtype.h"

namespace sinter::simd {

// Converts `n` dense elements.
using PlainCast = void (*)(const void* from, void* to, size_t n);

// Null for other types, and where the two are equal.
PlainCast plain_cast(DType from, DType to);

}  // namespace sinter::simd
