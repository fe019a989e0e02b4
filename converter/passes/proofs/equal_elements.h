// Proofs that elements of values are the same numbers in every run, such as the two halves of each row of
// cosines.
#pragma once

#include <vector>

#include "converter/passes/editor.h"

namespace sinter::convert {

// ElementList is some elements of a value, in an order.
struct ElementList {
  ValueId id = kAbsent;
  std::vector<int64_t> places;  // in row-major order
  bool negated = false;         // the numbers times -1
};
// Returns elements phase, phase + 2, ... of a value.
ElementList every_second_of(Editor& e, ValueId id, int64_t phase, bool negated = false);

// Returns whether two lists hold the same numbers; false: not proven. Zeros of either sign count as one
// number.
bool equal_elements(Editor& e, const ElementList& a, const ElementList& b);

// Returns whether the second half of each row, along the last axis, is the first one again; false: not
// proven.
bool equal_halves(Editor& e, ValueId id);

}  // namespace sinter::convert
