// The cheapest way to give every variable one of two labels, by maximum flow (Dinic's algorithm).
#pragma once

#include <cstdint>
#include <vector>

namespace sinter::convert {

class MinCut {
 public:
  static constexpr int kOne = 0, kZero = 1;  // what is fixed at label 1 and at label 0
  static constexpr int64_t kNever = INT64_MAX / 4;

  MinCut() : first_(2, -1) {}
  int add_variable() {
    first_.push_back(-1);
    return static_cast<int>(first_.size()) - 1;
  }
  // `cost` is due if `one` has label 1 while `zero` has label 0.
  void add_cost(int one, int zero, int64_t cost);
  // Labels of all variables; where the cheapest way is not unique, as many ones as possible, or as few.
  std::vector<bool> solve(bool prefer_ones);

 private:
  struct Edge {
    int to, next;
    int64_t room;
  };
  std::vector<int> distances(int from, bool backwards) const;
  int64_t push(int at, int64_t limit);

  std::vector<int> first_, current_, level_;
  std::vector<Edge> edges_;  // an edge and its reverse side by side
};

}  // namespace sinter::convert
