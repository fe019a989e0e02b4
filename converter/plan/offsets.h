// Offset assignment: blocks with sizes and live ranges go into one arena (dynamic storage allocation).
//
// Greedy arrangements come first (offsets_greedy.h). Where the best of them is above the lower bound, an
// exact search (offsets_search.h) tries for one at the bound, then between the two, until the best one is
// proved or the nodes are used up. What is not searched (pieces, many blocks) is arranged greedily again and
// again, with what ended too high placed earlier. Same input, same result: the budget counts search nodes, a
// time limit is opt-in.
#pragma once

#include <cstdint>
#include <vector>

namespace sinter::convert {

// The bytes [begin, end) of a block, counted from its offset, during the steps first to last, both included.
struct MemoryPiece {
  int first = 0, last = 0;
  uint64_t begin = 0, end = 0;
};

// Live from step `first` to step `last`, both included.
struct MemoryBlock {
  uint64_t bytes = 0;
  int first = 0, last = 0;
  uint64_t offset = 0;  // the result, a multiple of the alignment
  // The parts that are occupied, and when; empty: all bytes all the time. Other blocks may be placed where no
  // piece is. Pieces are within bytes, first and last.
  std::vector<MemoryPiece> pieces = {};
};

struct OffsetOptions {
  uint64_t alignment = 64;
  uint64_t capacity = 0;       // stop at an arrangement of at most this many bytes; 0: find the minimum
  uint64_t max_nodes = 20000;  // of the search; 0: greedy only
  double max_seconds = 0;      // 0: none; else the result may depend on the machine
};

struct OffsetResult {
  uint64_t bytes = 0;
  uint64_t lower_bound = 0;  // no arrangement takes less
  uint64_t nodes = 0;        // that the search took
  bool proved = false;       // bytes is the minimum (where capacity is given: or capacity is proved
                             // impossible); lower_bound then agrees
};

// Sets every block's offset. Never worse than the best of the greedy arrangements.
OffsetResult assign_offsets(std::vector<MemoryBlock>& blocks, const OffsetOptions& options);

// The largest sum of (aligned) bytes live in one step.
uint64_t memory_lower_bound(const std::vector<MemoryBlock>& blocks, uint64_t alignment);

// No two blocks share a byte in a step and every offset is aligned. Independent of how offsets were found.
bool offsets_valid(const std::vector<MemoryBlock>& blocks, uint64_t alignment);

}  // namespace sinter::convert
