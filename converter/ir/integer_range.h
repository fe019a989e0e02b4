// The proven range of the integers in a value, from constants and sources of casts through operations.
#pragma once

#include <optional>

#include "converter/ir/graph.h"

namespace sinter::convert {

struct IntegerRange {
  int64_t low = 0, high = 0;
};

// Returns the range of an integer type or bool; nothing for others and for uint64.
std::optional<IntegerRange> range_of_type(DType t);
// Returns it also for integers of 2 and 4 bits.
std::optional<IntegerRange> range_of_integers(DType t);
// Returns the range of a value; nothing where none is known (floating-point numbers, uint64).
std::optional<IntegerRange> integer_range(const Graph& graph, ValueId id);
// Returns the range of a constant, 2 and 4 bits included; a large one is proven by its operations.
std::optional<IntegerRange> integer_range(const Constant& constant);
// Whether every element of a floating-point value is proven to have no fraction: a cast integer, a result of
// Floor, a sum, a product or a choice of such numbers.
bool is_whole(const Graph& graph, ValueId id);
// Whether the type holds every one of these numbers exactly.
bool holds_range(DType t, IntegerRange range);

}  // namespace sinter::convert
