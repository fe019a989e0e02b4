#include "converter/plan/place_memories.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "converter/plan/memory_choice.h"

namespace sinter::convert {
namespace {

// Moves values of a graph, and of its bodies, to where they are read.
class Transferring {
 public:
  Transferring(Graph& graph, MemoryChoice& choice, const PlanOptions& options)
      : graph_(graph), choice_(choice), options_(options) {}

  // `captured`: by captured input, the memories that the bodies of one step read it in.
  void run(const std::vector<std::set<uint8_t>>& captured) {
    for (size_t n = 0; n < graph_.nodes.size(); ++n)
      if (!graph_.nodes[n].bodies.empty()) run_bodies(n);
    take_captured(captured);
    find_readers();
    const size_t values = graph_.values.size(), end = graph_.nodes.size();
    down_.resize(end + 1), up_.resize(end + 1);
    for (size_t v = 0; v < values; ++v) {
      const auto id = static_cast<ValueId>(v);
      if (graph_.is_constant(id))
        bring_constant(id);
      else if (const auto there = captured_.find(id); there != captured_.end())
        for (const Reader& r : readers_[v]) r.read(there->second.at(r.memory));
      else if (v < home_.size() && home_[v] != kElsewhere)
        move(id);
    }
    std::vector<Node> nodes;
    for (size_t n = 0; n <= end; ++n) {
      for (auto* list : {&down_[n], &up_[n]})
        std::move(list->begin(), list->end(), std::back_inserter(nodes));
      if (n < end) nodes.push_back(std::move(graph_.nodes[n]));
    }
    graph_.nodes = std::move(nodes);
  }

 private:
  static constexpr uint8_t kElsewhere = 255;  // no step of the graph makes it

  // Where a value is read, in which memory; a length of a bounded dimension has no place to change.
  struct Reader {
    size_t node = 0;
    uint8_t memory = 0;
    ValueId* place = nullptr;
    void read(ValueId id) const {
      if (place != nullptr) *place = id;
    }
  };

  // A control step's bodies, and what they read from here.
  void run_bodies(size_t n) {
    Node& node = graph_.nodes[n];
    std::vector<MemoryChoice>& bodies = choice_.bodies[n];
    const auto captured = captured_memories(node, bodies);
    if (node.as<LoopAttrs>() != nullptr) count_on_devices(node, bodies[0]);
    for (size_t b = 0; b < bodies.size(); ++b)
      Transferring(*node.bodies[b], bodies[b], options_).run(captured);
    std::vector<ValueId> inputs;
    auto& memories = inputs_[n];
    const size_t first = first_captured(node);
    for (size_t i = 0; i < first; ++i) {
      inputs.push_back(node.inputs[i]);
      memories.push_back(operand_memory(node, bodies, i));
    }
    for (size_t i = first; i < node.inputs.size(); ++i)
      for (const uint8_t memory : captured[i - first]) {
        inputs.push_back(node.inputs[i]);
        memories.push_back(memory);
      }
    node.inputs = std::move(inputs);
  }

  // Where a device reads the iteration number, it counts itself: a carried value, instead of a transfer and a
  // wait in every trip.
  void count_on_devices(Node& node, MemoryChoice& choice) {
    Graph& body = *node.bodies[0];
    const ValueId iteration = body.inputs[0];
    std::set<uint8_t> memories;
    for (size_t n = 0; n < body.nodes.size(); ++n)
      if (body.nodes[n].bodies.empty() && choice.where[n] > 0 &&
          std::ranges::count(body.nodes[n].inputs, iteration) > 0)
        memories.insert(choice.where[n]);
    for (const uint8_t memory : memories) {
      const Value& v = body.value(iteration);
      if (!counts(memory, v.dtype, v.dims)) continue;
      const std::string name = v.name;
      const DType dtype = v.dtype;
      const Dims dims = v.dims;
      const ValueId count = body.add_value(name, dtype, dims), next = body.add_value(name, dtype, dims);
      for (size_t n = 0; n < body.nodes.size(); ++n)
        if (body.nodes[n].bodies.empty() && choice.where[n] == memory)
          std::ranges::replace(body.nodes[n].inputs, iteration, count);
      const ValueId one = body.add_constant(number(1, dtype, dims));
      body.nodes.push_back({AddAttrs{}, {count, one}, {next}, name, {}, {}});
      choice.where.push_back(memory);
      choice.bodies.emplace_back();
      auto& loop = *node.as<LoopAttrs>();
      const auto carried = static_cast<ptrdiff_t>(loop.carried++);
      node.inputs.insert(node.inputs.begin() + 2 + carried, graph_.add_constant(number(0, dtype, dims)));
      node.outputs.insert(node.outputs.begin() + carried, kAbsent);
      body.inputs.insert(body.inputs.begin() + 2 + carried, count);
      body.outputs.insert(body.outputs.begin() + 1 + carried, next);
      choice.parameters.insert(choice.parameters.begin() + 2 + carried, memory);
      choice.results.insert(choice.results.begin() + 1 + carried, memory);
    }
  }
  static ConstantPtr number(int64_t n, DType dtype, const Dims& dims) {
    return Constant::scalar_int(dtype, n)->reshaped(dims);
  }
  bool counts(uint8_t memory, DType dtype, const Dims& dims) const {
    Graph trial;
    const ValueId count = trial.add_value({}, dtype, dims), next = trial.add_value({}, dtype, dims);
    const ValueId one = trial.add_constant(number(1, dtype, dims));
    return takes(options_, memory, trial, {AddAttrs{}, {count, one}, {next}, {}, {}, {}}) &&
           takes(options_, memory, trial, {CopyAttrs{}, {one}, {next}, {}, {}, {}});
  }

  // A captured value is an input for each memory that it is read in; the first keeps its id.
  void take_captured(const std::vector<std::set<uint8_t>>& captured) {
    const size_t own = choice_.parameters.size();
    std::vector<ValueId> inputs(graph_.inputs.begin(), graph_.inputs.begin() + static_cast<ptrdiff_t>(own));
    for (size_t i = 0; i < captured.size(); ++i) {
      const ValueId id = graph_.inputs[own + i];
      auto& there = captured_[id];
      for (const uint8_t memory : captured[i]) {
        const bool first = there.empty();
        if (first) graph_.value(id).memory = memory;
        inputs.push_back(there[memory] = first ? id : in_memory(id, memory));
      }
    }
    graph_.inputs = std::move(inputs);
  }

  void find_readers() {
    const size_t end = graph_.nodes.size();
    readers_.resize(graph_.values.size());
    home_.assign(graph_.values.size(), kElsewhere);
    makers_.resize(graph_.values.size());
    const auto read = [&](size_t n, uint8_t memory, ValueId* place) {
      if (*place >= 0) readers_[static_cast<size_t>(*place)].push_back({n, memory, place});
    };
    const auto make = [&](uint8_t memory, ValueId* place) {
      if (*place < 0) return;
      home_[static_cast<size_t>(*place)] = memory;
      makers_[static_cast<size_t>(*place)] = place;
    };
    for (size_t i = 0; i < choice_.parameters.size(); ++i) make(choice_.parameters[i], &graph_.inputs[i]);
    for (size_t n = 0; n < end; ++n) {
      Node& node = graph_.nodes[n];
      const bool control = !node.bodies.empty();
      for (size_t i = 0; i < node.inputs.size(); ++i)
        if (control || !graph_.is_constant(node.inputs[i]))
          read(n, control ? inputs_[n][i] : choice_.where[n], &node.inputs[i]);
      for (size_t i = 0; i < node.outputs.size(); ++i)
        make(control ? result_memory(node, choice_.bodies[n], i) : choice_.where[n], &node.outputs[i]);
    }
    for (size_t i = 0; i < graph_.outputs.size(); ++i) read(end, choice_.results[i], &graph_.outputs[i]);
    for (const Value& v : graph_.values)
      for (const auto& [axis, length] : v.bounded_dims)
        readers_[static_cast<size_t>(length)].push_back({end, 0, nullptr});
  }

  // `id` as a new value in that memory.
  ValueId in_memory(ValueId id, uint8_t memory) {
    Value copy = graph_.value(id);
    copy.memory = memory;
    copy.constant = nullptr;
    if (!copy.name.empty() && memory > 0)
      copy.name = fmt::format("{}@{}", copy.name, options_.platforms[memory - size_t{1}]->name);
    graph_.values.push_back(std::move(copy));
    return static_cast<ValueId>(graph_.values.size() - 1);
  }
  void copy(std::vector<Node>& list, ValueId from, ValueId to) {
    list.push_back({CopyAttrs{}, {from}, {to}, graph_.value(from).name, {}, {}});
  }
  std::map<uint8_t, size_t> first_readers(ValueId id) const {
    std::map<uint8_t, size_t> first;
    for (const Reader& r : readers_[static_cast<size_t>(id)]) {
      const auto at = first.emplace(r.memory, r.node).first;
      at->second = std::min(at->second, r.node);
    }
    return first;
  }
  void read_from(ValueId id, uint8_t memory, ValueId there) {
    for (const Reader& r : readers_[static_cast<size_t>(id)])
      if (r.memory == memory) r.read(there);
  }

  // A value that is in host memory at all keeps its id there, so that references to it stay valid.
  void move(ValueId id) {
    const uint8_t from = home_[static_cast<size_t>(id)];
    const std::map<uint8_t, size_t> first = first_readers(id);
    if (from > 0) {
      size_t first_elsewhere = SIZE_MAX;
      for (const auto& [memory, n] : first)
        if (memory != from) first_elsewhere = std::min(first_elsewhere, n);
      if (first_elsewhere == SIZE_MAX) {
        graph_.value(id).memory = from;
        return;
      }
      const ValueId made = in_memory(id, from);
      *makers_[static_cast<size_t>(id)] = made;
      read_from(id, from, made);
      copy(down_[first_elsewhere], made, id);
    }
    for (const auto& [memory, n] : first) {
      if (memory == 0 || memory == from) continue;
      const ValueId there = in_memory(id, memory);
      read_from(id, memory, there);
      copy(up_[n], id, there);
    }
  }

  // Steps read constants where they are; a control step, or a body's result, takes a copy.
  void bring_constant(ValueId id) {
    for (const auto& [memory, n] : first_readers(id)) {
      if (memory == 0) continue;
      const ValueId there = in_memory(id, memory);
      read_from(id, memory, there);
      copy(up_[n], id, there);
      if (takes(options_, memory, graph_, up_[n].back())) continue;
      const ValueId here = in_memory(id, 0);
      up_[n].back().outputs = {here};
      copy(up_[n], here, there);
    }
  }

  Graph& graph_;
  MemoryChoice& choice_;
  const PlanOptions& options_;
  std::map<size_t, std::vector<uint8_t>> inputs_;  // of control steps: the memories of their operands
  std::map<ValueId, std::map<uint8_t, ValueId>> captured_;  // by the first: the input of each memory
  std::vector<std::vector<Reader>> readers_;
  std::vector<uint8_t> home_;                 // by value
  std::vector<ValueId*> makers_;              // where its step, or the list of inputs, names it
  std::vector<std::vector<Node>> down_, up_;  // before node n
};

// In its body the condition of a loop holds.
void fix_conditions(Graph& graph) {
  for (Node& node : graph.nodes) {
    for (const auto& body : node.bodies) fix_conditions(*body);
    if (node.as<LoopAttrs>() == nullptr) continue;
    Graph& body = *node.bodies[0];
    const ValueId condition = body.inputs[1];
    const auto reads = [&](const Node& n) {
      return n.bodies.empty() && std::ranges::count(n.inputs, condition) > 0;
    };
    if (std::ranges::none_of(body.nodes, reads)) continue;
    const ValueId yes =
        body.add_constant(Constant::scalar_int(DType::kBool, 1)->reshaped(body.value(condition).dims));
    for (Node& n : body.nodes)
      if (n.bodies.empty()) std::ranges::replace(n.inputs, condition, yes);
  }
}

}  // namespace

void place_memories(Graph& graph, const PlanOptions& options) {
  const auto& all = options.platforms;
  if (std::none_of(all.begin(), all.end(), [](const Platform* p) { return p->own_memory; })) return;
  fix_conditions(graph);
  MemoryChoice choice = choose_memories(graph, options);
  Transferring(graph, choice, options).run({});
}

bool is_transfer(const Graph& graph, const Node& node) {
  return node.op() == Op::kCopy && !graph.is_constant(node.inputs[0]) &&
         graph.value(node.inputs[0]).memory != graph.value(node.outputs[0]).memory;
}

uint8_t memory_of(const Graph& graph, const Node& node) {
  uint8_t memory = 0;
  if (!node.bodies.empty()) return memory;
  for (const auto* list : {&node.inputs, &node.outputs})
    for (const ValueId id : *list)
      if (id >= 0) memory = std::max(memory, graph.value(id).memory);
  return memory;
}

}  // namespace sinter::convert
