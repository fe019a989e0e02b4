// Static quantization of a float graph that all other passes are done with: observe, choose ranges, round,
// compute on integers, and measure what that did to the outputs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "converter/quantize/calibrators.h"
#include "converter/quantize/observe.h"
#include "converter/quantize/place.h"

namespace sinter::convert {

struct QuantizeOptions {
  CalibratorOptions calibrator;
  RunnerOptions runner;
  std::function<void(const char* what, int64_t done, int64_t total)> progress;
};

// Signal to noise of an output against the float graph, over the samples that were tried.
struct OutputNoise {
  std::string name;
  double db = 0;  // 999: no difference
};

struct QuantizeSummary {
  std::string mode = "int8";  // as --quantize takes it
  int64_t samples = 0, tried = 0;
  int rounded = 0;  // values
  size_t integer_steps = 0;
  std::vector<LayerFate> layers;  // that take or give float32, in order; int8w, int4w: those with weights
  uint64_t bytes_before = 0, bytes_after = 0;  // of the weights; int8w, int4w
  std::vector<OutputNoise> outputs;
};

// Both graphs on the same samples, 64 of them at most; `tried` is set to how many.
std::vector<OutputNoise> measure_noise(const Graph& exact, const Graph& rounded, SampleSource& samples,
                                       const QuantizeOptions& options, int64_t* tried);

// Throws DataError where samples do not fit or make a run fail.
QuantizeSummary quantize_graph(Graph& graph, SampleSource& samples, const QuantizeOptions& options);

}  // namespace sinter::convert
