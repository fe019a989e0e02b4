#include "converter/plan/offsets.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "converter/plan/offsets_greedy.h"
#include "converter/plan/offsets_search.h"

namespace sinter::convert {
namespace {

// Every order is tried with every pick: cycles with orders as they are, of growing length, alternate with
// short ones in which they are scattered.
constexpr Pick kPicks[] = {Pick::kLowest, Pick::kLowFailing, Pick::kPreferred, Pick::kCrowded,
                           Pick::kFailing};
constexpr const char* kSearchOrders[] = {"tlaz", "alt", "laz", "tal"};
constexpr uint64_t kOrderCount = std::size(kSearchOrders);
constexpr uint64_t kRunNodes = 1500;  // enough to place every block
constexpr double kScatter = 0.3;
constexpr int kRepairs = 20;  // of one order
// With more blocks only the first orders are tried (each takes quadratic time), and nothing is searched (a
// search recurses per block).
constexpr size_t kSearchedBlocks = 2000, kManyBlocks = 5000, kOrdersOfMany = 2;

class Solver {
 public:
  Solver(std::vector<MemoryBlock>& blocks, const OffsetOptions& options)
      : blocks_(blocks), options_(options) {
    if (options.max_seconds > 0) deadline_ = steady_seconds() + options.max_seconds;
  }

  OffsetResult solve() {
    result_.lower_bound = memory_lower_bound(blocks_, options_.alignment);
    greedy();
    if (result_.bytes > target() && options_.max_nodes > 0) {
      if (searchable())
        search();
      else if (blocks_.size() <= kManyBlocks)
        repair();
    }
    if (options_.capacity == 0)
      result_.proved = result_.bytes == result_.lower_bound;
    else
      result_.proved = result_.bytes <= options_.capacity || result_.lower_bound > options_.capacity;
    return result_;
  }

 private:
  uint64_t target() const { return std::max(result_.lower_bound, options_.capacity); }

  void greedy() {
    std::vector<MemoryBlock> trial = blocks_;
    result_.bytes = UINT64_MAX;
    size_t tried = 0;
    for (const GreedyOrder& order : kGreedyOrders) {
      const uint64_t bytes =
          place_greedily(trial, options_.alignment, preference(blocks_, order.keys), order.best_fit);
      if (bytes < result_.bytes) {
        result_.bytes = bytes;
        for (size_t i = 0; i < blocks_.size(); ++i) blocks_[i].offset = trial[i].offset;
      }
      if (result_.bytes <= target()) return;
      if (blocks_.size() > kManyBlocks && ++tried == kOrdersOfMany) return;
    }
  }

  // Arranges greedily again where the search cannot help (pieces, many blocks), with blocks that ended too
  // high placed earlier. A block placed counts as a node.
  void repair() {
    std::vector<MemoryBlock> trial = blocks_;
    for (uint64_t n = 0; result_.bytes > target() && !late(); ++n) {
      const GreedyOrder& start = kGreedyOrders[n % kGreedyOrders.size()];
      std::vector<size_t> order = preference(blocks_, start.keys, n, n < kGreedyOrders.size() ? 0 : kScatter);
      for (int round = 0; round < kRepairs && result_.bytes > target() && !late(); ++round) {
        if (options_.max_nodes - result_.nodes < order.size()) return;
        result_.nodes += order.size();
        const uint64_t bytes = place_greedily(trial, options_.alignment, order, start.best_fit);
        if (bytes < result_.bytes) {
          result_.bytes = bytes;
          for (size_t i = 0; i < blocks_.size(); ++i) blocks_[i].offset = trial[i].offset;
        }
        for (size_t at = 0; at < order.size(); ++at) {
          const MemoryBlock& b = trial[order[at]];
          const auto from = order.begin() + static_cast<ptrdiff_t>(at / 2);
          if (b.bytes > 0 && align_up(b.offset + b.bytes, options_.alignment) >= result_.bytes)
            std::rotate(from, order.begin() + static_cast<ptrdiff_t>(at),
                        order.begin() + static_cast<ptrdiff_t>(at) + 1);
        }
      }
    }
  }

  // The search's problem in units that divide every aligned size: least sums are multiples of them.
  bool searchable() {
    uint64_t sum = 0;
    if (blocks_.size() > kSearchedBlocks) return false;
    unit_ = 0;
    for (size_t i = 0; i < blocks_.size(); ++i) {
      const MemoryBlock& b = blocks_[i];
      if (!b.pieces.empty()) return false;
      if (b.bytes == 0) continue;
      unit_ = std::gcd(unit_, align_up(b.bytes, options_.alignment));
      sum += align_up(b.bytes, options_.alignment);
    }
    return sum / unit_ < (uint64_t{1} << 30);
  }

  void search() {
    if (options_.capacity > 0) {
      attempt(options_.capacity / unit_, options_.max_nodes);
      return;
    }
    // At the bound first; where that stays open, halfway towards what is known to be possible.
    uint64_t aim = (result_.lower_bound + unit_ - 1) / unit_, share = 2;
    while (result_.bytes > result_.lower_bound && result_.nodes < options_.max_nodes && !late()) {
      const uint64_t left = options_.max_nodes - result_.nodes;
      const SearchOutcome outcome = attempt(aim, std::max<uint64_t>(1, left / share));
      const uint64_t low = (result_.lower_bound + unit_ - 1) / unit_, high = result_.bytes / unit_ - 1;
      if (high < low) return;
      if (outcome == SearchOutcome::kUndecided && aim < high) {
        aim = (aim + high + 1) / 2;
      } else if (outcome == SearchOutcome::kUndecided) {
        // Only the smallest improvement is open above: spend what is left at the bound.
        aim = low, share = 1;
      } else {
        aim = outcome == SearchOutcome::kImpossible ? low : low + (high - low) / 2;
      }
    }
  }

  bool late() const { return deadline_ > 0 && steady_seconds() > deadline_; }

  // Improves the result or the bound if it can.
  SearchOutcome attempt(uint64_t capacity, uint64_t nodes) {
    const uint64_t end =
        options_.max_nodes - result_.nodes < nodes ? options_.max_nodes : result_.nodes + nodes;
    for (uint64_t n = 0; result_.nodes < end && !late(); ++n) {
      const uint64_t cycle = n / kOrderCount;
      const bool scattered = cycle % 2 != 0;
      const uint64_t least = std::max<uint64_t>(kRunNodes, 3 * blocks_.size());
      const uint64_t run = scattered ? least : least << std::min<uint64_t>(cycle / 2 * 3, 40);
      const std::vector<size_t> order =
          search_order(kSearchOrders[n % kOrderCount], n, scattered ? kScatter : 0);
      OffsetSearch search(rectangles(order));
      for (const Pick pick : kPicks) {
        const SearchOutcome outcome =
            search.run(static_cast<int32_t>(capacity), pick, {std::min(end - result_.nodes, run), deadline_});
        result_.nodes += search.nodes();
        if (outcome == SearchOutcome::kUndecided) continue;
        if (outcome == SearchOutcome::kImpossible)
          result_.lower_bound = std::max(result_.lower_bound, (capacity + 1) * unit_);
        else
          adopt(order, search.offsets());
        return outcome;
      }
    }
    return SearchOutcome::kUndecided;
  }

  // Blocks with bytes, in the order of preference.
  std::vector<size_t> search_order(const char* keys, uint64_t seed, double scatter) const {
    std::vector<size_t> order = preference(blocks_, keys, seed, scatter);
    std::erase_if(order, [&](size_t i) { return blocks_[i].bytes == 0; });
    return order;
  }

  std::vector<Rectangle> rectangles(const std::vector<size_t>& order) const {
    std::vector<Rectangle> out;
    for (const size_t i : order)
      out.push_back({static_cast<int32_t>(align_up(blocks_[i].bytes, options_.alignment) / unit_),
                     blocks_[i].first, blocks_[i].last});
    return out;
  }

  void adopt(const std::vector<size_t>& order, const std::vector<int32_t>& offsets) {
    result_.bytes = 0;
    for (size_t k = 0; k < order.size(); ++k) {
      MemoryBlock& b = blocks_[order[k]];
      b.offset = static_cast<uint64_t>(offsets[k]) * unit_;
      result_.bytes = std::max(result_.bytes, b.offset + align_up(b.bytes, options_.alignment));
    }
  }

  std::vector<MemoryBlock>& blocks_;
  const OffsetOptions& options_;
  OffsetResult result_;
  double deadline_ = 0;
  uint64_t unit_ = 1;
};

}  // namespace

OffsetResult assign_offsets(std::vector<MemoryBlock>& blocks, const OffsetOptions& options) {
  return Solver(blocks, options).solve();
}

// Where all that is live is whole blocks, the sum of their aligned sizes; pieces may use each other's
// padding.
uint64_t memory_lower_bound(const std::vector<MemoryBlock>& blocks, uint64_t alignment) {
  struct Change {
    int64_t aligned = 0, exact = 0, pieces = 0;
  };
  std::map<int, Change> changes;
  const auto add = [&](int first, int last, uint64_t bytes, bool piece) {
    const auto exact = static_cast<int64_t>(bytes), padded = static_cast<int64_t>(align_up(bytes, alignment));
    Change &on = changes[first], &off = changes[last + 1];
    on.aligned += padded, on.exact += exact, on.pieces += piece ? 1 : 0;
    off.aligned -= padded, off.exact -= exact, off.pieces -= piece ? 1 : 0;
  };
  for (const MemoryBlock& b : blocks) {
    if (b.pieces.empty()) add(b.first, b.last, b.bytes, false);
    for (const MemoryPiece& p : b.pieces) add(p.first, p.last, p.end - p.begin, true);
  }
  Change now;
  int64_t most = 0;
  for (const auto& [step, c] : changes) {
    now.aligned += c.aligned, now.exact += c.exact, now.pieces += c.pieces;
    most = std::max(most, now.pieces > 0 ? now.exact : now.aligned);
  }
  return align_up(static_cast<uint64_t>(most), alignment);
}

bool offsets_valid(const std::vector<MemoryBlock>& blocks, uint64_t alignment) {
  struct Taken {
    int first, last;
    uint64_t begin, end;
  };
  std::vector<std::vector<Taken>> taken;
  for (const MemoryBlock& b : blocks) {
    if (b.offset % alignment != 0) return false;
    std::vector<Taken> own;
    if (b.pieces.empty()) own.push_back({b.first, b.last, b.offset, b.offset + b.bytes});
    for (const MemoryPiece& p : b.pieces) {
      if (p.first < b.first || p.last > b.last || p.begin > p.end || p.end > b.bytes) return false;
      own.push_back({p.first, p.last, b.offset + p.begin, b.offset + p.end});
    }
    for (const auto& other : taken)
      for (const Taken& x : other)
        for (const Taken& y : own)
          if (x.first <= y.last && y.first <= x.last && x.begin < y.end && y.begin < x.end) return false;
    taken.push_back(std::move(own));
  }
  return true;
}

}  // namespace sinter::convert
