#include "converter/plan/place_memories.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "converter/cost/threads.h"
#include "converter/ir/call_view.h"
#include "converter/plan/elide.h"

namespace sinter::convert {
namespace {

// The mask of constants that prepare() takes over has this many operands.
constexpr size_t kMostPacked = 32;

class MemoryPlacing {
 public:
  MemoryPlacing(Graph& graph, const PlanOptions& options)
      : graph_(graph), options_(options), uses_(graph), where_(graph.nodes.size()) {}

  void run() {
    for (size_t n = 0; n < where_.size(); ++n)
      where_[n] = stays_with_operand(graph_.nodes[n]) ? home(graph_.nodes[n].inputs[0])
                                                      : first_choice(graph_.nodes[n]);
    if (!options_.islands) drop_islands();
    insert_transfers();
  }

 private:
  static constexpr uint32_t kCheap = kElementwise | kMovement;

  // Where a value is made.
  uint8_t home(ValueId id) const {
    const int n = id < 0 ? -1 : uses_.producer[static_cast<size_t>(id)];
    return n < 0 ? 0 : where_[static_cast<size_t>(n)];
  }

  bool stays_with_operand(const Node& node) const {
    if (node.op() == Op::kView || node.op() == Op::kCopy) return true;
    const auto* slice = node.as<SliceAttrs>();
    uint64_t distance = 0;
    return slice != nullptr && !graph_.is_constant(node.inputs[0]) &&
           contiguous(*slice, graph_.value(node.inputs[0]), &distance);
  }

  uint8_t first_choice(const Node& node) const {
    if (!node.bodies.empty()) return 0;
    const CallView view(graph_, node);
    const auto accepted = accepted_by(options_, view.call, kDeviceThreads);
    if (accepted.empty()) return 0;
    const size_t first = accepted.front().platform;
    return options_.platforms[first]->own_memory && packs_constants(node) ? static_cast<uint8_t>(first + 1)
                                                                          : uint8_t{0};
  }
  bool packs_constants(const Node& node) const {
    for (size_t i = kMostPacked; i < node.inputs.size(); ++i)
      if (graph_.is_constant(node.inputs[i])) return false;
    return true;
  }

  uint64_t bytes(ValueId id) const { return dense_bytes(graph_.value(id).dtype, graph_.value(id).dims); }
  bool moves(ValueId id) const { return id >= 0 && !graph_.is_constant(id); }
  bool read_elsewhere(ValueId id, uint8_t memory) const {
    const auto& readers = uses_.readers[static_cast<size_t>(id)];
    return std::any_of(readers.begin(), readers.end(),
                       [&](int r) { return r < 0 || where_[static_cast<size_t>(r)] != memory; });
  }

  void drop_islands() {
    std::vector<size_t> island(where_.size());
    std::iota(island.begin(), island.end(), size_t{0});
    const auto find = [&](size_t n) {
      while (island[n] != n) n = island[n] = island[island[n]];
      return n;
    };
    for (size_t n = 0; n < where_.size(); ++n)
      for (const ValueId id : graph_.nodes[n].inputs)
        if (where_[n] > 0 && home(id) == where_[n])
          island[find(n)] = find(static_cast<size_t>(uses_.producer[static_cast<size_t>(id)]));
    struct Worth {
      bool cheap = true;
      uint64_t touched = 0, crossing = 0;
      std::set<ValueId> brought;
    };
    std::map<size_t, Worth> worth;
    for (size_t n = 0; n < where_.size(); ++n) {
      if (where_[n] == 0) continue;
      const Node& node = graph_.nodes[n];
      Worth& w = worth[find(n)];
      w.cheap &= (op_info(node.op())->traits & kCheap) != 0;
      for (const ValueId id : node.inputs) {
        if (!moves(id)) continue;
        if (!stays_with_operand(node)) w.touched += bytes(id);
        if (home(id) != where_[n] && w.brought.insert(id).second) w.crossing += bytes(id);
      }
      for (const ValueId id : node.outputs) {
        if (id < 0) continue;
        if (!stays_with_operand(node)) w.touched += bytes(id);
        if (read_elsewhere(id, where_[n])) w.crossing += bytes(id);
      }
    }
    std::vector<bool> dropped(where_.size());
    for (size_t n = 0; n < where_.size(); ++n) {
      if (where_[n] == 0) continue;
      const Worth& w = worth[find(n)];
      dropped[n] = w.cheap && w.touched <= 2 * w.crossing;
    }
    for (size_t n = 0; n < where_.size(); ++n)
      if (dropped[n]) where_[n] = 0;
  }

  // `id` as a new value in that memory.
  ValueId in_memory(ValueId id, uint8_t memory) {
    Value copy = graph_.value(id);
    copy.memory = memory;
    if (!copy.name.empty())
      copy.name = fmt::format("{}@{}", copy.name, options_.platforms[memory - size_t{1}]->name);
    graph_.values.push_back(std::move(copy));
    return static_cast<ValueId>(graph_.values.size() - 1);
  }

  // A value that is in host memory at all keeps its id there, so that references to it stay valid.
  void insert_transfers() {
    const size_t values = graph_.values.size(), end = graph_.nodes.size();
    std::vector<std::vector<Node>> down(end + 1), up(end + 1);  // before node n
    const auto transfer = [&](std::vector<Node>& list, ValueId from, ValueId to) {
      list.push_back({CopyAttrs{}, {from}, {to}, graph_.value(from).name, {}, {}});
    };
    for (size_t v = 0; v < values; ++v) {
      const auto id = static_cast<ValueId>(v);
      if (graph_.is_constant(id)) continue;
      const uint8_t from = home(id);
      std::map<uint8_t, size_t> first;  // that reads it in each memory
      for (const int r : uses_.readers[v]) {
        const size_t n = r < 0 ? end : static_cast<size_t>(r);
        const auto at = first.emplace(r < 0 ? uint8_t{0} : where_[n], n).first;
        at->second = std::min(at->second, n);
      }
      if (from > 0) {
        size_t first_elsewhere = SIZE_MAX;
        for (const auto& [memory, n] : first)
          if (memory != from) first_elsewhere = std::min(first_elsewhere, n);
        if (first_elsewhere == SIZE_MAX) {
          graph_.value(id).memory = from;
          continue;
        }
        const ValueId made = in_memory(id, from);
        Node& producer = graph_.nodes[static_cast<size_t>(uses_.producer[v])];
        std::replace(producer.outputs.begin(), producer.outputs.end(), id, made);
        read_from(id, from, made);
        transfer(down[first_elsewhere], made, id);
      }
      for (const auto& [memory, n] : first) {
        if (memory == 0 || memory == from) continue;
        const ValueId there = in_memory(id, memory);
        read_from(id, memory, there);
        transfer(up[n], id, there);
      }
    }
    std::vector<Node> nodes;
    for (size_t n = 0; n <= end; ++n) {
      for (auto* list : {&down[n], &up[n]}) std::move(list->begin(), list->end(), std::back_inserter(nodes));
      if (n < end) nodes.push_back(std::move(graph_.nodes[n]));
    }
    graph_.nodes = std::move(nodes);
  }
  void read_from(ValueId id, uint8_t memory, ValueId there) {
    for (const int r : uses_.readers[static_cast<size_t>(id)]) {
      if (r < 0 || where_[static_cast<size_t>(r)] != memory) continue;
      Node& reader = graph_.nodes[static_cast<size_t>(r)];
      std::replace(reader.inputs.begin(), reader.inputs.end(), id, there);
    }
  }

  Graph& graph_;
  const PlanOptions& options_;
  const Uses uses_;
  std::vector<uint8_t> where_;  // by node: its memory
};

}  // namespace

void place_memories(Graph& graph, const PlanOptions& options) {
  const auto& all = options.platforms;
  if (std::any_of(all.begin(), all.end(), [](const Platform* p) { return p->own_memory; }))
    MemoryPlacing(graph, options).run();
}

bool is_transfer(const Graph& graph, const Node& node) {
  return node.op() == Op::kCopy && graph.value(node.inputs[0]).memory != graph.value(node.outputs[0]).memory;
}

uint8_t memory_of(const Graph& graph, const Node& node) {
  uint8_t memory = 0;
  for (const auto* list : {&node.inputs, &node.outputs})
    for (const ValueId id : *list)
      if (id >= 0) memory = std::max(memory, graph.value(id).memory);
  return memory;
}

}  // namespace sinter::convert
