// Calibration data that a classifier takes for one class because of its scale: a warning.
#pragma once

#include "converter/diagnostics/diagnostics.h"
#include "converter/quantize/ranges/observe.h"
#include "converter/quantize/samples/samples.h"

namespace sinter::convert {

// Samples to open for this; fewer give no warning.
inline constexpr int64_t kOneClassSamples = 16;

// Warns where a classifier, which ends in a product or Softmax, gives the same class and nearly the same
// scores for all samples, though these differ, and several classes where they have another usual scale.
void check_one_class(const Graph& graph, SampleSource& source, const RunnerOptions& options,
                     Diagnostics& diagnostics);

}  // namespace sinter::convert
