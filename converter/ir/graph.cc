#include "converter/ir/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <type_traits>

#include "converter/ir/builder.h"

namespace sinter::convert {

Op op_of(const OpAttrs& attrs) {
  return std::visit(
      [](const auto& a) {
        if constexpr (std::is_same_v<std::decay_t<decltype(a)>, std::monostate>)
          return Op{};
        else
          return std::decay_t<decltype(a)>::kOp;
      },
      attrs);
}

const void* attrs_pointer(const OpAttrs& attrs) {
  return std::visit([](const auto& a) { return static_cast<const void*>(&a); }, attrs);
}

namespace {

template <class F>
void visit_all(const OpAttrs& attrs, F&& f) {
  std::visit(
      [&](const auto& a) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(a)>, std::monostate>) visit_attrs(a, f);
      },
      attrs);
}

struct Printer {
  std::string text;
  void item(const char* name, const std::string& value) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  }
  void operator()(const char* name, int64_t v) { item(name, fmt::format("{}", v)); }
  void operator()(const char* name, double v) {
    if (v != kInfinity && v != -kInfinity) item(name, fmt::format("{:g}", v));
  }
  void operator()(const char* name, const IntList& l) {
    if (!l.empty()) item(name, fmt::format("[{}]", fmt::join(l.begin(), l.end(), ",")));
  }
  void operator()(const char* name, const FloatList& l) {
    if (!l.empty()) item(name, fmt::format("[{:g}]", fmt::join(l.begin(), l.end(), ",")));
  }
  void operator()(const char* name, const AttrText& t) {
    if (t.size > 0) item(name, fmt::format("'{}'", std::string_view(t.data, t.size)));
  }
  void operator()(const char* name, const AttrBytes& b) {
    if (b.size > 0) item(name, fmt::format("{} bytes", b.size));
  }
};

}  // namespace

EncodedAttrs encode_attrs(const OpAttrs& attrs) {
  EncodedAttrs encoded;
  visit_all(attrs, encoded);
  return encoded;
}

std::string to_string(const OpAttrs& attrs) {
  Printer printer;
  visit_all(attrs, printer);
  return printer.text;
}

ValueId Graph::add_value(std::string value_name, DType dtype, Dims dims) {
  values.push_back({std::move(value_name), dtype, std::move(dims), nullptr, {}});
  return static_cast<ValueId>(values.size()) - 1;
}

ValueId Graph::add_constant(ConstantPtr constant, std::string value_name) {
  const ValueId id = add_value(std::move(value_name), constant->dtype(), constant->dims());
  value(id).constant = std::move(constant);
  return id;
}

bool Graph::is_input(ValueId id) const { return std::find(inputs.begin(), inputs.end(), id) != inputs.end(); }
bool Graph::is_output(ValueId id) const {
  return std::find(outputs.begin(), outputs.end(), id) != outputs.end();
}

const GraphLength* Graph::given_length(ValueId id) const {
  for (const GraphLength& length : lengths)
    if (inputs[length.input] == id) return &length;
  return nullptr;
}

void Graph::decide(const Value& read, const Node& reader, DType after, TypeRule rule, TypeEffect effect,
                   std::string reason) {
  ledger->add(
      {read.name, reader.name, reader.origin, read.dtype, after, rule, std::move(reason), effect, {}});
}

const GraphState* Graph::state_read(ValueId id) const {
  for (const GraphState& s : states)
    if (inputs[s.input] == id) return &s;
  return nullptr;
}
const GraphState* Graph::state_written(ValueId id) const {
  for (const GraphState& s : states)
    if (outputs[s.output] == id) return &s;
  return nullptr;
}

Uses::Uses(const Graph& graph) : producer(graph.values.size(), -1), readers(graph.values.size()) {
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    for (const ValueId id : node.inputs)
      if (id >= 0) readers[static_cast<size_t>(id)].push_back(static_cast<int>(n));
    for (const ValueId id : node.outputs)
      if (id >= 0) producer[static_cast<size_t>(id)] = static_cast<int>(n);
  }
  for (const ValueId id : graph.outputs) readers[static_cast<size_t>(id)].push_back(-1);
  for (const Value& v : graph.values)
    for (const auto& [axis, id] : v.bounded_dims) readers[static_cast<size_t>(id)].push_back(-1);
}

void replace_uses(Graph& graph, ValueId from, ValueId to) {
  for (Node& node : graph.nodes) std::replace(node.inputs.begin(), node.inputs.end(), from, to);
  std::replace(graph.outputs.begin(), graph.outputs.end(), from, to);
  for (Value& v : graph.values)
    for (auto& [axis, id] : v.bounded_dims)
      if (id == from) id = to;
}

int remove_dead_nodes(Graph& graph) {
  std::vector<bool> needed(graph.values.size());
  const auto need = [&](ValueId id, const auto& self) -> void {
    if (id < 0 || needed[static_cast<size_t>(id)]) return;
    needed[static_cast<size_t>(id)] = true;
    for (const auto& [axis, length] : graph.value(id).bounded_dims) self(length, self);
  };
  for (const ValueId id : graph.outputs) need(id, need);
  std::vector<bool> keep(graph.nodes.size());
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const Node& node = graph.nodes[n];
    keep[n] = std::any_of(node.outputs.begin(), node.outputs.end(),
                          [&](ValueId id) { return id >= 0 && needed[static_cast<size_t>(id)]; });
    if (!keep[n]) continue;
    for (const ValueId id : node.inputs) need(id, need);
  }
  int removed = 0;
  std::vector<Node> kept;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!keep[n]) {
      ++removed;
      continue;
    }
    for (const auto& body : graph.nodes[n].bodies) removed += remove_dead_nodes(*body);
    kept.push_back(std::move(graph.nodes[n]));
  }
  graph.nodes = std::move(kept);
  return removed;
}

void compact_values(Graph& graph) {
  std::vector<bool> used(graph.values.size());
  const auto use = [&](ValueId id, const auto& self) -> void {
    if (id < 0 || used[static_cast<size_t>(id)]) return;
    used[static_cast<size_t>(id)] = true;
    for (const auto& [axis, length] : graph.value(id).bounded_dims) self(length, self);
  };
  for (const ValueId id : graph.inputs) use(id, use);
  for (const ValueId id : graph.outputs) use(id, use);
  for (Node& node : graph.nodes) {
    for (const auto& body : node.bodies) compact_values(*body);
    for (const ValueId id : node.inputs) use(id, use);
    for (const ValueId id : node.outputs) use(id, use);
  }
  for (const Node& node : graph.prepare) {
    for (const ValueId id : node.inputs) use(id, use);
    for (const ValueId id : node.outputs) use(id, use);
  }
  std::vector<ValueId> renumbered(graph.values.size(), kAbsent);
  std::vector<Value> kept;
  for (size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) continue;
    renumbered[i] = static_cast<ValueId>(kept.size());
    kept.push_back(std::move(graph.values[i]));
  }
  graph.values = std::move(kept);
  const auto renumber = [&](ValueId& id) {
    if (id >= 0) id = renumbered[static_cast<size_t>(id)];
  };
  for (ValueId& id : graph.inputs) renumber(id);
  for (ValueId& id : graph.outputs) renumber(id);
  for (auto* nodes : {&graph.prepare, &graph.nodes})
    for (Node& node : *nodes) {
      for (ValueId& id : node.inputs) renumber(id);
      for (ValueId& id : node.outputs) renumber(id);
    }
  for (Value& v : graph.values)
    for (auto& [axis, id] : v.bounded_dims) renumber(id);
}

const char* stage_name(Stage stage) {
  return stage == Stage::kLowered ? "lowered" : stage == Stage::kRewritten ? "rewritten" : "planned";
}

void advance(Graph& graph, Stage stage) {
  if (graph.stage > stage)
    throw std::logic_error(fmt::format("a graph that is {} cannot become one that is {}",
                                       stage_name(graph.stage), stage_name(stage)));
  graph.stage = stage;
  for (const Node& node : graph.nodes)
    for (const auto& body : node.bodies) advance(*body, stage);
}

void require_stage(const Graph& graph, Stage stage, const char* who) {
  if (graph.stage != stage)
    throw std::logic_error(fmt::format("{} takes a graph that is {}, but this one is {}", who,
                                       stage_name(stage), stage_name(graph.stage)));
}

namespace {

// Returns a property that belongs to a later stage than the graph's; empty: none.
std::string check_stage(const Graph& graph) {
  const auto early = [&](const char* what, const std::string& name) {
    return fmt::format("'{}' has {}, but the graph is {}", name, what, stage_name(graph.stage));
  };
  for (const Value& v : graph.values) {
    if (graph.stage < Stage::kRewritten && !v.order.empty()) return early("its own layout", v.name);
    if (graph.stage < Stage::kRewritten && v.requested) return early("a requested type", v.name);
    if (graph.stage < Stage::kPlanned && v.memory != 0) return early("a memory", v.name);
  }
  if (graph.stage < Stage::kPlanned && !graph.prepare.empty())
    return early("a prepare step", graph.prepare.front().name);
  for (const Node& node : graph.nodes)
    for (const auto& body : node.bodies)
      if (body->stage != graph.stage)
        return fmt::format("a body of '{}' is {}, but the graph around it is {}", node.name,
                           stage_name(body->stage), stage_name(graph.stage));
  return {};
}

}  // namespace

std::string check(const Graph& graph) {
  if (std::string fault = check_stage(graph); !fault.empty()) return fault;
  std::vector<bool> defined(graph.values.size());
  const auto valid = [&](ValueId id) { return id >= 0 && static_cast<size_t>(id) < graph.values.size(); };
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const Value& v = graph.values[i];
    defined[i] = v.constant != nullptr;
    if (v.constant && (v.constant->dtype() != v.dtype || v.constant->dims() != v.dims))
      return fmt::format("value {} '{}' and its constant disagree", i, v.name);
  }
  for (const ValueId id : graph.inputs) {
    if (!valid(id)) return "a graph input is not a value";
    defined[static_cast<size_t>(id)] = true;
  }
  for (const Node& node : graph.nodes) {
    const std::string who = fmt::format("{} '{}'", op_name(node.op()), node.name);
    std::vector<ValueFact> facts, expected;
    for (const ValueId id : node.inputs) {
      if (id == kAbsent) {
        facts.emplace_back();
        continue;
      }
      if (!valid(id) || !defined[static_cast<size_t>(id)])
        return who + " reads a value that does not exist yet";
      facts.push_back({graph.value(id).dtype, graph.value(id).dims, graph.value(id).constant});
    }
    std::vector<bool> want;
    for (const ValueId id : node.outputs) {
      want.push_back(id != kAbsent);
      if (id == kAbsent) continue;
      if (!valid(id) || defined[static_cast<size_t>(id)]) return who + " writes a value that exists already";
      defined[static_cast<size_t>(id)] = true;
    }
    if (!node.bodies.empty()) {
      for (const auto& body : node.bodies)
        if (std::string fault = check(*body); !fault.empty()) return who + ": " + fault;
      continue;
    }
    const Status status = infer_outputs(node.attrs, facts, node.outputs.size(), want, &expected);
    if (!status.ok()) {
      char text[200];
      format_status(status, text);
      return who + ": " + text;
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kAbsent) continue;
      const Value& v = graph.value(node.outputs[i]);
      if (v.dtype != expected[i].dtype || v.dims != expected[i].dims)
        return fmt::format("{} output {} is {}, but the operation gives {}", who, i,
                           to_string(v.dtype, v.dims), to_string(expected[i].dtype, expected[i].dims));
    }
  }
  for (const ValueId id : graph.outputs)
    if (!valid(id) || !defined[static_cast<size_t>(id)]) return "a graph output is never computed";
  return {};
}

namespace {

void dump_graph(const Graph& graph, int indent, std::string* text) {
  const std::string pad(static_cast<size_t>(indent), ' ');
  const auto name = [&](ValueId id) -> std::string {
    if (id == kAbsent) return "-";
    const Value& v = graph.value(id);
    return fmt::format("%{}{}{}:{}", id, v.name.empty() ? "" : " ", v.name, to_string(v.dtype, v.dims)) +
           (v.constant ? "!" : "");
  };
  const auto list = [&](const std::vector<ValueId>& ids) {
    std::string out;
    for (const ValueId id : ids) out += (out.empty() ? "" : ", ") + name(id);
    return out;
  };
  *text += fmt::format("{}graph({}) -> ({})\n", pad, list(graph.inputs), list(graph.outputs));
  for (const Node& node : graph.prepare)
    *text += fmt::format("{}  prepare {} = {}({}) {{{}}}\n", pad, list(node.outputs), op_name(node.op()),
                         list(node.inputs), to_string(node.attrs));
  for (const Node& node : graph.nodes) {
    *text += fmt::format("{}  {} = {}({}) {{{}}} # {}\n", pad, list(node.outputs), op_name(node.op()),
                         list(node.inputs), to_string(node.attrs), node.name);
    for (const auto& body : node.bodies) dump_graph(*body, indent + 4, text);
  }
}

}  // namespace

std::string dump(const Graph& graph) {
  std::string text;
  dump_graph(graph, 0, &text);
  return text;
}

}  // namespace sinter::convert
