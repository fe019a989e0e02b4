#include "converter/quantize/integers/unsuited_operations.h"

#include <optional>

#include "converter/ir/op_traits.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

constexpr double kNearZero = 0.1;

class Steep {
 public:
  Steep(const Graph& g, const std::vector<ValueId>& roots) : g_(g), roots_(roots), uses_(g) {}

  std::vector<bool> find() {
    std::vector<bool> steep(g_.nodes.size(), false), divides(g_.values.size(), false);
    for (size_t n = 0; n < g_.nodes.size(); ++n) {
      const Node& node = g_.nodes[n];
      if (node.outputs.empty() || node.outputs[0] < 0) continue;
      const auto y = static_cast<size_t>(node.outputs[0]);
      const ValueId small = near_zero(node);
      steep[n] = small != kAbsent;
      const bool inverse = steep[n] && node.op() != Op::kSqrt && node.op() != Op::kLog && is_statistic(small);
      const Op op = node.op();
      const bool spreads = op == Op::kAdd || op == Op::kSub || op == Op::kMul || moves_whole(node.attrs);
      for (const ValueId id : node.inputs)
        if (spreads && id >= 0 && divides[static_cast<size_t>(id)]) divides[y] = steep[n] = true;
      if (inverse) divides[y] = true;
    }
    return steep;
  }

 private:
  const Node* maker(ValueId id) const {
    const int p = id < 0 ? -1 : uses_.producer[static_cast<size_t>(id)];
    return p < 0 ? nullptr : &g_.nodes[static_cast<size_t>(p)];
  }
  std::optional<double> number(ValueId id) const {
    if (!g_.is_constant(id) || g_.value(id).constant->size() != 1 || !is_float(g_.value(id).dtype))
      return std::nullopt;
    return g_.value(id).constant->as_doubles()[0];
  }

  // The value, perhaps scaled and moved a little, near whose zero the node's result is steep; kAbsent: none.
  ValueId near_zero(const Node& node) const {
    if (roots_[static_cast<size_t>(node.outputs[0])] == node.outputs[0]) return kAbsent;
    ValueId id = kAbsent;
    if (node.as<SqrtAttrs>() != nullptr || node.as<RsqrtAttrs>() != nullptr ||
        node.as<LogAttrs>() != nullptr) {
      id = node.inputs[0];
    } else if (node.as<DivAttrs>() != nullptr) {
      id = node.inputs[1];
    } else if (node.as<PowAttrs>() != nullptr) {
      const auto e = number(node.inputs[1]);
      if (e && *e < 1) id = node.inputs[0];
    }
    while (id != kAbsent && !g_.is_constant(id)) {
      if (roots_[static_cast<size_t>(id)] == id) return id;
      const Node& from = *maker(id);
      if (const auto* clamp = from.as<ClampAttrs>()) {
        if (clamp->min >= kNearZero) return kAbsent;
        id = from.inputs[0];
        continue;
      }
      const Op op = from.op();
      if (op == Op::kSqrt) {
        id = from.inputs[0];
        continue;
      }
      if ((op != Op::kAdd && op != Op::kSub && op != Op::kMul && op != Op::kDiv && op != Op::kMax) ||
          from.inputs.size() != 2)
        return kAbsent;
      const size_t side = number(from.inputs[0]) ? 0 : 1;
      const auto c = number(from.inputs[side]);
      if (!c || ((op == Op::kAdd || op == Op::kMax) && *c >= kNearZero)) return kAbsent;
      id = from.inputs[1 - side];
    }
    return kAbsent;
  }

  // Whether it summarizes all of a tensor's elements: a mean or a sum, perhaps reshaped.
  bool is_statistic(ValueId id) const {
    const Node* from = maker(id);
    while (from != nullptr && from->op() == Op::kView) from = maker(from->inputs[0]);
    if (from == nullptr || from->as<ReduceAttrs>() == nullptr) return false;
    const auto fn = static_cast<ReduceFn>(from->as<ReduceAttrs>()->fn);
    return fn != ReduceFn::kMax && fn != ReduceFn::kMin;
  }

  const Graph& g_;
  const std::vector<ValueId>& roots_;
  const Uses uses_;
};

}  // namespace

std::vector<bool> steep_nodes(const Graph& graph, const std::vector<ValueId>& roots) {
  return Steep(graph, roots).find();
}

}  // namespace sinter::convert
