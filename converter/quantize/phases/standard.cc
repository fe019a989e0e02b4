#include <algorithm>

#include "converter/ir/op_traits.h"
#include "converter/quantize/quantization.h"
#include "converter/quantize/samples/sample_list.h"

namespace sinter::convert {
namespace {

// Counts what the integer graph computes otherwise than the standard's form.
void count_differences(const Graph& integers, StandardSummary* summary) {
  for (const Node& node : integers.nodes) {
    summary->tables += node.as<LutAttrs>() != nullptr || node.as<QTableAttrs>() != nullptr;
    for (const ValueId id : node.outputs)
      summary->wide += id >= 0 && integers.value(id).dtype == DType::kInt16;
  }
}

size_t recurrent_layers(const std::vector<LayerFate>& layers) {
  return static_cast<size_t>(std::ranges::count_if(layers, [](const LayerFate& l) {
    return l.left.reason == Reason::kNoKernel && (l.op == "Lstm" || l.op == "Gru");
  }));
}

}  // namespace

void take_standard_form(Quantization& q) {
  StandardSummary& summary = q.summary.standard.emplace();
  if (q.options.weights) {
    summary.form = give_standard_form(q.graph);
    return;
  }
  Graph standard = build_standard(q.plan, &summary.form);
  count_differences(q.graph, &summary);
  summary.recurrent = recurrent_layers(q.summary.layers);
  const std::vector<Sample> samples = q.judging().samples(Part::kAll);
  SampleList list(samples);
  int64_t count = 0;
  summary.agreement =
      noise_by_output(q.graph, measure_all(q.graph, standard, list, q.options.runner, nullptr, &count));
  standard.ledger = q.graph.ledger;
  q.graph = std::move(standard);
}

}  // namespace sinter::convert
