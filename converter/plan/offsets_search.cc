#include "converter/plan/offsets_search.h"

#include <algorithm>
#include <chrono>
#include <numeric>

namespace sinter::convert {
namespace {

constexpr size_t kFailedSlots = size_t{1} << 18;

uint64_t mix(uint64_t x) {
  x ^= x >> 32, x *= 0xd6e8feb86659fd93u;
  x ^= x >> 32, x *= 0xd6e8feb86659fd93u;
  return x ^ x >> 32;
}

}  // namespace

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

OffsetSearch::OffsetSearch(std::vector<Rectangle> rectangles) : rectangles_(std::move(rectangles)) {
  // Time as sections: the largest sets of blocks that live at once. One ends where a block ends after another
  // has begun.
  std::vector<int32_t> starts, ends;
  for (const Rectangle& r : rectangles_) starts.push_back(r.first), ends.push_back(r.last);
  std::sort(starts.begin(), starts.end());
  std::sort(ends.begin(), ends.end());
  std::vector<int32_t> times;  // one per section
  size_t s = 0;
  for (size_t e = 0; e < ends.size();) {
    const size_t before = s;
    while (s < starts.size() && starts[s] <= ends[e]) ++s;
    if (s > before) times.push_back(ends[e]);
    const int32_t now = ends[e];
    while (e < ends.size() && ends[e] == now) ++e;
  }
  for (Rectangle& r : rectangles_) {
    r.first = static_cast<int32_t>(std::lower_bound(times.begin(), times.end(), r.first) - times.begin());
    r.last = static_cast<int32_t>(std::upper_bound(times.begin(), times.end(), r.last) - times.begin()) - 1;
  }
  sections_ = static_cast<int32_t>(times.size());
  load_.resize(times.size());
  reach_.resize(times.size());
  offset_.resize(rectangles_.size());
  failed_.resize(kFailedSlots);
}

SearchOutcome OffsetSearch::run(int32_t capacity, const std::vector<int32_t>& rank, SearchBudget budget) {
  const size_t n = rectangles_.size();
  capacity_ = capacity, budget_ = budget, nodes_ = 0, stopped_ = false;
  blocks_.assign(n, {});
  given_.resize(n);
  for (size_t i = 0; i < n; ++i) {
    const auto r = static_cast<size_t>(rank[i]);
    given_[r] = static_cast<int32_t>(i);
    blocks_[r] = {rectangles_[i].size, rectangles_[i].first, rectangles_[i].last, rank[i], 0, false, true};
    if (rectangles_[i].size > capacity) return SearchOutcome::kImpossible;
  }
  neighbours_.assign(n, {});
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j)
      if (i != j && blocks_[i].first <= blocks_[j].last && blocks_[j].first <= blocks_[i].last)
        neighbours_[i].push_back(static_cast<int32_t>(j));
  earliest_.assign(n, 0);
  trail_.clear();
  std::fill(failed_.begin(), failed_.end(), Failed{});
  std::vector<int32_t> open(n);
  std::iota(open.begin(), open.end(), 0);
  if (search_parts(open)) return SearchOutcome::kFound;
  return stopped_ ? SearchOutcome::kUndecided : SearchOutcome::kImpossible;
}

void OffsetSearch::set(int32_t block, int32_t position, bool orphan) {
  Block& b = blocks_[static_cast<size_t>(block)];
  trail_.push_back({block, b.position, b.orphan});
  b.position = position, b.orphan = orphan;
}

void OffsetSearch::undo(size_t mark) {
  while (trail_.size() > mark) {
    const Undo& u = trail_.back();
    blocks_[static_cast<size_t>(u.block)].position = u.position;
    blocks_[static_cast<size_t>(u.block)].orphan = u.orphan;
    trail_.pop_back();
  }
}

// Lower bounds of the offsets. What is placed next is no orphan, so nothing comes to lie below the lowest
// block that is none; an orphan comes to lie on an open neighbour.
bool OffsetSearch::lift_orphans(const std::vector<int32_t>& open) {
  int32_t floor = INT32_MAX;
  for (const int32_t i : open)
    if (!blocks_[static_cast<size_t>(i)].orphan)
      floor = std::min(floor, blocks_[static_cast<size_t>(i)].position);
  if (floor == INT32_MAX) return false;
  for (const int32_t i : open) {
    const Block& b = blocks_[static_cast<size_t>(i)];
    int32_t& earliest = earliest_[static_cast<size_t>(i)];
    earliest = b.position;
    if (!b.orphan) continue;
    int32_t least = INT32_MAX;
    for (const int32_t k : neighbours_[static_cast<size_t>(i)]) {
      const Block& other = blocks_[static_cast<size_t>(k)];
      if (other.open)
        least =
            std::min(least, (other.orphan ? std::max(floor, other.position) : other.position) + other.size);
    }
    if (least == INT32_MAX || least + b.size > capacity_) return false;
    earliest = std::max(earliest, least);
  }
  return true;
}

bool OffsetSearch::fits(const std::vector<int32_t>& by_earliest) {
  int32_t from = INT32_MAX, to = 0;
  for (const int32_t i : by_earliest) {
    from = std::min(from, blocks_[static_cast<size_t>(i)].first);
    to = std::max(to, blocks_[static_cast<size_t>(i)].last);
  }
  std::fill(load_.begin() + from, load_.begin() + to + 1, 0);
  for (size_t n = by_earliest.size(); n-- > 0;) {
    const auto i = static_cast<size_t>(by_earliest[n]);
    const Block& b = blocks_[i];
    const int32_t limit = capacity_ - earliest_[i], size = b.size;
    int32_t over = 0;
    int32_t* load = load_.data() + b.first;
    for (int32_t t = 0, e = b.last - b.first + 1; t < e; ++t) {
      load[t] += size;
      over |= limit - load[t];
    }
    if (over < 0) return false;
  }
  return true;
}

OffsetSearch::Failed OffsetSearch::key(const std::vector<int32_t>& open) const {
  Failed k;
  for (const int32_t i : open) {
    const Block& b = blocks_[static_cast<size_t>(i)];
    const uint64_t h = mix(static_cast<uint64_t>(i) << 33 | static_cast<uint64_t>(b.orphan) << 32 |
                           static_cast<uint32_t>(b.position));
    k.a += h;
    k.b += mix(h + 0x9e3779b97f4a7c15u);
  }
  return k;
}

bool OffsetSearch::search_parts(std::vector<int32_t>& open) {
  if (open.empty()) return true;
  // reach: the last section of a block that begins here.
  for (const int32_t i : open) reach_[static_cast<size_t>(blocks_[static_cast<size_t>(i)].first)] = -1;
  for (const int32_t i : open) {
    const Block& b = blocks_[static_cast<size_t>(i)];
    reach_[static_cast<size_t>(b.first)] = std::max(reach_[static_cast<size_t>(b.first)], b.last);
  }
  std::vector<std::pair<int32_t, int32_t>> starts;
  for (const int32_t i : open) {
    const int32_t first = blocks_[static_cast<size_t>(i)].first;
    if (reach_[static_cast<size_t>(first)] >= 0)
      starts.emplace_back(first, reach_[static_cast<size_t>(first)]), reach_[static_cast<size_t>(first)] = -1;
  }
  std::sort(starts.begin(), starts.end());
  std::vector<int32_t> last;  // sections of the parts
  int32_t end = -1;
  for (const auto& [first, far] : starts) {
    if (first > end && end >= 0) last.push_back(end);
    end = std::max(end, far);
  }
  if (last.empty()) return search(open);
  last.push_back(end);
  std::vector<std::vector<int32_t>> parts(last.size());
  for (const int32_t i : open)
    parts[static_cast<size_t>(
              std::lower_bound(last.begin(), last.end(), blocks_[static_cast<size_t>(i)].last) -
              last.begin())]
        .push_back(i);
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.size() < b.size(); });
  for (const auto& part : parts) {
    if (search(part)) continue;
    for (const int32_t i : open) blocks_[static_cast<size_t>(i)].open = true;
    return false;
  }
  return true;
}

bool OffsetSearch::search(const std::vector<int32_t>& open) {
  if (open.size() == 1) {
    const auto i = static_cast<size_t>(open[0]);
    const Block& b = blocks_[i];
    if (b.orphan || b.position + b.size > capacity_) return false;
    offset_[static_cast<size_t>(given_[i])] = b.position;
    return true;
  }
  if (nodes_ >= budget_.nodes ||
      (budget_.deadline > 0 && nodes_ % 64 == 0 && steady_seconds() > budget_.deadline)) {
    stopped_ = true;
    return false;
  }
  ++nodes_;
  if (!lift_orphans(open)) return false;
  std::vector<int32_t> order = open;
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const int32_t ea = earliest_[static_cast<size_t>(a)], eb = earliest_[static_cast<size_t>(b)];
    return ea != eb ? ea < eb : a < b;
  });
  if (!fits(order)) return false;
  const Failed k = key(open);
  Failed& slot = failed_[k.a % kFailedSlots];
  if (slot.a == k.a && slot.b == k.b) return false;

  int32_t ceiling = INT32_MAX;
  for (const int32_t i : open)
    ceiling =
        std::min(ceiling, blocks_[static_cast<size_t>(i)].position + blocks_[static_cast<size_t>(i)].size);
  std::vector<int32_t> candidates;
  for (const int32_t i : order)
    if (!blocks_[static_cast<size_t>(i)].orphan && blocks_[static_cast<size_t>(i)].position < ceiling)
      candidates.push_back(i);
  std::vector<int32_t> rest;
  const size_t mark = trail_.size();
  for (size_t c = 0; c < candidates.size(); ++c) {
    const int32_t chosen = candidates[c];
    Block& b = blocks_[static_cast<size_t>(chosen)];
    bool equal = false;
    for (size_t d = 0; d < c && !equal; ++d) {
      const Block& o = blocks_[static_cast<size_t>(candidates[d])];
      equal = o.position == b.position && o.size == b.size && o.first == b.first && o.last == b.last;
    }
    if (equal) continue;
    // Passed over: all candidates before this one.
    for (size_t d = 0; d < c; ++d)
      set(candidates[d], blocks_[static_cast<size_t>(candidates[d])].position, true);
    b.open = false;
    const int32_t top = b.position + b.size;
    bool possible = true;
    for (const int32_t i : neighbours_[static_cast<size_t>(chosen)]) {
      const Block& o = blocks_[static_cast<size_t>(i)];
      if (!o.open || o.position >= top) continue;
      set(i, top, o.first == b.first && o.last == b.last && o.rank < b.rank);
      possible &= top + o.size <= capacity_;
    }
    if (possible) {
      offset_[static_cast<size_t>(given_[static_cast<size_t>(chosen)])] = b.position;
      rest.clear();
      for (const int32_t i : open)
        if (i != chosen) rest.push_back(i);
      if (search_parts(rest)) return true;
    }
    undo(mark);
    b.open = true;
    if (stopped_) return false;
  }
  slot = k;
  return false;
}

}  // namespace sinter::convert
