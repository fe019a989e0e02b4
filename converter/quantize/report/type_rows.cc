#include "converter/quantize/report/type_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "converter/quantize/search/noise.h"

namespace sinter::convert {
namespace {

class Rows {
 public:
  Rows(const Graph& exact, const Graph& rounded, int64_t samples)
      : exact_(exact), graph_(rounded), samples_(samples) {
    for (const Value& v : exact.values)
      if (!v.name.empty()) (v.dtype == DType::kFloat32 ? floats_ : others_).insert(v.name);
    for (const Node& node : exact.nodes)
      if (weight_axis(exact, node) >= 0) products_.emplace(node.name, &node);
  }

  void run() {
    for (const Node& node : graph_.nodes) {
      for (const ValueId id : node.outputs)
        if (id >= 0 && !graph_.is_constant(id)) value(node, graph_.value(id));
      const bool product = node.as<QConvAttrs>() || node.as<QDepthwiseConvAttrs>() ||
                           node.as<QConvTransposeAttrs>() || node.as<QFullyConnectedAttrs>();
      for (size_t i = 0; i < node.inputs.size(); ++i)
        if (graph_.is_constant(node.inputs[i]) && !(product && (i == 1 || i == 2)))
          constant(node, graph_.value(node.inputs[i]));
      if (product && node.inputs.size() > 3 && graph_.is_constant(node.inputs[1])) weights(node);
    }
  }

 private:
  void file(const Node& node, std::string value, DType after, TypeRule rule, std::string reason,
            TypeEffect effect, double least = 0, double most = 0, int64_t zero = 0) {
    TypeDecision d{std::move(value),  node.name, node.origin, DType::kFloat32, after, rule,
                   std::move(reason), effect,    {}};
    d.least_scale = least, d.largest_scale = most, d.zero_point = zero;
    graph_.ledger->add(std::move(d));
  }

  // Returns whether the model had the integers itself, so that nothing was decided about them.
  bool had(const Value& v) const { return others_.contains(v.name) && !floats_.contains(v.name); }

  void value(const Node& node, const Value& v) {
    const QuantRange range = quant_range(v.dtype);
    if (!(v.scale > 0) || range.max == 0 || had(v)) return;
    const auto number = [&](int64_t q) { return static_cast<double>(q - v.zero_point) * v.scale; };
    bool rescaled = false;
    std::string name = exact_name(v.name, &rescaled);
    file(node, std::move(name), v.dtype, TypeRule::kQuantizeValues,
         fmt::format("{:.5g} to {:.5g} in {} steps, chosen from {} samples{}", number(range.min),
                     number(range.max), range.max - range.min, samples_,
                     rescaled ? "; channels have factors of their own" : ""),
         TypeEffect::kQuantized, v.scale, v.scale, v.zero_point);
  }

  // Constants that are joined with integers, used for padding, or looked up.
  void constant(const Node& node, const Value& v) {
    if (!is_integer(v.dtype) || !floats_.contains(v.name) || v.name.empty()) return;
    file(node, v.name, v.dtype, TypeRule::kQuantizeConstants, "an operand of an operation on integers",
         TypeEffect::kRetyped, v.scale, v.scale, v.zero_point);
  }

  void weights(const Node& node) {
    const auto value_of = [&](size_t i) -> const Value& { return graph_.value(node.inputs[i]); };
    const auto before = products_.find(node.name);
    if (before == products_.end() || value_of(1).dtype != DType::kInt8) return;
    const Value &x = value_of(0), &y = graph_.value(node.outputs[0]);
    const double factor = x.scale > 0 ? (y.dtype == DType::kFloat32 ? 1 : y.scale) / x.scale : 0;
    double least = 0, most = 0;
    const std::vector<double> multipliers = value_of(3).constant->as_doubles();
    for (const double m : multipliers) {
      least = least == 0 ? m * factor : std::min(least, m * factor);
      most = std::max(most, m * factor);
    }
    file(node, value_of(1).name, value_of(1).dtype, TypeRule::kQuantizeWeights,
         fmt::format("8 bits, a scale for each of {} output channels", multipliers.size()),
         TypeEffect::kRetyped, least, most);
    const auto& inputs = before->second->inputs;
    if (inputs.size() < 3 || inputs[2] < 0 || node.inputs[2] < 0) return;
    const std::string& own = exact_.value(inputs[2]).name;
    file(node, own.empty() ? value_of(2).name : own, value_of(2).dtype, TypeRule::kQuantizeBias,
         "added to sums of integers: a step is the operand's times the weights'", TypeEffect::kRetyped,
         least * x.scale, most * x.scale);
  }

  const Graph &exact_, &graph_;
  const int64_t samples_;
  std::set<std::string> floats_, others_;  // names
  std::map<std::string, const Node*> products_;
};

}  // namespace

void file_quantized(const Graph& exact, const Graph& rounded, int64_t samples) {
  Rows(exact, rounded, samples).run();
}

void file_left_float(const Graph& graph, const std::vector<LayerFate>& layers, TypeLedger* ledger) {
  for (const LayerFate& l : layers) {
    if (l.integer) continue;
    std::string reason = reason_name(l.left.reason);
    if (!l.left.detail.empty()) reason += (reason.empty() ? "" : ": ") + l.left.detail;
    ledger->add({l.output < 0 ? std::string() : exact_name(graph.value(l.output).name),
                 l.name,
                 l.op,
                 DType::kFloat32,
                 DType::kFloat32,
                 TypeRule::kQuantizeFloat,
                 reason,
                 TypeEffect::kKept,
                 {}});
  }
}

}  // namespace sinter::convert
