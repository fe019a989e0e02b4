// Whether samples have the scale of the data that a network was trained with, as far as its own parameters
// show it.
#pragma once

#include "converter/diagnostics/diagnostics.h"
#include "converter/import/read/imported_graph.h"
#include "converter/quantize/ranges/observe.h"
#include "converter/quantize/samples/samples.h"

namespace sinter::convert {

// Samples to open for this.
inline constexpr int64_t kScaleSamples = 16;

// Runs the beginning of the graph, up to the first affine function of an input that shows a scale, and warns
// where this is another one, with the usual scale or the factor that would fit:
//  - a BatchNormalization holds the mean and the deviation that its input had in training;
//  - a bias is of the size of the products that it is added to. Where it is far larger, the data is too
//  small.
// Data that is too large for a network without BatchNormalization is not found: without a bias that counts, a
// network of ReLUs gives the same answers at any scale.
// `graph`: as lowered, before any pass; `model`: what it was lowered from. Passes over models with states,
// and over inputs of bounded sizes. Rewinds the samples. Returns whether it warned.
bool check_scale(const Graph& graph, const ImportedGraph& model, SampleSource& samples,
                 const RunnerOptions& options, Diagnostics& diagnostics);

}  // namespace sinter::convert
