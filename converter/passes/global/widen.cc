// Computing a whole graph in another floating-point type; public inputs and outputs keep theirs.
// widen: float16 and bfloat16 values become float32 (rules promote.float, accumulate.wide).
// narrow_float64: float64 values become float32, on request (rule narrow.f64).
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "converter/ir/builder.h"
#include "converter/ir/narrow_operands.h"
#include "converter/ir/op_traits.h"
#include "converter/passes/editor.h"
#include "converter/passes/passes.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

// Whether values of a type are computed in another one.
using Affected = bool (*)(DType);
bool narrow(DType t) { return t == DType::kFloat16 || t == DType::kBFloat16; }
bool is_double(DType t) { return t == DType::kFloat64; }

// A Cast that the model wrote to a narrow type rounds; everything else narrow is only the type that the model
// happened to compute in.
bool rounds(const Node& node) { return node.op() == Op::kCast; }
// These take narrow operands as they are: their result's type does not depend on the operand's.
// A test for NaN alone gives the same in any type.
bool reads_narrow(const Node& node) {
  const auto* classify = node.as<ClassifyAttrs>();
  return rounds(node) || (classify != nullptr && classify->mask != kClassifyNan);
}
// The same bytes read as another type.
bool reads_bits(const Node& node) {
  const auto* view = node.as<ViewAttrs>();
  return view != nullptr && view->dtype >= 0;
}
// The kernel of a custom operator takes and gives the types that its rule states. A cache is as the model
// keeps it: widening it would cost as much as all the rows that it has room for.
bool keeps_types(const Node& node) {
  return rounds(node) || reads_bits(node) || node.op() == Op::kCustom || node.op() == Op::kCacheUpdate;
}
class Retyping {
 public:
  Retyping(Graph& graph, Affected affected)
      : graph_(graph), builder_(graph), affected_(affected), wide_(graph.values.size(), kAbsent) {}

  int run() {
    std::vector<Node> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (Node& node : nodes) {
      builder_.set_origin({node.name, node.origin});
      if (!node.bodies.empty()) {
        // Values that a loop carries between iterations are not rounded either.
        if (affected_ == narrow && widen_edges(node))
          widen(std::move(node));
        else
          graph_.nodes.push_back(std::move(node));
        continue;
      }
      bool touches = gives_affected(node);
      for (size_t i = 0; i < node.inputs.size(); ++i)
        touches = touches ||
                  (is_affected(node.inputs[i]) && (affected_ != narrow || !stays_narrow(graph_, node, i)));
      if (is_upward(node)) {
        // The wide value itself, where there is one, not what the model's narrow type would have kept of it.
        if (const ValueId wide = wide_[static_cast<size_t>(node.inputs[0])]; wide != kAbsent) {
          if (node.is_model_cast())
            record_omitted(node, graph_.value(node.inputs[0]).dtype, graph_.value(wide).dtype);
          node.inputs[0] = wide;
        }
        graph_.nodes.push_back(std::move(node));
        continue;
      }
      if (is_back(node)) {
        // Whoever computes on takes the wide value; the narrow one is for those who read it as such.
        const ValueId wide = widened(node.inputs[0]);
        wide_[static_cast<size_t>(node.outputs[0])] =
            graph_.value(wide).dtype == DType::kFloat32 ? wide : cast(wide, DType::kFloat32);
        graph_.nodes.push_back(std::move(node));
        continue;
      }
      if (!touches || keeps_types(node) || (reads_narrow(node) && !gives_affected(node))) {
        graph_.nodes.push_back(std::move(node));
        continue;
      }
      widen(std::move(node));
    }
    return changes_;
  }

 private:
  bool is_affected(ValueId id) const { return id >= 0 && affected_(graph_.value(id).dtype); }
  bool gives_affected(const Node& node) const {
    return std::any_of(node.outputs.begin(), node.outputs.end(),
                       [this](ValueId id) { return is_affected(id); });
  }

  // A Cast from an affected type to one that holds all of its values.
  bool is_upward(const Node& node) const {
    return affected_ == narrow && node.op() == Op::kCast && is_affected(node.inputs[0]) &&
           is_wide_float(graph_.value(node.outputs[0]).dtype);
  }

  // A Cast by which an operator gives its wide result the model's narrow type; the model itself wrote none.
  bool is_back(const Node& node) const {
    return affected_ == narrow && node.op() == Op::kCast && !node.is_model_cast() &&
           is_float(graph_.value(node.inputs[0]).dtype) && is_affected(node.outputs[0]);
  }

  ValueId cast(ValueId id, DType to) {
    std::vector<ValueId> result;
    if (!builder_.emit(CastAttrs{static_cast<int64_t>(to), 1}, {id}, 1, &result).ok())
      throw std::logic_error("a cast cannot be emitted");
    graph_.value(result[0]).bounded_dims = graph_.value(id).bounded_dims;
    return result[0];
  }

  ValueId widened(ValueId id) {
    if (id < 0 || !affected_(graph_.value(id).dtype)) return id;
    ValueId& wide = wide_[static_cast<size_t>(id)];
    if (wide == kAbsent) {
      wide = cast(id, DType::kFloat32);
      if (!graph_.is_constant(wide)) graph_.value(wide).model_dtype = graph_.value(id).dtype;
    }
    return wide;
  }

  // Adds the float32 value that stands for a narrow one; returns it.
  static ValueId widened_like(Graph& graph, ValueId narrow) {
    const ValueId id = add_retyped(graph, graph.value(narrow), DType::kFloat32);
    graph.value(id).model_dtype = graph.value(narrow).dtype;
    return id;
  }

  // Parameters, captured values and results of the bodies become float32, with casts to and from the model's
  // types inside, which the pass removes when it comes to the bodies. False: none is narrow.
  bool widen_edges(const Node& node) {
    bool any = false;
    for (const auto& body : node.bodies) {
      std::vector<Node> casts;
      const auto narrow_edge = [&](ValueId id) { return affected_(body->value(id).dtype); };
      for (ValueId& id : body->inputs) {
        if (!narrow_edge(id)) continue;
        if (!body->value(id).name.empty()) record(node, body->value(id));
        const ValueId wide = widened_like(*body, id);
        casts.push_back({CastAttrs{static_cast<int64_t>(body->value(id).dtype), 1},
                         {wide},
                         {id},
                         node.name,
                         node.origin,
                         {}});
        id = wide, any = true;
      }
      body->nodes.insert(body->nodes.begin(), casts.begin(), casts.end());
      for (ValueId& id : body->outputs) {
        if (!narrow_edge(id)) continue;
        const ValueId wide = widened_like(*body, id);
        body->nodes.push_back(
            {CastAttrs{static_cast<int64_t>(DType::kFloat32), 1}, {id}, {wide}, node.name, node.origin, {}});
        id = wide, any = true;
      }
    }
    return any;
  }

  // Computes in float32; the narrow value exists beside it for those who read it as such (outputs, bodies),
  // and goes with the dead code otherwise.
  void widen(Node node) {
    ++changes_;
    // A comparison or a search reads wide values, although it gives none; constants are wide as well.
    const bool silent = !gives_affected(node);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      ValueId& id = node.inputs[i];
      if (affected_ == narrow && stays_narrow(graph_, node, i) && wide_[static_cast<size_t>(id)] == kAbsent)
        continue;
      if (is_affected(id) && (silent || graph_.is_constant(id))) record(node, graph_.value(id));
      id = widened(id);
    }
    if (auto* dequantize = node.as<DequantizeAttrs>();
        dequantize != nullptr && affected_(static_cast<DType>(dequantize->to)))
      dequantize->to = static_cast<int64_t>(DType::kFloat32);
    const std::vector<ValueId> old = node.outputs;
    for (ValueId& id : node.outputs) {
      if (id < 0 || !affected_(graph_.value(id).dtype)) continue;
      record(node, graph_.value(id));
      id = wide_[static_cast<size_t>(id)] = widened_like(graph_, id);
    }
    std::vector<ValueId> made = node.outputs;
    graph_.nodes.push_back(std::move(node));
    for (size_t i = 0; i < old.size(); ++i) {
      if (old[i] == made[i]) continue;
      const auto to = static_cast<int64_t>(graph_.value(old[i]).dtype);
      graph_.nodes.push_back({CastAttrs{to, 1}, {made[i]}, {old[i]}, graph_.nodes.back().name, "", {}});
    }
  }

  // A Cast of the model that reads what is computed in the type that it gives.
  void record_omitted(const Node& node, DType before, DType computed) {
    Value result = graph_.value(node.outputs[0]);
    if (std::exchange(result.dtype, before) != computed) return;
    graph_.decide(result, node, computed, TypeRule::kCastExplicit, TypeEffect::kWidened,
                  fmt::format("the Cast is omitted: its operand is computed in {} and not rounded to {}",
                              dtype_name(computed), dtype_name(before)));
  }

  void record(const Node& node, const Value& value) {
    const bool wider = affected_ == narrow;
    // Where float16's range or bfloat16's few bits would be lost in a sum.
    const bool sum = wider && accumulates(node.op()) && !value.constant;
    graph_.decide(value, node, DType::kFloat32,
                  !wider ? TypeRule::kNarrowF64
                  : sum  ? TypeRule::kAccumulateWide
                         : TypeRule::kPromoteFloat,
                  value.constant ? TypeEffect::kRetyped
                  : wider        ? TypeEffect::kWidened
                                 : TypeEffect::kNarrowed,
                  !wider ? "requested on the command line"
                  : sum  ? "sums are computed in float32, which neither overflows nor loses terms where "
                           "the model's type would"
                         : "computed in float32, which holds every value of the model's type");
  }

  Graph& graph_;
  Builder builder_;
  Affected affected_;
  std::vector<ValueId> wide_;
  int changes_ = 0;
};

}  // namespace

int widen_narrow_floats(Graph& graph) {
  const int changes = Retyping(graph, narrow).run();
  remove_dead_nodes(graph);
  return changes;
}

int narrow_float64(Graph& graph) {
  int changes = Retyping(graph, is_double).run();
  for (Node& node : graph.nodes)
    for (const auto& body : node.bodies) changes += narrow_float64(*body);
  remove_dead_nodes(graph);
  return changes;
}

}  // namespace sinter::convert
