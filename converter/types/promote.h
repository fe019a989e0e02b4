// The lattice of types (docs/numerics.md). Only converter/types/ asks it: operands are settled there.
#pragma once

#include <optional>

#include "runtime/core/dtype.h"

namespace sinter::convert {

// Smallest common type by the project's lattice: equal types stay; floats widen (two different 16-bit floats
// meet in float32); bool becomes the other's type; integers meet in the narrowest integer that holds both; an
// integer and a float meet in the float (int64, uint64, int32 and uint32 with a 16-bit float: float32).
// nullopt where none exists.
std::optional<DType> promote(DType a, DType b);

}  // namespace sinter::convert
