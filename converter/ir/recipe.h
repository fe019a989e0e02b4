// Recipe: the operations and smaller constants that give a constant. A float32 weight that was folded from a
// bfloat16 initializer, or from 4-bit integers with scales, is written as these (rule store.narrow).
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "converter/ir/graph.h"

namespace sinter::convert {

struct Recipe {
  OpAttrs attrs;
  std::vector<ConstantPtr> inputs;  // null: absent
  size_t stored_bytes = 0;          // the bytes of all leaves, shared ones once
  int steps = 0;                    // the operations of the whole tree, shared ones once
  bool written = false;             // it has a Cast of the model, which means to round
};

// Returns a constant that is computed from others at every load(), which has to be possible.
inline ConstantPtr computed_later(DType dtype, Dims dims, OpAttrs attrs, std::vector<ConstantPtr> inputs) {
  return Constant::computed(dtype, std::move(dims),
                            std::make_shared<const Recipe>(Recipe{std::move(attrs), std::move(inputs)}));
}

// Returns c broadcast to these dims.
inline ConstantPtr broadcast_later(const ConstantPtr& c, const Dims& dims) {
  if (c->dims() == dims) return c;
  return computed_later(c->dtype(), dims, BroadcastAttrs{IntList(std::span<const int64_t>(dims))}, {c});
}

// The size of results that get a recipe; smaller ones are stored as they are.
inline constexpr size_t kRecipeBytes = 1024;
// The most operations for one constant, fewer than the runtime allows (kMaxPrepareChain).
inline constexpr int kMostRecipeSteps = 48;
// The size of results that are computed when they are read.
inline constexpr size_t kLazyResultBytes = 64 << 10;

// Whether an operation unpacks weights: shifts and masks that take several numbers out of each word, look-ups
// that repeat a scale for its whole group. Folding may let results grow that are stored as a recipe.
bool unpacks(const OpAttrs& attrs, DType result);
inline constexpr size_t kMostUnpackedBytes = size_t{1} << 32;
inline constexpr size_t kMostRepeatedBytes = size_t{1}
                                             << 30;  // by Broadcast and Tile, from a 65536th at least

// Whether an operation on constants gives a result that would be stored as a recipe, however much it grows.
bool widens(const OpAttrs& attrs, const std::vector<ConstantPtr>& inputs, DType result);

// Returns `result`, computed by `attrs` from `inputs`, with its recipe if one takes clearly fewer bytes.
// Moves of elements are done at once on the narrow constant, where they give the same bits. A result still to
// be computed has no recipe where only its numbers would prove them narrow (integer_range.h).
ConstantPtr with_recipe(const OpAttrs& attrs, const std::vector<ConstantPtr>& inputs, ConstantPtr result);

}  // namespace sinter::convert
