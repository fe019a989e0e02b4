#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <set>
#include <string>

#include "converter/quantize/quantizer.h"

namespace sinter::convert {
namespace {

constexpr double kSame = 1e-3;  // of a channel's reach: it is what it was
// A float graph and what half of the samples makes of it.
struct Attempt {
  Graph graph;
  std::shared_ptr<const Observations> seen;
};

}  // namespace

bool Quantizer::rewrite() {
  const std::vector<Turn> list = turns(phase::kRewriting, trials_->size());
  const auto observe = [&](Attempt& a) {
    if (!a.seen) a.seen = std::make_shared<const Observations>(observe_half(a.graph));
  };
  // The count of channel groups that changed.
  const auto apply = [&](const Turn& turn, Attempt& a) {
    observe(a);
    const int groups = turn.rewriting(a.graph, *a.seen);
    if (groups > 0) a.seen = nullptr, work_.add_new_weights();
    return groups;
  };
  const auto worth = [&](Attempt& a) {
    observe(a);
    return measured(on_half(a.graph, *a.seen, asked_rule()), Part::kOdd);
  };
  Attempt now{plan_.graph, half()}, all;
  size_t in_all = 0;  // of the list
  double first = 0, best = 0;
  std::set<std::string> kept, possible;
  std::vector<TechniqueGain> gains;
  for (size_t i = 0; i < list.size(); ++i) {
    const char* const name = list[i].technique->name;
    Attempt changed = now;
    const int groups = apply(list[i], changed);
    if (groups == 0) continue;
    if (gains.empty()) first = best = worth(now);
    TechniqueGain gain{name, fmt::format("{} groups of channels", groups), best, worth(changed), false};
    gain.kept = gain.after_db > best + kWorthRewriting;
    gains.push_back(gain);
    if (possible.empty()) all = changed, in_all = i + 1;
    possible.insert(name);
    if (!gain.kept) continue;
    kept.insert(name);
    now = std::move(changed), best = gain.after_db;
  }
  if (possible.size() > kept.size() && possible.size() > 1) {
    for (; in_all < list.size(); ++in_all) apply(list[in_all], all);
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
  for (const Turn& turn : list)
    if (kept.contains(turn.technique->name))
      turn.rewriting(plan_.graph, trials_->observe(plan_.graph, observable_values(plan_.graph), true));
  half_.reset();
  work_.add_new_weights();
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
