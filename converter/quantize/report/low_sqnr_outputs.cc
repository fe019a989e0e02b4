#include "converter/quantize/report/low_sqnr_outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "converter/ir/integer_weights.h"

namespace sinter::convert {
namespace {

constexpr double kWeightOutlier = 12;  // largest over typical weight of a channel

// "channel 3 of 8 has a weight 40 times the typical one"; empty: nothing unusual.
std::string weights_cause(const Constant& weights, int64_t axis) {
  const std::vector<double> items = weights.as_doubles();
  const Channels channels(weights.dims(), axis);
  std::vector<double> peaks(channels.count(), 0), squares(channels.count(), 0);
  std::vector<size_t> counts(channels.count(), 0);
  for (size_t i = 0; i < items.size(); ++i) {
    const size_t c = channels.of(i);
    peaks[c] = std::max(peaks[c], std::fabs(items[i]));
    squares[c] += items[i] * items[i], ++counts[c];
  }
  double worst = 0;
  size_t far = 0, at = 0;
  for (size_t c = 0; c < peaks.size(); ++c) {
    if (!(squares[c] > 0)) continue;
    const double ratio = peaks[c] / std::sqrt(squares[c] / static_cast<double>(counts[c]));
    far += ratio >= kWeightOutlier;
    if (ratio > worst) worst = ratio, at = c;
  }
  if (far == 0) return {};
  return fmt::format("{} of {} channels have outliers (channel {}: {:.0f} times its typical weight)", far,
                     peaks.size(), at, worst);
}

}  // namespace

double worst_of(const std::vector<OutputNoise>& outputs) {
  double worst = 999;
  for (const OutputNoise& o : outputs) worst = std::min(worst, o.db);
  return worst;
}

std::string cause_of(const NoiseSource& source, const std::vector<LayerReport>& layers, const Graph& graph) {
  if (source.weights) {
    for (const Node& node : graph.nodes) {
      if (node.name != source.layer || op_info(node.op())->name != source.op) continue;
      if (const int64_t axis = weight_axis(graph, node); axis >= 0)
        if (std::string cause = weights_cause(*graph.value(node.inputs[1]).constant, axis); !cause.empty())
          return cause;
    }
    return "255 steps per channel are too few for its weights";
  }
  for (const LayerReport& layer : layers) {
    if (source.value.empty() || layer.value != exact_name(source.value) || !layer.noise.params) continue;
    if (std::string cause = cause_of(layer.noise); !cause.empty()) return cause;
    const NoiseSums& all = layer.noise.all;
    return fmt::format("range of {:.3g} over a step of {:.3g}: {} levels are too few for it",
                       all.high - all.low, layer.noise.params->scale, layer.noise.levels());
  }
  return "its steps are too few for its readers";
}

std::vector<LowOutput> low_by_layers(const std::vector<OutputNoise>& outputs, const Graph& rounded,
                                     const std::vector<LayerReport>& layers,
                                     const std::vector<LayerFate>& fates) {
  std::vector<LowOutput> result;
  const Uses uses(rounded);
  for (size_t i = 0; i < outputs.size() && i < rounded.outputs.size(); ++i) {
    if (outputs[i].db >= kLittleSignal) continue;
    std::set<int> before;
    std::vector<int> todo = {uses.producer[static_cast<size_t>(rounded.outputs[i])]};
    while (!todo.empty()) {
      const int n = todo.back();
      todo.pop_back();
      if (n < 0 || !before.insert(n).second) continue;
      for (const ValueId id : rounded.nodes[static_cast<size_t>(n)].inputs)
        if (id >= 0) todo.push_back(uses.producer[static_cast<size_t>(id)]);
    }
    std::set<std::string> names;
    for (const int n : before) names.insert(rounded.nodes[static_cast<size_t>(n)].name);
    LowOutput low{outputs[i].name, outputs[i].db, {"", "", "", 999, false}, ""};
    for (const LayerReport& layer : layers)
      if (layer.own_db && *layer.own_db < low.loudest.db && names.contains(layer.node))
        low.loudest = {layer.node, layer.op, "", *layer.own_db, true};
    low.cause = "too few bits for them";
    for (const LayerFate& fate : fates)
      if (fate.integer && fate.name == low.loudest.layer) low.cause = fate.left.detail;
    if (low.loudest.layer.empty()) low.cause = "no single layer: the sum of the losses of all layers";
    result.push_back(std::move(low));
  }
  return result;
}

}  // namespace sinter::convert
