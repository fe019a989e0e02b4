#include "converter/quantize/ranges/observe.h"

#include <algorithm>

#include "converter/diagnostics/errors.h"

namespace sinter::convert {

std::vector<ValueId> observable_values(const Graph& graph) {
  std::vector<ValueId> ids;
  const auto add = [&](ValueId id) {
    if (id < 0 || graph.is_constant(id)) return;
    const DType dtype = graph.value(id).dtype;
    if (dtype == DType::kFloat32 || dtype == DType::kFloat64) ids.push_back(id);
  };
  for (const ValueId id : graph.inputs) add(id);
  for (const Node& node : graph.nodes)
    for (const ValueId id : node.outputs) add(id);
  return ids;
}

namespace {

constexpr int64_t kMostChannels = 8192;  // of a value whose channels are observed one by one

// A hundred thousand elements of every tensor suffice; counting more would cost more than a fifth of what
// running the graph does.
int64_t counted_of_each(int64_t samples) {
  return samples < 0 ? 2048 : std::clamp<int64_t>((1 << 17) / std::max<int64_t>(samples, 1), 2048, 1 << 14);
}

}  // namespace

Observations observe(const Graph& graph, SampleSource& samples, std::span<const ValueId> values,
                     const ObserveOptions& options) {
  GraphRunner runner(graph, options.runner);
  runner.watch(values);
  std::vector<std::unique_ptr<TensorStatistics>> statistics(graph.values.size());
  for (const ValueId id : values) {
    if (id < 0 || static_cast<size_t>(id) >= graph.values.size()) continue;
    const Value& v = graph.value(id);
    if (v.constant || (v.dtype != DType::kFloat32 && v.dtype != DType::kFloat64)) continue;
    TensorStatistics::Options kept;
    kept.most_counted = options.most_counted > 0 ? options.most_counted : counted_of_each(samples.count());
    if (options.channels && !v.dims.empty() && v.dims.back() >= 1 && v.dims.back() <= kMostChannels)
      kept.channels = v.dims.back();
    statistics[static_cast<size_t>(id)] = std::make_unique<TensorStatistics>(kept);
  }
  const auto look = [&](ValueId id, const TensorView& view) {
    TensorStatistics* const s = statistics[static_cast<size_t>(id)].get();
    if (s == nullptr) return;
    const auto n = static_cast<size_t>(view.size());
    if (view.dtype == DType::kFloat32)
      s->add(std::span<const float>(view.as<float>(), n));
    else
      s->add(std::span<const double>(view.as<double>(), n));
  };
  Observations seen;
  Sample sample;
  const int64_t total = samples.count();
  while (samples.next(&sample)) {
    runner.run(sample, look);
    ++seen.samples;
    if (options.progress) options.progress(seen.samples, total);
  }
  if (seen.samples == 0) throw DataError("the data holds no samples");
  for (size_t i = 0; i < statistics.size(); ++i)
    if (statistics[i] && statistics[i]->samples() > 0)
      seen.values.emplace(static_cast<ValueId>(i), statistics[i]->summary());
  return seen;
}

}  // namespace sinter::convert
