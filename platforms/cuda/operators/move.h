// The moves of elements that many operations consist of.
#pragma once

#include "platforms/cuda/lowering.h"

namespace sinter::cuda {

// Copies `from`, which is broadcast to `to`, in one launch. Refuses elements that are smaller than a byte.
Status add_move(Lowering& l, const TensorView& from, const TensorView& to);
// Makes the arguments of that; a size of 0 means that there is nothing to move.
Status make_move(const TensorView& from, const TensorView& to, MoveArguments* a);
// Fills in the fields that follow from places, box, steps and width, and merges axes.
void finish_move(MoveArguments* a);
Status launch_move(Lowering& l, const MoveArguments& a);

// Returns an error unless kernels can move the elements of a view.
Status check_movable(const TensorView& view);

}  // namespace sinter::cuda
