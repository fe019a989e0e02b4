#include "converter/plan/offsets_greedy.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <span>

namespace sinter::convert {
namespace {

// The largest sum of live bytes (whole blocks, unaligned) for every step where something begins.
std::map<int, uint64_t> traffic_by_step(const std::vector<MemoryBlock>& blocks) {
  std::map<int, int64_t> change;
  for (const MemoryBlock& b : blocks) {
    change[b.first] += static_cast<int64_t>(b.bytes);
    change[b.last + 1] -= static_cast<int64_t>(b.bytes);
  }
  std::map<int, uint64_t> sums;
  int64_t now = 0;
  for (const auto& [step, delta] : change) sums[step] = static_cast<uint64_t>(now += delta);
  return sums;
}

// The offsets that a placed block forbids another one: strictly between `above` and `below`.
struct Forbidden {
  int64_t above, below;
};

std::span<const MemoryPiece> pieces_of(const MemoryBlock& b, MemoryPiece& whole) {
  if (!b.pieces.empty()) return b.pieces;
  whole = {b.first, b.last, 0, b.bytes};
  return {&whole, 1};
}

void forbid(const MemoryBlock& block, const MemoryBlock& placed, std::vector<Forbidden>& out) {
  MemoryPiece whole_block, whole_placed;
  for (const MemoryPiece& p : pieces_of(placed, whole_placed))
    for (const MemoryPiece& b : pieces_of(block, whole_block)) {
      if (p.last < b.first || b.last < p.first || p.begin == p.end || b.begin == b.end) continue;
      out.push_back({static_cast<int64_t>(placed.offset + p.begin) - static_cast<int64_t>(b.end),
                     static_cast<int64_t>(placed.offset + p.end) - static_cast<int64_t>(b.begin)});
    }
}

}  // namespace

const std::vector<GreedyOrder> kGreedyOrders{{"ze", true},   {"al", true},  {"ltz", true}, {"tlz", true},
                                             {"tz", true},   {"ze", false}, {"al", false}, {"ltz", false},
                                             {"tlz", false}, {"e", true}};

std::vector<size_t> preference(const std::vector<MemoryBlock>& blocks, const char* keys, uint64_t seed,
                               double scatter) {
  const std::map<int, uint64_t> traffic = traffic_by_step(blocks);
  std::vector<std::vector<double>> rows(blocks.size());
  for (size_t i = 0; i < blocks.size(); ++i) {
    const MemoryBlock& b = blocks[i];
    double factor = 1;
    if (scatter > 0) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      factor += scatter * (static_cast<double>(seed >> 40) / static_cast<double>(1 << 24) - 0.5);
    }
    const auto size = static_cast<double>(b.bytes), length = static_cast<double>(b.last) - b.first + 1;
    for (const char* k = keys; *k != '\0'; ++k) {
      double key = -static_cast<double>(b.first);
      if (*k == 'z') key = size;
      if (*k == 'l') key = length;
      if (*k == 'a') key = size * length;
      if (*k == 't') {
        uint64_t most = 0;
        for (auto at = traffic.lower_bound(b.first); at != traffic.end() && at->first <= b.last; ++at)
          most = std::max(most, at->second);
        key = static_cast<double>(most);
      }
      rows[i].push_back(key * factor);
    }
  }
  std::vector<size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rows[a] > rows[b]; });
  return order;
}

uint64_t place_greedily(std::vector<MemoryBlock>& blocks, uint64_t alignment,
                        const std::vector<size_t>& order, bool best_fit) {
  const auto step = static_cast<int64_t>(alignment);
  std::vector<Forbidden> forbidden;
  uint64_t used = 0;
  for (size_t n = 0; n < order.size(); ++n) {
    MemoryBlock& block = blocks[order[n]];
    block.offset = 0;
    if (block.bytes == 0) continue;
    forbidden.clear();
    for (size_t m = 0; m < n; ++m) {
      const MemoryBlock& placed = blocks[order[m]];
      if (placed.last < block.first || block.last < placed.first) continue;
      forbid(block, placed, forbidden);
    }
    std::sort(forbidden.begin(), forbidden.end(),
              [](const Forbidden& a, const Forbidden& b) { return a.above < b.above; });
    // Gaps between forbidden ranges: from `at` (aligned) up to the next range's `above`.
    int64_t at = 0, best = -1, best_slack = INT64_MAX;
    for (const Forbidden& f : forbidden) {
      if (f.above >= at && f.above - at < best_slack) {
        best = at, best_slack = f.above - at;
        if (!best_fit) break;
      }
      if (f.below > at) at = (f.below + step - 1) / step * step;
    }
    block.offset = static_cast<uint64_t>(best < 0 ? at : best);
    used = std::max(used, align_up(block.offset + block.bytes, alignment));
  }
  return used;
}

}  // namespace sinter::convert
