// Results of operations on large constants that are known without computing an element: positions that are
// evenly spaced, comparisons that the ranges of the operands decide, choices by such, and what is transposed
// back.
#pragma once

#include <optional>

#include "converter/ir/graph.h"

namespace sinter::convert {

// Of integers, by their numbers where they were not made so; nullopt: they are not evenly spaced, or fewer
// than two.
std::optional<Progression> progression_of(const Constant& c);

// Every n-th of them, from number `first` on.
Progression every_from(const Progression& p, int64_t n, int64_t first);

// The result, with these dims; null: it is not known.
ConstantPtr known_result(const OpAttrs& attrs, const std::vector<ConstantPtr>& inputs, DType dtype,
                         const Dims& dims);

}  // namespace sinter::convert
