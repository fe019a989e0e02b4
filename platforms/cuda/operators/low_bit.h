// Products with weights of few bits, whose rows follow each other: those of one matrix, or of all experts.
#pragma once

#include "platforms/cuda/operators.h"

namespace sinter::cuda {

// The operands of a call.
struct LowBitPlaces {
  size_t weights, scales, zeros, bias, table;
};
LowBitPlaces low_bit_places(Op op);
// Bits of a weight, whatever its type.
int low_bit_width(const OpCall& call);
// Bytes from a packed row to the next.
int64_t low_bit_pitch(const OpCall& call);
// Packs rows that the kernels cannot read as they are stored (kernels/low_bit/low_bit.h).
void pack_low_bit(const OpCall& call, std::span<std::byte> to);

// Launches the product. Expects `rows`, `experts` and bounds to be set; `columns` are those of one matrix.
Status launch_low_bit(Lowering& l, int64_t columns, int64_t block_size, LowBitArguments& a);

}  // namespace sinter::cuda
