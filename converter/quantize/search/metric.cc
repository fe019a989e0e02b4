#include "converter/quantize/search/metric.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "converter/diagnostics/errors.h"
#include "runtime/core/float_formats.h"

namespace sinter::convert {

Metric parse_metric(const std::string& name) {
  if (name == "top1") return {};
  if (name == "top5") return {.top = 5};
  if (name == "sqnr") return {.kind = Metric::Kind::kSqnr};
  constexpr std::string_view kCommand = "cmd:";
  if (name.size() > kCommand.size() && name.starts_with(kCommand))
    return {.kind = Metric::Kind::kProgram, .program = name.substr(kCommand.size())};
  throw UsageError(
      fmt::format("--metric {}: this is not a metric; give top1, top5, sqnr or cmd:PROGRAM", name));
}

bool is_right(const std::vector<double>& scores, int64_t label, int64_t top) {
  if (std::any_of(scores.begin(), scores.end(), [](double s) { return std::isnan(s); })) return false;
  if (scores.size() == 1) return saturate_to<int64_t>(scores[0]) == label;
  if (label < 0 || label >= static_cast<int64_t>(scores.size())) return false;
  const auto at = static_cast<size_t>(label);
  int64_t higher = 0;
  for (size_t i = 0; i < scores.size(); ++i)
    higher += scores[i] > scores[at] || (scores[i] == scores[at] && i < at);
  return higher < top;
}

int64_t class_of(const std::vector<double>& scores) {
  if (scores.size() == 1) return saturate_to<int64_t>(scores[0]);
  return std::max_element(scores.begin(), scores.end()) - scores.begin();
}

double share_right(LabelledSamples& data, const Metric& metric, const ScoreSample& scores) {
  data.samples->rewind();
  int64_t right = 0;
  Sample sample;
  for (size_t i = 0; i < data.labels.size() && data.samples->next(&sample); ++i) {
    const std::vector<double> given = scores(sample);
    const int64_t label = data.labels[i], count = static_cast<int64_t>(given.size());
    if (count > 1 && (label < 0 || label >= count))
      throw DataError(
          fmt::format("sample {} has label {} but the model gives {} scores, so labels are 0 to {}; give "
                      "the labels that it was trained with",
                      i, label, count, count - 1));
    right += is_right(given, label, metric.top);
  }
  return data.labels.empty() ? 0 : static_cast<double>(right) / static_cast<double>(data.labels.size());
}

GraphScores::GraphScores(const Graph& graph, const RunnerOptions& options, int64_t sequence)
    : runner_(graph, options), sequence_(sequence) {
  while (output_ < graph.outputs.size() && graph.state_written(graph.outputs[output_]) != nullptr) ++output_;
  if (output_ == graph.outputs.size())
    throw DataError("the model has no output but its states, so nothing to count");
}

std::vector<double> GraphScores::operator()(const Sample& sample) {
  if (sequence_ > 0 && index_++ % sequence_ == 0) runner_.reset();
  runner_.run(sample);
  return copy_of(runner_.output(output_))->as_doubles();
}

double share_right(LabelledSamples& data, const Metric& metric, const Graph& graph,
                   const RunnerOptions& options, int64_t sequence) {
  GraphScores scores(graph, options, sequence);
  return share_right(data, metric, [&](const Sample& sample) { return scores(sample); });
}

}  // namespace sinter::convert
