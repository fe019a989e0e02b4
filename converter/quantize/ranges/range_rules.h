// Rules derive the range of a value from its observations; several are tried.
#pragma once

#include <map>
#include <vector>

#include "converter/ir/quant_params.h"
#include "converter/quantize/ranges/calibrators.h"
#include "converter/quantize/ranges/useful_ranges.h"

namespace sinter::convert {

// A rule, and the margin of its ranges for values that were not observed. Of 16 bits, `best` and `minmax`
// span what one sample in 100,000 is expected to exceed, as far as the steps remain fine (range_rules.cc).
struct RangeRule {
  CalibratorOptions calibrator;
  DType type = DType::kInt8;
  double margin = 0;
  Cut cut = Cut::kFlat;

  // Returns the parameters of these values of the graph, without those that are not finite or never seen.
  std::map<ValueId, QuantParams> params(const Graph& graph, const std::vector<ValueId>& values,
                                        const Observations& seen) const;
};

// Returns the parameters of int8 or int16 (symmetric) that hold a range.
QuantParams params_of(const Range& range, DType type);

// Returns `asked` first, then, if `several` may be tried, all other rules with its type and cut.
std::vector<RangeRule> rules_to_try(const RangeRule& asked, bool several);

}  // namespace sinter::convert
