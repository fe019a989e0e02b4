#include <fmt/format.h>

#include <cmath>
#include <set>

#include "converter/quantize/quantization.h"

namespace sinter::convert {
namespace {

constexpr double kSame = 1e-3;  // the share of a channel's reach below which a difference is none

// Returns the SQNR of the worst output with the ranges that one half of the kept samples gives a rewritten
// graph, on the other half.
double worth(const Quantization& q, const RewrittenGraph& rewritten) {
  QuantizationPlan plan;
  plan.graph = rewritten.graph;
  plan.left = q.plan.left;
  plan.recurrent = planned_layers(q, recurrent_scales(q, plan.graph, *rewritten.seen));
  plan.params = q.asked_rule().params(
      plan.graph, values_to_round(plan.graph, assign_roles(plan.graph, plan.left)), *rewritten.seen);
  return q.measured(plan, Part::kOdd);
}

// Returns whether the rewriting changed the graph.
bool apply(Quantization& q, Rewriting* rewriting, RewrittenGraph& to, int* groups) {
  *groups = rewriting(to.graph, *to.seen);
  if (*groups == 0) return false;
  q.work.add_new_weights();
  to.seen = std::make_shared<const Observations>(q.observe_half(to.graph));
  return true;
}

// Tries all rewritings together, because one alone may show nothing while another's noise is larger.
void rewrite_by_all(Quantization& q) {
  RewrittenGraph all{q.plan.graph, q.half_observations()};
  int groups = 0;
  for (Rewriting* rewriting : q.tried_rewritings) apply(q, rewriting, all, &groups);
  const double db = worth(q, all);
  if (!(db > q.now_db + phase::kRewriting.worth)) return;
  std::vector<TechniqueGain>& gains = q.summary.techniques;
  std::set<std::string> names;
  for (const TechniqueGain& gain : gains) names.insert(gain.name);
  gains = {{fmt::format("{}", fmt::join(names, " + ")), "", gains[0].before_db, db, true}};
  q.taken_rewritings = q.possible_rewritings;
}

// A value with other channels is not what the model calls by its name.
void rename_scaled(Quantization& q) {
  Graph& graph = q.plan.graph;
  const std::vector<ValueId> values = observable_values(q.exact);
  const Observations before = q.trials->observe(q.exact, values, true),
                     after = q.trials->observe(graph, values, true);
  for (const auto& [id, now] : after.values) {
    const TensorSummary* was = before.find(id);
    Value& value = graph.value(id);
    if (was == nullptr || value.name.empty() || graph.is_output(id) || graph.is_input(id)) continue;
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

}  // namespace

std::optional<Proposal> propose_rewriting(Quantization& q, Rewriting* rewriting) {
  q.tried_rewritings.push_back(rewriting);
  const auto changed = std::make_shared<RewrittenGraph>(q.rewritten);
  int groups = 0;
  if (!apply(q, rewriting, *changed, &groups)) return std::nullopt;
  if (q.possible_rewritings.empty()) q.now_db = worth(q, q.rewritten);
  q.possible_rewritings.push_back(rewriting);
  return Proposal{fmt::format("{} groups of channels", groups), worth(q, *changed), [&q, changed, rewriting] {
                    q.rewritten = std::move(*changed);
                    q.taken_rewritings.push_back(rewriting);
                    return true;
                  }};
}

bool rewrite_graph(Quantization& q) {
  if (q.turns(phase::kRewriting, q.trials->size()).empty()) return false;
  q.rewritten = {q.plan.graph, q.half_observations()};
  q.propose(phase::kRewriting);
  q.rewritten = {};
  if (q.possible_rewritings.size() > std::max<size_t>(q.taken_rewritings.size(), 1)) rewrite_by_all(q);
  if (q.taken_rewritings.empty()) return false;
  // Once more, with all that is known.
  Graph& graph = q.plan.graph;
  for (Rewriting* rewriting : q.taken_rewritings)
    rewriting(graph, q.trials->observe(graph, observable_values(graph), true));
  q.half_seen.reset();
  q.work.add_new_weights();
  rename_scaled(q);
  return true;
}

}  // namespace sinter::convert
