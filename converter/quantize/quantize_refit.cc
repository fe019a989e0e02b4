#include <algorithm>

#include "converter/quantize/quantizer.h"
#include "converter/quantize/report/low_sqnr_outputs.h"

namespace sinter::convert {
namespace {

constexpr double kWorse = 0.2;  // dB on all kept samples that a refit may not lose

int64_t integer_layers(const IntegerGraph& graph) {
  return std::count_if(graph.layers.begin(), graph.layers.end(),
                       [](const LayerFate& l) { return l.integer; });
}

}  // namespace

void Quantizer::refit(IntegerGraph* built) {
  if (!judges_ || !may_refit_) return;
  trials_->join(std::move(*judges_));
  judges_.reset();
  half_.reset();
  samples_.include_judges();
  const int64_t all = samples_.count();
  expect_refit(all >= 0 ? all : summary_.samples * 5 / 4, trials_->size(), true);
  const QuantizationPlan judged = plan_;
  const Observations seen = observe_all(estimators_.roles);
  begin(phase::kMeasuring);
  for (const auto& [id, params] : fitted_ranges(seen)) plan_.params[id] = params;
  if (!plan_.wide.empty()) {
    fine_ = ranges(wide_rule(), seen, estimators_.roles);
    for (auto& [id, wide] : plan_.wide)
      if (const auto at = fine_.find(id); at != fine_.end()) wide.params = at->second;
  }
  for (const auto& [id, scale] : same_layers(recurrent_scales(plan_.graph, seen)))
    plan_.recurrent[id] = scale;
  if (estimators_.weights) plan_.weights = estimators_.weights(Part::kAll);
  if (estimators_.correct) plan_.correct = estimators_.correct(Part::kAll);
  IntegerGraph refitted = build(plan_);
  // Both have the choices of the plan that was judged. A refit may still meet an outlier among the judges, or
  // numbers that fit no integer kernel.
  const double before = trials_->measure(built->graph, few_).worst_db(),
               after = trials_->measure(refitted.graph, few_).worst_db();
  const bool kept = after > before - kWorse && integer_layers(refitted) >= integer_layers(*built) &&
                    keeps_targets(refitted.graph);
  summary_.techniques.push_back({technique::kRefit.name, "", before, after, kept});
  if (!kept) {
    plan_ = judged;
    return;
  }
  summary_.refitted = seen.samples;
  *built = std::move(refitted);
}

bool Quantizer::keeps_targets(const Graph& refitted) {
  if (options_.max_drop) {
    const double accuracy = options_.accuracy(refitted);
    if (accuracy < std::min(*summary_.accuracy, *summary_.float_accuracy - *options_.max_drop)) return false;
    summary_.accuracy = accuracy;
  }
  if (options_.min_sqnr && options_.evaluate) {
    Evaluation evaluation = options_.evaluate(exact_, refitted);
    if (worst_of(evaluation.outputs) < std::min(*options_.min_sqnr, worst_of(summary_.evaluation->outputs)))
      return false;
    summary_.evaluation = std::move(evaluation);
  }
  return true;
}

}  // namespace sinter::convert
