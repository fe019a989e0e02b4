#include "converter/passes/global/min_cut.h"

#include <algorithm>

namespace sinter::convert {

void MinCut::add_cost(int one, int zero, int64_t cost) {
  if (one == zero || cost <= 0) return;
  edges_.push_back({zero, first_[static_cast<size_t>(one)], cost});
  first_[static_cast<size_t>(one)] = static_cast<int>(edges_.size()) - 1;
  edges_.push_back({one, first_[static_cast<size_t>(zero)], 0});
  first_[static_cast<size_t>(zero)] = static_cast<int>(edges_.size()) - 1;
}

// Steps along edges with room; backwards: along edges that lead here.
std::vector<int> MinCut::distances(int from, bool backwards) const {
  std::vector<int> distance(first_.size(), -1), queue{from};
  distance[static_cast<size_t>(from)] = 0;
  for (size_t i = 0; i < queue.size(); ++i) {
    const auto at = static_cast<size_t>(queue[i]);
    for (int e = first_[at]; e >= 0; e = edges_[static_cast<size_t>(e)].next) {
      const Edge& edge = edges_[static_cast<size_t>(e)];
      const Edge& used = backwards ? edges_[static_cast<size_t>(e ^ 1)] : edge;
      if (used.room <= 0 || distance[static_cast<size_t>(edge.to)] >= 0) continue;
      distance[static_cast<size_t>(edge.to)] = distance[at] + 1;
      queue.push_back(edge.to);
    }
  }
  return distance;
}

// One path of the level graph, without recursion: paths may be as long as the model.
int64_t MinCut::push(int source, int64_t limit) {
  std::vector<int> path;
  int at = source;
  while (at != kZero) {
    int& e = current_[static_cast<size_t>(at)];
    while (e >= 0) {
      const Edge& edge = edges_[static_cast<size_t>(e)];
      if (edge.room > 0 && level_[static_cast<size_t>(edge.to)] == level_[static_cast<size_t>(at)] + 1) break;
      e = edge.next;
    }
    if (e >= 0) {
      path.push_back(e);
      at = edges_[static_cast<size_t>(e)].to;
      continue;
    }
    if (path.empty()) return 0;
    // A dead end: step back and take the next edge there.
    at = edges_[static_cast<size_t>(path.back() ^ 1)].to;
    path.pop_back();
    current_[static_cast<size_t>(at)] = edges_[static_cast<size_t>(current_[static_cast<size_t>(at)])].next;
  }
  for (const int e : path) limit = std::min(limit, edges_[static_cast<size_t>(e)].room);
  for (const int e : path) {
    edges_[static_cast<size_t>(e)].room -= limit;
    edges_[static_cast<size_t>(e ^ 1)].room += limit;
  }
  return limit;
}

std::vector<bool> MinCut::solve(bool prefer_ones) {
  for (;;) {
    level_ = distances(kOne, false);
    if (level_[kZero] < 0) break;
    current_ = first_;
    while (push(kOne, kNever) > 0) {
    }
  }
  const std::vector<int> reach = distances(prefer_ones ? kZero : kOne, prefer_ones);
  std::vector<bool> ones(first_.size());
  for (size_t i = 0; i < ones.size(); ++i) ones[i] = prefer_ones ? reach[i] < 0 : reach[i] >= 0;
  return ones;
}

}  // namespace sinter::convert
