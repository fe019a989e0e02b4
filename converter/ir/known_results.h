// Results of operations on large constants that are known without computing an element: evenly spaced
// positions, comparisons that ranges decide, choices by these, and Transposes that cancel others.
#pragma once

#include <optional>

#include "converter/ir/graph.h"

namespace sinter::convert {

// Returns the progression of integers; nothing if they are not evenly spaced, or fewer than two.
std::optional<Progression> progression_of(const Constant& c);

// Returns every n-th of the numbers, from number `first` on.
Progression every_from(const Progression& p, int64_t n, int64_t first);

// Returns the result, with these dims; null if it is not known.
ConstantPtr known_result(const OpAttrs& attrs, const std::vector<ConstantPtr>& inputs, DType dtype,
                         const Dims& dims);

}  // namespace sinter::convert
