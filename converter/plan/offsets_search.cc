#include "converter/plan/offsets_search.h"

#include <algorithm>
#include <chrono>
#include <numeric>

namespace sinter::convert {
namespace {

constexpr size_t kFailedSlots = size_t{1} << 16;

uint64_t mix(uint64_t x) {
  x ^= x >> 32, x *= 0xd6e8feb86659fd93u;
  x ^= x >> 32, x *= 0xd6e8feb86659fd93u;
  return x ^ x >> 32;
}

}  // namespace

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

OffsetSearch::OffsetSearch(std::vector<Rectangle> rectangles) {
  divide_time(rectangles);
  const size_t n = rectangles.size();
  blocks_.resize(n);
  neighbours_.resize(n);
  for (size_t i = 0; i < n; ++i) {
    const Rectangle& a = rectangles[i];
    blocks_[i].size = a.size, blocks_[i].first = a.first, blocks_[i].last = a.last;
    for (size_t j = 0; j < n; ++j) {
      const Rectangle& b = rectangles[j];
      if (i == j || a.first > b.last || b.first > a.last) continue;
      neighbours_[i].push_back(static_cast<int32_t>(j));
      if (j < i && a.size == b.size && a.first == b.first && a.last == b.last)
        blocks_[i].equal_before = static_cast<int32_t>(j);
    }
  }
  offset_.resize(n);
  failed_.resize(kFailedSlots);
}

// Sections: the largest sets of blocks that live at once. One ends where a block ends after another has
// begun.
void OffsetSearch::divide_time(std::vector<Rectangle>& rectangles) {
  std::vector<int32_t> starts, ends, times;
  for (const Rectangle& r : rectangles) starts.push_back(r.first), ends.push_back(r.last);
  std::sort(starts.begin(), starts.end());
  std::sort(ends.begin(), ends.end());
  size_t s = 0;
  for (const int32_t end : ends) {
    const size_t before = s;
    while (s < starts.size() && starts[s] <= end) ++s;
    if (s > before) times.push_back(end);
  }
  for (Rectangle& r : rectangles) {
    r.first = static_cast<int32_t>(std::lower_bound(times.begin(), times.end(), r.first) - times.begin());
    r.last = static_cast<int32_t>(std::upper_bound(times.begin(), times.end(), r.last) - times.begin()) - 1;
  }
  load_.resize(times.size());
  reach_.assign(times.size(), -1);
  failures_.resize(times.size());
}

SearchOutcome OffsetSearch::run(int32_t capacity, Pick pick, SearchBudget budget) {
  if (capacity != capacity_) std::fill(failed_.begin(), failed_.end(), Failed{});
  capacity_ = capacity, pick_ = pick, budget_ = budget;
  nodes_ = 0, stopped_ = false;
  trail_.clear();
  for (Block& b : blocks_) {
    if (b.size > capacity) return SearchOutcome::kImpossible;
    b.position = 0, b.open = true, b.orphan = b.equal_before >= 0;
  }
  Indices open(blocks_.size());
  std::iota(open.begin(), open.end(), 0);
  if (search_parts(open)) return SearchOutcome::kFound;
  return stopped_ ? SearchOutcome::kUndecided : SearchOutcome::kImpossible;
}

void OffsetSearch::set(int32_t block, int32_t position, bool orphan) {
  Block& b = at(block);
  trail_.push_back({block, b.position, b.orphan});
  b.position = position, b.orphan = orphan;
}

void OffsetSearch::undo(size_t mark) {
  for (; trail_.size() > mark; trail_.pop_back()) {
    const Undo& u = trail_.back();
    at(u.block).position = u.position, at(u.block).orphan = u.orphan;
  }
}

// The next block is never an orphan, so nothing will be below the lowest block that is not one; an orphan
// will be on an open neighbour.
bool OffsetSearch::lift_orphans(const Indices& open) {
  int32_t floor = INT32_MAX;
  for (const int32_t i : open)
    if (!at(i).orphan) floor = std::min(floor, at(i).position);
  if (floor == INT32_MAX) return false;
  for (const int32_t i : open) {
    Block& b = at(i);
    b.earliest = b.position;
    if (!b.orphan) continue;
    int32_t least = INT32_MAX;
    for (const int32_t k : neighbours_[static_cast<size_t>(i)]) {
      const Block& other = at(k);
      if (other.open)
        least =
            std::min(least, (other.orphan ? std::max(floor, other.position) : other.position) + other.size);
    }
    if (least == INT32_MAX) return false;
    b.earliest = std::max(b.earliest, least);
  }
  return true;
}

// The one-machine bound: what cannot be below `earliest` has to fit above it, for every `earliest` of a
// section.
bool OffsetSearch::fits(const Indices& by_earliest) {
  int32_t from = INT32_MAX, to = 0;
  for (const int32_t i : by_earliest) from = std::min(from, at(i).first), to = std::max(to, at(i).last);
  std::fill(load_.begin() + from, load_.begin() + to + 1, 0);
  for (size_t n = by_earliest.size(); n-- > 0;) {
    const Block& b = at(by_earliest[n]);
    const int32_t room = capacity_ - b.earliest, size = b.size, length = b.last - b.first + 1;
    int32_t* load = load_.data() + b.first;
    int32_t over = 0;
    for (int32_t t = 0; t < length; ++t) {
      load[t] += size;
      over |= room - load[t];
    }
    if (over >= 0) continue;
    for (int32_t t = 0; t < length; ++t) failures_[static_cast<size_t>(b.first + t)] += load[t] > room;
    return false;
  }
  return true;
}

OffsetSearch::Failed OffsetSearch::key(const Indices& open) const {
  Failed k;
  for (const int32_t i : open) {
    const Block& b = at(i);
    const uint64_t h = mix(static_cast<uint64_t>(i) << 33 | static_cast<uint64_t>(b.orphan) << 32 |
                           static_cast<uint32_t>(b.position));
    k.a += h;
    k.b += mix(h + 0x9e3779b97f4a7c15u);
  }
  return k;
}

int32_t OffsetSearch::choose(const Indices& open) const {
  int32_t chosen = -1;
  std::pair<int64_t, int32_t> best;
  for (const int32_t i : open) {
    const Block& b = at(i);
    if (b.orphan) continue;
    std::pair<int64_t, int32_t> rank{0, i};
    if (pick_ == Pick::kLowest) rank.first = b.position;
    for (int32_t t = b.first; pick_ == Pick::kCrowded && t <= b.last; ++t)
      rank.first = std::min<int64_t>(rank.first, -load_[static_cast<size_t>(t)]);
    for (int32_t t = b.first; (pick_ == Pick::kFailing || pick_ == Pick::kLowFailing) && t <= b.last; ++t)
      rank.first = std::min(rank.first, -static_cast<int64_t>(failures_[static_cast<size_t>(t)]));
    if (pick_ == Pick::kLowFailing) rank.first += 100 * static_cast<int64_t>(b.position);
    if (chosen >= 0 && rank >= best) continue;
    bool lowest = true;
    for (const int32_t k : neighbours_[static_cast<size_t>(i)]) {
      const Block& other = at(k);
      if (!other.open || other.orphan || other.position > b.position) continue;
      lowest = other.position == b.position && k > i;
      if (!lowest) break;
    }
    if (lowest) chosen = i, best = rank;
  }
  return chosen;
}

// On what is placed, below all its open neighbours. False: one of them has no room any more.
bool OffsetSearch::place(int32_t chosen) {
  Block& b = at(chosen);
  b.open = false;
  offset_[static_cast<size_t>(chosen)] = b.position;
  const int32_t top = b.position + b.size;
  for (const int32_t i : neighbours_[static_cast<size_t>(chosen)]) {
    const Block& o = at(i);
    if (!o.open) continue;
    const bool blocked = o.equal_before >= 0 && at(o.equal_before).open;
    const bool exchange = i < chosen && o.first == b.first && o.last == b.last;
    if (o.position < top)
      set(i, top, blocked || exchange);
    else if (o.orphan && !blocked)
      set(i, o.position, false);
    if (o.position + o.size > capacity_) return false;
  }
  return top <= capacity_;
}

bool OffsetSearch::search_parts(const Indices& open) {
  if (open.empty()) return true;
  int32_t from = INT32_MAX, to = 0;
  for (const int32_t i : open) {
    const Block& b = at(i);
    from = std::min(from, b.first), to = std::max(to, b.last);
    int32_t& reach = reach_[static_cast<size_t>(b.first)];
    reach = std::max(reach, b.last);
  }
  Indices part_ends;
  int32_t end = from;
  for (int32_t t = from; t <= to; ++t) {
    if (t > end && reach_[static_cast<size_t>(t)] >= 0) part_ends.push_back(end);
    end = std::max(end, std::exchange(reach_[static_cast<size_t>(t)], -1));
  }
  if (part_ends.empty()) return search(open);
  part_ends.push_back(end);
  std::vector<Indices> parts(part_ends.size());
  for (const int32_t i : open) {
    const auto part = std::lower_bound(part_ends.begin(), part_ends.end(), at(i).last) - part_ends.begin();
    parts[static_cast<size_t>(part)].push_back(i);
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Indices& a, const Indices& b) { return a.size() < b.size(); });
  for (const Indices& part : parts) {
    if (search(part)) continue;
    for (const int32_t i : open) at(i).open = true;
    return false;
  }
  return true;
}

bool OffsetSearch::search(const Indices& open) {
  if (open.size() == 1) {
    const Block& b = at(open[0]);
    if (b.orphan || b.position + b.size > capacity_) return false;
    offset_[static_cast<size_t>(open[0])] = b.position;
    return true;
  }
  const Failed state = key(open);
  Failed& slot = failed_[state.a % kFailedSlots];
  if (slot.a == state.a && slot.b == state.b) return false;
  Indices order = open, rest;  // by earliest
  const size_t mark = trail_.size();
  while (true) {
    if (nodes_ >= budget_.nodes ||
        (budget_.deadline > 0 && nodes_ % 64 == 0 && steady_seconds() > budget_.deadline)) {
      stopped_ = true;
      return false;
    }
    ++nodes_;
    if (!lift_orphans(open)) break;
    for (size_t n = 1; n < order.size(); ++n) {
      const int32_t i = order[n], earliest = at(i).earliest;
      size_t m = n;
      for (; m > 0 && at(order[m - 1]).earliest > earliest; --m) order[m] = order[m - 1];
      order[m] = i;
    }
    if (!fits(order)) break;
    const int32_t chosen = choose(order);
    const size_t before = trail_.size();
    if (place(chosen)) {
      rest.clear();
      for (const int32_t i : order)
        if (i != chosen) rest.push_back(i);
      if (search_parts(rest)) return true;
      if (stopped_) return false;
    }
    undo(before);
    at(chosen).open = true;
    set(chosen, at(chosen).position, true);
  }
  undo(mark);
  slot = state;
  return false;
}

}  // namespace sinter::convert
