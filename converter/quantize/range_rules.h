// How the range of a value is made from what was seen of it, and the rules that are tried.
#pragma once

#include <vector>

#include "converter/quantize/calibrators.h"
#include "converter/quantize/quant_params.h"
#include "converter/quantize/useful_ranges.h"

namespace sinter::convert {

// A rule, and what its ranges are widened by for what was not seen.
struct RangeRule {
  CalibratorOptions calibrator;
  DType type = DType::kInt8;
  double margin = 0;
  Cut cut = Cut::kFlat;

  QuantParams params(const TensorSummary& seen) const;
};

// The one that is asked for, first; others only where `several` may be tried and the asked one is `best`.
std::vector<RangeRule> rules_to_try(const CalibratorOptions& asked, DType type, bool several, Cut cut);

}  // namespace sinter::convert
