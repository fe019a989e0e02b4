// Greedy arrangements: blocks one after another in some order of preference, each into a gap or above.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "converter/plan/offsets.h"

namespace sinter::convert {

// The order of placement: the greatest by the first letter, ties by the next ones, then in the given order.
// z size, l length of life, a area (both multiplied), t traffic: the most bytes live in a step of its life,
// e earliest start.
struct GreedyOrder {
  const char* keys = "";
  bool best_fit = true;  // else the lowest place
};

extern const std::vector<GreedyOrder> kGreedyOrders;

// Indices of the blocks in that order. With scatter > 0 the keys are multiplied with random factors within
// 1 -+ scatter/2 (from seed, the same everywhere).
std::vector<size_t> preference(const std::vector<MemoryBlock>& blocks, const char* keys, uint64_t seed = 0,
                               double scatter = 0);

// Sets offsets, returns the bytes used. Blocks may have pieces.
uint64_t place_greedily(std::vector<MemoryBlock>& blocks, uint64_t alignment,
                        const std::vector<size_t>& order, bool best_fit);

inline uint64_t align_up(uint64_t n, uint64_t alignment) {
  return (n + alignment - 1) / alignment * alignment;
}

}  // namespace sinter::convert
