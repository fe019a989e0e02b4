#include "converter/quantize/search/trial_magnitudes.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "converter/diagnostics/errors.h"
#include "converter/quantize/samples/made_up_inputs.h"

namespace sinter::convert {
namespace {

constexpr size_t kMostTrialBytes = size_t{1} << 30;

double largest(const TensorView& v) {
  double most = 0;
  const float* p = v.as<float>();
  for (int64_t i = 0; i < v.size(); ++i)
    if (const double size = std::fabs(p[i]); !(size <= most))
      most = std::isnan(size) ? std::numeric_limits<double>::infinity() : size;
  return most;
}

}  // namespace

std::map<ValueId, TrialRange> try_out(const Graph& graph, const RunnerOptions& options) {
  size_t bytes = 0;
  for (const Value& v : graph.values)
    if (v.constant) bytes += v.constant->byte_size();
  if (bytes > kMostTrialBytes) return {};
  std::map<ValueId, TrialRange> ranges;
  std::vector<ValueId> values;
  for (const ValueId id : observable_values(graph))
    if (graph.value(id).dtype == DType::kFloat32) values.push_back(id);
  RunnerOptions bounded = options;
  bounded.most_bytes = kMostTrialBytes;
  try {
    GraphRunner runner(graph, bounded);
    runner.watch(values);
    MadeUpInputs inputs;
    for (const bool unit : {true, false}) {
      Sample sample;
      for (const ValueId id : graph.inputs)
        sample.push_back(
            inputs.next(graph.value(id).dtype, graph.value(id).dims, unit ? -1 : 0, unit ? 1 : 255));
      runner.run(sample, [&](ValueId id, const TensorView& view) {
        if (view.dtype == DType::kFloat32) (unit ? ranges[id].unit : ranges[id].bytes) = largest(view);
      });
    }
  } catch (const DataError&) {
    return {};
  }
  return ranges;
}

}  // namespace sinter::convert
