#include "converter/types/type_faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "converter/ir/integer_range.h"
#include "converter/ir/narrow_operands.h"
#include "converter/ir/op_traits.h"

namespace sinter::convert {

namespace {

// The names that entries of the ledger are about.
struct Explained {
  std::set<std::string> nodes, values;
  explicit Explained(const TypeLedger& ledger) {
    for (const TypeDecision& d : ledger.all()) {
      if (!d.node.empty()) nodes.insert(d.node);
      if (!d.value.empty()) values.insert(d.value);
    }
  }
};

// Returns whether integers or truth values of type from are also values of type to.
bool holds_all(DType from, DType to) {
  const auto range = range_of_type(from);
  return range && is_integer(to) && holds_range(to, *range);
}

std::string unexplained(const Graph& graph, const Explained& explained) {
  for (const Node& node : graph.nodes) {
    for (const auto& body : node.bodies)
      if (std::string fault = unexplained(*body, explained); !fault.empty()) return fault;
    if (node.op() != Op::kCast || node.is_model_cast()) continue;
    if (holds_all(graph.value(node.inputs[0]).dtype, graph.value(node.outputs[0]).dtype)) continue;
    bool known = explained.nodes.count(node.name) != 0;
    for (const ValueId id : {node.inputs[0], node.outputs[0]})
      known |= explained.values.count(graph.value(id).name) != 0;
    if (!known)
      return fmt::format("a cast of '{}' at node '{}' has no entry in the ledger",
                         graph.value(node.inputs[0]).name, node.name);
  }
  return {};
}

// Operations that move or convert values may do so in any type; the solver settles arithmetic.
bool keeps_type(const Node& node) {
  const Op op = node.op();
  return has_traits(op, kMovement) || has_traits(op, kControl) || elements_of(op) == Elements::kConverted ||
         op == Op::kClassify || op == Op::kWhere || op == Op::kCustom;
}

// A node that computes in a type that nothing computes in unless the user asks for it.
std::string narrow_computation(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    for (const auto& body : node.bodies)
      if (std::string fault = narrow_computation(*body); !fault.empty()) return fault;
    const bool requested = std::any_of(node.outputs.begin(), node.outputs.end(),
                                       [&](ValueId id) { return id >= 0 && graph.value(id).requested; });
    if (keeps_type(node) || requested) continue;
    std::vector<ValueId> computed = node.outputs;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (!stays_narrow(graph, node, i)) computed.push_back(node.inputs[i]);
    for (const ValueId id : computed)
      if (id >= 0 && is_float(graph.value(id).dtype) && !is_wide_float(graph.value(id).dtype))
        return fmt::format("node '{}' ({}) computes in {}", node.name, op_name(node.op()),
                           dtype_name(graph.value(id).dtype));
  }
  return {};
}

}  // namespace

std::string type_fault(const Graph& graph) {
  if (std::string fault = check(graph); !fault.empty()) return fault;
  if (std::string fault = unexplained(graph, Explained(*graph.ledger)); !fault.empty()) return fault;
  return narrow_computation(graph);
}

}  // namespace sinter::convert
