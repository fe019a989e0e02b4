#include "converter/quantize/ranges/range_rules.h"

#include <algorithm>
#include <cmath>

namespace sinter::convert {
namespace {

constexpr int64_t kInt8Lowest = -128;

// One sample in so many is expected to exceed a range of 16 bits,
constexpr double kSamplesToSpan = 1e5;
// which reaches at least, and may reach in any case, so many times as far as the observations; beyond that
// the rounding must leave the value this SQNR.
constexpr double kLeastHeadroom = 1.25, kFreeHeadroom = 2, kFineDb = 66;

Range with_headroom(const TensorSummary& tensor) {
  const double seen =
      std::max({static_cast<double>(tensor.all.max), -static_cast<double>(tensor.all.min), 0.0});
  double reach = kLeastHeadroom * seen;
  for (const auto* largest : {&tensor.maxima, &tensor.negated_minima}) {
    const Tail tail = fit_tail(*largest, tensor.samples);
    reach = std::max(reach, tail.share > 0 ? tail.level(kSamplesToSpan) : kFreeHeadroom * seen);
  }
  const double noise = tensor.histogram.mean_square() / std::pow(10, kFineDb / 10);
  const double fine = std::sqrt(12 * noise) * static_cast<double>((kInt16Levels.count - 1) / 2);
  reach = std::min(reach, std::max(kFreeHeadroom * seen, fine));
  return {-reach, reach};
}

Range range_of(const TensorSummary& tensor, const CalibratorOptions& calibrator, DType type) {
  const bool whole = calibrator.rule == Calibrator::kBest || calibrator.rule == Calibrator::kMinMax;
  if (type == DType::kInt16 && whole) return with_headroom(tensor);
  return choose_range(tensor, calibrator, type == DType::kInt16 ? kInt16Levels : kInt8Levels).range;
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
    Range range = range_of(tensor, calibrator, type);
    range.low *= 1 + margin, range.high *= 1 + margin;
    result[id] = params_of(range, type);
  }
  return result;
}

QuantParams params_of(const Range& range, DType type) {
  if (type == DType::kInt16) {
    const QuantScale s = scale_of(range, kInt16Levels);
    return {type, static_cast<double>(static_cast<float>(s.scale)), 0};
  }
  const QuantScale s = scale_of(range, kInt8Levels);
  return {DType::kInt8, static_cast<double>(static_cast<float>(s.scale)), s.zero_point + kInt8Lowest};
}

std::vector<RangeRule> rules_to_try(const RangeRule& asked, bool several) {
  std::vector<RangeRule> rules = {asked};
  if (!several || asked.type == DType::kInt16) return rules;
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
