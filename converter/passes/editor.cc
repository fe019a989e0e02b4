#include "converter/passes/editor.h"

#include <algorithm>

namespace sinter::convert {
namespace {

thread_local Rewrites* counted = nullptr;

}  // namespace

CountRewrites::CountRewrites(Rewrites* rewrites) { counted = rewrites; }
CountRewrites::~CountRewrites() { counted = nullptr; }
bool may_rewrite() { return counted == nullptr || counted->made < counted->most; }
void enter_rewrite(const std::string& node) {
  if (counted == nullptr) return;
  ++counted->made;
  counted->last = node;
}

Editor::Editor(Graph& graph)
    : graph_(graph),
      producer_(graph.values.size(), -1),
      reads_(graph.values.size()),
      readers_(graph.values.size()),
      erased_(graph.nodes.size()),
      inserted_(graph.nodes.size()) {
  for (int n = 0; n < size(); ++n) {
    count(n, 1);
    for (const ValueId id : node(n).outputs)
      if (id >= 0) producer_[static_cast<size_t>(id)] = n;
  }
  for (const ValueId id : graph.outputs) count(id, 1, -1);
  for (const Value& v : graph.values)
    for (const auto& [axis, id] : v.bounded_dims) count(id, 1, -1);
}

void Editor::count(int n, int by) {
  for (const ValueId id : node(n).inputs) count(id, by, n);
}

void Editor::count(ValueId id, int by, int n) {
  if (!known(id)) return;
  reads_[static_cast<size_t>(id)] += by;
  readers_[static_cast<size_t>(id)] += static_cast<int64_t>(by) * n;
}

void Editor::replace(int n, OpAttrs attrs, std::vector<ValueId> inputs) {
  count(n, -1);
  node(n).attrs = std::move(attrs);
  node(n).inputs = std::move(inputs);
  count(n, 1);
  ++changes;
}

void Editor::absorb(int n, int consumer) {
  count(consumer, -1);
  for (const ValueId id : node(n).outputs)
    if (known(id)) producer_[static_cast<size_t>(id)] = -1;
  node(n).outputs = node(consumer).outputs;
  for (const ValueId id : node(n).outputs)
    if (known(id)) producer_[static_cast<size_t>(id)] = n;
  erased_[static_cast<size_t>(consumer)] = true;
  ++changes;
}

void Editor::bypass(int n, ValueId to) {
  const ValueId from = node(n).outputs[0];
  if (graph_.is_output(from)) {
    if (node(n).op() != Op::kCopy) replace(n, CopyAttrs{}, {to});
    return;
  }
  count(n, -1);
  erased_[static_cast<size_t>(n)] = true;
  if (known(to)) {
    reads_[static_cast<size_t>(to)] += reads(from);
    if (known(from)) readers_[static_cast<size_t>(to)] += readers_[static_cast<size_t>(from)];
  }
  replace_uses(graph_, from, to);
  for (auto& list : inserted_)
    for (Node& fresh : list) std::replace(fresh.inputs.begin(), fresh.inputs.end(), from, to);
  if (known(from)) reads_[static_cast<size_t>(from)] = 0, readers_[static_cast<size_t>(from)] = 0;
  ++changes;
}

ValueId Editor::insert(int n, OpAttrs attrs, std::vector<ValueId> inputs) {
  const std::vector<ValueId> results = insert_many(n, std::move(attrs), std::move(inputs), {true});
  return results.empty() ? kAbsent : results[0];
}

std::vector<ValueId> Editor::insert_many(int n, OpAttrs attrs, std::vector<ValueId> inputs,
                                         const std::vector<bool>& wanted) {
  Builder builder(graph_);
  builder.set_origin({node(n).name, node(n).origin});
  builder.set_target(&inserted_[static_cast<size_t>(n)]);
  for (const ValueId id : inputs) count(id, 1, -1);
  std::vector<ValueId> results;
  if (!builder.emit(std::move(attrs), std::move(inputs), wanted, &results).ok()) results.clear();
  return results;
}

int Editor::commit() {
  if (changes == 0) return 0;
  std::vector<Node> nodes;
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    for (Node& fresh : inserted_[n]) nodes.push_back(std::move(fresh));
    if (!erased_[n]) nodes.push_back(std::move(graph_.nodes[n]));
  }
  graph_.nodes = std::move(nodes);
  remove_dead_nodes(graph_);
  return changes;
}

std::optional<double> Editor::scalar(ValueId id) const {
  if (!graph_.is_constant(id) || value(id).constant->size() != 1 || !is_float(value(id).dtype))
    return std::nullopt;
  return value(id).constant->as_doubles()[0];
}

std::optional<double> Editor::uniform(ValueId id) const {
  if (!graph_.is_constant(id) || value(id).constant->size() < 1 || value(id).constant->size() > 65536 ||
      !is_float(value(id).dtype))
    return std::nullopt;
  const std::vector<double> items = value(id).constant->as_doubles();
  for (const double item : items)
    if (!(item == items[0])) return std::nullopt;
  return items[0];
}

Bounds clamp_of(const Node& node) {
  return std::visit(
      [](const auto& a) -> Bounds {
        if constexpr (requires { a.act_min; }) return {a.act_min, a.act_max};
        if constexpr (std::is_same_v<std::decay_t<decltype(a)>, ClampAttrs>) return {a.min, a.max};
        return {};
      },
      node.attrs);
}

ConstantPtr real_constant(DType type, const Dims& dims, const std::vector<double>& numbers) {
  if (type == DType::kFloat64) return Constant::of<double>(type, dims, numbers);
  return Constant::of<float>(type, dims, std::vector<float>(numbers.begin(), numbers.end()));
}

bool moves_only_ones(const IntList& perm, const Dims& dims) {
  int64_t last = -1;
  for (const int64_t p : perm) {
    if (dims[static_cast<size_t>(p)] == 1) continue;
    if (p < last) return false;
    last = p;
  }
  return true;
}

bool same_dims(const Graph& graph, ValueId a, ValueId b) {
  return graph.value(a).dims == graph.value(b).dims;
}

ValueId add_retyped(Graph& graph, Value v, DType type) {
  const ValueId id = graph.add_value(v.name, type, v.dims);
  graph.value(id).bounded_dims = std::move(v.bounded_dims), graph.value(id).order = std::move(v.order);
  return id;
}

int until_stable(Graph& graph, int (*sweep)(Graph&)) {
  constexpr int kMostSweeps = 20;
  int changes = 0;
  for (int round = 0; round < kMostSweeps; ++round) {
    const int now = sweep(graph);
    if (now == 0) break;
    changes += now;
  }
  return changes;
}

}  // namespace sinter::convert
