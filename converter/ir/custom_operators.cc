#include "converter/ir/custom_operators.h"

#include <algorithm>
#include <cstring>

namespace sinter::convert {

Status CustomOperators::add(CustomOps ops) {
  std::vector<const sinter_custom_op*> joint = ops_;
  joint.insert(joint.end(), ops.begin(), ops.end());
  SINTER_RETURN_IF_ERROR(check_custom_ops(joint));
  ops_ = std::move(joint);
  return ok_status();
}

const sinter_custom_op* CustomOperators::find(std::string_view domain, std::string_view name, int64_t version,
                                              uint32_t* newer) const {
  const sinter_custom_op* found = nullptr;
  *newer = 0;
  for (const sinter_custom_op* op : ops_) {
    if (domain != op->domain || name != op->name) continue;
    if (op->since_version > version)
      *newer = *newer == 0 ? op->since_version : std::min(*newer, op->since_version);
    else if (found == nullptr || op->since_version > found->since_version)
      found = op;
  }
  return found;
}

AttrBytes CustomOperators::keep(std::span<const std::byte> definition) const {
  const std::lock_guard lock(mutex_);
  std::vector<uint64_t>& words = definitions_.emplace_back((definition.size() + 7) / 8);
  std::memcpy(words.data(), definition.data(), definition.size());
  return {reinterpret_cast<const std::byte*>(words.data()), static_cast<uint32_t>(definition.size())};
}

namespace {

void collect(const Graph& graph, std::vector<const sinter_custom_op*>* ops) {
  for (const auto* nodes : {&graph.nodes, &graph.prepare})
    for (const Node& node : *nodes) {
      if (const auto* custom = node.as<CustomAttrs>();
          custom != nullptr && std::find(ops->begin(), ops->end(), custom->op) == ops->end())
        ops->push_back(custom->op);
      for (const auto& body : node.bodies) collect(*body, ops);
    }
}

}  // namespace

std::vector<const sinter_custom_op*> custom_ops_of(const Graph& graph) {
  std::vector<const sinter_custom_op*> ops;
  collect(graph, &ops);
  return ops;
}

}  // namespace sinter::convert
