// Labels that are not those of the model: a warning before anything is quantized.
#pragma once

#include "converter/diagnostics/diagnostics.h"
#include "converter/quantize/search/metric.h"

namespace sinter::convert {

// Samples to open for this.
inline constexpr int64_t kLabelledPredictions = 128;

// Warns where the float graph's accuracy on labelled samples is that of chance, or where the labels in
// another order would give far more. Fewer than 20 samples give no warning. Reads the samples to their end.
void check_labels(const Graph& graph, LabelledSamples& data, const Metric& metric,
                  const RunnerOptions& options, int64_t sequence, Diagnostics& diagnostics);

}  // namespace sinter::convert
