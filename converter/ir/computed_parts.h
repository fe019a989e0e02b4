// Computes a constant from others a piece at a time, so that intermediate results stay in a processor's
// cache and take no memory: exporters unpack weights by dozens of operations, each of which would be a whole
// tensor.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "converter/ir/recipe.h"

namespace sinter::convert {

// Returns the bytes of a constant of this type and these dims that `recipe` computes. Throws std::logic_error
// where it cannot be computed: whoever makes a constant that is computed later proves before that it can
// (can_wait()).
LoadedBytes computed_bytes(const Recipe& recipe, DType dtype, const Dims& dims);

// Computes constants of the same dims (of rank 1 at least) together, a few rows of each at a time: what they
// have in common is computed once, and none of them is in memory as a whole. `use` gets the number of the
// first row and the bytes of these rows, in the order of `constants`; false ends it. Returns whether `use`
// took all rows.
bool in_pieces(const std::vector<ConstantPtr>& constants,
               const std::function<bool(int64_t row, std::span<const LoadedBytes> pieces)>& use);

// Returns whether no number in the operands can make the operation fail, so that it may be computed when its
// result is read.
bool can_wait(const OpAttrs& attrs, const std::vector<ConstantPtr>& inputs, DType result);

}  // namespace sinter::convert
