#include "converter/ir/deep_copy.h"

namespace sinter::convert {

std::shared_ptr<Graph> deep_copy(const Graph& graph) {
  auto copy = std::make_shared<Graph>(graph);
  for (Node& node : copy->nodes)
    for (auto& body : node.bodies) body = deep_copy(*body);
  return copy;
}

}  // namespace sinter::convert
