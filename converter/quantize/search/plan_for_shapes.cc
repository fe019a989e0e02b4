#include "converter/quantize/search/plan_for_shapes.h"

#include <fmt/format.h>

#include <cstring>
#include <stdexcept>

#include "converter/diagnostics/errors.h"
#include "converter/quantize/weights/product_weights.h"

namespace sinter::convert {
namespace {

bool same_bytes(const Constant& a, const Constant& b) {
  if (&a == &b) return true;
  if (a.dtype() != b.dtype() || a.dims() != b.dims()) return false;
  const LoadedBytes x = a.load(), y = b.load();
  return x.bytes.size() == y.bytes.size() &&
         (x.bytes.empty() || std::memcmp(x.bytes.data(), y.bytes.data(), x.bytes.size()) == 0);
}

std::vector<Op> operations_of(const Graph& graph) {
  std::vector<Op> operations;
  for (const Node& node : graph.nodes) operations.push_back(node.op());
  return operations;
}

[[noreturn]] void fail(const Node& node, const char* what) {
  throw UsageError(
      fmt::format("--quantize with several --shapes: {} '{}' {} with each set, so the sets cannot share it; "
                  "convert each set into a file of its own",
                  op_name(node.op()), node.name, what));
}

}  // namespace

std::string shape_difference(const Graph& graph, const Graph& other) {
  const size_t count = std::min(graph.nodes.size(), other.nodes.size());
  for (size_t n = 0; n < count; ++n) {
    const Node &a = graph.nodes[n], &b = other.nodes[n];
    if (a.op() != b.op() || a.inputs != b.inputs || a.outputs != b.outputs ||
        a.bodies.size() != b.bodies.size())
      return fmt::format("operation {} is {} '{}' with one and {} '{}' with the other", n, op_name(a.op()),
                         a.name, op_name(b.op()), b.name);
  }
  if (graph.nodes.size() != other.nodes.size() || graph.values.size() != other.values.size())
    return fmt::format("one has {} operations and the other {}", graph.nodes.size(), other.nodes.size());
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const Value &a = graph.values[i], &b = other.values[i];
    if (a.dtype != b.dtype || a.order != b.order || (a.constant == nullptr) != (b.constant == nullptr) ||
        a.bounded_dims != b.bounded_dims)
      return fmt::format("value '{}' is held in another form", a.name);
  }
  return graph.inputs == other.inputs && graph.outputs == other.outputs
             ? ""
             : "inputs or outputs are other values";
}

CorrectedBiases corrected_biases(const QuantizationPlan& plan) {
  CorrectedBiases result;
  QuantizationPlan again = plan;
  again.graph.ledger = std::make_shared<TypeLedger>();  // decides nothing
  again.correct = [&](Graph& rounded, const Graph& exact) {
    if (plan.correct) plan.correct(rounded, exact);
    result.operations = operations_of(rounded);
    for (const Node& node : rounded.nodes)
      if (const auto p = product_weights(rounded, node); p && p->bias)
        result.biases[node.outputs[0]] = p->bias;
  };
  (void)build(again);
  return result;
}

QuantizationPlan plan_for_shapes(const QuantizationPlan& plan, const Graph& exact, const Graph& other,
                                 const CorrectedBiases& corrected) {
  QuantizationPlan own = plan;
  Graph& graph = own.graph;
  graph.ledger = std::make_shared<TypeLedger>();
  if (graph.nodes.size() != exact.nodes.size() || graph.values.size() < exact.values.size())
    throw std::logic_error("a technique has added operations");
  for (size_t i = exact.values.size(); i < graph.values.size(); ++i)
    if (!graph.values[i].constant) throw std::logic_error("a technique has added values");
  for (size_t i = 0; i < exact.values.size(); ++i) {
    if (graph.values[i].constant != exact.values[i].constant)
      throw std::logic_error("a technique has replaced a constant in place");
    graph.values[i].dims = other.values[i].dims, graph.values[i].constant = other.values[i].constant;
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    Node& node = graph.nodes[n];
    const Node &before = exact.nodes[n], &there = other.nodes[n];
    if (!(encode_attrs(node.attrs) == encode_attrs(before.attrs)) || node.bodies != before.bodies)
      throw std::logic_error("a technique has changed an operation");
    node.attrs = there.attrs, node.bodies = there.bodies;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] < static_cast<ValueId>(exact.values.size()) || i >= before.inputs.size()) continue;
      const ValueId was = before.inputs[i];
      if (was >= 0 && !same_bytes(*exact.value(was).constant, *other.value(was).constant))
        fail(node, "has other constants");
    }
    // Rounded weights take the place of the graph's.
    if (node.outputs.empty() || !plan.weights.contains(node.outputs[0])) continue;
    const auto a = product_weights(exact, before), b = product_weights(other, there);
    if (!a || !b || !same_bytes(*a->weights, *b->weights)) fail(node, "has other weights");
  }
  own.correct = [&corrected](Graph& rounded, const Graph&) {
    if (operations_of(rounded) != corrected.operations)
      throw UsageError(
          "--quantize with several --shapes: the sets round other values, so that they cannot share ranges; "
          "convert each set into a file of its own");
    for (Node& node : rounded.nodes) {
      const auto p = product_weights(rounded, node);
      if (!p) continue;
      const auto at = corrected.biases.find(node.outputs[0]);
      if (at == corrected.biases.end() || (p->bias && same_bytes(*p->bias, *at->second))) continue;
      const std::vector<double> bias = at->second->as_doubles();
      set_weights(rounded, node, nullptr, &bias);
    }
  };
  return own;
}

}  // namespace sinter::convert
