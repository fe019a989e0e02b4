// Offset assignment: what comes out is valid, within its bounds, never worse than greedy, and the minimum
// where it is proved (against trying every order of small instances).
#include "converter/plan/offsets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "converter/plan/offsets_greedy.h"

namespace sinter::convert {
namespace {

std::vector<MemoryBlock> random_blocks(std::minstd_rand& random, size_t count, unsigned steps, unsigned life,
                                       unsigned sizes) {
  std::vector<MemoryBlock> blocks(count);
  for (MemoryBlock& b : blocks) {
    b.bytes = random() % sizes;
    b.first = static_cast<int>(random() % steps);
    b.last = b.first + static_cast<int>(random() % life);
  }
  return blocks;
}

// Always `total` bytes live: what ends is replaced at once, in other portions. Hard to arrange in `total`
// bytes.
std::vector<MemoryBlock> full_blocks(std::minstd_rand& random, size_t count, uint64_t total, size_t at_once) {
  std::vector<MemoryBlock> blocks;
  std::vector<size_t> live;
  uint64_t free = total;
  for (int step = 0; blocks.size() < count; ++step) {
    for (size_t parts = 1 + random() % at_once; free > 0; --parts) {
      const uint64_t bytes = parts <= 1 ? free : 1 + random() % free;
      live.push_back(blocks.size());
      blocks.push_back({bytes, step, step, 0});
      free -= bytes;
    }
    for (const size_t i : live) blocks[i].last = step;
    for (size_t ends = 1 + random() % 2; ends > 0 && !live.empty(); --ends) {
      const size_t at = random() % live.size();
      free += blocks[live[at]].bytes;
      live.erase(live.begin() + static_cast<ptrdiff_t>(at));
    }
  }
  return blocks;
}

// Whether blocks fit into `total` bytes: all sequences in which each block goes on top of those of its time.
bool fits_somehow(std::vector<MemoryBlock>& blocks, std::vector<bool>& placed, uint64_t total,
                  uint64_t last) {
  bool all = true;
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (placed[i]) continue;
    all = false;
    uint64_t at = 0;
    for (size_t j = 0; j < blocks.size(); ++j)
      if (placed[j] && blocks[j].first <= blocks[i].last && blocks[i].first <= blocks[j].last)
        at = std::max(at, blocks[j].offset + blocks[j].bytes);
    if (at < last || at + blocks[i].bytes > total) continue;
    blocks[i].offset = at, placed[i] = true;
    if (fits_somehow(blocks, placed, total, at)) return true;
    placed[i] = false;
  }
  return all;
}

uint64_t least_by_trying(std::vector<MemoryBlock> blocks) {
  for (uint64_t total = memory_lower_bound(blocks, 1);; ++total) {
    std::vector<bool> placed(blocks.size());
    if (fits_somehow(blocks, placed, total, 0)) return total;
  }
}

// The sum of live bytes is not enough for these (found by trying many of full_blocks's kind).
const std::vector<std::vector<MemoryBlock>> kAboveTheSum{
    {{4, 0, 1}, {2, 0, 0}, {1, 1, 3}, {1, 1, 2}, {3, 2, 3}, {1, 2, 2}, {2, 3, 4}, {4, 4, 4}},
    {{2, 0, 1}, {2, 0, 0}, {1, 0, 3}, {1, 1, 2}, {1, 1, 3}, {1, 2, 2}, {1, 2, 3}, {2, 3, 4}, {3, 4, 4}},
    {{2, 0, 0},
     {1, 0, 3},
     {1, 0, 1},
     {1, 1, 1},
     {1, 1, 4},
     {2, 2, 2},
     {1, 3, 3},
     {1, 3, 5},
     {2, 4, 4},
     {3, 5, 5}},
    {{1, 0, 2},
     {1, 0, 0},
     {3, 0, 0},
     {2, 1, 1},
     {2, 1, 4},
     {1, 2, 2},
     {1, 2, 5},
     {2, 3, 3},
     {2, 4, 4},
     {4, 5, 5}},
    {{3, 0, 0},
     {2, 0, 3},
     {2, 0, 1},
     {2, 1, 4},
     {1, 1, 2},
     {1, 2, 5},
     {1, 2, 2},
     {2, 3, 3},
     {4, 4, 5},
     {2, 5, 5}},
    {{4, 0, 0},
     {2, 0, 1},
     {3, 1, 3},
     {1, 1, 2},
     {1, 2, 3},
     {1, 2, 2},
     {1, 3, 4},
     {1, 3, 4},
     {2, 4, 5},
     {2, 4, 5},
     {2, 5, 5}},
};

void expect_sound(const std::vector<MemoryBlock>& blocks, uint64_t alignment, const OffsetResult& result) {
  EXPECT_TRUE(offsets_valid(blocks, alignment));
  uint64_t end = 0;
  for (const MemoryBlock& b : blocks)
    if (b.bytes > 0) end = std::max(end, align_up(b.offset + b.bytes, alignment));
  EXPECT_EQ(result.bytes, end);
  EXPECT_GE(result.bytes, result.lower_bound);
  EXPECT_GE(result.lower_bound, memory_lower_bound(blocks, alignment));
}

TEST(Offsets, RandomBlocksNeverMeetAndTheBoundHolds) {
  std::minstd_rand random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<MemoryBlock> blocks = random_blocks(random, 1 + random() % 40, 30, 8, 1000);
    const OffsetResult result = assign_offsets(blocks, {.max_nodes = 500});
    expect_sound(blocks, 64, result);
    EXPECT_EQ(result.proved, result.bytes == result.lower_bound);
    EXPECT_LE(result.nodes, 500u);
  }
}

TEST(Offsets, GapsAreUsedBestFitFirst) {
  // Two long-lived blocks leave a gap where a short-lived one was; a later one of its size takes it.
  std::vector<MemoryBlock> blocks{{512, 0, 9, 0}, {256, 0, 3, 0}, {256, 5, 9, 0}};
  EXPECT_EQ(assign_offsets(blocks, {.max_nodes = 0}).bytes, 768u);
  EXPECT_EQ(blocks[1].offset, blocks[2].offset);
}

TEST(Offsets, NothingTakesNothing) {
  std::vector<MemoryBlock> none, empty{{0, 0, 3, 0}, {0, 1, 2, 0}};
  EXPECT_EQ(assign_offsets(none, {}).bytes, 0u);
  EXPECT_TRUE(assign_offsets(none, {}).proved);
  EXPECT_EQ(assign_offsets(empty, {}).bytes, 0u);
}

TEST(Offsets, TheSearchFindsTheMinimumOfSmallInstances) {
  std::minstd_rand random(11);
  for (int round = 0; round < 300; ++round) {
    std::vector<MemoryBlock> blocks =
        round % 2 == 0 ? random_blocks(random, 3 + random() % 8, 6, 4, 12) : full_blocks(random, 11, 7, 4);
    const uint64_t least = least_by_trying(blocks);
    const OffsetResult result = assign_offsets(blocks, {.alignment = 1, .max_nodes = 1000000});
    expect_sound(blocks, 1, result);
    EXPECT_TRUE(result.proved);
    EXPECT_EQ(result.bytes, least);
  }
}

TEST(Offsets, TheMinimumIsProvedWhereItIsAboveTheSumOfLiveBytes) {
  for (std::vector<MemoryBlock> blocks : kAboveTheSum) {
    const uint64_t least = least_by_trying(blocks), sum = memory_lower_bound(blocks, 1);
    EXPECT_GT(least, sum);
    const OffsetResult result = assign_offsets(blocks, {.alignment = 1});
    expect_sound(blocks, 1, result);
    EXPECT_TRUE(result.proved);
    EXPECT_EQ(result.bytes, least);
    EXPECT_EQ(result.lower_bound, least);
    const OffsetResult within = assign_offsets(blocks, {.alignment = 1, .capacity = sum});
    EXPECT_TRUE(within.proved);
    EXPECT_GT(within.lower_bound, sum);
  }
}

TEST(Offsets, SameInputSameResult) {
  std::minstd_rand random(5);
  for (int round = 0; round < 20; ++round) {
    std::vector<MemoryBlock> blocks = random_blocks(random, 60, 40, 15, 100000), again = blocks;
    const OffsetResult a = assign_offsets(blocks, {.max_nodes = 2000}),
                       b = assign_offsets(again, {.max_nodes = 2000});
    EXPECT_EQ(a.bytes, b.bytes);
    EXPECT_EQ(a.nodes, b.nodes);
    for (size_t i = 0; i < blocks.size(); ++i) EXPECT_EQ(blocks[i].offset, again[i].offset);
  }
}

TEST(Offsets, OthersArePlacedInTheHolesOfPieces) {
  // A block whose lower half is free in the beginning and whose upper half is free in the end.
  std::vector<MemoryBlock> blocks{
      {128, 0, 3, 0, {{0, 1, 64, 128}, {2, 3, 0, 64}}}, {64, 0, 1, 0}, {64, 2, 3, 0}};
  const OffsetResult result = assign_offsets(blocks, {});
  expect_sound(blocks, 64, result);
  EXPECT_EQ(result.bytes, 128u);
  EXPECT_TRUE(result.proved);
}

TEST(Offsets, PiecesAreValidAndNeverWorseThanGreedy) {
  std::minstd_rand random(23);
  uint64_t better = 0;
  for (int round = 0; round < 60; ++round) {
    std::vector<MemoryBlock> blocks = random_blocks(random, 40, 30, 10, 5000);
    for (MemoryBlock& b : blocks) {
      // Two halves of its life, a part of its bytes in each.
      if (b.last == b.first || b.bytes < 2) continue;
      const int middle = (b.first + b.last) / 2;
      const uint64_t cut = 1 + random() % (b.bytes - 1);
      b.pieces = {{b.first, middle, 0, cut}, {middle + 1, b.last, cut / 2, b.bytes}};
    }
    std::vector<MemoryBlock> greedy = blocks;
    const OffsetResult least = assign_offsets(greedy, {.max_nodes = 0}), result = assign_offsets(blocks, {});
    expect_sound(blocks, 64, result);
    EXPECT_LE(result.bytes, least.bytes);
    EXPECT_LE(result.nodes, 20000u);
    better += result.bytes < least.bytes;
  }
  EXPECT_GT(better, 0u);
}

TEST(Offsets, ValidityIsChecked) {
  EXPECT_TRUE(offsets_valid({{64, 0, 1, 0}, {64, 1, 2, 64}}, 64));
  EXPECT_FALSE(offsets_valid({{65, 0, 1, 0}, {64, 1, 2, 64}}, 64));
  EXPECT_FALSE(offsets_valid({{64, 0, 1, 32}}, 64));
  EXPECT_FALSE(offsets_valid({{64, 0, 1, 0, {{0, 1, 0, 65}}}}, 64));
}

}  // namespace
}  // namespace sinter::convert
