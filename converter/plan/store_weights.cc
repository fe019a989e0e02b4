#include "converter/plan/store_weights.h"

#include <algorithm>
#include <map>

#include "converter/ir/recipe.h"

namespace sinter::convert {
namespace {

class Storing {
 public:
  explicit Storing(Graph& graph) : graph_(graph) {}

  void run() {
    for (Node& node : graph_.nodes)
      for (const auto& body : node.bodies) store_weights(*body);
    std::vector<ValueId> renamed(graph_.values.size(), kAbsent);  // to a number in chain order
    std::vector<bool> fixed = fixed_values();
    std::map<const Recipe*, ValueId> same;
    for (Node& node : graph_.nodes) {
      if (!node.bodies.empty()) continue;
      for (const ValueId id : node.inputs) {
        if (id < 0 || fixed[static_cast<size_t>(id)] || renamed[static_cast<size_t>(id)] != kAbsent) continue;
        const ConstantPtr c = graph_.value(id).constant;
        if (!c || !c->recipe()) continue;
        const auto [at, fresh] = same.emplace(c->recipe().get(), kAbsent);
        if (fresh) {
          chain_.clear();
          at->second = widen(c, graph_.value(id).name);
        }
        renamed[static_cast<size_t>(id)] = at->second;
      }
    }
    if (made_.empty()) return;
    // Prepared values follow each other in the order of their steps.
    const auto first = static_cast<ValueId>(graph_.values.size());
    for (Value& v : made_) graph_.values.push_back(std::move(v));
    const auto number = [&](ValueId& id) {
      if (id <= kChain) id = first + (kChain - id);
    };
    for (Node& node : graph_.prepare) {
      for (ValueId& id : node.inputs) number(id);
      for (ValueId& id : node.outputs) number(id);
    }
    for (Node& node : graph_.nodes) {
      if (!node.bodies.empty()) continue;
      for (ValueId& id : node.inputs)
        if (id >= 0 && renamed[static_cast<size_t>(id)] != kAbsent) {
          id = renamed[static_cast<size_t>(id)];
          number(id);
        }
    }
    compact_values(graph_);
  }

 private:
  // Value k of made_ is kChain - k until all are known.
  static constexpr ValueId kChain = -2;

  std::vector<bool> fixed_values() const {
    std::vector<bool> fixed(graph_.values.size());
    const auto fix = [&](ValueId id) {
      if (id >= 0) fixed[static_cast<size_t>(id)] = true;
    };
    for (const ValueId id : graph_.outputs) fix(id);
    for (const Node& node : graph_.nodes)
      if (!node.bodies.empty())
        for (const ValueId id : node.inputs) fix(id);
    for (const Value& v : graph_.values)
      for (const auto& [axis, id] : v.extents) fix(id);
    return fixed;
  }

  // Steps of one constant stand together; what two constants share is widened for each.
  ValueId widen(const ConstantPtr& c, const std::string& name) {
    if (!c->recipe()) {
      const auto [at, fresh] = leaves_.emplace(c.get(), kAbsent);
      if (fresh) at->second = graph_.add_constant(c, leaf_name(name));
      return at->second;
    }
    const auto [at, fresh] = chain_.emplace(c->recipe().get(), kAbsent);
    if (!fresh) return at->second;
    Node node;
    node.attrs = c->recipe()->attrs;
    node.name = name;
    for (const ConstantPtr& input : c->recipe()->inputs)
      node.inputs.push_back(input ? widen(input, input == c->recipe()->inputs[0] ? name : std::string())
                                  : kAbsent);
    const ValueId id = kChain - static_cast<ValueId>(made_.size());
    made_.push_back({name, c->dtype(), c->dims(), c, {}});
    node.outputs = {id};
    graph_.prepare.push_back(std::move(node));
    return chain_[c->recipe().get()] = id;
  }

  static std::string leaf_name(const std::string& name) { return name.empty() ? name : name + ".stored"; }

  Graph& graph_;
  std::map<const Constant*, ValueId> leaves_;
  std::map<const Recipe*, ValueId> chain_;
  std::vector<Value> made_;
};

}  // namespace

void store_weights(Graph& graph) { Storing(graph).run(); }

}  // namespace sinter::convert
