// Rows of weights as integers of 2 to 8 bits with one scale, and perhaps one zero point, for each block of a
// row, chosen so that the squared error of the block is least among a few dozen candidates.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "converter/ir/constant.h"
#include "runtime/core/weight_format.h"

namespace sinter::convert {

struct BlockShape {
  int64_t rows = 0, columns = 0, block = 0;  // the last block of a row may be shorter
  int64_t blocks() const { return (columns + block - 1) / block; }
};

struct BlockCodes {
  BlockShape shape;
  int bits = 0;
  std::vector<float>
      scales;  // [rows, blocks], negative ones too; bfloat16 numbers, but for 8 bits with one a row
  std::vector<uint8_t> zeros;  // empty, or [rows, blocks]
  double signal = 0, noise = 0;
  double db() const;  // 999: no noise
  // Returns the integers [rows, columns] of some rows of the weights that were coded: below 8 bits -2^(bits -
  // 1) to 2^(bits - 1) - 1, or with zero points 0 to 2^bits - 1; else -127 to 127. They are computed again,
  // because the integers of a large weight take more memory than all else.
  std::vector<int8_t> integers(std::span<const float> w, int64_t first_row, int64_t rows) const;
};

// Returns the codes of finite weights. `bits`: 2 to 8; zero points below 8 only.
BlockCodes code_blocks(std::span<const float> w, const BlockShape& shape, int bits, bool zero_points);

// Returns scales, which are bfloat16 in the file if all of them are such numbers.
ConstantPtr scales_constant(const Dims& dims, const std::vector<float>& scales);
// Returns integers of a type of 4 or 8 bits.
ConstantPtr integers(DType type, const Dims& dims, const std::vector<int8_t>& items);
ConstantPtr integers(DType type, const Dims& dims, const std::vector<uint8_t>& items);
// Returns the codes of the rows as a constant of shape `dims`, whose last axis holds bytes if they are in
// planes.
ConstantPtr integers(WeightFormat format, Dims dims, std::span<const float> rows, const BlockCodes& codes);
// Returns the table from a byte to the signed number in its lower or upper half.
ConstantPtr nibbles(bool high);

}  // namespace sinter::convert
