#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "converter/quantize/integers/value_scales.h"
#include "converter/quantize/quantization.h"

namespace sinter::convert {
namespace {

// Measurements on few samples must differ by this many dB to count.
constexpr double kSurelyBetter = 1, kSurelyBetterOfFew = 3;
constexpr size_t kMostRulesMixed = 5;  // that a single value is tried with

using Params = std::map<ValueId, QuantParams>;

bool alike(const QuantParams& a, const QuantParams& b) {
  return std::fabs(a.scale / b.scale - 1) < 0.02 && std::abs(a.zero_point - b.zero_point) <= 1;
}

// The ranges of all values by each rule, from all samples and from one half of the kept ones. The other half
// decides which rule is best.
struct WeighedRules {
  std::vector<RangeRule> rules;  // the one that is asked for first
  std::vector<Params> whole, half;
  std::vector<double> db;     // by half; 0: none is measured
  std::vector<size_t> order;  // the best first
  size_t best = 0;
};

double worth(const Quantization& q, const Params& params) {
  QuantizationPlan plan = q.plan;
  plan.params = params;
  return q.measured(plan, Part::kOdd);
}

WeighedRules weigh_rules(Quantization& q, const Observations& seen, const std::vector<Role>& roles) {
  const bool several = q.uses(technique::kMeasuredRanges), cuts = q.cut() != Cut::kNone;
  WeighedRules w;
  w.rules = rules_to_try(q.asked_rule(), several && q.options.calibrator.rule == Calibrator::kBest);
  expect_rules(q, w.rules.size(), roles, q.trials->size());
  for (const RangeRule& each : w.rules) {
    w.whole.push_back(ranges(q, each, seen, roles));
    q.work.did(Work::kRanges);
    w.half.push_back(w.whole.back());
    for (const auto& [id, params] : ranges(q, each, *q.half_observations(), roles))
      w.half.back()[id] = params;
    q.work.did(Work::kRanges);
  }
  const auto first_like = [&](size_t r) {  // rules often come to the same ranges
    return static_cast<size_t>(std::find(w.half.begin(), w.half.end(), w.half[r]) - w.half.begin());
  };
  size_t trials = cuts ? 1 : 0;
  for (size_t r = 0; r < w.rules.size(); ++r) trials += first_like(r) == r;
  const bool weighed = w.rules.size() > 1 || several || cuts;
  q.work.expect(phase::kWeighingRules, Work::kTrial,
                trial_units(std::min(q.few, q.trials->samples(Part::kOdd).size())) *
                    static_cast<double>(weighed ? trials : 0));
  for (size_t r = 0; r < w.rules.size(); ++r)
    w.db.push_back(!weighed ? 0 : first_like(r) < r ? w.db[first_like(r)] : worth(q, w.half[r]));
  if (cuts) {
    RangeRule rule = q.asked_rule();
    rule.cut = Cut::kNone;
    const double without = worth(q, ranges(q, rule, *q.half_observations(), roles));
    if (w.db[0] != without)
      q.summary.techniques.push_back({technique::kFunctionRanges.name, "", without, w.db[0], true});
  }
  w.order.resize(w.rules.size());
  std::iota(w.order.begin(), w.order.end(), size_t{0});
  std::stable_sort(w.order.begin(), w.order.end(), [&](size_t a, size_t b) { return w.db[a] > w.db[b]; });
  if (w.db[w.order[0]] > w.db[0] + (q.few_samples() ? kSurelyBetterOfFew : kSurelyBetter))
    w.best = w.order[0];
  return w;
}

// Single values may do better with another one of the best rules, if there are samples enough to show it.
// Returns the rule of each value.
std::map<ValueId, size_t> choose_rule_of_each(Quantization& q, const WeighedRules& w,
                                              const std::vector<Role>& roles) {
  std::vector<size_t> order = w.order;
  std::erase(order, w.best);
  order.insert(order.begin(), w.best);
  order.resize(q.few_samples() ? 1 : std::min(order.size(), kMostRulesMixed));
  std::map<ValueId, std::vector<QuantParams>> candidates;
  std::map<ValueId, std::vector<size_t>> rules;
  for (const ValueId id : scaled_values(q.plan.graph, roles))
    for (const size_t r : order) {
      auto& list = candidates[id];
      const QuantParams& params = w.half[r].at(id);
      if (std::any_of(list.begin(), list.end(), [&](const QuantParams& p) { return alike(p, params); }))
        continue;
      list.push_back(params);
      rules[id].push_back(r);
    }
  std::map<ValueId, size_t> chosen =
      choose_scales(*q.trials, Part::kOdd, q.plan.graph, candidates, &q.sensitivity, q.step(phase::kRanges));
  for (auto& [id, choice] : chosen) choice = rules.at(id)[choice];
  return chosen;
}

// A moved value has the range of its source, in case it is rounded by itself.
void share_noise(Quantization& q, const std::vector<ValueId>& values) {
  const Graph& graph = q.plan.graph;
  std::map<ValueId, Noise>& noise = q.sensitivity.values;
  const Uses uses(graph);
  for (const ValueId id : values) {
    ValueId from = id;
    while (!noise.contains(from)) {
      const int n = uses.producer[static_cast<size_t>(from)];
      if (n < 0 || graph.nodes[static_cast<size_t>(n)].inputs.empty()) break;
      from = graph.nodes[static_cast<size_t>(n)].inputs[0];
      if (from < 0) break;
    }
    if (from >= 0 && from != id && noise.contains(from)) noise[id] = noise.at(from);
  }
}

// The readers of a value that cannot be rounded are kept in float.
void leave_not_finite(Quantization& q, const Observations& seen) {
  const Graph& graph = q.plan.graph;
  std::set<ValueId> bad;
  for (const ValueId id : values_to_round(graph, assign_roles(graph, q.plan.left))) {
    const TensorSummary* tensor = seen.find(id);
    if (tensor == nullptr || tensor->elements == 0 || tensor->not_finite > 0) bad.insert(id);
  }
  for (const Node& node : graph.nodes)
    for (const ValueId id : node.inputs)
      if (bad.contains(id) && !node.outputs.empty())
        q.plan.left.emplace(node.outputs[0], LeftFloat{Reason::kRange, fmt::format("'{}' is not finite",
                                                                                   graph.value(id).name)});
}

}  // namespace

RangeRule wide_rule(const Quantization& q) {
  RangeRule rule = q.asked_rule();
  rule.type = DType::kInt16, rule.calibrator = {};
  return rule;
}

Params ranges(const Quantization& q, const RangeRule& rule, const Observations& seen,
              const std::vector<Role>& roles) {
  const std::vector<ValueId> values = values_to_round(q.plan.graph, roles);
  Params params = rule.params(q.plan.graph, values, seen);
  for (auto& [id, p] : params)
    if (const auto at = q.given.find(id); at != q.given.end() && at->second.range)
      p = params_of(*at->second.range, rule.type);
  const ValueScales scales(q.plan.graph, roles, {values.begin(), values.end()}, params);
  for (auto& [id, p] : params)
    if (const QuantParams* own = scales.find(id)) p = *own;
  return params;
}

void choose_ranges(Quantization& q, const Observations& seen) {
  leave_not_finite(q, seen);
  const std::vector<Role> roles = q.estimators.roles = assign_roles(q.plan.graph, q.plan.left);
  const WeighedRules w = weigh_rules(q, seen, roles);
  if (q.options.activations == DType::kInt8 && q.uses(technique::kWideActivations))
    q.fine = ranges(q, wide_rule(q), seen, roles);
  const std::map<ValueId, size_t> rule_of = choose_rule_of_each(q, w, roles);
  share_noise(q, values_to_round(q.plan.graph, roles));
  q.plan.params = w.whole[w.best], q.half.params = w.half[w.best];
  q.estimators.rules = w.rules, q.estimators.rule = w.best;
  if (q.uses(technique::kMeasuredRanges)) {
    Params mixed = q.plan.params, half_mixed = q.half.params;
    for (const auto& [id, r] : rule_of) mixed[id] = w.whole[r].at(id), half_mixed[id] = w.half[r].at(id);
    double after = w.db[w.best];
    if (const double together = half_mixed == q.half.params ? after : worth(q, half_mixed);
        together > after + kSurelyBetter) {
      q.plan.params = std::move(mixed), q.half.params = std::move(half_mixed);
      q.estimators.rule_of = rule_of;
      after = together;
    }
    const RangeRule& rule = w.rules[w.best];
    q.summary.techniques.push_back(
        {technique::kMeasuredRanges.name,
         fmt::format("{}, margin {:.2f}{}", to_string(rule.calibrator), rule.margin,
                     rule.cut == Cut::kNoise ? ", clipped for the smallest noise" : ""),
         w.db[0], after, after > w.db[0]});
  }
  measure_weights(*q.trials, q.plan.graph, roles, &q.sensitivity, q.step(phase::kWeighingLayers));
}

Params fitted_ranges(const Quantization& q, const Observations& seen) {
  const auto& estimators = q.estimators;
  std::map<size_t, Params> by_rule;
  const auto of = [&](size_t rule) -> const Params& {
    const auto [at, fresh] = by_rule.try_emplace(rule);
    if (fresh) at->second = ranges(q, estimators.rules[rule], seen, estimators.roles);
    return at->second;
  };
  Params params = of(estimators.rule);
  for (const auto& [id, rule] : estimators.rule_of)
    if (const auto at = of(rule).find(id); at != of(rule).end()) params[id] = at->second;
  return params;
}

}  // namespace sinter::convert
