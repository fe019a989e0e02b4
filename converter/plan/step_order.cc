#include "converter/plan/step_order.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <unordered_map>

#include "converter/plan/covered.h"
#include "converter/plan/place_memories.h"

namespace sinter::convert {
namespace {

// Sets that a level keeps: few at first, so that there is something to beat, then more.
constexpr size_t kWidths[] = {1, 16, 512};
// Work that all searches together may do, in values visited and words copied: about a second.
constexpr int64_t kBudget = int64_t{1} << 24;
constexpr size_t kMostNodes = 4096;
constexpr size_t kFew = 64;  // members of a block

using Words = std::vector<uint64_t>;
bool has(const Words& set, int i) {
  return (set[static_cast<size_t>(i) / 64] >> (static_cast<size_t>(i) % 64) & 1) != 0;
}
void insert(Words& set, int i) {
  set[static_cast<size_t>(i) / 64] |= uint64_t{1} << (static_cast<size_t>(i) % 64);
}

struct WordsHash {
  size_t operator()(const Words& set) const {
    uint64_t h = 0x9e3779b97f4a7c15;
    for (const uint64_t w : set) h = (h ^ w) * 0xff51afd7ed558ccd, h ^= h >> 32;
    return static_cast<size_t>(h);
  }
};

// Memories that are counted separately; what others hold counts with the last.
constexpr size_t kMemories = 4;
using PerMemory = std::array<uint64_t, kMemories>;
uint64_t total(const PerMemory& bytes) { return std::accumulate(bytes.begin(), bytes.end(), uint64_t{0}); }
bool any_above(const PerMemory& a, const PerMemory& b) {
  return a[0] > b[0] || !std::equal(a.begin() + 1, a.end(), b.begin() + 1, std::less_equal<>());
}

// The memory that a step touches: the blocks of its operands.
struct Touch {
  size_t memory = 0;
  std::vector<ValueId> roots;
  std::vector<int> needs;  // steps that come before
  std::vector<int> leads;  // steps that come after
};

struct State {
  Words done;
  int count = 0;
  PerMemory live{}, peak{};
  int trail = -1;
  std::vector<int> ready;  // ascending
};

// The steps that were taken since the parent.
struct Trail {
  int parent = -1;
  std::vector<int> steps;
};

class Search {
 public:
  Search(const Graph& graph, const Storage& storage, const std::vector<StepMemory>& steps,
         const std::vector<ValueId>& held, double effort = 1)
      : graph_(graph),
        storage_(storage),
        steps_(steps),
        uses_(graph),
        held_(graph.values.size()),
        budget_(static_cast<int64_t>(effort * static_cast<double>(kBudget))) {
    for (const ValueId v : graph.outputs) held_[static_cast<size_t>(v)] = true;
    for (const ValueId v : held) held_[static_cast<size_t>(v)] = true;
    for (const Node& node : graph.nodes) {
      Touch touch;
      touch.memory = std::min<size_t>(memory_of(graph, node), kMemories - 1);
      for (const auto* list : {&node.inputs, &node.outputs})
        for (const ValueId v : *list)
          if (v >= 0 && storage.placed(v)) add(touch.roots, storage.blocks().root(v));
      for (const ValueId v : node.inputs)
        if (v >= 0 && producer(v) >= 0) add(touch.needs, producer(v));
      one_memory_ &= touch.memory == 0;
      touches_.push_back(std::move(touch));
    }
    for (int i = 0; i < count(); ++i)
      for (const int p : touch(i).needs) touches_[static_cast<size_t>(p)].leads.push_back(i);
  }

  uint64_t given() const {
    State state = first();
    for (int i = 0; i < count(); ++i) move(state, i, effect(state, i));
    return total(state.peak);
  }
  StepOrder run() {
    StepOrder best;
    best.nodes.resize(graph_.nodes.size());
    std::iota(best.nodes.begin(), best.nodes.end(), size_t{0});
    best.proved = false;
    if (graph_.nodes.size() > kMostNodes) return best;
    best.peak = given();
    best.proved = best.peak <= least();
    for (const size_t width : kWidths)
      if (!best.proved && budget_ > 0) search(width, &best);
    return best;
  }

 private:
  template <class T>
  static void add(std::vector<T>& list, T item) {
    if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
  }
  int count() const { return static_cast<int>(graph_.nodes.size()); }
  const Touch& touch(int i) const { return touches_[static_cast<size_t>(i)]; }
  size_t memory(ValueId v) const { return std::min<size_t>(graph_.value(v).memory, kMemories - 1); }
  int producer(ValueId v) const { return uses_.producer[static_cast<size_t>(v)]; }

  // Whether v lives after the steps of `done` and, unless it is -1, step `also`.
  bool live(const Words& done, int also, ValueId v) const {
    const auto ran = [&](int i) { return i == also || has(done, i); };
    if (producer(v) >= 0 && !ran(producer(v))) return false;
    if (held_[static_cast<size_t>(v)]) return true;
    const auto& readers = uses_.readers[static_cast<size_t>(v)];
    const auto waits = std::find_if(readers.begin(), readers.end(), [&](int r) { return r < 0 || !ran(r); });
    budget_ -= (waits - readers.begin()) / 16;  // usually no more than a few are visited
    return waits != readers.end();
  }
  // Bytes of a block that values cover which live then, or which step `running` has among its results.
  uint64_t covered(const Words& done, int also, ValueId root, int running) const {
    const auto& members = storage_.blocks().members(root);
    // Many have to be sorted.
    budget_ -= static_cast<int64_t>(members.size() <= kFew ? members.size() : 8 * members.size());
    const auto counts = [&](ValueId m) {
      return storage_.placed(m) && (live(done, also, m) || (running >= 0 && producer(m) == running));
    };
    if (members.size() == 1) return counts(root) ? storage_.bytes(root) : 0;
    spans_.clear();
    for (const ValueId m : members)
      if (counts(m))
        spans_.emplace_back(storage_.blocks().delta(m), storage_.blocks().delta(m) + storage_.bytes(m));
    return covered_bytes(spans_);
  }

  State first() const {
    State state;
    state.done.assign((graph_.nodes.size() + 63) / 64, 0);
    for (size_t v = 0; v < graph_.values.size(); ++v)
      if (const auto id = static_cast<ValueId>(v); storage_.blocks().root(id) == id)
        state.live[memory(id)] += covered(state.done, -1, id, -1);
    state.peak = state.live;
    for (int i = 0; i < count(); ++i)
      if (touch(i).needs.empty()) state.ready.push_back(i);
    return state;
  }

  // v's block has no reader after step i, was not put there by a caller, and `result` may join it.
  bool leaves(const Words& done, int i, ValueId v, ValueId result) const {
    const ValueId root = storage_.blocks().root(v);
    return storage_.placed(v) && live(done, -1, v) && covered(done, i, root, -1) == 0 &&
           storage_.may_join(v, result) && !storage_.caller_writes(root);
  }
  // Bytes that the step saves by writing over an operand.
  uint64_t saved(const Words& done, int i) const {
    const Node& node = graph_.nodes[static_cast<size_t>(i)];
    if (storage_.elided()[static_cast<size_t>(i)]) return 0;
    for (const ValueId v : node.inputs)
      if (const ValueId result = storage_.fits_in_place(node, v); result >= 0 && leaves(done, i, v, result))
        return storage_.bytes(v);
    const uint64_t overlap = steps_[static_cast<size_t>(i)].overlap;
    return overlap > 0 && leaves(done, i, node.inputs[0], node.outputs[0]) ? overlap : 0;
  }

  // The state's figures after step i.
  struct Effect {
    PerMemory live, peak;
  };
  Effect effect(const State& from, int i) const {
    const size_t own = touch(i).memory;
    PerMemory before{}, during{}, after{};
    during[own] = steps_[static_cast<size_t>(i)].workspace;
    for (const ValueId root : touch(i).roots) {
      const size_t m = memory(root);
      before[m] += covered(from.done, -1, root, -1);
      during[m] += covered(from.done, -1, root, i);
      after[m] += covered(from.done, i, root, -1);
    }
    during[own] -= std::min(during[own], saved(from.done, i));
    Effect then{from.live, from.peak};
    for (size_t m = 0; m < kMemories; ++m) {
      then.peak[m] = std::max(from.peak[m], from.live[m] - before[m] + during[m]);
      then.live[m] = from.live[m] - before[m] + after[m];
    }
    return then;
  }
  void move(State& state, int i, const Effect& effect) const {
    insert(state.done, i);
    ++state.count;
    state.live = effect.live, state.peak = effect.peak;
    state.ready.erase(std::find(state.ready.begin(), state.ready.end(), i));
    for (const int next : touch(i).leads) {
      const auto& needs = touch(next).needs;
      if (std::all_of(needs.begin(), needs.end(), [&](int p) { return has(state.done, p); }))
        state.ready.insert(std::upper_bound(state.ready.begin(), state.ready.end(), next), next);
    }
  }

  // No order has a smaller peak than its most demanding step needs by itself.
  uint64_t least() const {
    PerMemory most{};
    for (int i = 0; i < count(); ++i) {
      const Node& node = graph_.nodes[static_cast<size_t>(i)];
      std::vector<ValueId> seen;
      const StepMemory& step = steps_[static_cast<size_t>(i)];
      PerMemory sum{};
      uint64_t credit = step.overlap;
      sum[touch(i).memory] = step.workspace;
      for (const auto* list : {&node.inputs, &node.outputs})
        for (const ValueId v : *list) {
          if (v < 0 || !storage_.placed(v)) continue;
          // Operands of one block may overlap.
          const ValueId root = storage_.blocks().root(v);
          if (std::find(seen.begin(), seen.end(), root) != seen.end()) continue;
          seen.push_back(root);
          sum[memory(v)] += storage_.bytes(v);
          if (list == &node.inputs && storage_.fits_in_place(node, v) >= 0)
            credit = std::max(credit, storage_.bytes(v));
        }
      sum[touch(i).memory] -= std::min(sum[touch(i).memory], credit);
      for (size_t m = 0; m < kMemories; ++m) most[m] = std::max(most[m], sum[m]);
    }
    return total(most);
  }

  // Takes every step that costs nothing.
  void settle(State& state, std::vector<int>& steps) const {
    for (bool moved = true; moved;) {
      moved = false;
      for (const int i : std::vector<int>(state.ready)) {
        const Effect then = effect(state, i);
        if (any_above(then.peak, state.peak) || any_above(then.live, state.live)) continue;
        move(state, i, then);
        steps.push_back(i);
        moved = true;
      }
    }
  }

  void search(size_t most, StepOrder* best) {
    bool complete = true;
    std::vector<Trail> trails(1);
    std::vector<State> level{first()};
    settle(level[0], trails[0].steps);
    level[0].trail = 0;
    if (level[0].count == count()) {  // its first live bytes are the most
      if (total(level[0].peak) < best->peak) best->peak = total(level[0].peak), unroll(trails, &best->nodes);
      level.clear();
    }
    while (!level.empty() && budget_ > 0) {
      std::unordered_map<Words, size_t, WordsHash> known;
      std::vector<State> next;
      for (const State& state : level) {
        for (const int i : state.ready) {
          if (budget_ <= 0) break;
          const Effect then = effect(state, i);
          if (total(then.peak) >= best->peak) continue;
          State to = state;
          move(to, i, then);
          budget_ -= static_cast<int64_t>(to.done.size() + to.ready.size());
          Trail trail{state.trail, {i}};
          settle(to, trail.steps);
          if (to.count == count()) {
            best->peak = total(to.peak);
            trails.push_back(std::move(trail));
            unroll(trails, &best->nodes);
            continue;
          }
          const auto [at, fresh] = known.try_emplace(to.done, next.size());
          if (!fresh && total(next[at->second].peak) <= total(to.peak)) continue;
          to.trail = static_cast<int>(trails.size());
          trails.push_back(std::move(trail));
          if (fresh)
            next.push_back(std::move(to));
          else
            next[at->second] = std::move(to);
        }
      }
      std::erase_if(next, [&](const State& s) { return total(s.peak) >= best->peak; });
      if (next.size() > most) {
        complete = false;
        std::stable_sort(next.begin(), next.end(), [](const State& a, const State& b) {
          return std::pair(total(a.peak), total(a.live)) < std::pair(total(b.peak), total(b.live));
        });
        next.resize(most);
      }
      level = std::move(next);
    }
    // With several memories, the smallest sum of peaks of a set need not lead to the smallest sum of all.
    best->proved = complete && budget_ > 0 && one_memory_;
  }

  void unroll(const std::vector<Trail>& trails, std::vector<size_t>* nodes) const {
    nodes->clear();
    for (int t = static_cast<int>(trails.size()) - 1; t >= 0; t = trails[static_cast<size_t>(t)].parent) {
      const auto& steps = trails[static_cast<size_t>(t)].steps;
      for (auto i = steps.rbegin(); i != steps.rend(); ++i) nodes->push_back(static_cast<size_t>(*i));
    }
    std::reverse(nodes->begin(), nodes->end());
  }

  const Graph& graph_;
  const Storage& storage_;
  const std::vector<StepMemory>& steps_;
  Uses uses_;
  std::vector<bool> held_;
  std::vector<Touch> touches_;
  mutable int64_t budget_;
  bool one_memory_ = true;
  mutable std::vector<std::pair<uint64_t, uint64_t>> spans_;
};

}  // namespace

uint64_t given_order_peak(const Graph& graph, const Storage& storage, const std::vector<StepMemory>& steps,
                          const std::vector<ValueId>& held) {
  return Search(graph, storage, steps, held).given();
}

StepOrder find_step_order(const Graph& graph, const Storage& storage, const std::vector<StepMemory>& steps,
                          const std::vector<ValueId>& held, double effort) {
  return Search(graph, storage, steps, held, effort).run();
}

}  // namespace sinter::convert
