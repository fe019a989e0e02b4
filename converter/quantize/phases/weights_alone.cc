// Weights in few bits, activations in float or in blocks of int8. Samples choose nothing, so that all of them
// judge.
#include "converter/quantize/quantization.h"
#include "converter/quantize/weights/weight_only.h"

namespace sinter::convert {

namespace {

void measure_weights(Quantization& q) {
  QuantizeSummary& summary = q.summary;
  q.source->rewind();
  KeptSamples kept(Trials::most_samples(q.exact), q.source->count());
  for (Sample sample; q.source->next(&sample);) kept.offer(sample);
  q.judges.emplace(q.exact, kept.take(), q.options.runner);
  summary.measured = static_cast<int64_t>(q.judges->size());
  summary.outputs = judged_outputs(q.exact, q.graph, *q.judges);
  advise(q, q.graph);
}

}  // namespace

void quantize_weights_alone(Quantization& q) {
  const WeightOnlyOptions& how = *q.options.weights;
  QuantizeSummary& summary = q.summary;
  WeightOnlySummary done = narrow_weights(q.graph, how);
  for (Graph* other : q.others) narrow_weights(*other, how);
  summary.mode = how.bits == 0 ? "activations" : weight_only_name(how.bits);
  summary.rounded_products = done.rounded_products;
  summary.layers = std::move(done.layers);
  summary.bytes_before = done.bytes_before, summary.bytes_after = done.bytes_after;
  if (q.options.evaluate) summary.evaluation = q.options.evaluate(q.exact, q.graph);
  if (q.source != nullptr) measure_weights(q);
  if (q.options.standard_form) take_standard_form(q);
}

}  // namespace sinter::convert
