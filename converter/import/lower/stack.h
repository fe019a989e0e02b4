// Sequences of tensors whose number, or a position in which, is computed at run time: all tensors have
// one shape and are stacked along a first axis (GraphLowering::add_stack), which is bounded.
#pragma once

#include "converter/import/lowering.h"

namespace sinter::convert {

// Input i as a stack. kAbsent: it is a list, which `wanted` would make one; or not a sequence. kUnknown:
// refused, because its tensors have several shapes or there are none.
ValueId stack_of(NodeLowering& n, size_t i, bool wanted);
// A body's result that is a sequence becomes its stack. `like`: the dims of such stacks, for empty lists.
void to_stack(NodeLowering& n, ValueId* result, const Dims& like);
// An empty stack of tensors.
ValueId empty_stack(NodeLowering& n, const ValueFact& tensor);
// A list's tensors as a stack; refused (kUnknown) where their shapes or types differ, or there are none.
ValueId stacked(NodeLowering& n, const std::vector<ValueId>& items);

// The node's results. Positions are values; absent ones mean the end.
bool stack_at(NodeLowering& n, ValueId stack, ValueId position);
bool stack_insert(NodeLowering& n, ValueId stack, ValueId tensor, ValueId position);
bool stack_erase(NodeLowering& n, ValueId stack, ValueId position);
bool stack_joined(NodeLowering& n, ValueId stack, int64_t axis, bool new_axis);
// SplitToSequence of x along an axis whose length depends on data: parts of one element.
bool stack_split(NodeLowering& n, ValueId x, int64_t axis, bool keepdims);

}  // namespace sinter::convert
