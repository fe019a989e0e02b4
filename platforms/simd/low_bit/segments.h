// The division of a row in products of many rounded rows of x: segments are blocks, or parts of long ones, as
// bytes in fours, filled up with zeros of x. The weights of some segments and of a panel's columns are a
// piece, which stays in a cache while all rows are multiplied.
#pragma once

#include "platforms/simd/low_bit/low_bit.h"

namespace sinter::simd {

inline constexpr int64_t kBytePieceFloats = 16384;  // in a piece, at most
inline constexpr int64_t kMostSegments = 64;        // in a piece
inline constexpr int64_t kLongestSegment = 1024;    // weights
inline constexpr int64_t kWidestPanel = 2 * kMostLanes;

struct LowBitSegments {
  int64_t parts = 1;    // segments of a block
  int64_t length = 0;   // weights of a segment; the last ones of a block and of a row may have fewer
  int64_t fours = 0;    // fours of bytes in a segment; a multiple of 4
  int64_t count = 0;    // segments of a row
  int64_t at_once = 0;  // segments of a piece
  bool dense = false;   // segments follow each other in a row of weights, in whole sixteens

  explicit LowBitSegments(const LowBit& g) : block_(g.block) {
    parts = divide_up(g.block, kLongestSegment);
    length = parts == 1 ? g.block : divide_up(divide_up(g.block, parts), 16) * 16;
    fours = divide_up(length, 16) * 4;
    count = g.blocks * parts;
    at_once = std::min(kMostSegments, kBytePieceFloats / piece_record(kWidestPanel));
    dense = length * parts == g.block && length % 16 == 0;
  }
  // Returns the first weight of segment s.
  int64_t first(int64_t s) const { return s / parts * block_ + s % parts * length; }
  // Returns the weights of a row of `depth` in segment s; 0 if it begins behind the row's end.
  int64_t weights(int64_t s, int64_t depth) const {
    const int64_t left = std::min(block_ - s % parts * length, depth - first(s));
    return std::clamp<int64_t>(left, 0, length);
  }
  // Returns the floats of a segment of rounded x: bytes, then the numbers from kStart on.
  int64_t record() const { return fours + kEnds; }
  // Returns the floats of a segment of the weights of a panel of `width` columns: a scale and a zero point
  // for each column, then four bytes for each column, the next four, and so on.
  int64_t piece_record(int64_t width) const { return (2 + fours) * width; }
  // Returns the floats from one rounded row to the next: rows begin at different places of the cache's pages.
  int64_t stride() const { return divide_up(count * record(), 32) * 32 + 16; }

  // The numbers behind the bytes of a segment of x: the begin of its int32 sums, its sum, and its scale.
  enum : int64_t { kStart, kSum, kScale, kEnds = 4 };

 private:
  int64_t block_;
};

// Rounds each block of a row to int8. `to` has stride() floats.
void round_row(const LowBit& g, const LowBitSegments& segments, const float* x, float* to);
// Returns the columns of a panel of bytes.
int64_t byte_panel_width();
// Unpacks segments first .. last - 1 (at most at_once) of the weights of a panel's columns.
void unpack_piece(const LowBit& g, const LowBitSegments& segments, int64_t column, int64_t first,
                  int64_t last, float* piece);
// The products of segments first .. last - 1, for a panel's columns and all rows, which are
// `segments.stride()` floats apart. They are added to y; the first ones set it, the last ones add the bias
// and clamp.
struct BytePiece {
  const float* weights = nullptr;
  int64_t column = 0, first = 0, last = 0;
};
struct ByteProduct {
  const float* x = nullptr;  // made by round_row
  int64_t rows = 0;
  const float* bias = nullptr;
  float min = 0, max = 0;
  float* y = nullptr;  // rows of g.columns
};
void multiply_piece(const LowBit& g, const LowBitSegments& segments, const BytePiece& piece,
                    const ByteProduct& product);

}  // namespace sinter::simd
