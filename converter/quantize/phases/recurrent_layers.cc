#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "converter/quantize/quantization.h"
#include "converter/quantize/weights/weight_only.h"

namespace sinter::convert {
namespace {

// SQNR that a recurrent layer's weights must leave, and its margin above the target, in dB.
constexpr double kLeastRecurrent = 35, kRecurrentMargin = 6;

}  // namespace

RecurrentScales recurrent_scales(const Quantization& q, const Graph& graph, const Observations& seen) {
  const LeftMap& left = q.plan.left;
  RecurrentScales scales;
  if (q.options.standard_form) return scales;
  for (const Node& node : graph.nodes) {
    const ValueId result = recurrent_result(node);
    if (result == kAbsent || left.contains(result) || !no_integer_form(graph, node).empty()) continue;
    if (!left.asks_for_integers() && !gains_on_integers(left.cpu, graph, node)) continue;
    const TensorSummary* x = seen.find(node.inputs[0]);
    if (x != nullptr && x->elements > 0 && x->not_finite == 0)
      scales[result] = recurrent_scale(graph, node, x->all.min, x->all.max);
  }
  return scales;
}

RecurrentScales planned_layers(const Quantization& q, RecurrentScales scales) {
  std::erase_if(scales, [&](const auto& entry) { return !q.plan.recurrent.contains(entry.first); });
  return scales;
}

void spare_recurrent(Quantization& q, const Observations& seen) {
  QuantizationPlan& plan = q.plan;
  const double least = std::max(kLeastRecurrent, q.options.min_sqnr.value_or(0) + kRecurrentMargin);
  std::set<ValueId> all;
  for (const Node& node : plan.graph.nodes)
    if (const ValueId result = recurrent_result(node); result != kAbsent && !plan.left.contains(result))
      all.insert(result);
  const auto measured = [&](const RecurrentScales& scales, const std::set<ValueId>& skipped) {
    Graph graph = plan.graph;
    integer_recurrent(graph, scales);
    narrow_weights(graph, {.recurrent_only = true, .skipped = skipped});
    return q.trials->measure(graph, q.few).worst_db();
  };
  plan.recurrent = recurrent_scales(q, plan.graph, seen);
  if (all.empty() || measured(plan.recurrent, {}) >= least) return;
  std::erase_if(plan.recurrent, [&](const auto& scale) { return measured({scale}, all) < least; });
  for (const ValueId id : all) {
    if (plan.recurrent.contains(id)) continue;
    std::set<ValueId> skipped = all;
    skipped.erase(id);
    if (const double db = measured({}, skipped); db < least)
      plan.left[id] = {Reason::kAccuracy, fmt::format("its weights in 8 bits alone give {:.1f} dB", db)};
  }
}

}  // namespace sinter::convert
