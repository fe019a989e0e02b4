// The flow of values through an ONNX graph and the bodies in it: the nodes that read a value, those that
// compute it, and the values that take its place at the borders of bodies. Two branches of an If may use one
// name for two values; the facts about both are then those of the name.
#pragma once

#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "converter/import/read/imported_graph.h"

namespace sinter::convert {

// All names that nodes of the graph and of its bodies read, and those of their results.
std::set<std::string> names_read(const ImportedGraph& graph);

class Dataflow {
 public:
  explicit Dataflow(const ImportedGraph& graph) { enter(graph); }

  // A node that reads a value, and the value's place among the node's operands.
  struct Reader {
    const ImportedNode* node;
    size_t operand;
  };
  const std::vector<Reader>& readers(const std::string& value) const { return at(readers_, value); }
  // The results of nodes that a body's result becomes, and the parameters of bodies that an operand becomes.
  const std::vector<std::string>& becomes(const std::string& value) const { return at(becomes_, value); }
  // The same in the other direction.
  const std::vector<std::string>& comes_from(const std::string& value) const { return at(sources_, value); }
  // Empty: the value is an input, a constant of the graph, or a parameter of a body.
  const std::vector<const ImportedNode*>& producers(const std::string& value) const {
    return at(producers_, value);
  }
  // The data of an initializer or a Constant; null: the value is none.
  ConstantPtr constant(const std::string& value) const { return at(constants_, value); }

  // Returns the values that are reached from `value`, itself included, by way of the readers for which
  // `passes(reader)` is true.
  template <class Passes>
  std::set<std::string> follow(const std::string& value, const Passes& passes) const {
    std::set<std::string> seen;
    std::vector<std::string> open{value};
    const auto add = [&](const std::vector<std::string>& names) {
      open.insert(open.end(), names.begin(), names.end());
    };
    while (!open.empty()) {
      const std::string name = std::move(open.back());
      open.pop_back();
      if (name.empty() || !seen.insert(name).second) continue;
      for (const Reader& reader : readers(name))
        if (passes(reader)) add(reader.node->outputs);
      add(becomes(name));
    }
    return seen;
  }
  // Every value from which `value` is computed, itself included.
  std::set<std::string> ancestors(const std::string& value) const;

 private:
  using Names = std::unordered_map<std::string, std::vector<std::string>>;
  template <class Map>
  static const typename Map::mapped_type& at(const Map& map, const std::string& name) {
    static const typename Map::mapped_type kNone{};
    const auto found = map.find(name);
    return found == map.end() ? kNone : found->second;
  }
  void enter(const ImportedGraph& graph);
  void enter_body(const ImportedNode& node, const ImportedGraph& body);

  std::unordered_map<std::string, std::vector<Reader>> readers_;
  std::unordered_map<std::string, std::vector<const ImportedNode*>> producers_;
  std::unordered_map<std::string, ConstantPtr> constants_;
  Names becomes_, sources_;
};

}  // namespace sinter::convert
