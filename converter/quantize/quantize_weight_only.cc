// Weights in few bits, activations in float or in blocks of int8: measured and reported as all quantization
// is.
#include <fmt/format.h>

#include "converter/quantize/quantize.h"
#include "converter/quantize/report/low_sqnr_outputs.h"
#include "converter/quantize/report/type_rows.h"
#include "converter/quantize/weights/rounded_activations.h"
#include "converter/quantize/weights/weight_only.h"

namespace sinter::convert {
namespace {

// Returns the number of products that round their activations.
int narrow(Graph& graph, const WeightQuantization& how, WeightOnlySummary* done) {
  WeightOnlyOptions weights;
  weights.bits = weight_only_bits(how.mode), weights.block = how.block;
  if (weights.bits != 0) *done = narrow_weights(graph, weights);
  file_left_float(graph, done->layers, graph.ledger.get());
  return how.round_activations ? round_activations(graph) : 0;
}

// Settings beside `how`, tried on `exact`.
void measure_remedies(const Graph& exact, const WeightQuantization& how,
                      const std::function<std::vector<OutputNoise>(const Graph&)>& measure,
                      QuantizeSummary* summary) {
  const auto try_out = [&](const std::string& flags, const char* what, const WeightQuantization& other) {
    Graph tried = exact;
    tried.ledger = std::make_shared<TypeLedger>();
    WeightOnlySummary ignored;
    narrow(tried, other, &ignored);
    add_remedy(flags, what, measure(tried), summary);
  };
  if (how.round_activations)
    try_out("without --activations int8", "activations in float", {how.mode, how.block, false});
  const int bits = weight_only_bits(how.mode);
  if (bits != 0 && how.block > 16)
    try_out(fmt::format("--quantize {} --block 16", how.mode), "more scales",
            {how.mode, 16, how.round_activations});
  if (bits != 0 && bits < 8)
    try_out("--quantize int8w", "weights of 8 bits", {"int8w", how.block, how.round_activations});
  rank_remedies(summary->wanted_db, &summary->remedies);
}

}  // namespace

QuantizeSummary quantize_weights(Graph& graph, const WeightQuantization& how, SampleSource* samples,
                                 SampleSource* evaluated, const QuantizeOptions& options) {
  std::optional<Graph> exact;
  if (samples != nullptr || evaluated != nullptr) exact = graph;
  QuantizeSummary summary;
  summary.mode = how.mode.empty() ? "activations" : how.mode;
  WeightOnlySummary done;
  summary.rounded_products = narrow(graph, how, &done);
  summary.layers = std::move(done.layers);
  summary.bytes_before = done.bytes_before, summary.bytes_after = done.bytes_after;
  if (evaluated != nullptr) summary.evaluation = evaluate_noise(*exact, graph, *evaluated, options);
  if (samples == nullptr) return summary;
  const auto measure = [&](const Graph& tried) {
    return measure_noise(*exact, tried, *samples, options, &summary.measured);
  };
  summary.outputs = measure(graph);
  summary.wanted_db = kLittleSignal;
  if (worst_of(summary.outputs) >= kLittleSignal) return summary;
  summary.low = low_by_layers(
      summary.outputs, graph,
      report_layers(*exact, graph, *samples, {.runner = options.runner, .most_samples = kMostLookedAt}),
      summary.layers);
  measure_remedies(*exact, how, measure, &summary);
  return summary;
}

}  // namespace sinter::convert
