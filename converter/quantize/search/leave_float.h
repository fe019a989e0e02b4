// Operations kept in float, or values that get 16 bits, so that the outputs are as exact as required:
// the fewest, by what each of them adds to the noise and what it costs in time.
#pragma once

#include <functional>

#include "converter/quantize/search/quantization_plan.h"
#include "converter/quantize/search/sensitivity.h"

namespace sinter::convert {

struct LeaveTarget {
  double db = 0;  // of the worst output
  // Time that may be added, and operations that may be kept in float, as shares of what there is at first.
  double most_time = 1e9, most_layers = 1;
};
enum class Remedy {
  kCheaper,  // 16 bits for a value where that takes no more time than what reads it in float
  kFloat,    // never 16 bits
  kWide,     // never float
};

struct LeaveResult {
  double before_db = 0, after_db = 0;  // measured
  bool reached = false;
};

// The effect of a plan on the outputs, on samples that its ranges were not made from.
using MeasurePlan = std::function<Noise(const QuantizationPlan& plan)>;

// Called with the number of measurements that are still to be expected, whenever that is known better.
using MeasurementsLeft = std::function<void(double count)>;

// Adds to plan->left, with Reason::kAccuracy, and to plan->wide with the parameters of `fine`, for what runs
// on int16 wherever it runs on int8. What is chosen by the sums of `sensitivity` is measured, and what turns
// out not to be needed is taken back.
LeaveResult leave_float(QuantizationPlan* plan, const Trials& trials, const MeasurePlan& measure,
                        const Sensitivity& sensitivity, const std::map<ValueId, QuantParams>& fine,
                        Remedy remedy, const LeaveTarget& target, const MeasurementsLeft& left = {});

}  // namespace sinter::convert
