#include "converter/import/dataflow.h"

namespace sinter::convert {

std::set<std::string> names_read(const ImportedGraph& graph) {
  std::set<std::string> names;
  each_graph(graph, [&](const ImportedGraph& one) {
    for (const ImportedNode& node : one.nodes) names.insert(node.inputs.begin(), node.inputs.end());
    for (const ImportedValueInfo& output : one.outputs) names.insert(output.name);
  });
  return names;
}

std::set<std::string> Dataflow::ancestors(const std::string& value) const {
  std::set<std::string> seen;
  std::vector<std::string> open{value};
  while (!open.empty()) {
    const std::string name = std::move(open.back());
    open.pop_back();
    if (!seen.insert(name).second) continue;
    for (const ImportedNode* node : producers(name))
      open.insert(open.end(), node->inputs.begin(), node->inputs.end());
    open.insert(open.end(), comes_from(name).begin(), comes_from(name).end());
  }
  return seen;
}

void Dataflow::enter(const ImportedGraph& graph) {
  for (const ImportedTensor& tensor : graph.initializers) constants_[tensor.name] = tensor.data;
  for (const ImportedNode& node : graph.nodes) {
    for (size_t i = 0; i < node.inputs.size(); ++i) readers_[node.inputs[i]].push_back({&node, i});
    for (const std::string& output : node.outputs) producers_[output].push_back(&node);
    for (const ImportedAttribute& a : node.attributes) {
      if (node.op_type == "Constant" && !a.tensors.empty() && !node.outputs.empty())
        constants_[node.outputs[0]] = a.tensors[0].data;
      for (const auto& body : a.graphs) enter_body(node, *body);
    }
  }
}

void Dataflow::enter_body(const ImportedNode& node, const ImportedGraph& body) {
  enter(body);
  const auto link = [&](const std::string& from, const std::string& to) {
    becomes_[from].push_back(to), sources_[to].push_back(from);
  };
  // The first result of a Loop's body is its condition, which the Loop does not give.
  const size_t first = node.op_type == "Loop" ? 1 : 0;
  for (size_t i = first; i < body.outputs.size() && i - first < node.outputs.size(); ++i)
    link(body.outputs[i].name, node.outputs[i - first]);
  // An If has no parameters; a Loop's first two are the trip's number and the condition.
  for (size_t i = 2 * first; i < body.inputs.size() && i < node.inputs.size(); ++i)
    link(node.inputs[i], body.inputs[i].name);
}

}  // namespace sinter::convert
