#include "converter/quantize/quantize.h"

#include <fmt/format.h>

#include "converter/diagnostics/errors.h"
#include "converter/ir/weight_memory.h"
#include "converter/quantize/integers/given_integers.h"
#include "converter/quantize/quantization.h"
#include "converter/quantize/ranges/kept_packings.h"
#include "converter/quantize/search/plan_for_shapes.h"

namespace sinter::convert {

std::string without_flags(const std::string& flags) { return flags.empty() ? "" : " without " + flags; }

std::vector<OutputNoise> noise_by_output(const Graph& graph, const Noise& noise) {
  std::vector<OutputNoise> result;
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    result.push_back({graph.value(graph.outputs[i]).name, to_db(noise.outputs[i])});
    if (noise.unequal[i]) result.back().equal = 1 - *noise.unequal[i];
  }
  return result;
}

std::vector<OutputNoise> judged_outputs(const Graph& exact, const Graph& rounded, const Trials& trials) {
  std::vector<SqnrSpread> spreads;
  std::vector<OutputNoise> outputs = noise_by_output(exact, trials.measure(rounded, &spreads));
  for (size_t i = 0; i < outputs.size(); ++i) outputs[i].spread = spreads[i];
  return outputs;
}

Evaluation evaluate_noise(const Graph& exact, const Graph& rounded, SampleSource& samples,
                          const QuantizeOptions& options) {
  Evaluation result;
  const auto progress = [&](int64_t done, int64_t total) {
    if (options.progress) options.progress(phase::kEvaluating, done, total, std::nullopt);
  };
  result.outputs =
      noise_by_output(exact, measure_all(exact, rounded, samples, options.runner, progress, &result.samples));
  if (result.samples == 0) throw DataError("--evaluate: the data holds no samples");
  return result;
}

QuantizeSummary quantize_graph(Graph& graph, SampleSource* samples, const QuantizeOptions& options,
                               std::span<Graph* const> others) {
  if (options.weights) return Quantization(graph, samples, options, others).run();
  require_stage(graph, Stage::kRewritten, "quantization");
  const std::vector<size_t> byte_inputs = dequantize_bytes(graph);
  for (Graph* other : others) dequantize_bytes(*other);
  // Before it takes minutes.
  for (const Graph* other : others)
    if (const std::string difference = shape_difference(graph, *other); !difference.empty())
      throw UsageError(fmt::format(
          "--quantize with several --shapes: the sets do not have the same operations, so that they "
          "cannot share ranges: {}; convert each set into a file of its own",
          difference));
  // Rounded weights and their integers take 5 bytes for 4; those of a plan, and of some of another; and
  // copies that runs map. Large ones are in files (large_bytes.h).
  size_t bytes = 0;
  for (const Value& v : graph.values) bytes += v.constant ? v.constant->byte_size() : 0;
  const WeightMemory memory(std::max(3 * bytes, size_t{8} << 20));
  // Integers take a quarter of the bytes of the weights; those of two trials.
  KeptPackings packings(std::max(bytes / 2, size_t{8} << 20));
  QuantizeOptions with = options;
  with.runner.packings = &packings;
  QuantizeSummary summary = Quantization(graph, samples, with, others).run();
  for (const size_t i : byte_inputs) {
    graph.value(graph.inputs[i]).scale = 0;
    for (Graph* other : others) other->value(other->inputs[i]).scale = 0;
  }
  return summary;
}

}  // namespace sinter::convert
