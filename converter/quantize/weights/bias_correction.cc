#include "converter/quantize/weights/bias_correction.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "converter/ir/builder.h"
#include "converter/quantize/weights/product_weights.h"
#include "converter/quantize/weights/weight_rows.h"

namespace sinter::convert {
namespace {

// Adds to a product's bias; false: the sums are not finite float32 numbers, or nothing changes.
bool shift_bias(Graph& graph, Node& node, const ProductWeights& p, const std::vector<double>& shift) {
  std::vector<double> bias(static_cast<size_t>(p.rows), 0.0);
  if (p.bias) bias = p.bias->as_doubles();
  bool changes = false;
  for (size_t i = 0; i < bias.size(); ++i) {
    const auto sum = static_cast<float>(bias[i] + shift[i]);
    if (!std::isfinite(sum)) return false;
    changes |= static_cast<double>(sum) != bias[i];
    bias[i] = static_cast<double>(sum);
  }
  if (changes) set_weights(graph, node, nullptr, &bias);
  return changes;
}

std::map<ValueId, const Node*> nodes_by_result(const Graph& graph) {
  std::map<ValueId, const Node*> nodes;
  for (const Node& node : graph.nodes)
    if (!node.outputs.empty()) nodes[node.outputs[0]] = &node;
  return nodes;
}

// Products that clamp their results do that in a node of its own. By result: what they give before.
std::map<ValueId, ValueId> unclamp(Graph& graph) {
  std::map<ValueId, ValueId> raw;
  std::vector<Node> nodes;
  for (Node& node : graph.nodes) {
    const auto p = product_weights(graph, node);
    if (!p) {
      nodes.push_back(std::move(node));
      continue;
    }
    const ValueId y = node.outputs[0];
    raw[y] = y;
    if (p->act_min == -kInfinity && p->act_max == kInfinity) {
      nodes.push_back(std::move(node));
      continue;
    }
    raw[y] = graph.add_value("", DType::kFloat32, Dims(graph.value(y).dims));
    ClampAttrs clamp;
    clamp.min = p->act_min, clamp.max = p->act_max;
    Node behind{clamp, {raw[y]}, {y}, node.name, node.origin, {}};
    std::visit(
        [](auto& a) {
          if constexpr (requires { a.act_min; }) a.act_min = -kInfinity, a.act_max = kInfinity;
        },
        node.attrs);
    node.outputs[0] = raw[y];
    nodes.push_back(std::move(node));
    nodes.push_back(std::move(behind));
  }
  graph.nodes = std::move(nodes);
  return raw;
}

// Products that depend on no other one that is still to come, front to back.
std::vector<std::vector<ValueId>> levels_of(const Graph& graph) {
  std::map<ValueId, size_t> depth;
  std::vector<std::vector<ValueId>> levels;
  for (const Node& node : graph.nodes) {
    size_t d = 0;
    for (const ValueId id : node.inputs)
      if (const auto at = depth.find(id); at != depth.end()) d = std::max(d, at->second);
    if (product_weights(graph, node)) {
      if (levels.size() <= d) levels.resize(d + 1);
      levels[d++].push_back(node.outputs[0]);
    }
    for (const ValueId id : node.outputs) depth[id] = d;
  }
  return levels;
}

std::vector<double> means(const TensorSummary& seen) {
  std::vector<double> result;
  for (const Moments& m : seen.channels)
    result.push_back(m.sum / static_cast<double>(std::max<uint64_t>(seen.channel_elements, 1)));
  return result;
}

// The channels' means in every sample.
using SampleMeans = std::map<ValueId, std::vector<std::vector<double>>>;

SampleMeans sample_means(const Graph& graph, const std::vector<ValueId>& values,
                         std::span<const Sample> samples, const RunnerOptions& options) {
  GraphRunner runner(graph, options);
  runner.watch(values);
  SampleMeans result;
  for (const Sample& sample : samples)
    runner.run(sample, [&](ValueId id, const TensorView& view) {
      const auto channels = static_cast<size_t>(view.rank > 0 ? view.dims[view.rank - 1] : 1);
      const auto count = static_cast<size_t>(view.size());
      if (view.dtype != DType::kFloat32 || channels == 0 || count == 0) return;
      std::vector<double> means(channels, 0.0);
      for (size_t i = 0; i < count; ++i) means[i % channels] += static_cast<double>(view.as<float>()[i]);
      for (double& m : means) m /= static_cast<double>(count / channels);
      result[id].push_back(std::move(means));
    });
  return result;
}

// The distance of the means, less the part that may be chance: a shift within its own standard error counts
// as none. Empty: something is not a number, or missing.
std::vector<double> sure_shift(const std::vector<std::vector<double>>& want,
                               const std::vector<std::vector<double>>& got, size_t channels) {
  const size_t n = want.size();
  if (n == 0 || got.size() != n || want[0].size() != channels || got[0].size() != channels) return {};
  std::vector<double> result(channels, 0.0);
  for (size_t c = 0; c < channels; ++c) {
    double mean = 0, squares = 0;
    for (size_t s = 0; s < n; ++s) mean += (want[s][c] - got[s][c]) / static_cast<double>(n);
    if (!std::isfinite(mean)) return {};
    for (size_t s = 0; s < n; ++s) squares += std::pow(want[s][c] - got[s][c] - mean, 2);
    const double chance = n > 1 ? squares / static_cast<double>(n * (n - 1)) : 0;
    if (mean * mean > chance) result[c] = mean * (1 - chance / (mean * mean));
  }
  return result;
}

}  // namespace

const std::vector<double>& MeanCorrection::lost(const ProductWeights& exact, const ProductWeights& rounded,
                                                const TensorSummary& input, ValueId output) {
  Lost& own = lost_[output];
  if (own.exact.lock() == exact.weights && own.rounded.lock() == rounded.weights) return own.sums;
  own = {exact.weights, rounded.weights, std::vector<double>(static_cast<size_t>(rounded.rows), 0.0)};
  const std::vector<double> mean = means(input);
  const LoadedFloats before(*exact.weights), after(*rounded.weights);
  rounded.for_each([&](int64_t i, int64_t row, int64_t column) {
    const auto at = static_cast<size_t>(i);
    own.sums[static_cast<size_t>(row)] +=
        (static_cast<double>(before.items()[at]) - static_cast<double>(after.items()[at])) *
        mean[static_cast<size_t>(column)];
  });
  return own.sums;
}

int MeanCorrection::operator()(Graph& rounded, const Graph& exact) {
  const auto originals = nodes_by_result(exact);
  int changed = 0;
  for (Node& node : rounded.nodes) {
    const auto p = product_weights(rounded, node);
    if (!p) continue;
    const auto at = originals.find(node.outputs[0]);
    if (at == originals.end()) continue;
    const auto original = product_weights(exact, *at->second);
    if (!original || original->weights == p->weights || original->weights->dims() != p->weights->dims())
      continue;
    const TensorSummary* x = seen_.find(at->second->inputs[0]);
    if (x == nullptr || x->not_finite > 0 || static_cast<int64_t>(x->channels.size()) != p->columns) continue;
    // Each result of a transposed convolution meets a part of the weights.
    double part = 1;
    if (const auto* back = node.as<ConvTransposeAttrs>())
      for (const int64_t stride : back->strides) part /= static_cast<double>(stride);
    // From the exact bias on: adaptive rounding has moved it already.
    std::vector<double> shift(static_cast<size_t>(p->rows), 0.0);
    if (original->bias) shift = original->bias->as_doubles();
    const std::vector<double> now = p->bias ? p->bias->as_doubles() : std::vector<double>(shift.size(), 0.0);
    const std::vector<double>& sums = lost(*original, *p, *x, node.outputs[0]);
    for (size_t i = 0; i < shift.size(); ++i) shift[i] += part * sums[i] - now[i];
    changed += shift_bias(rounded, node, *p, shift) ? 1 : 0;
  }
  return changed;
}

int correct_biases(Graph& rounded, const Graph& exact, std::span<const Sample> samples,
                   const RunnerOptions& options) {
  Graph plain = exact;
  const auto wanted = unclamp(plain);
  std::vector<ValueId> results;
  for (const auto& [y, raw] : wanted) results.push_back(raw);
  const auto want = sample_means(plain, results, samples, options);
  int changed = 0;
  for (const std::vector<ValueId>& level : levels_of(rounded)) {
    Graph part = rounded;
    const auto raw = unclamp(part);
    part.outputs.clear();
    for (const ValueId y : level)
      if (wanted.contains(y)) part.outputs.push_back(raw.at(y));
    if (part.outputs.empty()) continue;
    results = part.outputs;
    remove_dead_nodes(part);
    const auto got = sample_means(part, results, samples, options);
    for (Node& node : rounded.nodes) {
      if (node.outputs.empty() || std::find(level.begin(), level.end(), node.outputs[0]) == level.end())
        continue;
      const auto p = product_weights(rounded, node);
      const auto at = wanted.find(node.outputs[0]);
      if (!p || at == wanted.end()) continue;
      const auto a = want.find(at->second), b = got.find(raw.at(node.outputs[0]));
      if (a == want.end() || b == got.end()) continue;
      const std::vector<double> shift = sure_shift(a->second, b->second, static_cast<size_t>(p->rows));
      if (!shift.empty()) changed += shift_bias(rounded, node, *p, shift) ? 1 : 0;
    }
  }
  return changed;
}

}  // namespace sinter::convert
