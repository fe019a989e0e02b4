#include "converter/quantize/integers/value_scales.h"

#include "converter/passes/editor.h"
#include "converter/passes/integers/integer_form.h"

namespace sinter::convert {
namespace {

constexpr QuantParams kProbability = {DType::kInt8, 0x1p-8, -128};
constexpr double kAlike = 0.8;  // of two steps: one serves both

bool scalar(const Graph& g, ValueId id) { return g.is_constant(id) && g.value(id).constant->size() == 1; }

// x and c where a node gives c * x with c > 0; else kAbsent.
std::pair<ValueId, double> scaled(const Graph& g, const Node& node) {
  const auto* div = node.as<DivAttrs>();
  if (!unclamped(node.as<MulAttrs>()) && !unclamped(div)) return {kAbsent, 0};
  const size_t side = div != nullptr || scalar(g, node.inputs[1]) ? 1 : 0;
  if (!scalar(g, node.inputs[side])) return {kAbsent, 0};
  const double c = g.value(node.inputs[side]).constant->as_doubles()[0], factor = div != nullptr ? 1 / c : c;
  return {factor > 0x1p-60 && factor < 0x1p60 ? node.inputs[1 - side] : kAbsent, factor};
}

}  // namespace

ValueScales::ValueScales(const Graph& graph, const std::vector<Role>& roles, const std::set<ValueId>& wanted,
                         const std::map<ValueId, QuantParams>& observed)
    : g_(graph), roles_(roles), wanted_(wanted), observed_(observed) {
  settle();
  tie();
  settle();
}

void ValueScales::observe(ValueId id) {
  const auto at = observed_.find(id);
  if (at != observed_.end() && wanted_.contains(id)) scales_[id] = at->second;
}

void ValueScales::settle() {
  scales_.clear();
  for (const ValueId id : g_.inputs) observe(id);
  for (size_t n = 0; n < g_.nodes.size(); ++n) {
    const Node& node = g_.nodes[n];
    for (const ValueId id : node.outputs) observe(id);
    if (!integer(static_cast<int>(n))) continue;
    const ValueId y = node.outputs[0];
    if (keeps_scale(g_, node)) {
      scales_.erase(y);
      if (const QuantParams* x = find(node.inputs[0])) scales_[y] = *x;
      continue;
    }
    const QuantParams* own = find(y);
    if (own == nullptr) continue;
    if (node.as<SoftmaxAttrs>() != nullptr && own->type == DType::kInt8) {
      scales_[y] = kProbability;
    } else if (const auto [from, factor] = scaled(g_, node); from != kAbsent) {
      if (const QuantParams* x = find(from); x != nullptr && x->type == own->type)
        scales_[y] = {x->type, static_cast<double>(static_cast<float>(x->scale * factor)), x->zero_point};
    }
  }
}

void ValueScales::tie() {
  const Uses uses(g_);
  for (size_t n = g_.nodes.size(); n-- > 0;) {
    const Node& node = g_.nodes[n];
    if (node.as<ConcatAttrs>() == nullptr || !integer(static_cast<int>(n))) continue;
    const QuantParams* y = find(node.outputs[0]);
    if (y == nullptr) continue;
    for (ValueId id : node.inputs) {
      const auto maker = [&] { return uses.producer[static_cast<size_t>(id)]; };
      while (uses.single_reader(id) && integer(maker()) &&
             keeps_scale(g_, g_.nodes[static_cast<size_t>(maker())]))
        id = g_.nodes[static_cast<size_t>(maker())].inputs[0];
      if (!uses.single_reader(id) || !integer(maker()) ||
          g_.nodes[static_cast<size_t>(maker())].as<SoftmaxAttrs>() != nullptr)
        continue;
      const QuantParams* x = find(id);
      if (x != nullptr && x->type == y->type && x->scale <= y->scale && x->scale >= kAlike * y->scale)
        observed_[id] = scales_[id] = *y;
    }
  }
}

}  // namespace sinter::convert
