#include <fmt/format.h>

#include <algorithm>

#include "converter/diagnostics/errors.h"
#include "converter/diagnostics/nearest_name.h"
#include "converter/ir/op_traits.h"
#include "converter/quantize/quantization.h"

namespace sinter::convert {

void keep_named_in_float(Quantization& q) {
  for (const std::string& name : q.options.keep_float) {
    bool found = false;
    std::vector<std::string> names;
    for (const Node& node : q.plan.graph.nodes) {
      if (node.outputs.empty() || node.outputs[0] < 0) continue;
      if (names.empty() || names.back() != node.name) names.push_back(node.name);
      if (node.name != name && q.plan.graph.value(node.outputs[0]).name != name) continue;
      q.plan.left[node.outputs[0]] = {Reason::kUser, "--keep-float"};
      found = true;
    }
    if (!found)
      throw UsageError(
          fmt::format("--keep-float {}: after rewriting, no operation has or computes this name; {} "
                      "(--report FILE.json lists the names)",
                      name, advise_name(names, name)));
  }
}

Observations observe_samples(Quantization& q, const std::vector<Role>& roles) {
  const Graph& graph = q.plan.graph;
  ObserveOptions observing;
  observing.runner = q.options.runner;
  observing.channels = false;
  observing.progress = q.step(phase::kCalibrating);
  std::vector<ValueId> values = values_to_round(graph, roles);
  for (const Node& node : graph.nodes)
    if (is_recurrent(node.op()) && std::ranges::find(values, node.inputs[0]) == values.end())
      values.push_back(node.inputs[0]);
  q.samples->rewind();
  if (q.trials) return observe(graph, *q.samples, values, observing);
  if (const int64_t count = q.samples->count(); count >= 0) {
    q.work.expect(phase::kCalibrating, Work::kObserving, static_cast<double>(count));
    expect_phases(q, count, std::min(static_cast<size_t>(count), Trials::most_samples(q.exact)));
  }
  Observations seen = observe(graph, *q.samples, values, observing);
  q.trials.emplace(q.exact, q.samples->take_choosing(), q.options.runner);
  if (std::vector<Sample> judges = q.samples->take_judging(); !judges.empty())
    q.judges.emplace(q.exact, std::move(judges), q.options.runner);
  q.work.did(Work::kObserving, 0);  // the exact outputs
  q.trials->count(&q.work);
  if (q.judges) q.judges->count(&q.work);
  q.few = q.affordable(kTrialBudget, q.trials->size());
  q.fewer = q.affordable(kSmallTrialBudget, q.trials->size());
  expect_phases(q, seen.samples, q.trials->size());
  return seen;
}

}  // namespace sinter::convert
