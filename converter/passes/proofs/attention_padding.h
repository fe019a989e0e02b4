// Padding along a bounded dimension, as it is filled before operations that would read it.
#pragma once

#include <optional>

#include "converter/passes/editor.h"

namespace sinter::convert {

// Returns the length, an int64 scalar, if a mask of `size` elements is true for the first `length` of them;
// else kAbsent.
ValueId counted(Editor& e, ValueId mask, int64_t size);

// Returns whether `checked` is the number `length`, held against others on the way.
bool is_checked_from(Editor& e, ValueId checked, ValueId length);

// Padded is Where(j < length, value, neutral) along one axis.
struct Padded {
  ValueId value = kAbsent, length = kAbsent;
};
enum class Fill { kZero, kLowest };
// Returns what a padded value is made of; nullopt: it is something else. `single`: nothing else may read it.
std::optional<Padded> padded(Editor& e, ValueId id, size_t axis, Fill fill, bool single = true);

}  // namespace sinter::convert
