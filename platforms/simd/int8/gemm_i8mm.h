// Products of int8 on ARM processors with products of matrices of bytes (i8mm): one instruction multiplies
// two rows by two columns, eight depths at a time.
//
// Row j of a line of a box is in a pair with row j + distance, where distance is half of the line's results,
// so that all rows of the line are in pairs. The box's input is copied with a pair's pixels side by side:
// eight channels of the first, eight of the second, the next eight of the first, and so on.
#pragma once

#include "platforms/simd/int8/gemm.h"

namespace sinter::simd {

// The begins of the pairs of one box and one group, and of the runs, in the buffer, in bytes.
struct QPairRows {
  const std::byte* buffer = nullptr;
  const int32_t *pairs = nullptr, *runs = nullptr;
  const int64_t* y_rows = nullptr;  // the place of a pair's first row; the second is `next` behind it
  int64_t next = 0, count = 0;
};

// Returns the number of pairs of a line of `results` results, which is the distance of their rows.
inline int64_t pairs_of(int64_t results) { return divide_up(results, 2); }
inline int64_t pair_distance(int64_t results) { return results / 2; }
// Returns the channels of a pixel in the buffer.
inline int64_t pair_channels(int64_t channels) { return divide_up(channels, kQPairDepth) * kQPairDepth; }

// Returns whether pairs are faster, and the buffer, of twice as many bytes as the input of a box has elements
// and 64 more, holds all of them. Depths other than multiples of kQPairDepth need more than the input.
bool pairs_fit(const Geometry& g);

// Returns the pixels of a line of the buffer.
inline int64_t pair_pixels(const Geometry& g, const QBox& box) {
  return box.line - pair_distance(box.end[2] - box.begin[2]) * g.stride[2];
}
// Fills the buffer.
void load_q_pairs(const Geometry& g, const QBox& box, const int8_t* x, int32_t x_zero, std::byte* buffer);
// Multiplies panels first .. end - 1. The result is int8, and weights have no zero points.
void multiply_q_pairs(const QPacked& w, const QPairRows& rows, int64_t first_panel, int64_t end_panel,
                      const ProductResult& result);

}  // namespace sinter::simd
