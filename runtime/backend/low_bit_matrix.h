// The layout of weights of few bits in memory, and the operands of a call that hold them. Reference kernels
// and platforms read weights by it.
#pragma once

#include <algorithm>

#include "runtime/backend/kernel.h"
#include "runtime/core/weight_format.h"

namespace sinter {

// The operands of a call besides x, which is the first one.
struct LowBitPlaces {
  size_t weights, scales, zeros, bias, table;
};
constexpr LowBitPlaces low_bit_places(Op op) {
  return op == Op::kExpertFullyConnected ? LowBitPlaces{2, 3, 4, 5, 6} : LowBitPlaces{1, 2, 3, 4, 5};
}

// Rows of codes, one for each column of the product, with a scale and perhaps a zero point for each block of
// a row. The matrices of all experts follow each other.
struct LowBitMatrix {
  WeightFormat format;
  DType scale_type = DType::kFloat32, zero_type = DType::kNone, table_type = DType::kNone;
  const uint8_t* weights = nullptr;
  const std::byte* scales = nullptr;  // [columns, blocks]
  const std::byte* zeros = nullptr;   // [columns, blocks], or null: none
  const std::byte* table = nullptr;   // [kWeightTableSize], or null
  int64_t columns = 0;                // of one matrix
  int64_t depth = 0, block = 0, blocks = 0;

  // Returns the bytes of a row, where rows are whole bytes.
  int64_t row_bytes() const { return bit_row_bytes(format.bits, depth); }
  LowBitMatrix of_expert(int64_t expert) const {
    LowBitMatrix m = *this;
    const int64_t numbers = expert * columns * blocks;
    m.weights += expert * columns * row_bytes();
    m.scales += numbers * bit_width(scale_type) / 8;
    if (zeros != nullptr) m.zeros += numbers * bit_width(zero_type) / 8;
    return m;
  }
};

// Returns the matrix of a call whose operands were checked. Where no format fits them, it has the default
// one. A row of one block has blocks of its own length (at least 2), whatever `block_size` is.
inline LowBitMatrix low_bit_matrix(const OpCall& call) {
  const LowBitPlaces at = low_bit_places(call.op);
  const TensorView &x = call.in(0), &w = call.in(at.weights);
  const bool of_experts = call.op == Op::kExpertFullyConnected;
  const int64_t bits = of_experts ? call.attrs<ExpertFullyConnectedAttrs>().bits
                                  : call.attrs<LowBitFullyConnectedAttrs>().bits,
                block = of_experts ? call.attrs<ExpertFullyConnectedAttrs>().block_size
                                   : call.attrs<LowBitFullyConnectedAttrs>().block_size;
  LowBitMatrix m;
  if (const auto* f = find_weight_format(w.dtype, bits, call.has_input(at.table))) m.format = *f;
  m.weights = w.as<const uint8_t>();
  m.depth = x.dims[x.rank - 1], m.columns = w.dims[w.rank - 2];
  m.block = std::min(block, std::max<int64_t>(m.depth, 2));
  if (call.has_input(at.scales)) {
    const TensorView& scales = call.in(at.scales);
    m.scales = scales.data, m.scale_type = scales.dtype, m.blocks = scales.dims[scales.rank - 1];
  }
  if (call.has_input(at.zeros)) m.zeros = call.in(at.zeros).data, m.zero_type = call.in(at.zeros).dtype;
  if (call.has_input(at.table)) m.table = call.in(at.table).data, m.table_type = call.in(at.table).dtype;
  return m;
}

}  // namespace sinter
