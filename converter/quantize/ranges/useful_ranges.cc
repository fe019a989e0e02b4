#include "converter/quantize/ranges/useful_ranges.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "converter/ir/op_traits.h"
#include "converter/passes/integers/integer_form.h"
#include "converter/quantize/integers/table_functions.h"
#include "converter/quantize/ranges/calibrators.h"

namespace sinter::convert {
namespace {

constexpr int64_t kPoints = 2048;
constexpr int64_t kCuts = 48;           // that are tried on either side
constexpr double kWorthCutting = 0.95;  // what is left of the noise
constexpr double kShiftCosts = 32;      // of noise that is the same for many elements
constexpr double kFlat = 1.0 / 8192;    // of the range of a result; more of it shifts the means of channels
constexpr Range kAll{-kInfinity, kInfinity};

class Useful {
 public:
  Useful(const Graph& g, Cut cut, const Observations& seen)
      : g_(g), cut_(cut), seen_(seen), roots_(function_roots(g)), uses_(g) {
    for (size_t n = 0; n < g.nodes.size(); ++n)
      if (const ValueId root = root_of(static_cast<int>(n)); root != kAbsent) members_[root].push_back(n);
  }

  std::map<ValueId, Range> find() {
    std::map<ValueId, Range> useful;
    const auto take = [&](ValueId id) {
      const Range r = range_of(id, useful);
      if (r.low != -kInfinity || r.high != kInfinity) useful[id] = r;
    };
    for (size_t n = g_.nodes.size(); n-- > 0;)
      for (const ValueId id : g_.nodes[n].outputs)
        if (id >= 0) take(id);
    for (const ValueId id : g_.inputs) take(id);
    return useful;
  }

 private:
  // The root of the function that node n is part of.
  ValueId root_of(int n) const {
    const Node& node = g_.nodes[static_cast<size_t>(n)];
    if (node.outputs.size() != 1 || node.outputs[0] < 0) return kAbsent;
    const ValueId root = roots_[static_cast<size_t>(node.outputs[0])];
    return root == node.outputs[0] ? kAbsent : root;
  }

  // The union of what its readers need.
  Range range_of(ValueId id, const std::map<ValueId, Range>& useful) const {
    if (g_.value(id).dtype != DType::kFloat32 || roots_[static_cast<size_t>(id)] != id) return kAll;
    const auto& readers = uses_.readers[static_cast<size_t>(id)];
    Range result{0, 0};
    const auto need = [&](const Range& r) {
      result = {std::min(result.low, r.low), std::max(result.high, r.high)};
    };
    bool function = false;
    for (const int n : readers) {
      if (n < 0) return kAll;
      const Node& node = g_.nodes[static_cast<size_t>(n)];
      if (root_of(n) == id) {
        function = true;
      } else if (picks(node) && node.inputs[0] == id && useful.contains(node.outputs[0])) {
        need(useful.at(node.outputs[0]));
      } else {
        return kAll;
      }
    }
    if (function) need(of_functions(id));
    return readers.empty() ? kAll : result;
  }

  // Clipping before a movement equals clipping after it.
  bool picks(const Node& node) const {
    return selected_operands(node) == 1 && node.outputs.size() == 1 &&
           !(node.as<PadAttrs>() != nullptr && node.inputs.size() > 1);
  }

  // The cut with which the results of the functions of `root` differ least from what they are, after all
  // roundings.
  Range of_functions(ValueId root) const {
    const TensorSummary* s = seen_.find(root);
    const auto members = members_.find(root);
    if (s == nullptr || members == members_.end() || s->elements == 0 || s->not_finite > 0) return kAll;
    const Range whole{std::min(0.0, static_cast<double>(s->all.min)),
                      std::max(0.0, static_cast<double>(s->all.max))};
    if (!(whole.high > whole.low)) return kAll;
    std::vector<float> points;
    for (int64_t i = 0; i < kPoints; ++i)
      points.push_back(
          static_cast<float>(whole.low + (whole.high - whole.low) * static_cast<double>(i) / (kPoints - 1)));
    std::map<ValueId, ConstantPtr> known = {{root, Constant::of<float>(DType::kFloat32, {kPoints}, points)}};
    std::vector<Result> made;
    for (const size_t n : members->second) {
      const Node& node = g_.nodes[n];
      std::vector<ConstantPtr> inputs, results;
      for (const ValueId id : node.inputs)
        inputs.push_back(g_.is_constant(id) ? g_.value(id).constant->reshaped({}) : known[id]);
      if (std::find(inputs.begin(), inputs.end(), nullptr) != inputs.end() ||
          !evaluate(node.attrs, inputs, 1, &results, false).ok() || results[0]->size() != kPoints)
        return kAll;
      known[node.outputs[0]] = results[0];
      const auto& readers = uses_.readers[static_cast<size_t>(node.outputs[0])];
      if (std::all_of(readers.begin(), readers.end(), [&](int r) { return r >= 0 && root_of(r) == root; }))
        continue;
      if (!is_float(results[0]->dtype())) return kAll;
      made.push_back({results[0]->as_doubles(), 0});
    }
    std::vector<double> weights(kPoints, 0);
    for (const Histogram::Bin& bin : s->histogram.bins) {
      const double at = ((bin.low + bin.high) / 2 - whole.low) / (whole.high - whole.low) * (kPoints - 1);
      weights[static_cast<size_t>(std::clamp(std::nearbyint(at), 0.0, kPoints - 1.0))] +=
          static_cast<double>(bin.count);
    }
    for (Result& r : made) {
      if (!std::all_of(r.f.begin(), r.f.end(), [](double v) { return std::isfinite(v); })) return kAll;
      const auto [low, high] = std::minmax_element(r.f.begin(), r.f.end());
      r.step = (*high - *low) / 255;
      if (!(r.step > 0)) return kAll;
    }
    const auto noise = [&](int64_t low, int64_t high) {
      if (cut_ == Cut::kFlat)
        return std::all_of(made.begin(), made.end(), [&](const Result& r) { return r.flat(low, high); })
                   ? static_cast<double>(high - low)
                   : kInfinity;
      double sum = 0;
      for (const Result& r : made) sum += r.noise(weights, low, high);
      return sum;
    };
    const auto zero =
        static_cast<int64_t>(std::nearbyint(-whole.low / (whole.high - whole.low) * (kPoints - 1)));
    int64_t low = 0, high = kPoints - 1;
    double best = noise(low, high) * kWorthCutting;
    for (const bool below : {true, false})
      for (int64_t k = 1; k <= kCuts; ++k) {
        const int64_t l = below ? zero * k / kCuts : low,
                      h = below ? high : kPoints - 1 - (kPoints - 1 - zero) * k / kCuts;
        if (h <= l) continue;
        if (const double now = noise(l, h); now < best) best = now, low = l, high = h;
      }
    return {low == 0 ? -kInfinity : points[static_cast<size_t>(low)],
            high == kPoints - 1 ? kInfinity : points[static_cast<size_t>(high)]};
  }

  // A function at the points, and the step that its result is rounded to.
  struct Result {
    std::vector<double> f;
    double step = 0;

    // Whether all below and all above is what it is there.
    bool flat(int64_t low, int64_t high) const {
      const double tolerated = step * 255 * kFlat;
      for (int64_t i = 0; i < kPoints; ++i)
        if (std::fabs(f[static_cast<size_t>(i)] - f[static_cast<size_t>(std::clamp(i, low, high))]) >
            tolerated)
          return false;
      return true;
    }
    double rounded(double v) const { return std::nearbyint(v / step) * step; }
    // Mean square error in the result's steps if only points low .. high are distinguished, in 255 steps.
    // Errors that are equal for many elements add up further on.
    double noise(const std::vector<double>& weights, int64_t low, int64_t high) const {
      const double spread = static_cast<double>(high - low) / 255;  // of a step of x, in points
      double squares = 0, shift = 0, total = 0;
      for (int64_t i = 0; i < kPoints; ++i) {
        const auto at = static_cast<size_t>(i), end = static_cast<size_t>(std::clamp(i, low, high));
        if (weights[at] == 0) continue;
        total += weights[at];
        if (end != at) {
          const double e = rounded(f[end]) - rounded(f[at]);
          squares += weights[at] * e * e, shift += weights[at] * e;
        } else {
          const auto before = static_cast<size_t>(std::max<int64_t>(i - 1, 0)),
                     behind = static_cast<size_t>(std::min<int64_t>(i + 1, kPoints - 1));
          const double slope = (f[behind] - f[before]) / static_cast<double>(behind - before) * spread;
          squares += weights[at] * slope * slope / 12;
        }
      }
      if (total == 0) return 0;
      shift /= total;
      return (squares / total + kShiftCosts * shift * shift) / (step * step);
    }
  };

  const Graph& g_;
  const Cut cut_;
  const Observations& seen_;
  const std::vector<ValueId> roots_;
  const Uses uses_;
  std::map<ValueId, std::vector<size_t>> members_;
};

void cut(TensorSummary* s, const Range& range) {
  const auto inside = [&](auto x) {
    return static_cast<decltype(x)>(std::clamp(static_cast<double>(x), range.low, range.high));
  };
  s->all.min = inside(s->all.min), s->all.max = inside(s->all.max);
  s->average_min = inside(s->average_min), s->average_max = inside(s->average_max);
  for (float& x : s->maxima) x = inside(x);
  for (float& x : s->negated_minima) x = -inside(-x);
  std::vector<Histogram::Bin> bins;
  for (Histogram::Bin bin : s->histogram.bins) {
    bin.low = inside(bin.low), bin.high = inside(bin.high);
    if (!bins.empty() && bins.back().low == bin.low && bins.back().high == bin.high)
      bins.back().count += bin.count;
    else
      bins.push_back(bin);
  }
  s->histogram.bins = std::move(bins);
}

}  // namespace

void cut_to_useful(const Graph& graph, Cut how, Observations* seen) {
  if (how == Cut::kNone) return;
  for (const auto& [id, range] : Useful(graph, how, *seen).find())
    if (const auto at = seen->values.find(id); at != seen->values.end()) cut(&at->second, range);
}

}  // namespace sinter::convert
