#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "converter/quantize/integers/value_scales.h"
#include "converter/quantize/quantizer.h"

namespace sinter::convert {
namespace {

// Measurements on few samples must differ by this many dB to count.
constexpr double kSurelyBetter = 1, kSurelyBetterOfFew = 3;
constexpr size_t kMostRulesMixed = 5;  // that a single value is tried with
constexpr double kWideMargin = 0.25;   // int16 has steps to spare for what was not seen

bool alike(const QuantParams& a, const QuantParams& b) {
  return std::fabs(a.scale / b.scale - 1) < 0.02 && std::abs(a.zero_point - b.zero_point) <= 1;
}

}  // namespace

RangeRule Quantizer::asked_rule() const {
  RangeRule rule{options_.calibrator, options_.activations, 0, cut()};
  if (rule.calibrator.rule == Calibrator::kBest && few_samples()) rule.calibrator.rule = Calibrator::kMinMax;
  return rule;
}

RangeRule Quantizer::wide_rule() const {
  RangeRule rule = asked_rule();
  rule.type = DType::kInt16, rule.margin = kWideMargin;
  return rule;
}

void Quantizer::choose(const Observations& seen) {
  const Graph& graph = plan_.graph;
  // The readers of a value that cannot be rounded are kept in float.
  const std::vector<Role> all_roles = assign_roles(graph, plan_.left);
  std::set<ValueId> bad;
  for (const ValueId id : values_to_round(graph, all_roles)) {
    const TensorSummary* tensor = seen.find(id);
    if (tensor == nullptr || tensor->elements == 0 || tensor->not_finite > 0) bad.insert(id);
  }
  for (const Node& node : graph.nodes)
    for (const ValueId id : node.inputs)
      if (bad.contains(id) && !node.outputs.empty())
        plan_.left.emplace(node.outputs[0], LeftFloat{Reason::kRange, fmt::format("'{}' is not finite",
                                                                                  graph.value(id).name)});
  const std::vector<Role> roles = assign_roles(graph, plan_.left);
  estimators_.roles = roles;
  choose_ranges(seen, roles);
  measure_weights(*trials_, graph, roles, &sensitivity_, step(phase::kWeighingLayers));
}

std::map<ValueId, QuantParams> Quantizer::ranges(const RangeRule& rule, const Observations& seen,
                                                 const std::vector<Role>& roles) const {
  Observations useful;
  const std::vector<ValueId> values = values_to_round(plan_.graph, roles);
  for (const ValueId id : values)
    if (const TensorSummary* tensor = seen.find(id)) useful.values.emplace(id, *tensor);
  cut_to_useful(plan_.graph, rule.cut, &useful);
  std::map<ValueId, QuantParams> params;
  for (const auto& [id, tensor] : useful.values)
    if (tensor.elements > 0 && tensor.not_finite == 0) params[id] = rule.params(tensor);
  const ValueScales scales(plan_.graph, roles, {values.begin(), values.end()}, params);
  for (auto& [id, p] : params)
    if (const QuantParams* own = scales.find(id)) p = *own;
  return params;
}

void Quantizer::choose_ranges(const Observations& seen, const std::vector<Role>& roles) {
  const std::vector<ValueId> values = values_to_round(plan_.graph, roles);
  const bool several = may_mix_ranges_;
  const bool open = options_.calibrator.rule == Calibrator::kBest;
  const std::vector<RangeRule> rules = rules_to_try(asked_rule(), several && open);
  const double surely = few_samples() ? kSurelyBetterOfFew : kSurelyBetter;
  // The ranges of every rule from all samples, and from one half of the kept ones: which one is best is
  // decided by the other half.
  expect_rules(rules.size(), roles, trials_->size());
  std::vector<std::map<ValueId, QuantParams>> whole, halves;
  for (const RangeRule& each : rules) {
    whole.push_back(ranges(each, seen, roles));
    work_.did(Work::kRanges);
    halves.push_back(whole.back());
    for (const auto& [id, params] : ranges(each, *half(), roles)) halves.back()[id] = params;
    work_.did(Work::kRanges);
  }
  const auto worth = [&](const std::map<ValueId, QuantParams>& params) {
    QuantizationPlan plan = plan_;
    plan.params = params;
    return measured(plan, Part::kOdd);
  };
  std::vector<std::map<ValueId, QuantParams>> distinct;
  for (const auto& params : halves)
    if (std::find(distinct.begin(), distinct.end(), params) == distinct.end()) distinct.push_back(params);
  work_.expect(
      phase::kWeighingRules, Work::kTrial,
      trial_units(std::min(few_, trials_->samples(Part::kOdd).size())) *
          static_cast<double>((rules.size() > 1 ? distinct.size() : 0) + (cut() != Cut::kNone ? 2 : 1)));
  std::vector<double> db;
  for (size_t r = 0; r < rules.size(); ++r) {
    // Rules often come to the same ranges.
    const auto same = std::find(halves.begin(), halves.begin() + static_cast<std::ptrdiff_t>(r), halves[r]);
    const auto first = static_cast<size_t>(same - halves.begin());
    db.push_back(first < r ? db[first] : rules.size() > 1 ? worth(halves[r]) : 0);
  }
  if (cut() != Cut::kNone) {
    RangeRule without_cut = asked_rule();
    without_cut.cut = Cut::kNone;
    const double without = worth(ranges(without_cut, *half(), roles)), with = worth(halves[0]);
    if (with != without)
      summary_.techniques.push_back({technique::kFunctionRanges.name, "", without, with, true});
  }
  std::vector<size_t> order(rules.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return db[a] > db[b]; });
  const size_t rule = db[order[0]] > db[0] + surely ? order[0] : 0;
  if (options_.activations == DType::kInt8 && may_widen_) fine_ = ranges(wide_rule(), seen, roles);
  // Single values may do better with another one of the best rules, if there are samples enough to show it.
  std::erase(order, rule);
  order.insert(order.begin(), rule);
  order.resize(few_samples() ? 1 : std::min(order.size(), kMostRulesMixed));
  std::map<ValueId, std::vector<QuantParams>> candidates;
  std::map<ValueId, std::vector<size_t>> rule_of;
  for (const ValueId id : scaled_values(plan_.graph, roles))
    for (const size_t r : order) {
      auto& list = candidates[id];
      const QuantParams& params = halves[r].at(id);
      if (std::any_of(list.begin(), list.end(), [&](const QuantParams& p) { return alike(p, params); }))
        continue;
      list.push_back(params);
      rule_of[id].push_back(r);
    }
  const std::map<ValueId, size_t> chosen =
      choose_scales(*trials_, Part::kOdd, plan_.graph, candidates, &sensitivity_, step(phase::kRanges));
  share_noise(values);
  plan_.params = whole[rule], half_params_ = halves[rule];
  estimators_.rules = rules, estimators_.rule = rule;
  if (!several) return;
  std::map<ValueId, QuantParams> mixed = plan_.params, half_mixed = half_params_;
  std::map<ValueId, size_t> mixed_rules;
  for (const auto& [id, candidate] : chosen) {
    const size_t r = rule_of.at(id)[candidate];
    mixed[id] = whole[r].at(id), half_mixed[id] = halves[r].at(id), mixed_rules[id] = r;
  }
  double after = rules.size() > 1 ? db[rule] : worth(half_params_);
  const double first = rules.size() > 1 ? db[0] : after;
  if (const double together = half_mixed == half_params_ ? after : worth(half_mixed);
      together > after + kSurelyBetter) {
    plan_.params = std::move(mixed), half_params_ = std::move(half_mixed);
    estimators_.rule_of = std::move(mixed_rules);
    after = together;
  }
  summary_.techniques.push_back(
      {technique::kMeasuredRanges.name,
       fmt::format("{}, margin {:.2f}{}", to_string(rules[rule].calibrator), rules[rule].margin,
                   rules[rule].cut == Cut::kNoise ? ", clipped for the smallest noise" : ""),
       first, after, after > first});
}

std::map<ValueId, QuantParams> Quantizer::fitted_ranges(const Observations& seen) const {
  std::map<size_t, std::map<ValueId, QuantParams>> by_rule;
  const auto of = [&](size_t rule) -> const std::map<ValueId, QuantParams>& {
    const auto [at, fresh] = by_rule.try_emplace(rule);
    if (fresh) at->second = ranges(estimators_.rules[rule], seen, estimators_.roles);
    return at->second;
  };
  std::map<ValueId, QuantParams> params = of(estimators_.rule);
  for (const auto& [id, rule] : estimators_.rule_of)
    if (const auto at = of(rule).find(id); at != of(rule).end()) params[id] = at->second;
  return params;
}

void Quantizer::share_noise(const std::vector<ValueId>& values) {
  const Graph& graph = plan_.graph;
  const Uses uses(graph);
  for (const ValueId id : values) {
    ValueId from = id;
    while (!sensitivity_.values.contains(from)) {
      const int n = uses.producer[static_cast<size_t>(from)];
      if (n < 0 || graph.nodes[static_cast<size_t>(n)].inputs.empty()) break;
      from = graph.nodes[static_cast<size_t>(n)].inputs[0];
      if (from < 0) break;
    }
    if (from >= 0 && from != id && sensitivity_.values.contains(from))
      sensitivity_.values[id] = sensitivity_.values.at(from);
  }
}

}  // namespace sinter::convert
