#include "converter/plan/store_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string_view>

#include "converter/ir/call_view.h"
#include "converter/ir/narrow_weights.h"
#include "converter/ir/recipe.h"
#include "converter/plan/limit_operands.h"

namespace sinter::convert {
namespace {

class Storing {
 public:
  Storing(Graph& graph, const ReadsNarrow& reads_narrow) : graph_(graph), reads_narrow_(reads_narrow) {}

  void run() {
    for (Node& node : graph_.nodes)
      for (const auto& body : node.bodies) store_weights(*body, reads_narrow_);
    gather_narrow();
    multiply_narrow();
    std::vector<ValueId> renamed(graph_.values.size(), kAbsent);  // to a number in chain order
    std::vector<bool> fixed = fixed_values();
    std::map<std::string, ValueId> same;
    for (Node& node : graph_.nodes) {
      if (!node.bodies.empty()) continue;
      for (const ValueId id : node.inputs) {
        if (id < 0 || fixed[static_cast<size_t>(id)] || renamed[static_cast<size_t>(id)] != kAbsent) continue;
        const ConstantPtr c = graph_.value(id).constant;
        if (!c || !c->recipe()) continue;
        const auto [at, fresh] = same.emplace(key_of(c), kAbsent);
        if (fresh) {
          chain_.clear();
          at->second = widen(c, graph_.value(id).name, true);
        }
        renamed[static_cast<size_t>(id)] = at->second;
      }
    }
    if (made_.empty()) return compact_values(graph_);
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

  // Rows of a table are looked up in its narrow form and widened then: a widened table would have to stay in
  // memory.
  void gather_narrow() {
    std::vector<Node> nodes;
    for (Node& node : graph_.nodes) {
      const ConstantPtr table = narrow_table(node);
      if (!table) {
        nodes.push_back(std::move(node));
        continue;
      }
      const Value y = graph_.value(node.outputs[0]);
      const ValueId rows = graph_.add_value(y.name, table->dtype(), y.dims);
      graph_.value(rows).bounded_dims = y.bounded_dims;
      graph_.value(rows).order = y.order;
      ValueId& leaf = leaf_value(table);
      if (leaf == kAbsent) leaf = graph_.add_constant(table, graph_.value(node.inputs[0]).name);
      node.inputs[0] = leaf;
      Node cast{
          CastAttrs{static_cast<int64_t>(y.dtype), 1}, {rows}, node.outputs, node.name, node.origin, {}};
      node.outputs[0] = rows;
      nodes.push_back(std::move(node));
      nodes.push_back(std::move(cast));
    }
    graph_.nodes = std::move(nodes);
  }

  // The table from which the node would look up instead; null if it is not a look-up or gives as much as the
  // table has.
  ConstantPtr narrow_table(const Node& node) const {
    if (node.op() != Op::kGather && node.op() != Op::kGatherNd && node.op() != Op::kGatherElements)
      return nullptr;
    const ConstantPtr& table = graph_.value(node.inputs[0]).constant;
    if (!table || !table->recipe() || !std::holds_alternative<CastAttrs>(table->recipe()->attrs))
      return nullptr;
    const ConstantPtr& narrow = table->recipe()->inputs[0];
    const bool fewer = element_count(graph_.value(node.outputs[0]).dims) <= table->size();
    return fewer && !narrow->recipe() && !is_sub_byte(narrow->dtype()) ? narrow : nullptr;
  }

  // Products read large weights, and the scales of weights of few bits, in their narrow form: widened ones
  // would take more memory, and more time to read than to widen in registers.
  void multiply_narrow() {
    const NarrowWeights weights(graph_);
    for (Node& node : graph_.nodes) {
      const auto [operand, narrow] = weights.operand_of(node);
      if (!narrow) continue;
      const ValueId wide = node.inputs[operand];
      ValueId& leaf = leaf_value(narrow);
      if (leaf == kAbsent) leaf = graph_.add_constant(narrow, graph_.value(wide).name);
      node.inputs[operand] = leaf;
      const CallView view(graph_, node);
      if (!reads_narrow_(view.call, operand)) node.inputs[operand] = wide;
    }
  }

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
      for (const auto& [axis, id] : v.bounded_dims) fix(id);
    return fixed;
  }

  // Steps of one constant are consecutive; what two constants share is widened for each. Only the weight
  // itself has a name.
  ValueId widen(const ConstantPtr& c, const std::string name, bool last = false) {  // a copy: values move
    if (!c->recipe()) {
      ValueId& leaf = leaf_value(c);
      if (leaf == kAbsent) leaf = graph_.add_constant(c);
      return leaf;
    }
    const auto [at, fresh] = chain_.emplace(c->recipe().get(), kAbsent);
    if (!fresh) return at->second;
    const ConstantPtr limited = limit_operands(c);
    const Recipe& recipe = *limited->recipe();
    Node node;
    node.attrs = recipe.attrs;
    node.name = name;
    for (const ConstantPtr& input : recipe.inputs)
      node.inputs.push_back(input ? widen(input, input == recipe.inputs[0] ? name : std::string()) : kAbsent);
    const ValueId id = kChain - static_cast<ValueId>(made_.size());
    made_.push_back({last ? name : std::string(), c->dtype(), c->dims(), c, {}});
    node.outputs = {id};
    graph_.prepare.push_back(std::move(node));
    return chain_[c->recipe().get()] = id;
  }

  // Equal keys: the same operations on equal leaves.
  std::string key_of(const ConstantPtr& c) {
    if (!c) return "-";
    if (!c->recipe()) return fmt::format("#{}", leaf_index(c));
    const EncodedAttrs attrs = encode_attrs(c->recipe()->attrs);
    std::string key = fmt::format("({}", static_cast<int>(op_of(c->recipe()->attrs)));
    for (const int64_t i : attrs.ints) key += fmt::format(" {}", i);
    for (const double f : attrs.floats) key += fmt::format(" {:a}", f);
    for (const uint8_t b : attrs.bytes) key += fmt::format(" {:x}", b);
    for (const ConstantPtr& input : c->recipe()->inputs) key += " " + key_of(input);
    return key + ")";
  }

  size_t leaf_index(const ConstantPtr& c) {
    const auto [known, fresh] = by_address_.emplace(c.get(), leaves_.size());
    if (!fresh) return known->second;
    const LoadedBytes mine = c->load();
    const size_t hash =
        std::hash<std::string_view>()({reinterpret_cast<const char*>(mine.bytes.data()), mine.bytes.size()});
    for (auto [it, last] = by_hash_.equal_range(hash); it != last; ++it) {
      const Constant& other = *leaves_[it->second];
      const LoadedBytes theirs = other.load();
      if (other.dtype() == c->dtype() && other.dims() == c->dims() &&
          std::equal(mine.bytes.begin(), mine.bytes.end(), theirs.bytes.begin(), theirs.bytes.end()))
        return known->second = it->second;
    }
    by_hash_.emplace(hash, leaves_.size());
    leaves_.push_back(c);
    leaf_values_.push_back(kAbsent);
    return known->second;
  }

  ValueId& leaf_value(const ConstantPtr& c) { return leaf_values_[leaf_index(c)]; }

  Graph& graph_;
  const ReadsNarrow& reads_narrow_;
  std::map<const Constant*, size_t> by_address_;  // index into leaves_
  std::multimap<size_t, size_t> by_hash_;
  std::vector<ConstantPtr> leaves_;
  std::vector<ValueId> leaf_values_;
  std::map<const Recipe*, ValueId> chain_;
  std::vector<Value> made_;
};

}  // namespace

void store_weights(Graph& graph, const ReadsNarrow& reads_narrow) { Storing(graph, reads_narrow).run(); }

}  // namespace sinter::convert
