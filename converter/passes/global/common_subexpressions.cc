// common-subexpressions: equal constants become one value, and equal operations on the same operands are
// computed once.
#include <string>
#include <unordered_map>

#include "converter/passes/passes.h"

namespace sinter::convert {
namespace {

constexpr size_t kCompared =
    64 << 10;  // larger constants are equal only if they are the same bytes in memory

template <class T>
void append(std::string* key, const T& item) {
  key->append(reinterpret_cast<const char*>(&item), sizeof item);
}

std::string key_of(const Constant& c) {
  std::string key = to_string(c.dtype(), c.dims()) + "=";
  const LoadedBytes loaded = c.load();
  if (c.byte_size() <= kCompared)
    key.append(reinterpret_cast<const char*>(loaded.bytes.data()), loaded.bytes.size());
  else
    append(&key, loaded.bytes.data());
  return key;
}

std::string key_of(const Node& node) {
  std::string key;
  const EncodedAttrs attrs = encode_attrs(node.attrs);
  append(&key, node.op());
  for (const ValueId id : node.inputs) append(&key, id);
  key += '|';
  for (const ValueId id : node.outputs) key += id < 0 ? '-' : '+';
  for (const int64_t i : attrs.ints) append(&key, i);
  key += '|';
  for (const double f : attrs.floats) append(&key, f);
  key += '|';
  for (const uint8_t b : attrs.bytes) append(&key, b);
  return key;
}

}  // namespace

int share_common_subexpressions(Graph& graph) {
  int changes = 0;
  std::vector<ValueId> now(graph.values.size());
  std::unordered_map<std::string, ValueId> constants;
  std::unordered_map<std::string, size_t> known;
  for (size_t v = 0; v < now.size(); ++v) {
    const auto id = static_cast<ValueId>(v);
    now[v] = id;
    const Value& value = graph.value(id);
    if (!value.constant || graph.is_output(id) ||
        (value.constant->is_lazy() && value.constant->byte_size() > kCompared))
      continue;
    now[v] = constants.emplace(key_of(*value.constant), id).first->second;
    changes += now[v] != id;
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    Node& node = graph.nodes[n];
    for (ValueId& id : node.inputs)
      if (id >= 0) id = now[static_cast<size_t>(id)];
    if (!node.bodies.empty()) continue;
    bool replaceable = true;
    for (const ValueId id : node.outputs) replaceable &= id < 0 || !graph.is_output(id);
    const auto [first, fresh] = known.emplace(key_of(node), n);
    if (fresh || !replaceable) continue;
    const Node& before = graph.nodes[first->second];
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i] >= 0)
        replaceable &=
            graph.value(node.outputs[i]).bounded_dims == graph.value(before.outputs[i]).bounded_dims;
    if (!replaceable) continue;
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i] >= 0) now[static_cast<size_t>(node.outputs[i])] = before.outputs[i];
    ++changes;
  }
  for (Value& v : graph.values)
    for (auto& [axis, id] : v.bounded_dims) id = now[static_cast<size_t>(id)];
  remove_dead_nodes(graph);
  return changes;
}

}  // namespace sinter::convert
