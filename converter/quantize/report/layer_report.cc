#include "converter/quantize/report/layer_report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "converter/ir/op_traits.h"
#include "converter/passes/integers/integer_form.h"

namespace sinter::convert {
namespace {

constexpr size_t kReportBins = 64;
constexpr uint64_t kMostCopied = uint64_t{1} << 30;  // bytes of one sample's exact values

// A value of the rounded graph and its exact counterpart.
struct Pair {
  ValueId rounded = kAbsent, exact = kAbsent;
  const Node* node = nullptr;  // that gives it
  std::optional<QuantParams> params;
  bool moved = false, shown = true, rescaled = false;
  NoiseMeter noise{0}, own{0};
  std::unique_ptr<TensorStatistics> statistics;
};

std::vector<Pair> pairs_of(const Graph& exact, const Graph& rounded) {
  std::map<std::string, ValueId> by_name;
  for (const ValueId id : observable_values(exact)) by_name.emplace(exact.value(id).name, id);
  std::vector<Pair> pairs;
  std::set<std::string> seen;
  uint64_t bytes = 0;
  for (const Node& node : rounded.nodes)
    for (const ValueId id : node.outputs) {
      if (id < 0 || rounded.value(id).constant) continue;
      const Value& v = rounded.value(id);
      bool rescaled = false;
      const std::string name = exact_name(v.name, &rescaled);
      const auto at = by_name.find(name);
      const bool integers = v.scale > 0 && quant_range(v.dtype).max != 0;
      if (name.empty() || at == by_name.end() || (!integers && v.dtype != DType::kFloat32)) continue;
      const Value& x = exact.value(at->second);
      bytes += sizeof(float) * static_cast<uint64_t>(element_count(x.dims));
      if (x.dims != v.dims || x.order != v.order || !x.bounded_dims.empty() || bytes > kMostCopied) continue;
      Pair pair;
      pair.rounded = id, pair.exact = at->second, pair.node = &node;
      if (integers) pair.params = QuantParams{v.dtype, v.scale, v.zero_point};
      pair.rescaled = rescaled;
      pair.moved = selected_operands(node) > 0;
      pair.shown = seen.insert(name).second || node.as<DequantizeAttrs>() == nullptr;
      const int64_t channels = v.dims.empty() ? 0 : v.dims.back();
      pair.noise = pair.own = NoiseMeter(channels, pair.params, rescaled);
      pair.statistics = std::make_unique<TensorStatistics>();
      pairs.push_back(std::move(pair));
    }
  return pairs;
}

}  // namespace

LinearBins linear_bins(const Histogram& histogram, double low, double high, size_t count) {
  LinearBins out{low, high, std::vector<double>(count, 0)};
  if (!(high > low) || count == 0) return out;
  const double width = (high - low) / static_cast<double>(count);
  const auto index = [&](double x) {
    return static_cast<size_t>(std::clamp((x - low) / width, 0.0, static_cast<double>(count - 1)));
  };
  for (const Histogram::Bin& bin : histogram.bins) {
    const size_t first = index(bin.low), last = index(bin.high);
    for (size_t i = first; i <= last; ++i) {
      // The part of the bin that is here.
      const double from = i == first ? bin.low : low + width * static_cast<double>(i);
      const double to = i == last ? bin.high : low + width * static_cast<double>(i + 1);
      const double part = bin.high > bin.low ? (to - from) / (bin.high - bin.low) : 1;
      out.counts[i] += part * static_cast<double>(bin.count);
    }
  }
  return out;
}

std::vector<LayerReport> report_layers(const Graph& exact, const Graph& rounded, SampleSource& samples,
                                       const LayerReportOptions& options) {
  std::vector<Pair> pairs = pairs_of(exact, rounded);
  std::map<ValueId, Pair*> by_rounded;
  std::multimap<ValueId, Pair*> by_exact;
  std::vector<ValueId> watched_exact, watched_rounded;
  for (Pair& p : pairs) {
    by_rounded[p.rounded] = &p, by_exact.emplace(p.exact, &p);
    watched_exact.push_back(p.exact), watched_rounded.push_back(p.rounded);
  }
  GraphRunner a(exact, options.runner), b(rounded, options.runner);
  a.watch(watched_exact);
  b.watch(watched_rounded);
  std::map<ValueId, std::vector<double>> numbers;
  std::vector<double> y, held;
  bool forcing = false;
  const auto keep = [&](ValueId id, const TensorView& v) {
    read_numbers(v, std::nullopt, &numbers[id]);
    const auto [first, last] = by_exact.equal_range(id);
    for (auto at = first; at != last; ++at) {
      if (at->second->rescaled) continue;
      const auto n = static_cast<size_t>(v.size());
      if (v.dtype == DType::kFloat32)
        at->second->statistics->add(std::span<const float>(v.as<float>(), n));
      else
        at->second->statistics->add(std::span<const double>(v.as<double>(), n));
    }
  };
  const auto look = [&](ValueId id, const TensorView& v) {
    Pair& p = *by_rounded.at(id);
    const auto at = numbers.find(p.exact);
    if (at == numbers.end()) return;
    std::vector<double>& x = at->second;
    read_numbers(v, p.params, &y);
    if (!forcing) {
      p.noise.add(x, y);
      if (!p.rescaled || !p.noise.certain()) return;
      held = x;
      p.noise.rescale(held);
      p.statistics->add(std::span<const double>(held));
    } else if (!p.moved) {
      p.own.add(x, y);
      if (p.own.result().scaled() || !p.noise.certain()) return;
      held = x;
      p.noise.rescale(held);
      write_numbers(v, p.params, held);
    }
  };
  samples.rewind();
  Sample sample;
  const int64_t total =
      samples.count() < 0 ? options.most_samples : std::min(samples.count(), options.most_samples);
  for (int64_t done = 0; done < options.most_samples && samples.next(&sample); ++done) {
    a.run(sample, keep);
    for (const bool force : {false, true}) {
      forcing = force;
      b.run(sample, look);
    }
    if (options.progress) options.progress(phase::kMeasuringLayers, done + 1, total, std::nullopt);
  }
  std::vector<LayerReport> result;
  for (Pair& p : pairs) {
    if (!p.shown || p.statistics->samples() == 0 || !p.noise.certain()) continue;
    LayerReport r;
    r.held_as = rounded.value(p.rounded).name, r.value = exact_name(r.held_as);
    r.node = p.node->name, r.op = op_info(p.node->op())->name, r.dtype = rounded.value(p.rounded).dtype;
    r.noise = p.noise.result();
    if (!p.moved && !r.noise.scaled()) r.own_db = p.own.result().db();
    const TensorSummary seen = p.statistics->summary();
    double low = static_cast<double>(seen.all.min), high = static_cast<double>(seen.all.max);
    if (p.params) {
      const QuantRange range = quant_range(p.params->type);
      r.low = static_cast<double>(range.min - p.params->zero_point) * p.params->scale;
      r.high = static_cast<double>(range.max - p.params->zero_point) * p.params->scale;
      low = std::min(low, r.low), high = std::max(high, r.high);
    }
    r.bins = linear_bins(seen.histogram, low, high, kReportBins);
    result.push_back(std::move(r));
  }
  return result;
}

nlohmann::json to_json(const LayerReport& r) {
  const ValueNoise& n = r.noise;
  nlohmann::json json{{"value", r.value},
                      {"held_as", r.held_as},
                      {"node", r.node},
                      {"op", r.op},
                      {"type", dtype_name(r.dtype)},
                      {"sqnr_db", n.db()},
                      {"own_sqnr_db", r.own_db ? nlohmann::json(*r.own_db) : nlohmann::json()},
                      {"low", n.all.low},
                      {"high", n.all.high},
                      {"cause", cause_of(n)}};
  if (n.rescaled) json["rescaled"] = true;
  if (n.params) {
    json["scale"] = n.params->scale, json["zero_point"] = n.params->zero_point;
    json["levels"] = n.levels(), json["levels_used"] = n.levels_used();
    json["clipped"] = n.clipped_share();
    json["chosen_low"] = r.low, json["chosen_high"] = r.high;
  }
  if (const int64_t worst = n.channels.size() > 1 ? n.worst_channel() : -1; worst >= 0) {
    json["channels"] = n.channels.size();
    json["worst_channel"] = worst;
    json["worst_channel_sqnr_db"] = n.channels[static_cast<size_t>(worst)].db();
  }
  nlohmann::json counts = nlohmann::json::array();
  for (const double c : r.bins.counts) counts.push_back(std::round(c));
  json["histogram"] = {{"low", r.bins.low}, {"high", r.bins.high}, {"counts", counts}};
  return json;
}

}  // namespace sinter::convert
