#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "converter/quantize/grids.h"
#include "converter/quantize/quantizer.h"

namespace sinter::convert {
namespace {

// What is measured on few samples must differ by so many dB to count.
constexpr double kSurelyBetter = 1;
constexpr double kWideMargin = 0.25;  // int16 has steps to spare for what was not seen

bool alike(const QuantParams& a, const QuantParams& b) {
  return std::fabs(a.scale / b.scale - 1) < 0.02 && std::abs(a.zero - b.zero) <= 1;
}

}  // namespace

void Quantizer::choose(const Observations& seen) {
  const Graph& graph = plan_.graph;
  // What cannot be rounded leaves its readers float.
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
  choose_ranges(seen, roles);
  measure_weights(*trials_, graph, roles, &sensitivity_, step("weighing layers"));
}

void Quantizer::choose_ranges(const Observations& seen, const std::vector<Role>& roles) {
  const std::vector<ValueId> values = values_to_round(plan_.graph, roles);
  const bool several = enabled("measured-ranges");
  const std::vector<RangeRule> rules =
      rules_to_try(options_.calibrator, options_.activations, several, cut());
  // Rules often come to the same ranges.
  std::vector<std::pair<std::map<ValueId, QuantParams>, double>> known;
  const auto worth = [&](const RangeRule& each) {
    QuantizationPlan plan = on_half(plan_.graph, *half(), each);
    for (const auto& [params, db] : known)
      if (params == plan.params) return db;
    const double db = measured(plan, Part::kOdd);
    known.emplace_back(std::move(plan.params), db);
    return db;
  };
  if (cut() != Cut::kNone) {
    RangeRule without_cut = asked_rule();
    without_cut.cut = Cut::kNone;
    const double without = worth(without_cut), with = worth(rules[0]);
    if (with != without) summary_.techniques.push_back({"function-ranges", "", without, with, true});
  }
  // Which rule, is told by samples that its ranges were not made from.
  size_t rule = 0;
  double first = 0, before = 0;
  for (size_t r = 0; several && r < rules.size(); ++r) {
    const double db = worth(rules[r]);
    if (r == 0) first = before = db;
    if (db > before + (rule == 0 ? kSurelyBetter : 0)) before = db, rule = r;
  }
  if (options_.activations == DType::kInt8 && enabled("wide-activations")) {
    RangeRule wide = asked_rule();
    wide.type = DType::kInt16, wide.margin = kWideMargin;
    Observations useful = seen;
    cut_to_useful(plan_.graph, wide.cut, &useful);
    for (const ValueId id : values) fine_[id] = wide.params(*useful.find(id));
  }
  std::vector<std::map<ValueId, QuantParams>> proposed;
  for (const RangeRule& each : rules) {
    std::map<ValueId, QuantParams> params;
    Observations useful = seen;
    cut_to_useful(plan_.graph, each.cut, &useful);
    for (const ValueId id : values) params[id] = each.params(*useful.find(id));
    const Grids grids(plan_.graph, roles, {values.begin(), values.end()}, params);
    for (auto& [id, p] : params)
      if (const QuantParams* own = grids.find(id)) p = *own;
    proposed.push_back(std::move(params));
  }
  std::map<ValueId, std::vector<QuantParams>> candidates;
  for (const ValueId id : values_with_grids(plan_.graph, roles)) {
    auto& list = candidates[id] = {proposed[rule][id]};
    for (const auto& params : proposed)
      if (std::none_of(list.begin(), list.end(),
                       [&](const QuantParams& p) { return alike(p, params.at(id)); }))
        list.push_back(params.at(id));
  }
  std::map<ValueId, QuantParams> chosen = proposed[rule];
  choose_grids(*trials_, plan_.graph, candidates, &chosen, &sensitivity_, step("choosing ranges"));
  share_noise(values);
  plan_.params = proposed[rule];
  if (!several) return;
  const double whole = measured(plan_.params), mixed = measured(chosen);
  if (mixed > whole + kSurelyBetter) plan_.params = chosen, before += mixed - whole;
  const bool kept = before > first;
  summary_.techniques.push_back(
      {"measured-ranges",
       fmt::format("{}, margin {:.2f}{}", to_string(rules[rule].calibrator), rules[rule].margin,
                   rules[rule].cut == Cut::kNoise ? ", cut for the least noise" : ""),
       first, before, kept});
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
