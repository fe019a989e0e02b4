// The type of values that take each other's place (rule branch.edge).
#pragma once

#include <optional>

#include "converter/ir/graph.h"

namespace sinter::convert {

// The type that the results of two branches meet in, or a carried value before and after a trip. A constant
// takes the other's floating-point type if it survives there exactly. An integer of more than 16 bits meets
// floating-point numbers in float64, because nothing is proven of either. nullopt: they have no common type.
std::optional<DType> meet_at_edge(const Value& a, const Value& b);

}  // namespace sinter::convert
