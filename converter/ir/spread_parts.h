// The parts of (q - z) * s, or of table[q] * s, spread over the rows and columns of a matrix.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "converter/ir/low_bit_parts.h"

namespace sinter::convert {

struct SpreadParts {
  // Operand is z or s, broadcast by strides; `block` columns may share an item, or any that `index` has the
  // same number for.
  struct Operand {
    LoadedBytes loaded;
    std::span<const float> items;
    int64_t row = 0, column = 0, block = 1;
    std::vector<int64_t> index;

    // Returns the item of a row that column k has.
    int64_t at(int64_t k) const {
      return column * (!index.empty() ? index[static_cast<size_t>(k)] : block == 1 ? k : k / block);
    }
    float operator()(int64_t n, int64_t k) const { return items[static_cast<size_t>(n * row + at(k))]; }
  };

  int64_t rows = 0, columns = 0;
  std::vector<uint8_t> q;  // [rows, columns], modulo 256; or empty: they are not read
  Operand z, s;
};

// ColumnBlocks are columns in an order in which all rows' zero points and scales stay the same for `block` of
// them; empty: as they are.
struct ColumnBlocks {
  int64_t block = 0;
  std::vector<int32_t> order;
};

// Returns whether blocks are so long that their scales are worth storing.
bool block_suits(int64_t block, int64_t columns);

// Returns the zero points and scales of a constant with these two dims; nullopt: they do not broadcast to
// these.
std::optional<SpreadParts> spread_parts(const LowBitParts& parts, const Dims& dims);

// Returns the length of the blocks where columns stay in place.
int64_t block_in_place(const SpreadParts& m);
// Returns columns that agree in all rows together, in the order in which the groups begin; one group whose
// size does not fit the others' is last. nullopt: the blocks do not suit.
std::optional<ColumnBlocks> sorted_blocks(const SpreadParts& m);

// Reads the integers, compares (q - z) * s with the constant, element by element, and returns the smallest
// and the largest integer. nullopt: they take more than 8 bits, or are not what the constant comes from.
// Both are computed together, because the integers are most of the work.
std::optional<std::pair<int64_t, int64_t>> read_integers(const ConstantPtr& constant,
                                                         const LowBitParts& parts, const ColumnBlocks& b,
                                                         SpreadParts* m);
// Reads the indices q of table[q] * s and compares it with the constant, of which `block` columns share a
// scale. False: they are not what the constant comes from.
bool read_indices(const ConstantPtr& constant, const LowBitParts& parts, int64_t block, SpreadParts* m);
// Returns whether q * s, of floats q with the constant's dims, is the constant, element by element.
bool same_products(const ConstantPtr& constant, const LowBitParts& parts, const SpreadParts& m);

}  // namespace sinter::convert
