#include "converter/quantize/search/accuracy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "converter/diagnostics/errors.h"
#include "converter/import/arrays.h"
#include "converter/quantize/samples/carried_states.h"
#include "runtime/core/float_formats.h"

namespace sinter::convert {
namespace {

std::vector<double> numbers(const TensorView& view) {
  const auto shape = view.shape();
  return Constant::owned(view.dtype, Dims(shape.begin(), shape.end()),
                         Bytes(view.data, view.data + view.dense_bytes()))
      ->as_doubles();
}

}  // namespace

bool is_right(const std::vector<double>& scores, int64_t label) {
  if (std::any_of(scores.begin(), scores.end(), [](double s) { return std::isnan(s); })) return false;
  const auto best =
      scores.size() == 1
          ? saturate_to<int64_t>(scores[0])
          : static_cast<int64_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
  return best == label;
}

LabelledData::LabelledData(const std::string& data, const std::string& label,
                           const std::vector<SampleInput>& inputs) {
  if (data.starts_with("cmd:"))
    throw UsageError("--evaluate does not take a command; give a file or a folder");
  const ConstantPtr labels = find_array(read_arrays(data), label);
  if (!labels) throw DataError(fmt::format("the data has no array '{}' for --label", label));
  labels_ = labels->as_int64s();
  samples_ = open_samples(data, inputs);
  if (samples_->count() != static_cast<int64_t>(labels_.size()))
    throw DataError(fmt::format("{} labels for {} samples", labels_.size(), samples_->count()));
}

double LabelledData::top1(const Graph& graph, const RunnerOptions& options, int64_t sequence) {
  StatefulRunner runner(graph, options);
  size_t scores = 0;
  while (scores < graph.outputs.size() && graph.state_written(graph.outputs[scores]) != nullptr) ++scores;
  if (scores == graph.outputs.size())
    throw DataError("the model has no output but its state, so nothing to count");
  int64_t index = 0;
  samples_->rewind();
  int64_t right = 0;
  Sample sample;
  for (const int64_t label : labels_) {
    if (!samples_->next(&sample)) break;
    if (sequence > 0 && index++ % sequence == 0) runner.reset();
    runner.run(sample);
    right += is_right(numbers(runner.output(scores)), label);
  }
  return static_cast<double>(right) / static_cast<double>(labels_.size());
}

}  // namespace sinter::convert
