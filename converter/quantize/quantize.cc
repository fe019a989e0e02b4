#include "converter/quantize/quantize.h"

#include <algorithm>
#include <cmath>

#include "converter/passes/pass.h"

namespace sinter::convert {
namespace {

constexpr int64_t kMostTried = 64;  // samples that the result is measured with
constexpr int64_t kInt8Lowest = -128;

QuantParams params_of(const TensorSummary& seen, const CalibratorOptions& calibrator) {
  const Grid grid = grid_of(choose_range(seen, calibrator, kInt8Levels).range, kInt8Levels);
  return {DType::kInt8, static_cast<double>(static_cast<float>(grid.scale)), grid.zero + kInt8Lowest};
}

std::vector<double> numbers(const TensorView& v) {
  std::vector<double> result;
  if (v.dtype == DType::kFloat32)
    for (int64_t i = 0; i < v.size(); ++i) result.push_back(static_cast<double>(v.as<float>()[i]));
  return result;
}

// Both graphs on the same samples.
std::vector<OutputNoise> compare(const Graph& exact, const Graph& rounded, SampleSource& samples,
                                 const QuantizeOptions& options, int64_t* tried) {
  GraphRunner a(exact, options.runner), b(rounded, options.runner);
  const size_t count = exact.outputs.size();
  std::vector<double> signal(count, 0), noise(count, 0);
  samples.rewind();
  const int64_t total = samples.count() < 0 ? kMostTried : std::min(samples.count(), kMostTried);
  Sample sample;
  for (*tried = 0; *tried < kMostTried && samples.next(&sample); ++*tried) {
    a.run(sample);
    b.run(sample);
    for (size_t i = 0; i < count; ++i) {
      const std::vector<double> x = numbers(a.output(i)), y = numbers(b.output(i));
      for (size_t k = 0; k < x.size() && k < y.size(); ++k) {
        signal[i] += x[k] * x[k];
        noise[i] += (x[k] - y[k]) * (x[k] - y[k]);
      }
    }
    if (options.progress) options.progress("measuring", *tried + 1, total);
  }
  std::vector<OutputNoise> result;
  for (size_t i = 0; i < count; ++i) {
    const double db = noise[i] == 0 ? 999 : signal[i] == 0 ? -999 : 10 * std::log10(signal[i] / noise[i]);
    result.push_back({exact.value(exact.outputs[i]).name, db});
  }
  return result;
}

}  // namespace

QuantizeSummary quantize_graph(Graph& graph, SampleSource& samples, const QuantizeOptions& options) {
  const Graph exact = graph;
  QuantizeSummary summary;
  const std::vector<Role> roles = assign_roles(graph, &summary.layers);
  ObserveOptions observing;
  observing.runner = options.runner;
  observing.channels = false;
  if (options.progress)
    observing.progress = [&](int64_t done, int64_t total) { options.progress("calibrating", done, total); };
  const Observations seen = observe(graph, samples, values_to_round(graph, roles), observing);
  summary.samples = seen.samples;
  std::map<ValueId, QuantParams> params;
  for (const auto& [id, tensor] : seen.values)
    if (tensor.elements > 0 && tensor.not_finite == 0) params[id] = params_of(tensor, options.calibrator);
  summary.rounded = place_quantizers(graph, roles, params);
  for (const char* pass : {"integer", "common-subexpressions-last", "dead-code-last"}) run_pass(graph, pass);
  for (const Node& node : graph.nodes)
    summary.integer_steps +=
        node.outputs.size() == 1 && graph.value(node.outputs[0]).dtype == DType::kInt8 ? 1 : 0;
  summary.outputs = compare(exact, graph, samples, options, &summary.tried);
  return summary;
}

}  // namespace sinter::convert
