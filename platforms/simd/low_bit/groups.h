// The division of a row by rows.cc: weights are taken as words of 32 bits, a vector of them (a chunk) at a
// time. If chunks hold whole blocks, every lane has its block's scale; otherwise a block has chunks of its
// own, the last of which is filled up with zeros of x.
#pragma once

#include "platforms/simd/low_bit/low_bit.h"

namespace sinter::simd {

struct LowBitGroups {
  int64_t lanes = 0;
  int64_t chunk = 0;    // weights of a vector of words of the lowest plane
  bool spread = false;  // chunks hold whole blocks
  int64_t group = 0;    // weights: a chunk, or a block
  int64_t groups = 0;   // of a row
  int64_t chunks = 0;   // of a group
  int64_t scales = 0;   // of a group
  int64_t numbers = 0;  // floats of the x of a group
  int64_t record = 0;   // floats of a group of arranged x: numbers, start, sums and scales of each lane

  LowBitGroups(const LowBit& g, int64_t vector_lanes) : lanes(vector_lanes) {
    const int64_t word = 32 / bit_planes(g.format.bits).bits;
    chunk = lanes * word;
    spread = g.blocks > 1 && g.block % word == 0 && chunk % g.block == 0;
    group = spread ? chunk : g.block;
    groups = divide_up(g.depth, group);
    chunks = divide_up(group, chunk);
    scales = spread ? chunk / g.block : 1;
    numbers = chunks * chunk / (g.is_rounded ? 4 : 1);
    record = numbers + 3 * lanes;
  }
};

// The numbers of the blocks of an arranged row, behind its bytes (LowBit::is_one_stream), and zeros for as
// many blocks as fill a vector: the scale of x; the number that a block's sum begins with, and the sum of its
// x, both times that scale.
template <class Float>
struct BlockNumbers {
  Float *scales, *starts, *sums;

  BlockNumbers(const LowBit& g, const LowBitGroups& groups, Float* row)
      : scales(row + groups.groups * groups.numbers),
        starts(scales + padded(g, groups)),
        sums(starts + padded(g, groups)) {}
  static int64_t padded(const LowBit& g, const LowBitGroups& groups) {
    return divide_up(g.blocks, groups.lanes) * groups.lanes;
  }
};

// Returns the zero point of weights without zero points, in the terms of unsigned weights.
inline float middle_of(const LowBit& g) { return static_cast<float>(g.format.sign_bit()); }

// The first floats of an arranged row: [0] is not 0 if a number of x is not finite, or x cannot have the form
// that was asked for; the row is arranged as floats then, and multiplied number by number.
inline constexpr int64_t kArrangedHead = 16;

}  // namespace sinter::simd
