#include "converter/quantize/weights/equalize.h"

#include <algorithm>

#include "converter/quantize/quantization.h"
#include "converter/quantize/weights/channel_balance.h"

namespace sinter::convert {
namespace {

constexpr double kGain = 0.75;  // of the expected noise must be left at most

template <class Wanted>
int rescale(Graph& graph, const Observations& seen, const std::vector<double>& alphas, double gain,
            const Wanted& wanted) {
  const ChannelScales channels(graph, seen);
  const ChannelBalance balance(graph, channels, seen);
  std::vector<bool> may_change(channels.groups().size(), false);
  for (size_t g = 1; g < may_change.size(); ++g)
    may_change[g] = wanted(channels.groups()[g], balance.groups()[g]);
  const std::vector<double> scales = balance.best(may_change, alphas, gain);
  const auto changed = std::count_if(scales.begin(), scales.end(), [](double s) { return s != 1; });
  if (changed > 0) channels.apply(graph, scales);
  return static_cast<int>(changed);
}

}  // namespace

int equalize(Graph& graph, const Observations& seen) {
  return rescale(graph, seen, {0, 0.25, 0.5, 0.75, 1}, kGain,
                 [](const auto& g, const auto& b) { return !g.normalized && b.dense + b.depthwise > 0; });
}

int scale_before_depthwise(Graph& graph, const Observations& seen) {
  return rescale(graph, seen, {1}, kGain,
                 [](const auto&, const auto& b) { return b.depthwise > 0 && b.dense == 0; });
}

int smooth(Graph& graph, const Observations& seen, double alpha) {
  return rescale(graph, seen, {alpha}, kInfinity, [](const auto&, const auto& b) { return b.connected > 0; });
}

std::optional<Proposal> propose_equalizing(Quantization& q) { return propose_rewriting(q, equalize); }

std::optional<Proposal> propose_depthwise_scales(Quantization& q) {
  return propose_rewriting(q, scale_before_depthwise);
}

std::optional<Proposal> propose_smoothing(Quantization& q) {
  return propose_rewriting(q,
                           [](Graph& graph, const Observations& seen) { return smooth(graph, seen, 0.5); });
}

}  // namespace sinter::convert
