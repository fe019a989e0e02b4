// The element-wise steps that are computed together, by the places of their operands and results.
#include "platforms/simd/float/fused.h"

#include <gtest/gtest.h>

#include <vector>

namespace sinter::simd {
namespace {

constexpr int64_t kSize = 64, kRow = 16;

void compute_nothing(const Piece&, int64_t, int64_t) {}

struct Memory {
  std::vector<float> floats = std::vector<float>(16 * kSize);
  float* at(int64_t offset) { return floats.data() + offset; }
  // y = f(a, b), where b is as long as y.
  Piece step(int64_t a, int64_t b, int64_t y) {
    return {.compute = compute_nothing,
            .a = at(a),
            .b = at(b),
            .y = at(y),
            .size = kSize,
            .row = kRow,
            .a_size = kSize,
            .b_size = kSize};
  }
};

TEST(FusedPieces, ReadAResultInPlaceOrApart) {
  Memory m;
  for (const int64_t y : {2 * kSize, 0 * kSize, kSize, 5 * kSize}) {
    Piece first = m.step(0, kSize, 2 * kSize), next = m.step(2 * kSize, kSize, y);
    EXPECT_TRUE(fuse_pieces(&first, &next)) << y;
    EXPECT_EQ(first.next, &next);
    Piece third = m.step(kSize, y, 6 * kSize);
    EXPECT_TRUE(fuse_pieces(&first, &third)) << y;
    EXPECT_EQ(next.next, &third);
  }
}

TEST(FusedPieces, HaveToReadAResultOfTheSameSize) {
  Memory m;
  Piece first = m.step(0, kSize, 2 * kSize), other = m.step(3 * kSize, kSize, 4 * kSize);
  EXPECT_FALSE(fuse_pieces(&first, &other));
  Piece shorter = m.step(2 * kSize, kSize, 4 * kSize);
  shorter.size = shorter.a_size = shorter.b_size = kRow;
  EXPECT_FALSE(fuse_pieces(&first, &shorter));
  EXPECT_EQ(first.next, nullptr);
}

TEST(FusedPieces, WriteNothingThatIsStillRead) {
  Memory m;
  Piece first = m.step(8 * kSize, 10 * kSize, 12 * kSize);
  // The second step writes over parts of the first one's operands, and of its result, from either side.
  for (const int64_t place : {8 * kSize, 10 * kSize, 12 * kSize})
    for (const int64_t by : {-kSize + 1, int64_t{-1}, int64_t{1}, kSize - 1}) {
      Piece next = m.step(12 * kSize, 0, place + by);
      EXPECT_FALSE(fuse_pieces(&first, &next)) << place << " " << by;
    }
  // It writes over a row that each row of the first uses: elements are read when others are written.
  Piece rows = first, next = m.step(12 * kSize, 0, 10 * kSize);
  rows.b_size = kRow;
  EXPECT_FALSE(fuse_pieces(&rows, &next));
  // The row is inside the result of the first.
  Piece reads_row = m.step(12 * kSize, 12 * kSize + kRow, 0);
  reads_row.b_size = kRow;
  EXPECT_FALSE(fuse_pieces(&first, &reads_row));
  EXPECT_EQ(first.next, nullptr);
}

}  // namespace
}  // namespace sinter::simd
