// The range of integers that a value can hold: proven from constants, from the source type of a cast, and
// through operations on these.
#pragma once

#include <optional>

#include "converter/ir/graph.h"

namespace sinter::convert {

struct IntegerRange {
  int64_t low = 0, high = 0;
};

// All values of an integer type or bool; nullopt for others and for uint64.
std::optional<IntegerRange> range_of_type(DType t);
// The same, integers of 2 and 4 bits included.
std::optional<IntegerRange> range_of_integers(DType t);
// Of a value of the graph; nullopt where nothing is known (floating-point numbers, uint64).
std::optional<IntegerRange> integer_range(const Graph& graph, ValueId id);
// Of a constant, by the operations that it is computed by where it is large; integers of 2 and 4 bits too.
std::optional<IntegerRange> integer_range(const Constant& constant);
// Is every element of a floating-point value proven to have no fraction: an integer that was cast, a result
// of Floor, a sum, a product or a choice of such numbers?
bool is_whole(const Graph& graph, ValueId id);
// Does the type hold every one of these numbers exactly?
bool holds_range(DType t, IntegerRange range);

}  // namespace sinter::convert
