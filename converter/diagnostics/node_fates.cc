#include "converter/diagnostics/node_fates.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <unordered_map>

namespace sinter::convert {
namespace {

using Kind = NodeFate::Kind;

const char* kind_word(Kind kind) {
  switch (kind) {
    case Kind::kStep:
      return "step";
    case Kind::kConstant:
      return "constant";
    case Kind::kValue:
      return "value";
    case Kind::kFused:
      return "fused";
    case Kind::kDropped:
      return "dropped";
  }
  return "";
}

template <class Visit>
void each_graph(const Graph& graph, const Visit& visit) {
  visit(graph);
  for (const Node& node : graph.nodes)
    for (const auto& body : node.bodies) each_graph(*body, visit);
}

// Returns all of an operation but its operands.
std::string form_of(const Node& node) {
  const EncodedAttrs a = encode_attrs(node.attrs);
  return fmt::format("{}:{}:{}:{}", static_cast<int>(node.op()), fmt::join(a.ints, ","),
                     fmt::join(a.floats, ","), fmt::join(a.bytes, ","));
}

// A node before the rewriting.
struct Seen {
  std::string name, form;
  std::vector<ValueId> inputs, outputs;
};

struct SeenGraph {
  std::vector<Seen> nodes;
  size_t values = 0;
  std::unordered_map<ValueId, std::vector<size_t>> readers;
  std::unordered_map<ValueId, size_t> output_place;

  explicit SeenGraph(const Graph& graph) : values(graph.values.size()) {
    for (const Node& node : graph.nodes) {
      for (const ValueId id : node.inputs)
        if (id >= 0) readers[id].push_back(nodes.size());
      nodes.push_back({node.name, form_of(node), node.inputs, node.outputs});
    }
    for (size_t i = 0; i < graph.outputs.size(); ++i) output_place[graph.outputs[i]] = i;
  }
};

// Finds the nodes that do the work of a removed node.
class Tracer {
 public:
  Tracer(const SeenGraph& before, const Graph& after) : before_(before), after_(after) {
    for (const Node& node : after.nodes)
      for (const ValueId id : node.outputs)
        if (id >= 0) maker_[id] = &node;
  }

  void trace(size_t gone, NodeFate* fate) {
    fate->kind = Kind::kDropped, fate->into.clear();
    std::set<size_t> visited;
    std::vector<size_t> open{gone};
    for (size_t at = 0; at < open.size(); ++at) {
      if (!visited.insert(open[at]).second) continue;
      for (const ValueId id : before_.nodes[open[at]].outputs)
        if (id >= 0 && settled(id, at == 0, fate, &open)) return;
    }
  }

 private:
  // Whether the value, or a reader of it, has a successor. Readers that were removed are followed next.
  bool settled(ValueId id, bool own, NodeFate* fate, std::vector<size_t>* open) {
    if (const Node* now = maker(id)) return fused(*now, fate);
    if (own && after_.is_constant(id)) return fate->kind = Kind::kConstant, true;
    if (const auto out = before_.output_place.find(id); out != before_.output_place.end())
      if (const Node* now = maker(after_.outputs[out->second])) return fused(*now, fate);
    const auto readers = before_.readers.find(id);
    if (readers == before_.readers.end()) return false;
    for (const size_t r : readers->second) {
      const Seen& reader = before_.nodes[r];
      const Node* now = nullptr;
      for (const ValueId made : reader.outputs)
        if (now == nullptr && made >= 0) now = maker(made);
      if (now == nullptr) {
        open->push_back(r);
        continue;
      }
      if (now->inputs.size() != reader.inputs.size() || form_of(*now) != reader.form)
        return fused(*now, fate);
      const auto place = std::find(reader.inputs.begin(), reader.inputs.end(), id) - reader.inputs.begin();
      const ValueId instead = now->inputs[static_cast<size_t>(place)];
      if (instead == id || instead < 0) continue;
      if (after_.is_constant(instead)) return fate->kind = Kind::kConstant, true;
      if (static_cast<size_t>(instead) >= before_.values)
        if (const Node* fresh = maker(instead)) return fused(*fresh, fate);
      return fate->kind = Kind::kValue, fate->into = after_.value(instead).name, true;
    }
    return false;
  }

  static bool fused(const Node& now, NodeFate* fate) {
    fate->kind = Kind::kFused, fate->into = now.name;
    return true;
  }
  const Node* maker(ValueId id) const {
    const auto at = maker_.find(id);
    return at == maker_.end() ? nullptr : at->second;
  }

  const SeenGraph& before_;
  const Graph& after_;
  std::unordered_map<ValueId, const Node*> maker_;
};

}  // namespace

struct NodeFates::Picture::Parts {
  std::map<const Graph*, SeenGraph> graphs;
};

NodeFates::Picture::Picture(const Graph& graph) : parts_(std::make_unique<Parts>()) {
  each_graph(graph, [&](const Graph& g) { parts_->graphs.emplace(&g, SeenGraph(g)); });
}
NodeFates::Picture::~Picture() = default;
NodeFates::Picture::Picture(Picture&&) noexcept = default;

void NodeFates::add(NodeFate fate) {
  const auto [at, fresh] = index_.emplace(fate.node, items_.size());
  if (fresh)
    items_.push_back(std::move(fate));
  else if (fate.kind < items_[at->second].kind)
    items_[at->second] = std::move(fate);
}

void NodeFates::follow(const char* by, const Picture& before, const Graph& graph) {
  std::set<std::string> names;
  std::map<const Graph*, const Graph*> now;
  each_graph(graph, [&](const Graph& g) {
    now[&g] = &g;
    for (const Node& node : g.nodes) names.insert(node.name);
  });
  for (const auto& [was, seen] : before.parts_->graphs) {
    const auto at = now.find(was);
    std::optional<Tracer> tracer;
    // The last operation of a name gives the node's result.
    for (size_t n = seen.nodes.size(); n-- > 0;) {
      const std::string& name = seen.nodes[n].name;
      if (names.count(name) != 0) continue;
      const auto entry = index_.find(name);
      if (entry == index_.end()) continue;
      NodeFate& fate = items_[entry->second];
      if (fate.kind != Kind::kStep) continue;
      fate.by = by;
      if (at == now.end()) {
        fate.kind = Kind::kDropped;
        continue;
      }
      if (!tracer) tracer.emplace(seen, *at->second);
      tracer->trace(n, &fate);
      if (fate.kind == Kind::kFused && fate.into == name) fate.kind = Kind::kStep;
    }
  }
}

namespace {

std::string one_line(const nlohmann::json& object) {
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string to_lines(const NodeFates& fates, const Graph& graph) {
  std::set<std::string> steps, values, used;
  each_graph(graph, [&](const Graph& g) {
    for (const Node& node : g.nodes) {
      steps.insert(node.name);
      for (const ValueId id : node.inputs)
        if (id >= 0) used.insert(g.value(id).name);
    }
    for (const ValueId id : g.outputs) used.insert(g.value(id).name);
    for (const Value& v : g.values) values.insert(v.name);
  });
  std::string text;
  for (const NodeFate& fate : fates.all()) {
    const bool whole = steps.count(fate.node) != 0 &&
                       std::all_of(fate.outputs.begin(), fate.outputs.end(), [&](const std::string& name) {
                         return name.empty() || values.count(name) != 0;
                       });
    if (whole) continue;
    nlohmann::json line{{"onnx_node", fate.node},
                        {"op", fate.op},
                        {"outputs", fate.outputs},
                        {"became", kind_word(steps.count(fate.node) != 0 ? Kind::kStep : fate.kind)}};
    if (!fate.into.empty()) line["into"] = fate.into;
    if (!fate.by.empty()) line["by"] = fate.by;
    text += one_line(line);
  }
  for (const GivenConstant& constant : fates.constants())
    if (used.count(constant.name) == 0)
      text += one_line(
          {{"onnx_constant", constant.name}, {"type", constant.type}, {"readers", constant.readers}});
  return text;
}

std::string fate_words(const nlohmann::json& line) {
  const auto text = [&](const char* key) { return line.value(key, std::string()); };
  const std::string became = text("became"), into = text("into"), by = text("by");
  const std::string how = by.empty()             ? " at import"
                          : by.starts_with("--") ? fmt::format(" by {}", by)
                                                 : fmt::format(" by pass {}", by);
  const std::string value = into.empty() ? "another value" : fmt::format("'{}'", into);
  if (became == "step") return "computed by steps with its name";
  if (became == "constant") return fmt::format("folded into a constant{}", how);
  if (became == "value") return fmt::format("removed{}; the readers of its result read {}", how, value);
  if (became == "fused")
    return fmt::format("fused{} into node {}", how, into.empty() ? "without a name" : value);
  return fmt::format("dropped{}: no output needs it", how);
}

std::string constant_words(const nlohmann::json& line) {
  const auto readers = line.value("readers", std::vector<std::string>());
  const std::string what =
      fmt::format("'{}' ({})", line.value("onnx_constant", std::string()), line.value("type", std::string()));
  if (readers.empty()) return fmt::format("{} was dropped at import: no node reads it", what);
  std::string names;
  for (const std::string& reader : readers) names += fmt::format("{}'{}'", names.empty() ? "" : ", ", reader);
  return fmt::format("{} left no value of its name: it was merged into the steps of its reader{} {}", what,
                     readers.size() == 1 ? "," : "s,",
                     readers.size() == 1 ? "node " + names : "nodes " + names);
}

}  // namespace sinter::convert
