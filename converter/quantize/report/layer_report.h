// A conversion's report on every value that was rounded: its noise, what its layer adds to
// exact operands, and its numbers beside the range that was chosen for them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "converter/quantize/phases.h"
#include "converter/quantize/ranges/histogram.h"
#include "converter/quantize/ranges/observe.h"
#include "converter/quantize/search/noise.h"

namespace sinter::convert {

// Counts in equal parts of [low, high].
struct LinearBins {
  double low = 0, high = 0;
  std::vector<double> counts;
};
LinearBins linear_bins(const Histogram& histogram, double low, double high, size_t count);

struct LayerReport {
  std::string value, held_as;  // the ONNX value; its rounded form
  std::string node, op;        // that gives it
  DType dtype = DType::kNone;
  ValueNoise noise;
  std::optional<double> own_db;  // with exact operands; none: it only moves them
  LinearBins bins;               // of the exact numbers; wide enough for the chosen range
  double low = 0, high = 0;      // chosen
};

struct LayerReportOptions {
  RunnerOptions runner;
  int64_t most_samples = 32;
  PhaseProgress progress = {};
};

// Values that both graphs name, in the order of `rounded`. Rewinds. Throws DataError where a run fails.
std::vector<LayerReport> report_layers(const Graph& exact, const Graph& rounded, SampleSource& samples,
                                       const LayerReportOptions& options);

nlohmann::json to_json(const LayerReport& layer);

}  // namespace sinter::convert
