// widen: float16 and bfloat16 values become float32 (rule promote.float); public inputs and outputs keep
// their type.
#include <algorithm>
#include <stdexcept>

#include "converter/ir/builder.h"
#include "converter/passes/pass.h"

namespace sinter::convert {
namespace {

bool narrow(DType t) { return t == DType::kFloat16 || t == DType::kBFloat16; }

// A Cast that the model wrote to a narrow type rounds; everything else narrow is only the type that the model
// happened to compute in.
bool rounds(const Node& node) {
  return node.op() == Op::kCast || node.op() == Op::kDequantize || node.op() == Op::kQuantize;
}
// These take narrow operands as they are: their result's type does not depend on the operand's.
bool reads_narrow(const Node& node) { return rounds(node) || node.op() == Op::kClassify; }

class Widening {
 public:
  explicit Widening(Graph& graph) : graph_(graph), builder_(graph), wide_(graph.values.size(), kAbsent) {}

  int run() {
    std::vector<Node> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (Node& node : nodes) {
      builder_.set_origin({node.name, node.origin});
      if (!node.bodies.empty()) {
        // Bodies are typed with the values that they capture; their edges keep the model's types.
        graph_.nodes.push_back(std::move(node));
        continue;
      }
      const bool touches = std::any_of(node.inputs.begin(), node.inputs.end(), is_narrow()) ||
                           std::any_of(node.outputs.begin(), node.outputs.end(), is_narrow());
      if (!touches || rounds(node) ||
          (reads_narrow(node) && !std::any_of(node.outputs.begin(), node.outputs.end(), is_narrow()))) {
        graph_.nodes.push_back(std::move(node));
        continue;
      }
      widen(std::move(node));
    }
    return changes_;
  }

 private:
  struct IsNarrow {
    const Graph& graph;
    bool operator()(ValueId id) const { return id >= 0 && narrow(graph.value(id).dtype); }
  };
  IsNarrow is_narrow() const { return {graph_}; }

  ValueId cast(ValueId id, DType to) {
    std::vector<ValueId> result;
    if (!builder_.emit(CastAttrs{static_cast<int64_t>(to), 1}, {id}, 1, &result).ok())
      throw std::logic_error("a cast cannot be emitted");
    graph_.value(result[0]).extents = graph_.value(id).extents;
    return result[0];
  }

  ValueId widened(ValueId id) {
    if (id < 0 || !narrow(graph_.value(id).dtype)) return id;
    ValueId& wide = wide_[static_cast<size_t>(id)];
    if (wide == kAbsent) wide = cast(id, DType::kFloat32);
    return wide_[static_cast<size_t>(id)];
  }

  // Computes in float32; the narrow value exists beside it for those who read it as such (outputs, bodies),
  // and goes with the dead code otherwise.
  void widen(Node node) {
    ++changes_;
    for (ValueId& id : node.inputs) id = widened(id);
    const std::vector<ValueId> old = node.outputs;
    for (ValueId& id : node.outputs) {
      if (id < 0 || !narrow(graph_.value(id).dtype)) continue;
      const Value v = graph_.value(id);
      const ValueId fresh = graph_.add_value(v.name, DType::kFloat32, v.dims);
      graph_.value(fresh).extents = v.extents;
      graph_.value(fresh).order = v.order;
      wide_[static_cast<size_t>(id)] = fresh;
      id = fresh;
    }
    std::vector<ValueId> made = node.outputs;
    graph_.nodes.push_back(std::move(node));
    for (size_t i = 0; i < old.size(); ++i) {
      if (old[i] == made[i]) continue;
      const auto to = static_cast<int64_t>(graph_.value(old[i]).dtype);
      graph_.nodes.push_back({CastAttrs{to, 1}, {made[i]}, {old[i]}, graph_.nodes.back().name, "", {}});
    }
  }

  Graph& graph_;
  Builder builder_;
  std::vector<ValueId> wide_;
  int changes_ = 0;
};

}  // namespace

int widen_narrow_floats(Graph& graph) {
  Widening widening(graph);
  const int changes = widening.run();
  remove_dead_nodes(graph);
  return changes;
}

}  // namespace sinter::convert
