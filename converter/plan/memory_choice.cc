#include "converter/plan/memory_choice.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "converter/cost/node_cost.h"
#include "converter/ir/call_view.h"
#include "converter/plan/candidates.h"
#include "converter/plan/elide.h"

namespace sinter::convert {
namespace {

// The mask of constants that prepare() takes over has this many operands.
constexpr size_t kMostPacked = 32;
// Starting a graph, waiting for it, and a transfer: what a trip has to save on the host. 7 and 7 us on an
// H200 (docs/devices.md#nvidia-gpus).
constexpr double kTripNanoseconds = 10e3;
// Carried values that depend on one another settle in fewer rounds than this, or keep what they have.
constexpr int kMostRounds = 8;

class MemoryChoosing {
 public:
  // `control`: whose body the graph is; null: the entry.
  MemoryChoosing(const Graph& graph, const PlanOptions& options, const Node* control)
      : graph_(graph),
        options_(options),
        body_(control != nullptr),
        uses_(graph),
        first_(graph.nodes.size()),
        dropped_(graph.nodes.size()),
        own_(body_ ? convert::own_inputs(*control) : graph.inputs.size()),
        parameter_(graph.values.size(), -1),
        captured_(graph.values.size()) {
    if (const auto* loop = body_ ? control->as<LoopAttrs>() : nullptr) {
      for (size_t i = 0; i < static_cast<size_t>(loop->carried); ++i) carried_.push_back({2 + i, 1 + i});
      trips_ = static_cast<double>(std::max<int64_t>(loop->max_trips, 1));
    }
    if (!body_)
      for (const GraphState& state : graph.states) carried_.push_back({state.input, state.output});
    for (size_t i = 0; i < graph.inputs.size(); ++i)
      if (i < own_)
        parameter_[static_cast<size_t>(graph.inputs[i])] = static_cast<int>(i);
      else
        captured_[static_cast<size_t>(graph.inputs[i])] = true;
  }

  MemoryChoice run() {
    choice_.where.resize(graph_.nodes.size());
    choice_.bodies.resize(graph_.nodes.size());
    choice_.parameters.assign(own_, 0);
    choice_.results.assign(graph_.outputs.size(), 0);
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (!node.bodies.empty())
        choose_bodies(n);
      else if (!stays_with_operand(node))
        first_[n] = first_choice(node);
    }
    settle();
    if (options_.islands) return std::move(choice_);
    drop(islands());
    if (body_ && !bodies_on_devices() && host_time() < kTripNanoseconds)
      drop(std::vector<bool>(dropped_.size(), true));
    return std::move(choice_);
  }

 private:
  struct Carried {
    size_t parameter, result;  // indices into the graph's inputs and outputs
  };
  static constexpr uint8_t kOpen = MemoryChoice::kOpen;
  static constexpr uint32_t kCheap = kElementwise | kMovement;

  // A branch gives a result where the other one computes it, and on a device if they differ.
  void choose_bodies(size_t n) {
    const Node& node = graph_.nodes[n];
    std::vector<MemoryChoice>& bodies = choice_.bodies[n];
    for (const auto& body : node.bodies) bodies.push_back(MemoryChoosing(*body, options_, &node).run());
    for (size_t i = 0; i < bodies[0].results.size(); ++i) {
      uint8_t memory = 0;
      for (const MemoryChoice& body : bodies)
        if (body.results[i] != kOpen) memory = std::max(memory, body.results[i]);
      for (MemoryChoice& body : bodies) body.results[i] = memory;
    }
  }

  uint8_t first_choice(const Node& node) const {
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

  // Where a value is made; kOpen: a constant of a body, or captured.
  uint8_t home(ValueId id) const {
    if (id < 0) return 0;
    const auto v = static_cast<size_t>(id);
    if (parameter_[v] >= 0) return choice_.parameters[static_cast<size_t>(parameter_[v])];
    const int n = uses_.producer[v];
    if (n < 0) return body_ && (captured_[v] || graph_.is_constant(id)) ? kOpen : uint8_t{0};
    const Node& node = graph_.nodes[static_cast<size_t>(n)];
    if (node.bodies.empty()) return choice_.where[static_cast<size_t>(n)];
    const auto at = std::find(node.outputs.begin(), node.outputs.end(), id);
    return result_memory(node, choice_.bodies[static_cast<size_t>(n)],
                         static_cast<size_t>(at - node.outputs.begin()));
  }

  bool stays_with_operand(const Node& node) const {
    if (node.op() == Op::kView || node.op() == Op::kCopy) return true;
    const auto* slice = node.as<SliceAttrs>();
    uint64_t distance = 0;
    return slice != nullptr && !graph_.is_constant(node.inputs[0]) &&
           contiguous(*slice, graph_.value(node.inputs[0]), &distance);
  }
  // In a body not all of these cost nothing: where the operand is a parameter or captured, they copy.
  uint8_t beside_operand(const Node& node) const {
    uint8_t memory = home(node.inputs[0]);
    if (memory == kOpen) memory = follow(node.outputs[0]);
    return memory > 0 && body_ && !convert::takes(options_, memory, graph_, node) ? uint8_t{0} : memory;
  }
  // The memory that the first step to work on a value prefers.
  uint8_t follow(ValueId id) const {
    for (const auto& readers = uses_.readers; !readers[static_cast<size_t>(id)].empty();) {
      const int r = readers[static_cast<size_t>(id)].front();
      if (r < 0) return 0;
      const Node& node = graph_.nodes[static_cast<size_t>(r)];
      if (!node.bodies.empty()) return follow_into(static_cast<size_t>(r), id);
      if (!stays_with_operand(node)) return first_[static_cast<size_t>(r)];
      id = node.outputs[0];
    }
    return 0;
  }
  uint8_t follow_into(size_t n, ValueId id) const {
    const Node& node = graph_.nodes[n];
    const auto at =
        static_cast<size_t>(std::find(node.inputs.begin(), node.inputs.end(), id) - node.inputs.begin());
    const size_t first = first_captured(node);
    if (at < first) return operand_memory(node, choice_.bodies[n], at);
    return *captured_memories(node, choice_.bodies[n])[at - first].rbegin();
  }

  void set_carried(const Carried& c, uint8_t memory) {
    choice_.parameters[c.parameter] = choice_.results[c.result] = memory;
  }

  void drop(const std::vector<bool>& nodes) {
    for (size_t n = 0; n < nodes.size(); ++n)
      if (nodes[n]) dropped_[n] = true, first_[n] = 0;
    settle();
  }

  // The memories of all steps and borders, from where the other ones are.
  void settle() {
    for (const Carried& c : carried_) set_carried(c, follow(graph_.inputs[c.parameter]));
    for (int round = 0; round < kMostRounds; ++round) {
      for (size_t n = 0; n < first_.size(); ++n) {
        const Node& node = graph_.nodes[n];
        if (!node.bodies.empty() || dropped_[n])
          choice_.where[n] = 0;
        else
          choice_.where[n] = !stays_with_operand(node) ? first_[n]
                             : body_                   ? beside_operand(node)
                                                       : home(node.inputs[0]);
      }
      if ((!body_ && carried_.empty()) || !settle_borders()) return;
    }
  }

  // Whether something has changed.
  bool settle_borders() {
    const MemoryChoice before = choice_;
    const bool loop = own_ > 0;
    for (size_t i = loop ? 1 + carried_.size() : 0; body_ && i < graph_.outputs.size(); ++i) {
      const uint8_t memory = home(graph_.outputs[i]);
      choice_.results[i] = loop && memory == kOpen ? uint8_t{0} : memory;
    }
    // A value that the body hands on unchanged is not read by that.
    const auto unchanged = [&](const Carried& c) {
      return graph_.outputs[c.result] == graph_.inputs[c.parameter];
    };
    for (const Carried& c : carried_)
      if (unchanged(c)) choice_.results[c.result] = kOpen;
    const std::vector<std::set<uint8_t>> read = memories_read(graph_, choice_);
    for (const Carried& c : carried_) {
      const std::set<uint8_t>& readers = read[static_cast<size_t>(graph_.inputs[c.parameter])];
      const uint8_t made = unchanged(c) ? kOpen : home(graph_.outputs[c.result]);
      // Transfers of a trip.
      const auto transfers = [&](uint8_t memory) {
        return readers.size() - readers.count(memory) + (made != kOpen && made != memory ? 1 : 0);
      };
      uint8_t best = made != kOpen ? made : readers.empty() ? uint8_t{0} : *readers.begin();
      for (const uint8_t memory : readers)
        if (transfers(memory) < transfers(best)) best = memory;
      set_carried(c, best);
    }
    return choice_.parameters != before.parameters || choice_.results != before.results;
  }

  uint64_t bytes(ValueId id) const { return dense_bytes(graph_.value(id).dtype, graph_.value(id).dims); }
  bool moves(ValueId id) const { return id >= 0 && !graph_.is_constant(id); }

  struct Worth {
    bool cheap = true;
    double touched = 0, crossing = 0;
    std::set<ValueId> brought;
  };

  // The steps of islands that are not worth their transfers.
  std::vector<bool> islands() const {
    const std::vector<uint8_t>& where = choice_.where;
    const std::vector<std::set<uint8_t>> read = memories_read(graph_, choice_);
    std::vector<size_t> island(where.size());
    std::iota(island.begin(), island.end(), size_t{0});
    const auto find = [&](size_t n) {
      while (island[n] != n) n = island[n] = island[island[n]];
      return n;
    };
    const auto by_control = [&](ValueId id) {
      const int n = uses_.producer[static_cast<size_t>(id)];
      return n >= 0 && !graph_.nodes[static_cast<size_t>(n)].bodies.empty();
    };
    for (size_t n = 0; n < where.size(); ++n)
      for (const ValueId id : graph_.nodes[n].inputs)
        if (where[n] > 0 && id >= 0 && home(id) == where[n] && uses_.producer[static_cast<size_t>(id)] >= 0 &&
            !by_control(id))
          island[find(n)] = find(static_cast<size_t>(uses_.producer[static_cast<size_t>(id)]));
    std::map<size_t, Worth> worth;
    for (size_t n = 0; n < where.size(); ++n) {
      if (where[n] == 0) continue;
      const Node& node = graph_.nodes[n];
      Worth& w = worth[find(n)];
      w.cheap &= (op_info(node.op())->traits & kCheap) != 0;
      for (const ValueId id : node.inputs) {
        if (!moves(id)) continue;
        if (!stays_with_operand(node)) w.touched += static_cast<double>(bytes(id));
        if (home(id) == where[n])
          w.cheap &= !by_control(id);
        else if (w.brought.insert(id).second)
          w.crossing += static_cast<double>(bytes(id)) / (captured_[static_cast<size_t>(id)] ? trips_ : 1);
      }
      for (const ValueId id : node.outputs) {
        if (id < 0) continue;
        if (!stays_with_operand(node)) w.touched += static_cast<double>(bytes(id));
        const std::set<uint8_t>& readers = read[static_cast<size_t>(id)];
        if (readers.size() > readers.count(where[n])) w.crossing += static_cast<double>(bytes(id));
        w.cheap &= !read_by_control(id, where[n]);
      }
    }
    std::vector<bool> dropped(where.size());
    for (size_t n = 0; n < where.size(); ++n) {
      if (where[n] == 0) continue;
      const Worth& w = worth[find(n)];
      dropped[n] = w.cheap && w.touched <= 2 * w.crossing;
    }
    return dropped;
  }
  bool read_by_control(ValueId id, uint8_t memory) const {
    for (const int r : uses_.readers[static_cast<size_t>(id)]) {
      if (r < 0 || graph_.nodes[static_cast<size_t>(r)].bodies.empty()) continue;
      const auto n = static_cast<size_t>(r);
      const Node& node = graph_.nodes[n];
      const size_t first = first_captured(node);
      const auto captured = captured_memories(node, choice_.bodies[n]);
      for (size_t i = 0; i < node.inputs.size(); ++i)
        if (node.inputs[i] == id && (i < first ? operand_memory(node, choice_.bodies[n], i) == memory
                                               : captured[i - first].count(memory) > 0))
          return true;
    }
    return false;
  }

  // Whether a control step hands anything to its bodies, or takes anything from them, on a device.
  bool bodies_on_devices() const {
    for (size_t n = 0; n < first_.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (node.bodies.empty()) continue;
      for (const auto& memories : captured_memories(node, choice_.bodies[n]))
        if (*memories.rbegin() > 0) return true;
      for (const MemoryChoice& body : choice_.bodies[n])
        for (const auto* borders : {&body.parameters, &body.results})
          if (std::ranges::any_of(*borders, [](uint8_t memory) { return memory > 0; })) return true;
    }
    return false;
  }
  // That the steps on devices would take on the host, in one trip.
  double host_time() const {
    const Cpu cpu = cpu_of(options_.target);
    double time = 0;
    for (size_t n = 0; n < first_.size(); ++n)
      if (choice_.where[n] > 0 && !stays_with_operand(graph_.nodes[n])) {
        const CallView view(graph_, graph_.nodes[n]);
        time += step_cost(cpu, view.call);
      }
    return time;
  }

  const Graph& graph_;
  const PlanOptions& options_;
  const bool body_;
  const Uses uses_;
  std::vector<uint8_t> first_;  // by node: the memory that it would be best in
  std::vector<bool> dropped_;   // stays on the host
  const size_t own_;
  // The values with which the next trip or run begins: a parameter and a result stay in one memory.
  std::vector<Carried> carried_;
  double trips_ = 1;
  std::vector<int> parameter_;  // by value: which own input it is
  std::vector<bool> captured_;
  MemoryChoice choice_;
};

}  // namespace

MemoryChoice choose_memories(const Graph& graph, const PlanOptions& options) {
  return MemoryChoosing(graph, options, nullptr).run();
}

size_t first_captured(const Node& control) {
  const auto* loop = control.as<LoopAttrs>();
  return loop != nullptr ? 2 + static_cast<size_t>(loop->carried) : 1;
}

size_t own_inputs(const Node& control) {
  return control.as<LoopAttrs>() != nullptr ? first_captured(control) : 0;
}

uint8_t operand_memory(const Node& control, const std::vector<MemoryChoice>& bodies, size_t operand) {
  return control.as<LoopAttrs>() != nullptr && operand >= 2 ? bodies[0].parameters[operand] : uint8_t{0};
}

uint8_t result_memory(const Node& control, const std::vector<MemoryChoice>& bodies, size_t result) {
  if (control.as<LoopAttrs>() == nullptr) return bodies[0].results[result];
  return result + 1 < control.outputs.size() ? bodies[0].results[1 + result] : uint8_t{0};
}

std::vector<std::set<uint8_t>> memories_read(const Graph& graph, const MemoryChoice& choice) {
  std::vector<std::set<uint8_t>> read(graph.values.size());
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const bool control = !node.bodies.empty();
    const size_t first = control ? first_captured(node) : node.inputs.size();
    for (size_t i = 0; i < first; ++i)
      if (node.inputs[i] >= 0 && (control || !graph.is_constant(node.inputs[i])))
        read[static_cast<size_t>(node.inputs[i])].insert(control ? operand_memory(node, choice.bodies[n], i)
                                                                 : choice.where[n]);
    if (!control) continue;
    const auto captured = captured_memories(node, choice.bodies[n]);
    for (size_t i = first; i < node.inputs.size(); ++i)
      read[static_cast<size_t>(node.inputs[i])].insert(captured[i - first].begin(),
                                                       captured[i - first].end());
  }
  for (size_t i = 0; i < graph.outputs.size(); ++i)
    if (choice.results[i] != MemoryChoice::kOpen)
      read[static_cast<size_t>(graph.outputs[i])].insert(choice.results[i]);
  for (const Value& v : graph.values)
    for (const auto& [axis, length] : v.bounded_dims) read[static_cast<size_t>(length)].insert(0);
  return read;
}

std::vector<std::set<uint8_t>> captured_memories(const Node& control,
                                                 const std::vector<MemoryChoice>& bodies) {
  const size_t own = own_inputs(control);
  std::vector<std::set<uint8_t>> memories(control.inputs.size() - first_captured(control));
  for (size_t b = 0; b < bodies.size(); ++b) {
    const Graph& body = *control.bodies[b];
    const auto read = memories_read(body, bodies[b]);
    for (size_t i = 0; i < memories.size(); ++i) {
      const auto& readers = read[static_cast<size_t>(body.inputs[own + i])];
      memories[i].insert(readers.begin(), readers.end());
    }
  }
  for (auto& set : memories)
    if (set.empty()) set.insert(0);
  return memories;
}

bool takes(const PlanOptions& options, uint8_t memory, const Graph& graph, const Node& node) {
  const CallView view(graph, node);
  size_t workspace = 0;
  return options.platforms[memory - size_t{1}]
      ->accept(options.target, view.call, kDeviceThreads, &workspace)
      .ok();
}

}  // namespace sinter::convert
