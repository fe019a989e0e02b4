// Rows of weights as integers of 2 to 8 bits with one scale, and perhaps one zero point, for each block of a
// row, chosen so that the squared error of the block is least among a few dozen candidates.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

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
  // Of the weights that were coded, those of some rows: [rows, columns]; below 8 bits -2^(bits - 1) to
  // 2^(bits - 1) - 1, or with zero points 0 to 2^bits - 1; else -127 to 127. They are computed again, as
  // those of a large weight take more memory than all else.
  std::vector<int8_t> integers(std::span<const float> w, int64_t first_row, int64_t rows) const;
};

// `bits`: 2 to 8; zero points below 8 only. `w` is finite.
BlockCodes code_blocks(std::span<const float> w, const BlockShape& shape, int bits, bool zero_points);

}  // namespace sinter::convert
