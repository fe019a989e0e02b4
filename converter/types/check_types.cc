#include "converter/types/check_types.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "converter/ir/op_traits.h"

namespace sinter::convert {

namespace {

struct Spoken {
  std::set<std::string> nodes, values;
  explicit Spoken(const TypeLedger& ledger) {
    for (const TypeDecision& d : ledger.all()) {
      if (!d.node.empty()) nodes.insert(d.node);
      if (!d.value.empty()) values.insert(d.value);
    }
  }
};

std::string unexplained(const Graph& graph, const Spoken& spoken) {
  for (const Node& node : graph.nodes) {
    for (const auto& body : node.bodies)
      if (std::string fault = unexplained(*body, spoken); !fault.empty()) return fault;
    if (node.op() != Op::kCast || node.origin == "Cast" || node.origin == "CastLike") continue;
    bool known = spoken.nodes.count(node.name) != 0;
    for (const ValueId id : {node.inputs[0], node.outputs[0]})
      known |= spoken.values.count(graph.value(id).name) != 0;
    if (!known)
      return fmt::format("a cast of '{}' at node '{}' has no entry in the ledger",
                         graph.value(node.inputs[0]).name, node.name);
  }
  return {};
}

// What moves or converts values may do so in any type; arithmetic is the solver's business.
bool keeps_type(const Node& node) {
  const Op op = node.op();
  return has_traits(op, kMovement) || has_traits(op, kControl) || elements_of(op) == Elements::kConverted ||
         op == Op::kClassify || op == Op::kWhere;
}

// What was put into float16 on request.
struct Chosen {
  std::set<std::string> nodes, values;
  explicit Chosen(const TypeLedger& ledger) {
    for (const TypeDecision& d : ledger.all())
      if (d.rule == TypeRule::kComputeFloat16 && d.effect == TypeEffect::kNarrowed)
        nodes.insert(d.node), values.insert(d.value);
  }
  bool has(const Graph& graph, const Node& node) const {
    if (nodes.count(node.name) == 0) return false;
    const auto wanted =
        std::find_if(node.outputs.begin(), node.outputs.end(), [](ValueId v) { return v >= 0; });
    if (wanted == node.outputs.end()) return true;
    const std::string& value = graph.value(*wanted).name;
    return value.empty() || values.count(value) != 0;
  }
};

// A node that the solver, run again, would give other types.
std::string undecided(const Graph& graph, const Chosen& chosen) {
  for (const Node& node : graph.nodes) {
    for (const auto& body : node.bodies)
      if (std::string fault = undecided(*body, chosen); !fault.empty()) return fault;
    if (keeps_type(node) || chosen.has(graph, node)) continue;
    for (const auto& list : {node.inputs, node.outputs})
      for (const ValueId id : list)
        if (id >= 0 && is_float(graph.value(id).dtype) && !is_wide_float(graph.value(id).dtype))
          return fmt::format("node '{}' ({}) computes in {}", node.name, op_name(node.op()),
                             dtype_name(graph.value(id).dtype));
  }
  return {};
}

}  // namespace

std::string check_types(const Graph& graph) {
  if (std::string fault = unexplained(graph, Spoken(*graph.ledger)); !fault.empty()) return fault;
  return undecided(graph, Chosen(*graph.ledger));
}

}  // namespace sinter::convert
