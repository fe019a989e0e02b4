#include "runtime/model/overlap.h"

#include <algorithm>

namespace sinter::detail {
namespace {

constexpr int32_t kFree = -1;

// Covers of a node's whole range are counted at the node; `low` and `high` are the smallest and largest block
// index found at it or below, kFree if none. Different blocks never cover one byte, so `block` is one number.
struct Node {
  int32_t covers = 0;
  int32_t block = kFree;
  int32_t low = kFree, high = kFree;
};

struct Tree {
  Node* nodes;
  size_t leaves;  // a power of two

  void merge(int32_t* low, int32_t* high, int32_t l, int32_t h) const {
    if (l == kFree) return;
    if (*low == kFree || l < *low) *low = l;
    if (*high == kFree || h > *high) *high = h;
  }
  void pull(size_t n) {
    Node& node = nodes[n];
    node.low = node.high = kFree;
    if (node.covers > 0) node.low = node.high = node.block;
    if (n < leaves)
      for (const size_t child : {2 * n, 2 * n + 1})
        merge(&node.low, &node.high, nodes[child].low, nodes[child].high);
  }
  void add(size_t n, size_t lo, size_t hi, size_t from, size_t to, int32_t block, int32_t delta) {
    if (to <= lo || hi <= from) return;
    if (from <= lo && hi <= to) {
      nodes[n].covers += delta;
      nodes[n].block = block;
    } else {
      const size_t mid = (lo + hi) / 2;
      add(2 * n, lo, mid, from, to, block, delta);
      add(2 * n + 1, mid, hi, from, to, block, delta);
    }
    pull(n);
  }
  void query(size_t n, size_t lo, size_t hi, size_t from, size_t to, int32_t* low, int32_t* high) const {
    if (to <= lo || hi <= from) return;
    const Node& node = nodes[n];
    if (from <= lo && hi <= to) return merge(low, high, node.low, node.high);
    if (node.covers > 0) merge(low, high, node.block, node.block);
    const size_t mid = (lo + hi) / 2;
    query(2 * n, lo, mid, from, to, low, high);
    query(2 * n + 1, mid, hi, from, to, low, high);
  }
};

size_t leaves_for(size_t n) {
  size_t leaves = 1;
  while (leaves < 2 * n) leaves *= 2;
  return leaves;
}

struct Scratch {
  uint64_t* ends;
  uint32_t* by_first;
  uint32_t* by_last;
  Node* nodes;

  Scratch(size_t n, BumpArena& arena)
      : ends(arena.allocate_array<uint64_t>(2 * n)),
        by_first(arena.allocate_array<uint32_t>(n)),
        by_last(arena.allocate_array<uint32_t>(n)),
        nodes(arena.allocate_array<Node>(2 * leaves_for(n))) {}
};

}  // namespace

void measure_disjoint(size_t n, BumpArena& scratch) { Scratch{n, scratch}; }

Status prove_disjoint(std::span<const Box> boxes, BumpArena& scratch) {
  const size_t n = boxes.size();
  if (n == 0) return ok_status();
  const Scratch s(n, scratch);
  SINTER_RETURN_UNLESS(s.nodes != nullptr, corrupt("the file states too little scratch memory"));
  for (size_t i = 0; i < n; ++i) {
    s.ends[2 * i] = boxes[i].begin;
    s.ends[2 * i + 1] = boxes[i].end;
    s.by_first[i] = s.by_last[i] = static_cast<uint32_t>(i);
  }
  std::sort(s.ends, s.ends + 2 * n);
  const uint64_t* const ends_end = std::unique(s.ends, s.ends + 2 * n);
  std::sort(s.by_first, s.by_first + n, [&](uint32_t a, uint32_t b) {
    return boxes[a].first != boxes[b].first ? boxes[a].first < boxes[b].first : a < b;
  });
  std::sort(s.by_last, s.by_last + n, [&](uint32_t a, uint32_t b) {
    return boxes[a].last != boxes[b].last ? boxes[a].last < boxes[b].last : a < b;
  });
  const auto rank = [&](uint64_t byte) {
    return static_cast<size_t>(std::lower_bound<const uint64_t*>(s.ends, ends_end, byte) - s.ends);
  };

  Tree tree{s.nodes, leaves_for(n)};
  size_t leaving = 0;
  for (size_t i = 0; i < n; ++i) {
    const Box& box = boxes[s.by_first[i]];
    for (; leaving < n && boxes[s.by_last[leaving]].last < box.first; ++leaving) {
      const Box& gone = boxes[s.by_last[leaving]];
      if (gone.begin < gone.end)
        tree.add(1, 0, tree.leaves, rank(gone.begin), rank(gone.end), gone.block, -1);
    }
    if (box.begin >= box.end) continue;
    const size_t from = rank(box.begin), to = rank(box.end);
    int32_t low = kFree, high = kFree;
    tree.query(1, 0, tree.leaves, from, to, &low, &high);
    if (low != kFree && (low != box.block || high != box.block)) {
      // The message names the other one (once, on the way out).
      for (const Box& other : boxes)
        if (other.block != box.block && other.first <= box.last && box.first <= other.last &&
            other.begin < box.end && box.begin < other.end)
          return corrupt("values %a and %b share bytes while both are live (-1: a workspace)", box.value,
                         other.value);
      return corrupt("value %a shares bytes with another live value", box.value);
    }
    tree.add(1, 0, tree.leaves, from, to, box.block, 1);
  }
  return ok_status();
}

}  // namespace sinter::detail
