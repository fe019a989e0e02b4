#include "converter/quantize/search/sensitivity.h"

#include <algorithm>
#include <numeric>

namespace sinter::convert {
namespace {

constexpr double kBudget = 1.5e9;      // for the scales, in run_cost's unit
constexpr double kWeightBudget = 1e9;  // for the weights
constexpr double kBuild = 3e6;         // what making a runner costs, and for each byte of weights:
constexpr double kBuildByte = 2;
constexpr double kWorth = 0.8;   // another scale than the first must have less than this share of its noise
constexpr double kMinor = 0.05;  // weights below this share of all noise are not distinguished

double total(const Noise& noise) { return std::accumulate(noise.outputs.begin(), noise.outputs.end(), 0.0); }

size_t affordable(double budget, double each, size_t most) {
  return static_cast<size_t>(std::clamp(budget / std::max(each, 1.0), 1.0, static_cast<double>(most)));
}

}  // namespace

double run_cost(const Graph& g, const Node& node) {
  double elements = 0, depth = 0;
  for (const ValueId id : node.outputs)
    if (id >= 0) elements += static_cast<double>(element_count(g.value(id).dims));
  if (weight_axis(g, node) >= 0 && !node.outputs.empty()) {
    const Dims& out = g.value(node.outputs[0]).dims;
    const auto weights = static_cast<double>(g.value(node.inputs[1]).constant->size());
    depth = weights / std::max<double>(1, static_cast<double>(out.back()));
    // A transposed convolution multiplies for every element that it reads.
    if (node.as<ConvTransposeAttrs>() != nullptr)
      return weights * static_cast<double>(element_count(g.value(node.inputs[0]).dims)) /
                 static_cast<double>(std::max<int64_t>(1, g.value(node.inputs[0]).dims.back())) / 50 +
             elements * 0.3 + 200;
  } else if (node.op() == Op::kMatMul) {
    depth = static_cast<double>(g.value(node.inputs[0]).dims.back());
  }
  return elements * depth / 50 + elements * 0.3 + 200;
}

double run_cost(const Graph& g) {
  double sum = 0;
  for (const Node& node : g.nodes) sum += run_cost(g, node);
  return sum;
}

ProbedSamples samples_to_probe(const Graph& graph, size_t attempts, size_t values, size_t most) {
  const double once = run_cost(graph);
  const size_t each = affordable(kBudget, once * static_cast<double>(attempts), most);
  // With one sample or two a choice would be chance.
  if (each >= 4) return {each, true};
  return {affordable(kBudget, once * static_cast<double>(values), std::min<size_t>(4, most)), false};
}

std::map<ValueId, size_t> choose_scales(const Trials& trials, Part part, const Graph& graph,
                                        const std::map<ValueId, std::vector<QuantParams>>& candidates,
                                        Sensitivity* sensitivity, const Step& step) {
  Trials::Probe probe(trials, graph);
  size_t attempts = 0, values = 0;
  for (const auto& [id, list] : candidates) attempts += list.size(), ++values;
  const auto [samples, choose] = samples_to_probe(graph, attempts, values, trials.samples(part).size());
  sensitivity->samples = samples;
  int64_t done = 0;
  const auto all = static_cast<int64_t>(choose ? attempts : values);
  std::map<ValueId, size_t> chosen;
  for (const auto& [id, list] : candidates) {
    std::vector<Trials::Probe::Halves> tried;
    for (size_t c = 0; c < (choose ? list.size() : 1); ++c) {
      tried.push_back(probe.round(id, list[c], samples, part));
      if (step) step(++done, all);
    }
    // Both halves of the samples must agree that another scale is better.
    size_t taken = 0;
    double least = kWorth;
    for (size_t c = 1; c < tried.size(); ++c) {
      const double even = total(tried[c].even) / std::max(total(tried[0].even), 1e-30);
      const double odd = total(tried[c].odd) / std::max(total(tried[0].odd), 1e-30);
      if (std::max(even, odd) < least) least = std::max(even, odd), taken = c;
    }
    chosen[id] = taken;
    sensitivity->values[id] = tried[taken].both();
  }
  return chosen;
}

void measure_weights(const Trials& trials, const Graph& graph, const std::vector<Role>& roles,
                     Sensitivity* sensitivity, const Step& step) {
  std::vector<size_t> layers;
  double bytes = 0;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (roles[n] != Role::kInteger) continue;
    double own = 0;
    for (const ValueId id : node.inputs)
      if (graph.is_constant(id)) own += static_cast<double>(graph.value(id).constant->byte_size());
    if (own > 0) layers.push_back(n);
  }
  for (const Value& v : graph.values)
    if (v.constant) bytes += static_cast<double>(v.constant->byte_size());
  const size_t samples = std::max<size_t>(sensitivity->samples, 1);
  Graph rounded = graph;
  round_weights(rounded, roles);
  const Noise all = trials.measure(rounded, samples);
  Noise values;
  for (const auto& [id, noise] : sensitivity->values) values += noise;
  const double each = kBuild + kBuildByte * bytes + run_cost(graph) * static_cast<double>(samples);
  const bool apart =
      total(all) > kMinor * total(values) && each * static_cast<double>(layers.size()) <= kWeightBudget;
  int64_t done = 0;
  if (apart && step) step(0, static_cast<int64_t>(layers.size()));
  for (const size_t n : layers) {
    Noise noise;
    if (apart) {
      std::vector<Role> only(roles.size(), Role::kFloat);
      only[n] = Role::kInteger;
      Graph one = graph;
      round_weights(one, only);
      noise = trials.measure(one, samples);
      if (step) step(++done, static_cast<int64_t>(layers.size()));
    } else {
      noise = all;
      for (double& x : noise.outputs) x /= static_cast<double>(layers.size());
    }
    sensitivity->weights[graph.nodes[n].outputs[0]] = noise;
  }
}

Noise predict(const Sensitivity& sensitivity, const Graph& graph, const std::vector<Role>& roles) {
  Noise sum;
  for (const ValueId id : scaled_values(graph, roles))
    if (const auto at = sensitivity.values.find(id); at != sensitivity.values.end()) sum += at->second;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (roles[n] != Role::kInteger) continue;
    if (const auto at = sensitivity.weights.find(graph.nodes[n].outputs[0]); at != sensitivity.weights.end())
      sum += at->second;
  }
  return sum;
}

}  // namespace sinter::convert
