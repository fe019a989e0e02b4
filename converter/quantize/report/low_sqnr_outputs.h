// Outputs that quantization leaves with a low SQNR: which rounding adds most of the noise, its cause, and
// what other settings give, measured on the same samples.
#pragma once

#include <vector>

#include "converter/quantize/quantize.h"
#include "converter/quantize/report/layer_report.h"

namespace sinter::convert {

inline constexpr double kLittleSignal = 20;  // dB
inline constexpr int64_t kMostLookedAt = 8;  // samples that values are measured on
// A remedy must gain this much, in dB, to be reported.
inline constexpr double kWorthTelling = 0.5;

// The cause in words of what is rounded: `layers` has the values, `graph` (float) the weights.
std::string cause_of(const NoiseSource& source, const std::vector<LayerReport>& layers, const Graph& graph);

// Returns, for outputs that weights in few bits left with a low SQNR, the layer before each that adds most
// noise. `fates` has the changes of weights.
std::vector<LowOutput> low_by_layers(const std::vector<OutputNoise>& outputs, const Graph& rounded,
                                     const std::vector<LayerReport>& layers,
                                     const std::vector<LayerFate>& fates);

double worst_of(const std::vector<OutputNoise>& outputs);

}  // namespace sinter::convert
