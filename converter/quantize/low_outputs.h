// Outputs that quantization leaves with too little signal: which rounding is loudest in them, what about it
// is bad, and what else could be asked for, measured on the same samples.
#pragma once

#include <vector>

#include "converter/quantize/layer_report.h"
#include "converter/quantize/quantize.h"

namespace sinter::convert {

inline constexpr double kLittleSignal = 20;  // dB
// A remedy must win this much, in dB, to be worth telling.
inline constexpr double kWorthTelling = 0.5;

// The cause in words of what is rounded: `layers` tells of values, `graph` (float) has the weights.
std::string cause_of(const NoiseSource& source, const std::vector<LayerReport>& layers, const Graph& graph);

// Of outputs that weights in few bits left with too little: the layer before each that adds most. `fates` say
// what was done to weights.
std::vector<LowOutput> low_by_layers(const std::vector<OutputNoise>& outputs, const Graph& rounded,
                                     const std::vector<LayerReport>& layers,
                                     const std::vector<LayerFate>& fates);

// What reaches `wanted` comes first, in the given order; then what wins most.
void rank_remedies(double wanted, std::vector<Suggestion>* remedies);

double worst_of(const std::vector<OutputNoise>& outputs);

}  // namespace sinter::convert
