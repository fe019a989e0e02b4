// Offset assignment: blocks with sizes and live ranges go into one arena (dynamic storage allocation).
#pragma once

#include <cstdint>
#include <vector>

namespace sinter::convert {

// Live from step `first` to step `last`, both included.
struct MemoryBlock {
  uint64_t bytes = 0;
  int first = 0, last = 0;
  uint64_t offset = 0;  // the result, a multiple of the alignment
};

// Greedy best fit, largest block first: each goes into the smallest gap between already placed blocks that
// are live at some common time, else above them. Deterministic. Returns the bytes used.
uint64_t assign_offsets(std::vector<MemoryBlock>& blocks, uint64_t alignment);

// No arrangement can use less: the largest sum of (aligned) bytes live in one step.
uint64_t memory_lower_bound(const std::vector<MemoryBlock>& blocks, uint64_t alignment);

}  // namespace sinter::convert
