#include "converter/quantize/range_rules.h"

namespace sinter::convert {
namespace {

constexpr int64_t kInt8Lowest = -128;

QuantParams params_of(const Range& range, DType type) {
  if (type == DType::kInt16) {
    const Grid grid = grid_of(range, kInt16Levels);
    return {type, static_cast<double>(static_cast<float>(grid.scale)), 0};
  }
  const Grid grid = grid_of(range, kInt8Levels);
  return {DType::kInt8, static_cast<double>(static_cast<float>(grid.scale)), grid.zero + kInt8Lowest};
}

}  // namespace

QuantParams RangeRule::params(const TensorSummary& seen) const {
  Range range = choose_range(seen, calibrator, type == DType::kInt16 ? kInt16Levels : kInt8Levels).range;
  range.low *= 1 + margin, range.high *= 1 + margin;
  return params_of(range, type);
}

std::vector<RangeRule> rules_to_try(const CalibratorOptions& asked, DType type, bool several, Cut cut) {
  std::vector<RangeRule> rules = {{asked, type, 0, cut}};
  if (!several || asked.rule != Calibrator::kBest) return rules;
  if (cut != Cut::kNone) rules.push_back({asked, type, 0, Cut::kNoise});
  rules.push_back(rules[0]), rules.back().calibrator.clipping_weight = 8;
  RangeRule all = rules[0];
  all.calibrator.rule = Calibrator::kMinMax;
  for (const double margin : {0.0, 0.25, 0.6}) all.margin = margin, rules.push_back(all);
  return rules;
}

}  // namespace sinter::convert
