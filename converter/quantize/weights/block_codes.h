// Rows of weights as integers of 4 or 8 bits with one scale, and perhaps one zero point, for each block of a
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
  std::vector<int8_t> q;  // [rows, columns]; -8 to 7, 0 to 15 with zero points, -127 to 127
  std::vector<float>
      scales;  // [rows, blocks], negative ones too; bfloat16 numbers, but for 8 bits with one a row
  std::vector<uint8_t> zeros;  // empty, or [rows, blocks]
  double signal = 0, noise = 0;
  double db() const;  // 999: no noise
};

// `bits`: 4 or 8; zero points for 4 only. `w` is finite.
BlockCodes code_blocks(std::span<const float> w, const BlockShape& shape, int bits, bool zero_points);

}  // namespace sinter::convert
