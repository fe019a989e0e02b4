// Products with weights of few bits, whose rows follow each other, of one matrix or of all experts.
#pragma once

#include "platforms/cuda/operators.h"
#include "runtime/backend/low_bit_matrix.h"

namespace sinter::cuda {

// Returns the bytes from a packed row to the next.
int64_t low_bit_pitch(const LowBitMatrix& m);
// Packs rows that the kernels cannot read as they are stored (kernels/low_bit/low_bit.h).
void pack_low_bit(const OpCall& call, std::span<std::byte> to);

// Launches the product. `rows`, `experts` and the bounds are set.
Status launch_low_bit(Lowering& l, LowBitArguments& a);

}  // namespace sinter::cuda
