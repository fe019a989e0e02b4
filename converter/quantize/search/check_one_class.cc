#include "converter/quantize/search/check_one_class.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "converter/quantize/samples/usual_scales.h"
#include "converter/quantize/search/metric.h"

namespace sinter::convert {
namespace {

// Scores hardly depend on samples where their deviation is below this share of their size, while the samples
// differ by more than that. Another scale shows that it is the scale's fault, by so many times the deviation.
constexpr double kHardlyChange = 0.03, kSamplesDiffer = 0.1, kMoreChange = 10;
// The logarithm of a probability that float32 cannot tell from 0.
constexpr double kVanished = 1e-30;

// Whether the node's results are the model's scores, with or without a softmax.
bool gives_scores(const Graph& graph, ValueId id, bool* normalized) {
  const Uses uses(graph);
  for (int steps = 0; steps < 4; ++steps) {
    const int n = uses.producer[static_cast<size_t>(id)];
    if (n < 0) return false;
    const Node& node = graph.nodes[static_cast<size_t>(n)];
    switch (node.op()) {
      case Op::kSoftmax:
        *normalized = true;
        return true;
      case Op::kFullyConnected:
      case Op::kMatMul:
        *normalized = false;
        return true;
      case Op::kLog:
      case Op::kView:
      case Op::kCast:
      case Op::kAdd:
        id = node.inputs[0];
        break;
      default:
        return false;
    }
  }
  return false;
}

// The answers for some samples.
struct Spread {
  std::set<int64_t> classes;
  double apart = 0;  // the deviation over samples as a share of the size
};

// The deviation over vectors of one size as a share of their size.
double spread_of(const std::vector<std::vector<double>>& vectors) {
  double apart = 0, size = 0;
  for (size_t i = 0; i < vectors[0].size(); ++i) {
    double sum = 0, squares = 0;
    for (const auto& v : vectors) sum += v[i], squares += v[i] * v[i];
    apart += std::max(squares - sum * sum / static_cast<double>(vectors.size()), 0.0);
    size += squares;
  }
  return size > 0 ? std::sqrt(apart / size) : 0;
}

// Scores less their mean, which say as much; probabilities become scores. Empty: most of them vanished.
std::vector<double> centered(std::vector<double> scores, bool normalized) {
  size_t vanished = 0;
  double sum = 0;
  for (double& s : scores) {
    if (normalized) vanished += s < kVanished, s = std::log(std::max(s, kVanished));
    sum += s;
  }
  if (vanished * 2 > scores.size()) return {};
  for (double& s : scores) s -= sum / static_cast<double>(scores.size());
  return scores;
}

// nullopt: the scores are not all finite, or vanish.
std::optional<Spread> answers_for(GraphScores& scores, const std::vector<Sample>& samples, bool normalized) {
  Spread result;
  std::vector<std::vector<double>> all;
  for (const Sample& sample : samples) {
    const std::vector<double> given = scores(sample);
    if (std::any_of(given.begin(), given.end(), [](double s) { return !std::isfinite(s); })) return {};
    result.classes.insert(class_of(given));
    all.push_back(centered(given, normalized));
    if (all.back().empty()) return {};
  }
  result.apart = spread_of(all);
  return result;
}

}  // namespace

void check_one_class(const Graph& graph, SampleSource& source, const RunnerOptions& options,
                     Diagnostics& diagnostics) {
  if (!source.is_file() || source.count() < kOneClassSamples || !graph.states.empty() ||
      !graph.lengths.empty() || graph.outputs.empty())
    return;
  const Value& output = graph.value(graph.outputs[0]);
  const int64_t n = element_count(output.dims);
  bool normalized = false;
  if (n < 2 || n != output.dims.back() || !output.bounded_dims.empty() || !is_float(output.dtype) ||
      !gives_scores(graph, graph.outputs[0], &normalized))
    return;
  GraphScores scores(graph, options);
  std::vector<Sample> samples;
  std::vector<std::vector<double>> numbers;
  source.rewind();
  int64_t first = -1;
  for (Sample sample; source.next(&sample); samples.push_back(sample)) {
    const int64_t found = class_of(scores(sample));
    if (samples.empty()) first = found;
    if (found != first) return;
    numbers.emplace_back();
    for (const ConstantPtr& array : sample)
      for (const double x : array->as_doubles()) numbers.back().push_back(x);
  }
  const auto now = answers_for(scores, samples, normalized);
  if (!now || now->apart > kHardlyChange || spread_of(numbers) < kSamplesDiffer) return;
  const Reach reach = reach_of(samples);
  std::vector<const UsualScale*> better;
  for (const UsualScale* scale : other_scales(reach)) {
    const auto then = answers_for(scores, rescaled(samples, reach, *scale), normalized);
    if (then && then->classes.size() > 1 && then->apart > kMoreChange * now->apart) better.push_back(scale);
  }
  if (better.empty()) return;
  diagnostics.warn(
      "", "",
      fmt::format("calibration data, from {:g} to {:g}: the float model gives class {} ('{}') for "
                  "all of {} samples, with scores that differ by {:.2g} %",
                  reach.low, reach.high, first, output.name, samples.size(), 100 * now->apart),
      fmt::format("scale the data as for training: of the usual scales, {} {} several classes",
                  names_of_scales(better), better.size() == 1 ? "gives" : "give"));
}

}  // namespace sinter::convert
