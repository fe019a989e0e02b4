#include "converter/quantize/ranges/range_rules.h"

namespace sinter::convert {
namespace {

constexpr int64_t kInt8Lowest = -128;

QuantParams params_of(const Range& range, DType type) {
  if (type == DType::kInt16) {
    const QuantScale s = scale_of(range, kInt16Levels);
    return {type, static_cast<double>(static_cast<float>(s.scale)), 0};
  }
  const QuantScale s = scale_of(range, kInt8Levels);
  return {DType::kInt8, static_cast<double>(static_cast<float>(s.scale)), s.zero_point + kInt8Lowest};
}

}  // namespace

std::map<ValueId, QuantParams> RangeRule::params(const Graph& graph, const std::vector<ValueId>& values,
                                                 const Observations& seen) const {
  Observations useful;
  for (const ValueId id : values)
    if (const TensorSummary* tensor = seen.find(id)) useful.values.emplace(id, *tensor);
  cut_to_useful(graph, cut, &useful);
  std::map<ValueId, QuantParams> result;
  for (const auto& [id, tensor] : useful.values) {
    if (tensor.elements == 0 || tensor.not_finite > 0) continue;
    Range range = choose_range(tensor, calibrator, type == DType::kInt16 ? kInt16Levels : kInt8Levels).range;
    range.low *= 1 + margin, range.high *= 1 + margin;
    result[id] = params_of(range, type);
  }
  return result;
}

std::vector<RangeRule> rules_to_try(const RangeRule& asked, bool several) {
  std::vector<RangeRule> rules = {asked};
  if (!several) return rules;
  const auto add = [&](Calibrator rule) -> RangeRule& {
    rules.push_back(asked);
    rules.back().calibrator.rule = rule;
    return rules.back();
  };
  if (asked.cut != Cut::kNone) add(Calibrator::kBest).cut = Cut::kNoise;
  add(Calibrator::kBest);
  add(Calibrator::kBest).calibrator.clipping_weight = 8;
  for (const double margin : {0.0, 0.25, 0.6}) add(Calibrator::kMinMax).margin = margin;
  for (const Calibrator rule :
       {Calibrator::kMovingAverage, Calibrator::kPercentile, Calibrator::kEntropy, Calibrator::kMse})
    add(rule);
  return rules;
}

}  // namespace sinter::convert
