#include "converter/import/caches/cache_kinds.h"

#include <algorithm>
#include <set>

#include "converter/import/check_options.h"

namespace sinter::convert {
namespace {

const ImportedNode* producer(const ImportedGraph& graph, const std::string& name) {
  for (const ImportedNode& node : graph.nodes)
    if (std::find(node.outputs.begin(), node.outputs.end(), name) != node.outputs.end()) return &node;
  return nullptr;
}

bool reads(const ImportedNode& node, const std::string& name) {
  return std::find(node.inputs.begin(), node.inputs.end(), name) != node.inputs.end();
}

// All names that nodes of the graph and of its bodies read.
std::set<std::string> names_read(const ImportedGraph& graph) {
  std::set<std::string> names;
  each_graph(graph, [&](const ImportedGraph& one) {
    for (const ImportedNode& node : one.nodes) names.insert(node.inputs.begin(), node.inputs.end());
    for (const ImportedValueInfo& output : one.outputs) names.insert(output.name);
  });
  return names;
}

const ImportedGraph* branch(const ImportedNode& node, const char* name) {
  const ImportedAttribute* a = node.find(name);
  return a != nullptr && a->kind == ImportedAttribute::Kind::kGraph && !a->graphs.empty() ? a->graphs[0].get()
                                                                                          : nullptr;
}

}  // namespace

CacheKind cache_kind(const ImportedGraph& graph, const ImportedValueInfo& input,
                     const ImportedValueInfo& output) {
  constexpr size_t kAxis = 2;
  std::string name = output.name;
  const ImportedNode* node = producer(graph, name);
  while (node != nullptr && node->op_type == "Identity" && node->inputs.size() == 1)
    name = node->inputs[0], node = producer(graph, name);
  if (name == input.name) return CacheKind::kPassed;
  // Operators that join or append rows by themselves, whatever the file declares.
  const auto joins = [](const std::string& op) { return op == "Concat" || op.ends_with("Attention"); };
  if (node == nullptr || (joins(node->op_type) && reads(*node, input.name))) return CacheKind::kGrows;
  if (output.dims.size() <= kAxis || input.dims.size() <= kAxis) return CacheKind::kGrows;
  const ImportedDim &before = input.dims[kAxis], &after = output.dims[kAxis];
  const bool same = before.value >= 0 ? before.value == after.value
                                      : !before.symbol.empty() && before.symbol == after.symbol;
  return same ? CacheKind::kFixed : CacheKind::kGrows;
}

std::optional<CacheSwitch> cache_switch(const ImportedGraph& graph, const std::vector<std::string>& caches) {
  for (const ImportedNode& node : graph.nodes) {
    const ImportedGraph *then = branch(node, "then_branch"), *otherwise = branch(node, "else_branch");
    if (node.op_type != "If" || node.inputs.empty() || then == nullptr || otherwise == nullptr) continue;
    const bool given = std::any_of(graph.inputs.begin(), graph.inputs.end(),
                                   [&](const ImportedValueInfo& i) { return i.name == node.inputs[0]; });
    const std::set<std::string> a = names_read(*then), b = names_read(*otherwise);
    const auto all = [&](const std::set<std::string>& names, size_t wanted) {
      return std::all_of(caches.begin(), caches.end(),
                         [&](const std::string& cache) { return names.count(cache) == wanted; });
    };
    if (!given) continue;
    if (all(a, 1) && all(b, 0)) return CacheSwitch{node.inputs[0], true};
    if (all(a, 0) && all(b, 1)) return CacheSwitch{node.inputs[0], false};
  }
  return std::nullopt;
}

}  // namespace sinter::convert
