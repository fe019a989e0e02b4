#include "converter/plan/offsets.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace sinter::convert {
namespace {

uint64_t aligned(uint64_t n, uint64_t alignment) { return (n + alignment - 1) / alignment * alignment; }

}  // namespace

uint64_t assign_offsets(std::vector<MemoryBlock>& blocks, uint64_t alignment) {
  std::vector<size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::tuple(~blocks[a].bytes, blocks[a].first, a) <
           std::tuple(~blocks[b].bytes, blocks[b].first, b);
  });
  std::vector<size_t> placed;  // by offset
  uint64_t used = 0;
  for (const size_t index : order) {
    MemoryBlock& block = blocks[index];
    const uint64_t need = aligned(block.bytes, alignment);
    uint64_t end = 0, best = UINT64_MAX, best_gap = UINT64_MAX;
    for (const size_t other_index : placed) {
      const MemoryBlock& other = blocks[other_index];
      if (other.last < block.first || block.last < other.first) continue;
      if (other.offset > end && other.offset - end >= need && other.offset - end < best_gap)
        best = end, best_gap = other.offset - end;
      end = std::max(end, aligned(other.offset + other.bytes, alignment));
    }
    block.offset = best == UINT64_MAX ? end : best;
    used = std::max(used, block.offset + need);
    const auto at = std::upper_bound(placed.begin(), placed.end(), index, [&](size_t a, size_t b) {
      return std::tuple(blocks[a].offset, a) < std::tuple(blocks[b].offset, b);
    });
    placed.insert(at, index);
  }
  return used;
}

uint64_t memory_lower_bound(const std::vector<MemoryBlock>& blocks, uint64_t alignment) {
  std::map<int, int64_t> change;
  for (const MemoryBlock& b : blocks) {
    change[b.first] += static_cast<int64_t>(aligned(b.bytes, alignment));
    change[b.last + 1] -= static_cast<int64_t>(aligned(b.bytes, alignment));
  }
  int64_t now = 0, most = 0;
  for (const auto& [step, delta] : change) most = std::max(most, now += delta);
  return static_cast<uint64_t>(most);
}

}  // namespace sinter::convert
