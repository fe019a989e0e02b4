#include <fmt/format.h>

#include <cmath>
#include <set>
#include <string>

#include "converter/quantize/equalize.h"
#include "converter/quantize/quantizer.h"

namespace sinter::convert {
namespace {

constexpr double kSame = 1e-3;      // of a channel's reach: it is what it was
constexpr double kSmoothing = 0.5;  // the outliers' share that goes to the weights, as a power

}  // namespace

int Quantizer::apply(Rewriting function, Graph* graph, Part part) const {
  return function(*graph, trials_->observe(*graph, observable_values(*graph), true, part));
}

bool Quantizer::rewrite() {
  std::vector<std::pair<const char*, Rewriting>> list;
  for (const auto& [name, function] : std::initializer_list<std::pair<const char*, Rewriting>>{
           {"equalize", equalize},
           {"depthwise-scales", scale_before_depthwise},
           {"smooth", [](Graph&g, const Observations&seen) { return smooth(g, seen, kSmoothing); }}})
    if (enabled(name)) list.push_back({name, function});
  const auto worth = [&](const Graph& graph) { return measured(on_half(graph, asked_rule()), Part::kOdd); };
  Graph graph = plan_.graph, all = plan_.graph;
  double first = 0, best = 0;
  std::set<std::string> kept, possible;
  std::vector<TechniqueGain> gains;
  for (const auto& [name, function] : list) {
    Graph changed = graph;
    const int groups = apply(function, &changed, Part::kEven);
    if (groups == 0) continue;
    if (gains.empty()) first = best = worth(graph);
    TechniqueGain gain{name, fmt::format("{} groups of channels", groups), best, worth(changed), false};
    gain.kept = gain.after_db > best + kWorthRewriting;
    gains.push_back(gain);
    possible.insert(name);
    if (!gain.kept) continue;
    kept.insert(name);
    graph = std::move(changed), best = gain.after_db;
  }
  if (possible.size() > kept.size() && possible.size() > 1) {
    for (const auto& [name, function] : list) apply(function, &all, Part::kEven);
    if (const double db = worth(all); db > best + kWorthRewriting) {
      kept = possible;
      gains = {{gains[0].name, "", first, first, false}};
      gains[0].name = fmt::format("{}", fmt::join(possible, " + "));
      gains[0].after_db = db, gains[0].kept = true;
    }
  }
  summary_.techniques.insert(summary_.techniques.end(), gains.begin(), gains.end());
  if (kept.empty()) return false;
  // Once more, with all that is known.
  for (const auto& [name, function] : list)
    if (kept.contains(name)) apply(function, &plan_.graph, Part::kAll);
  rename_scaled();
  return true;
}

void Quantizer::rename_scaled() {
  const std::vector<ValueId> values = observable_values(exact_);
  const Observations before = trials_->observe(exact_, values, true),
                     after = trials_->observe(plan_.graph, values, true);
  for (const auto& [id, now] : after.values) {
    const TensorSummary* was = before.find(id);
    Value& value = plan_.graph.value(id);
    if (was == nullptr || value.name.empty() || plan_.graph.is_output(id) || plan_.graph.is_input(id))
      continue;
    bool same =
        was->channels.size() == now.channels.size() && was->all.max - now.all.max <= kSame * was->all.max;
    for (size_t c = 0; same && c < now.channels.size(); ++c) {
      const double reach = std::max(std::fabs(was->channels[c].min), std::fabs(was->channels[c].max));
      same = std::fabs(was->channels[c].min - now.channels[c].min) <= kSame * reach &&
             std::fabs(was->channels[c].max - now.channels[c].max) <= kSame * reach;
    }
    if (!same) value.name += ".scaled";
  }
}

}  // namespace sinter::convert
