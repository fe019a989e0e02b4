#include "converter/quantize/weights/channel_scales.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "converter/quantize/weights/product_weights.h"

namespace sinter::convert {
namespace {

// The headroom of a channel beyond its observed values before its scaled bound is reached.
constexpr double kMargin = 1.25;

// The smallest scale that keeps what was seen of a channel inside bounds that stay as they are.
double least_scale(const Moments& seen, double low, double high) {
  double least = 0;
  if (high < kInfinity && seen.max > 0) least = std::max(least, kMargin * seen.max / high);
  if (low > -kInfinity && seen.min < 0) least = std::max(least, kMargin * seen.min / low);
  return std::isfinite(least) ? std::min(least, 1.0) : 1.0;
}

}  // namespace

ChannelScales::ChannelScales(const Graph& graph, const Observations& seen)
    : graph_(graph), channels_(graph.values.size()), parent_{0} {
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const Value& v = graph.values[i];
    if (v.constant || v.dtype != DType::kFloat32 || v.dims.empty() || v.dims.back() == 0) continue;
    place(static_cast<ValueId>(i), static_cast<int>(v.dims.size()) - 1);
    if (!v.bounded_dims.empty()) fix(static_cast<ValueId>(i));
  }
  for (const ValueId id : graph.inputs) fix(id);
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    if (!visit(n)) fix_all(graph.nodes[n]);
  for (const ValueId id : graph.outputs) fix(id);

  number_.assign(parent_.size(), -1);
  groups_.push_back({1, 1, false});
  number_[static_cast<size_t>(root(0))] = 0;
  for (size_t v = 0; v < parent_.size(); ++v) {
    int& number = number_[static_cast<size_t>(root(static_cast<int>(v)))];
    if (number < 0) number = static_cast<int>(groups_.size()), groups_.emplace_back();
    number_[v] = number;
  }
  for (const Bound& bound : bounds_) {
    const std::vector<int> own = of(bound.value);
    const TensorSummary* summary = seen.find(bound.value);
    const Channels& c = at(bound.value);
    for (size_t i = 0; i < static_cast<size_t>(c.count); ++i) {
      Group& group = groups_[static_cast<size_t>(number_[static_cast<size_t>(c.first) + i])];
      const bool known = summary != nullptr && !own.empty() && summary->channels.size() == own.size();
      group.least =
          std::max(group.least, known ? least_scale(summary->channels[i], bound.low, bound.high) : 1.0);
      group.most = 1;
    }
  }
  for (const ValueId id : normalized_)
    for (const int g : of(id)) groups_[static_cast<size_t>(g)].normalized = true;
}

std::vector<int> ChannelScales::of(ValueId id) const {
  if (!free_value(id) || at(id).axis + 1 != static_cast<int>(graph_.value(id).dims.size())) return {};
  const auto first = number_.begin() + at(id).first;
  return {first, first + at(id).count};
}

void ChannelScales::apply(Graph& graph, const std::vector<double>& scales) const {
  for (size_t g = 0; g < groups_.size(); ++g)
    if (!(scales[g] > 0) || scales[g] < groups_[g].least || scales[g] > groups_[g].most)
      throw std::logic_error("a channel's scale is beyond its limits");
  const auto scale = [&](ValueId id, int64_t channel) {
    if (!free_value(id)) return 1.0;
    return scales[static_cast<size_t>(number_[static_cast<size_t>(at(id).first + channel)])];
  };
  const auto changed = [&](ValueId id) {
    if (!free_value(id)) return false;
    for (int64_t c = 0; c < at(id).count; ++c)
      if (scale(id, c) != 1) return true;
    return false;
  };
  const auto rescaled = [&](ValueId id, const std::vector<double>& items) {
    return graph.add_constant(float_constant(graph.value(id).dims, items), graph.value(id).name);
  };
  for (Node& node : graph.nodes) {
    if (node.outputs.empty()) continue;
    const ValueId y = node.outputs[0];
    if (const auto p = product_weights(graph, node)) {
      // x has columns for channels where these are scaled (product() in channel_rules.cc).
      const bool by_columns = changed(node.inputs[0]), by_rows = changed(y);
      if (!by_columns && !by_rows) continue;
      std::vector<double> w = p->weights->as_doubles(), b;
      p->for_each([&](int64_t i, int64_t row, int64_t column) {
        w[static_cast<size_t>(i)] *=
            (by_columns ? scale(node.inputs[0], column) : 1) / (by_rows ? scale(y, row) : 1);
      });
      if (p->bias) b = p->bias->as_doubles();
      for (size_t i = 0; by_rows && i < b.size(); ++i) b[i] /= scale(y, static_cast<int64_t>(i));
      set_weights(graph, node, &w, b.empty() ? nullptr : &b);
    } else if ((node.as<LayerNormAttrs>() || node.as<RmsNormAttrs>() || node.as<GroupNormAttrs>()) &&
               changed(y)) {
      for (size_t operand = 1; operand < node.inputs.size(); ++operand) {
        if (node.inputs[operand] < 0) continue;
        std::vector<double> items = graph.value(node.inputs[operand]).constant->as_doubles();
        for (size_t i = 0; i < items.size(); ++i) items[i] /= scale(y, static_cast<int64_t>(i));
        node.inputs[operand] = rescaled(node.inputs[operand], items);
      }
    }
  }
  for (const Addend& addend : addends_) {
    Node& node = graph.nodes[addend.node];
    const ValueId y = node.outputs[0], id = node.inputs[addend.operand];
    if (!changed(y)) continue;
    const Dims dims = graph.value(id).dims;
    const size_t behind = graph.value(y).dims.size() - static_cast<size_t>(at(y).axis);  // axes from here on
    int64_t inner = 1;
    for (size_t d = dims.size() - behind + 1; d < dims.size(); ++d) inner *= dims[d];
    std::vector<double> items = graph.value(id).constant->as_doubles();
    for (size_t i = 0; i < items.size(); ++i)
      items[i] /= scale(y, static_cast<int64_t>(i) / inner % at(y).count);
    node.inputs[addend.operand] = rescaled(id, items);
  }
}

int ChannelScales::root(int v) {
  int r = v;
  while (parent_[static_cast<size_t>(r)] != r) r = parent_[static_cast<size_t>(r)];
  while (parent_[static_cast<size_t>(v)] != r) v = std::exchange(parent_[static_cast<size_t>(v)], r);
  return r;
}

void ChannelScales::join(int a, int b) {
  a = root(a), b = root(b);
  parent_[static_cast<size_t>(std::max(a, b))] = std::min(a, b);
}

bool ChannelScales::place(ValueId id, int axis) {
  Channels& c = channels_[static_cast<size_t>(id)];
  c.axis = axis;
  c.first = static_cast<int>(parent_.size());
  c.count = static_cast<int>(graph_.value(id).dims[static_cast<size_t>(axis)]);
  parent_.resize(parent_.size() + static_cast<size_t>(c.count));
  std::iota(parent_.begin() + c.first, parent_.end(), c.first);
  return true;
}

void ChannelScales::fix(ValueId id) {
  if (!free_value(id)) return;
  for (int i = 0; i < at(id).count; ++i) join(0, at(id).first + i);
}

void ChannelScales::fix_all(const Node& node) {
  for (const ValueId id : node.inputs) fix(id);
  for (const ValueId id : node.outputs) fix(id);
}

bool ChannelScales::tie(ValueId a, ValueId b) {
  if (!free_value(a) || !free_value(b) || at(a).count != at(b).count) return false;
  for (int i = 0; i < at(a).count; ++i) join(at(a).first + i, at(b).first + i);
  return true;
}

bool ChannelScales::bounded(ValueId y, double low, double high) {
  if (low > 0 || high < 0 || !(low <= high)) return false;
  if ((low < 0 && low > -kInfinity) || (high > 0 && high < kInfinity)) bounds_.push_back({y, low, high});
  return true;
}

}  // namespace sinter::convert
