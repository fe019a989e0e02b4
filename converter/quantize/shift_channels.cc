#include "converter/quantize/shift_channels.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "converter/passes/editor.h"
#include "converter/quantize/product_weights.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

constexpr double kNarrower = 0.75;  // of the mean width that must be left at most

using Offsets = std::vector<double>;  // of the channels, along the last axis

class Shift {
 public:
  Shift(Graph& graph, const Observations& seen) : g_(graph), seen_(seen), parent_(graph.values.size()) {
    std::iota(parent_.begin(), parent_.end(), 0);
    fixed_.resize(parent_.size(), false);
  }

  int run() {
    for (const ValueId id : g_.inputs) fix(id);
    for (const ValueId id : g_.outputs) fix(id);
    for (const Node& node : g_.nodes) {
      if (source(node)) {
        if (!offsets(node)) fix(node.outputs[0]);
        if (!reader(node)) fix(node.inputs[0]);
      } else if (passes(node)) {
        for (const ValueId id : node.inputs)
          if (id >= 0 && !g_.is_constant(id)) join(id, node.outputs[0]);
      } else {
        for (const ValueId id : node.inputs) fix(id);
        for (const ValueId id : node.outputs) fix(id);
      }
    }
    for (const Node& node : g_.nodes) propagate(node);
    drop_hardly_narrower();
    int shifted = 0;
    for (Node& node : g_.nodes) {
      const ValueId y = node.outputs.empty() ? kAbsent : node.outputs[0];
      if (source(node)) rewrite(node);
      shifted += y >= 0 && shifts(y) ? 1 : 0;
    }
    return shifted;
  }

 private:
  size_t root(ValueId id) {
    auto r = static_cast<size_t>(id);
    while (parent_[r] != r) r = parent_[r] = parent_[parent_[r]];
    return r;
  }
  void join(ValueId a, ValueId b) {
    const size_t x = root(a), y = root(b);
    parent_[x] = y;
    fixed_[y] = fixed_[y] || fixed_[x];
  }
  void fix(ValueId id) {
    if (id >= 0) fixed_[root(id)] = true;
  }
  bool shifts(ValueId id) { return id >= 0 && offsets_.contains(id) && !fixed_[root(id)]; }
  int64_t channels(ValueId id) const { return g_.value(id).dims.empty() ? 0 : g_.value(id).dims.back(); }

  static bool norm(const Node& node) {
    return node.as<LayerNormAttrs>() != nullptr || node.as<GroupNormAttrs>() != nullptr;
  }
  // What starts a stream: offsets go off its bias.
  bool source(const Node& node) const {
    const ValueId y = node.outputs.empty() ? kAbsent : node.outputs[0];
    if (y < 0 || g_.value(y).dtype != DType::kFloat32 || !g_.value(y).extents.empty()) return false;
    if (norm(node)) {
      for (size_t i = 1; i < node.inputs.size(); ++i)
        if (node.inputs[i] >= 0 &&
            (!g_.is_constant(node.inputs[i]) || g_.value(node.inputs[i]).constant->size() != channels(y)))
          return false;
      return true;
    }
    return product_weights(g_, node).has_value();
  }
  // And what ends it: its columns times the offsets go onto its bias.
  bool reader(const Node& node) const {
    if (norm(node) || node.as<ConvTransposeAttrs>() != nullptr) return false;
    const auto unpadded = [](const IntList& pads) {
      return std::all_of(pads.begin(), pads.end(), [](int64_t p) { return p == 0; });
    };
    if (const auto* conv = node.as<ConvAttrs>()) return unpadded(conv->pads);
    if (const auto* deep = node.as<DepthwiseConvAttrs>()) return unpadded(deep->pads);
    return true;
  }
  bool offsets(const Node& node) {
    const ValueId y = node.outputs[0];
    const auto p = product_weights(g_, node);
    if (p && (p->act_min != -kInfinity || p->act_max != kInfinity)) return false;
    const TensorSummary* seen = seen_.find(y);
    if (seen == nullptr || seen->not_finite > 0 || static_cast<int64_t>(seen->channels.size()) != channels(y))
      return false;
    Offsets& own = offsets_[y];
    for (const Moments& m : seen->channels)
      own.push_back(m.sum / static_cast<double>(std::max<uint64_t>(seen->channel_elements, 1)));
    return true;
  }

  // Operations that give y + f(t) for x + t, channel by channel of the last axis.
  bool passes(const Node& node) const {
    if (node.outputs.size() != 1 || !node.bodies.empty() || node.inputs.empty()) return false;
    const ValueId x = node.inputs[0], y = node.outputs[0];
    if (g_.value(y).dtype != DType::kFloat32 || g_.value(y).dims.empty() || x < 0 || g_.is_constant(x))
      return false;
    const auto last = static_cast<int64_t>(g_.value(x).dims.size()) - 1;
    switch (node.op()) {
      case Op::kAdd:
      case Op::kSub: {
        const ValueId other = node.inputs[1];
        if (!unclamped(node.as<AddAttrs>()) && !unclamped(node.as<SubAttrs>())) return false;
        return channels(x) == channels(y) && (g_.is_constant(other) || channels(other) == channels(y));
      }
      case Op::kCopy:
      case Op::kMaxPool:
        return true;
      case Op::kAvgPool: {
        const auto& pads = node.as<AvgPoolAttrs>()->pads;
        return node.as<AvgPoolAttrs>()->count_include_pad == 0 ||
               std::all_of(pads.begin(), pads.end(), [](int64_t p) { return p == 0; });
      }
      case Op::kReduce: {
        const auto& a = *node.as<ReduceAttrs>();
        const auto fn = static_cast<ReduceFn>(a.fn);
        return (fn == ReduceFn::kMean || fn == ReduceFn::kMax || fn == ReduceFn::kMin) &&
               std::find(a.axes.begin(), a.axes.end(), last) == a.axes.end() && channels(x) == channels(y);
      }
      case Op::kTranspose: {
        const auto& perm = node.as<TransposeAttrs>()->perm;
        return perm[static_cast<int>(last)] == last;
      }
      case Op::kView:
        return node.as<ViewAttrs>()->dtype < 0 && channels(y) % channels(x) == 0;
      case Op::kConcat:
        return std::none_of(node.inputs.begin(), node.inputs.end(),
                            [&](ValueId id) { return g_.is_constant(id); });
      case Op::kSlice:
        return true;
      default:
        return false;
    }
  }

  // Offsets of what passes them on.
  void propagate(const Node& node) {
    if (source(node) || !passes(node)) return;
    const ValueId y = node.outputs[0];
    if (fixed_[root(y)]) return;
    for (const ValueId id : node.inputs)
      if (id >= 0 && !g_.is_constant(id) && !offsets_.contains(id)) return fix(y);
    const Offsets& first = offsets_[node.inputs[0]];
    Offsets own = first;
    if (node.as<ViewAttrs>() != nullptr) {
      own.resize(static_cast<size_t>(channels(y)));
      for (size_t i = 0; i < own.size(); ++i) own[i] = first[i % first.size()];
    } else if (const auto* slice = node.as<SliceAttrs>()) {
      const int last = slice->starts.size() - 1;
      own.resize(static_cast<size_t>(channels(y)));
      for (size_t i = 0; i < own.size(); ++i)
        own[i] =
            first[static_cast<size_t>(slice->starts[last] + static_cast<int64_t>(i) * slice->steps[last])];
    } else if (const auto* concat = node.as<ConcatAttrs>()) {
      const bool channelwise = concat->axis + 1 == static_cast<int64_t>(g_.value(y).dims.size());
      for (size_t i = 1; i < node.inputs.size(); ++i) {
        const Offsets& next = offsets_[node.inputs[i]];
        // One after the other all have the same.
        if (!channelwise && next != first) return fix(y);
        if (channelwise) own.insert(own.end(), next.begin(), next.end());
      }
    } else if (node.inputs.size() > 1 && !g_.is_constant(node.inputs[1]) &&
               (node.as<AddAttrs>() || node.as<SubAttrs>())) {
      const Offsets& other = offsets_[node.inputs[1]];
      for (size_t i = 0; i < own.size(); ++i) own[i] += node.as<SubAttrs>() != nullptr ? -other[i] : other[i];
    }
    offsets_[y] = std::move(own);
  }

  // The mean of how much narrower a stream's tensors become, in the logarithm.
  void drop_hardly_narrower() {
    std::map<size_t, std::pair<double, int>> widths;
    for (const auto& [id, own] : offsets_) {
      const TensorSummary* seen = seen_.find(id);
      if (!shifts(id) || seen == nullptr || seen->channels.size() != own.size()) continue;
      double low = 0, high = 0, least = 0, most = 0;
      for (size_t c = 0; c < own.size(); ++c) {
        low = std::min<double>(low, seen->channels[c].min),
        high = std::max<double>(high, seen->channels[c].max);
        least = std::min(least, seen->channels[c].min - own[c]),
        most = std::max(most, seen->channels[c].max - own[c]);
      }
      auto& [sum, count] = widths[root(id)];
      if (high > low && most > least) sum += std::log((most - least) / (high - low)), ++count;
    }
    for (size_t r = 0; r < fixed_.size(); ++r) {
      const auto at = widths.find(r);
      if (at == widths.end() || at->second.second == 0 ||
          at->second.first / at->second.second > std::log(kNarrower))
        fixed_[r] = true;
    }
  }

  void rewrite(Node& node) {
    const ValueId x = node.inputs[0], y = node.outputs[0];
    const bool in = !norm(node) && shifts(x), out = shifts(y);
    if (!in && !out) return;
    Offsets bias(static_cast<size_t>(channels(y)), 0.0);
    if (node.inputs.size() > 2 && node.inputs[2] >= 0) bias = g_.value(node.inputs[2]).constant->as_doubles();
    if (in) {
      const auto p = product_weights(g_, node);
      const std::vector<double> w = p->weights->as_doubles();
      for (size_t i = 0; i < w.size(); ++i) {
        const auto k = static_cast<int64_t>(i);
        bias[static_cast<size_t>(p->row(k))] += w[i] * offsets_[x][static_cast<size_t>(p->column(k))];
      }
    }
    for (size_t i = 0; out && i < bias.size(); ++i) bias[i] -= offsets_[y][i];
    set_weights(g_, node, nullptr, &bias);
  }

  Graph& g_;
  const Observations& seen_;
  std::vector<size_t> parent_;
  std::vector<bool> fixed_;
  std::map<ValueId, Offsets> offsets_;
};

}  // namespace

int shift_channels(Graph& graph, const Observations& seen) { return Shift(graph, seen).run(); }

}  // namespace sinter::convert
