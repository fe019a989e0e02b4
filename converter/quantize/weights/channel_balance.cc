#include "converter/quantize/weights/channel_balance.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "converter/ir/op_traits.h"
#include "converter/passes/integers/integer_form.h"
#include "converter/quantize/weights/product_inputs.h"
#include "converter/quantize/weights/product_weights.h"

namespace sinter::convert {
namespace {

constexpr int64_t kMostRows = 128;  // of one product that are used
constexpr double kFloor = 1e-3;     // channels that are smaller than this part of the largest count as this
// The largest of few numbers is weak evidence for the next ones, by a factor of 1 + kUnsure / sqrt(n).
// Numbers of one sample are alike, so that not more than kApart of each count.
constexpr double kUnsure = 6, kApart = 16;
constexpr double kActivation = 1.0 / (12 * 255.0 * 255.0), kWeight = 1.0 / (12 * 127.0 * 127.0);

// Mean squares of a value's channels, from their extremes and means, so that the tensor's is what it was.
std::vector<double> powers(const TensorSummary& seen) {
  std::vector<double> result;
  const double n = static_cast<double>(std::max<uint64_t>(seen.channel_elements, 1));
  double total = 0;
  for (const Moments& m : seen.channels) {
    const double mean = m.sum / n, spread = (static_cast<double>(m.max) - m.min) / 6;
    result.push_back(mean * mean + spread * spread);
    total += result.back();
  }
  const double known = seen.histogram.mean_square() * static_cast<double>(result.size());
  const double factor = total > 0 && known > 0 ? std::clamp(known / total, 0.05, 20.0) : 1;
  for (double& p : result) p *= factor;
  return result;
}

}  // namespace

ChannelBalance::ChannelBalance(const Graph& graph, const ChannelScales& channels, const Observations& seen)
    : channels_(channels), groups_(channels.groups().size()), importance_(groups_.size(), 0) {
  for (const Node& node : graph.nodes) {
    // Results of operations that only move the channels of one value are not rounded again.
    if (node.outputs.size() == 1 && selected_operands(node) != 1) look(graph, seen, node.outputs[0]);
    read(graph, node, seen);
  }
  for (Group& g : groups_)
    if (g.dense > 0) g.column = std::sqrt(g.column);
}

void ChannelBalance::look(const Graph&, const Observations& seen, ValueId id) {
  const std::vector<int> own = channels_.of(id);
  const TensorSummary* summary = seen.find(id);
  if (own.empty() || summary == nullptr || summary->channels.size() != own.size()) return;
  const auto samples = static_cast<double>(std::max<uint64_t>(summary->samples, 1));
  const double apart =
      samples * std::clamp(static_cast<double>(summary->channel_elements) / samples, 1.0, kApart);
  Tensor tensor;
  double low = 0, high = 0;
  for (size_t c = 0; c < own.size(); ++c) {
    const Moments& m = summary->channels[c];
    tensor.push_back({own[c], std::min<double>(m.min, 0), std::max<double>(m.max, 0)});
    low = std::min(low, tensor.back().low), high = std::max(high, tensor.back().high);
  }
  if (!(high > low) || !std::isfinite(high - low)) return;
  for (const Channel& c : tensor) {
    Group& group = groups_[static_cast<size_t>(c.group)];
    group.range = std::max(group.range, std::max(-c.low, c.high) / std::max(-low, high));
    group.headroom = std::max(group.headroom, 1 + kUnsure / std::sqrt(apart));
  }
  tensors_.push_back(std::move(tensor));
}

void ChannelBalance::read(const Graph& graph, const Node& node, const Observations& seen) {
  const auto p = product_weights(graph, node);
  if (!p) return;
  const std::vector<int> own = channels_.of(node.inputs[0]);
  const TensorSummary* summary = seen.find(node.inputs[0]);
  if (std::all_of(own.begin(), own.end(), [](int g) { return g == 0; })) return;
  const bool known = summary != nullptr && summary->channels.size() == own.size();
  const std::vector<double> x2 = known ? powers(*summary) : std::vector<double>(own.size(), 1.0);
  const std::vector<double> w = p->weights->as_doubles();
  const int64_t stride = std::max<int64_t>(1, p->depthwise ? 1 : p->rows / kMostRows);
  std::vector<int> once = own;
  std::sort(once.begin(), once.end());
  once.erase(std::unique(once.begin(), once.end()), once.end());
  std::vector<size_t> place;  // of each column's group in `once`
  for (const int g : own)
    place.push_back(static_cast<size_t>(std::lower_bound(once.begin(), once.end(), g) - once.begin()));
  const auto looked = static_cast<double>((p->rows + stride - 1) / stride);
  struct Entry {
    double largest, squares, power;  // of the weights; number of weights times the input's mean square
  };
  std::vector<Entry> entries(once.size());
  std::vector<bool> there(once.size());
  const Columns* columns = nullptr;  // of the rows so far that begin at the same one
  for (int64_t row = 0, before = -1; row < p->rows; row += stride) {
    for (size_t k = 0; k < once.size(); ++k) entries[k] = {}, there[k] = false;
    double signal = 0;
    const int64_t first = p->first_column(row);
    int64_t column = first;
    for (int64_t i = 0; i < row_length(*p); ++i) {
      const double item = w[static_cast<size_t>(element(*p, row, i))],
                   power = x2[static_cast<size_t>(column)];
      const size_t k = place[static_cast<size_t>(column)];
      Entry& e = entries[k];
      there[k] = true;
      e.largest = std::max(e.largest, std::fabs(item));
      e.squares += item * item;
      e.power += power;
      signal += item * item * power;
      if (!p->depthwise && ++column == first + p->each) column = first;
    }
    if (!(signal > 0)) continue;
    if (columns == nullptr || first != before) {
      Columns own_columns;
      for (size_t k = 0; k < once.size(); ++k)
        if (there[k]) own_columns.push_back({once[k], entries[k].power});
      columns = columns_.emplace_back(std::make_unique<const Columns>(std::move(own_columns))).get();
      before = first;
    }
    Row result{1 / (signal * looked), columns, {}};
    result.largest.reserve(columns->size());
    double largest = 0;
    for (size_t k = 0; k < once.size(); ++k) {
      const Entry& e = entries[k];
      if (!there[k]) continue;
      result.largest.push_back(static_cast<float>(e.largest));
      largest = std::max(largest, e.largest);
      importance_[static_cast<size_t>(once[k])] += e.squares * result.share;
    }
    for (size_t k = 0; k < once.size() && !p->depthwise; ++k)
      if (const double own_largest = entries[k].largest; there[k])
        groups_[static_cast<size_t>(once[k])].column +=
            own_largest * own_largest / (largest * largest * looked);
    rows_.push_back(std::move(result));
  }
  for (const int g : once) {
    Group& group = groups_[static_cast<size_t>(g)];
    (p->depthwise ? group.depthwise : group.dense) += 1;
    group.connected += node.as<FullyConnectedAttrs>() != nullptr ? 1 : 0;
  }
}

std::vector<ChannelBalance::Part> ChannelBalance::parts() const {
  std::vector<int> parent(groups_.size());
  std::iota(parent.begin(), parent.end(), 0);
  const auto root = [&](int g) {
    while (parent[static_cast<size_t>(g)] != g)
      g = parent[static_cast<size_t>(g)] = parent[static_cast<size_t>(parent[static_cast<size_t>(g)])];
    return g;
  };
  const auto join = [&](const auto& list) {
    int first = 0;
    for (const auto& item : list) {
      if (item.group == 0) continue;
      if (first == 0) first = item.group;
      parent[static_cast<size_t>(root(item.group))] = root(first);
    }
    return first;
  };
  for (const Tensor& t : tensors_) join(t);
  for (const auto& columns : columns_) join(*columns);
  std::map<int, Part> found;
  for (const Tensor& t : tensors_)
    if (const int g = join(t); g != 0) found[root(g)].tensors.push_back(&t);
  for (const Row& r : rows_)
    if (const int g = join(*r.columns); g != 0) found[root(g)].rows.push_back(&r);
  for (size_t g = 1; g < groups_.size(); ++g)
    if (const auto at = found.find(root(static_cast<int>(g))); at != found.end())
      at->second.groups.push_back(static_cast<int>(g));
  std::vector<Part> result;
  for (auto& [g, part] : found) result.push_back(std::move(part));
  return result;
}

double ChannelBalance::noise(const Part& part, const std::vector<double>& scales) const {
  double total = 0;
  for (const Tensor* t : part.tensors) {
    double low = 0, high = 0, weight = 0;
    for (const Channel& c : *t) {
      const double s = scales[static_cast<size_t>(c.group)];
      low = std::min(low, c.low / s), high = std::max(high, c.high / s);
      weight += s * s * importance_[static_cast<size_t>(c.group)];
    }
    total += kActivation * (high - low) * (high - low) * weight;
  }
  for (const Row* r : part.rows) {
    double largest = 0, power = 0;
    for (size_t k = 0; k < r->largest.size(); ++k) {
      const Column& c = (*r->columns)[k];
      const double s = scales[static_cast<size_t>(c.group)];
      largest = std::max(largest, static_cast<double>(r->largest[k]) * s);
      power += c.power / (s * s);
    }
    total += kWeight * largest * largest * power * r->share;
  }
  return total;
}

std::vector<double> ChannelBalance::best(const std::vector<bool>& may_change,
                                         const std::vector<double>& alphas, double gain) const {
  std::vector<double> scales(groups_.size(), 1.0);
  for (const Part& part : parts()) {
    std::vector<int> groups;
    double widest = 0, tallest = 0;
    bool limited = false;
    for (const int g : part.groups) {
      const Group& group = groups_[static_cast<size_t>(g)];
      limited |= channels_.groups()[static_cast<size_t>(g)].most < kInfinity;
      widest = std::max(widest, group.range), tallest = std::max(tallest, group.column);
      if (may_change[static_cast<size_t>(g)]) groups.push_back(g);
      limited |= !may_change[static_cast<size_t>(g)];
    }
    const auto fixed = [](const auto& list) {
      return std::any_of(list.begin(), list.end(), [](const auto& item) { return item.group == 0; });
    };
    for (const Tensor* t : part.tensors) limited |= fixed(*t);
    for (const Row* r : part.rows) limited |= fixed(*r->columns);
    if (groups.size() < 2 && !limited) continue;
    if (groups.empty() || !(widest > 0)) continue;
    const double before = noise(part, scales);
    double least = before * gain;
    std::vector<double> chosen, trial = scales;
    for (const double alpha : alphas) {
      std::vector<double> base;
      double largest = 0;
      for (const int g : groups) {
        const Group& group = groups_[static_cast<size_t>(g)];
        // A channel that was never observed may hold anything.
        const double range =
            group.range > 0 ? std::clamp(group.range / widest * group.headroom, kFloor, 1.0) : 1;
        const double column = tallest > 0 ? std::max(group.column / tallest, kFloor) : 1;
        base.push_back(std::pow(range, tallest > 0 ? alpha : 1) / std::pow(column, 1 - alpha));
        largest = std::max(largest, base.back());
      }
      // Where something beside them keeps its scale, their size matters too.
      for (double size = 1; size < (limited ? 1025.0 : 1.5); size *= 2) {
        for (size_t i = 0; i < groups.size(); ++i) {
          const auto& limits = channels_.groups()[static_cast<size_t>(groups[i])];
          trial[static_cast<size_t>(groups[i])] =
              std::clamp(base[i] / largest * size, limits.least, limits.most);
        }
        const double now = noise(part, trial);
        if (!(now < least)) continue;
        least = now, chosen = trial;
      }
    }
    if (!chosen.empty())
      for (const int g : groups) scales[static_cast<size_t>(g)] = chosen[static_cast<size_t>(g)];
  }
  return scales;
}

}  // namespace sinter::convert
