#include "converter/plan/fit_arena.h"

#include <algorithm>
#include <map>
#include <set>

#include "converter/cost/work.h"
#include "converter/ir/call_view.h"
#include "converter/ir/deep_copy.h"
#include "converter/plan/candidates.h"
#include "converter/plan/covered.h"
#include "converter/plan/stripes.h"
#include "runtime/core/checked.h"

namespace sinter::convert {
namespace {

constexpr size_t kMostAhead = 16, kMostTogether = 24;  // of a region: behind the fullest step, in all
constexpr size_t kMostSteps = 256;                     // that a region becomes
constexpr int kMostTrials = 24;
constexpr int64_t kParts[] = {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96};

double work_of(const Graph& graph) {
  double sum = 0;
  for (const Node& node : graph.nodes)
    if (node.bodies.empty()) sum += estimated_work(CallShape(graph, node));
  return sum;
}

using Spans = std::vector<std::pair<uint64_t, uint64_t>>;  // of places: first byte, behind the last

// The first that is there.
ValueId a_result(const Node& node) {
  const auto it =
      std::find_if(node.outputs.begin(), node.outputs.end(), [](ValueId id) { return id != kAbsent; });
  return it == node.outputs.end() ? kAbsent : *it;
}

// A plan made quickly, with its facts about each node by the value that the node makes.
class Draft {
 public:
  Draft(const Graph& graph, PlanOptions options) {
    options.thorough = options.strides = options.stored_weights = false;
    options.seconds = 0;
    options.target.cores = 1;
    model_ = plan_model(deep_copy(graph), options);
    const PlannedProgram& p = model_.programs.front();
    for (size_t n = 0; n < p.steps.size(); ++n)
      for (const ValueId id : p.graph->nodes[n].outputs)
        if (id != kAbsent) step_[id] = n;
    for (size_t n = 0; n < p.steps.size(); ++n) {
      Spans all = places(n, {});
      const PlannedStep& s = p.steps[n];
      if (s.workspace_bytes > 0) all.push_back({s.workspace_offset, s.workspace_offset + s.workspace_bytes});
      live_.push_back(covered_bytes(all));
    }
  }

  // 0 where the planner has no such step.
  uint64_t live(ValueId made) const {
    const auto it = step_.find(made);
    return it == step_.end() ? 0 : live_[it->second];
  }
  uint64_t workspace(ValueId made) const { return program().steps[step_.at(made)].workspace_bytes; }
  // The values that are live while `made` is computed, except the values `without`, and also `needed`.
  uint64_t around(ValueId made, const std::set<ValueId>& without, const std::set<ValueId>& needed) const {
    const auto step = static_cast<int>(step_.at(made));
    Spans all = places(static_cast<size_t>(step), without);
    uint64_t sum = covered_bytes(all);
    for (const ValueId id : needed)
      if (const PlannedValue& v = program().values[static_cast<size_t>(id)]; v.placed && v.last_step < step)
        sum += v.bytes;
    return sum;
  }

 private:
  const PlannedProgram& program() const { return model_.programs.front(); }
  Spans places(size_t step, const std::set<ValueId>& without) const {
    Spans all;
    const auto n = static_cast<int>(step);
    for (size_t i = 0; i < program().values.size(); ++i) {
      const PlannedValue& v = program().values[i];
      if (v.placed && v.region == 0 && v.first_step <= n && n <= v.last_step &&
          without.count(static_cast<ValueId>(i)) == 0)
        all.push_back({v.offset, v.offset + v.bytes});
    }
    return all;
  }

  PlannedModel model_;
  std::map<ValueId, size_t> step_;
  std::vector<uint64_t> live_;
};

struct Candidate {
  Striping striping;
  uint64_t bytes = 0;  // about what its fullest step needs
  double work = 0;     // beyond that of the whole steps
};

// Bytes of the stripe's values while the fullest of its steps runs.
uint64_t stripe_bytes(const Graph& graph, const StripeRegion& region, const Stripe& stripe,
                      const Draft& draft) {
  const size_t count = region.nodes.size();
  std::map<ValueId, size_t> made;
  std::vector<size_t> last(count, 0);
  std::vector<uint64_t> bytes(count), workspace(count);
  for (size_t i = 0; i < count; ++i) {
    const Node& node = graph.nodes[region.nodes[i]];
    const Value& v = graph.value(node.outputs[0]);
    Dims dims = v.dims;
    dims[1] = stripe[i].count();
    bytes[i] = align_up(dense_bytes(v.dtype, dims), kBufferAlignment);
    workspace[i] = draft.workspace(node.outputs[0]) * static_cast<uint64_t>(stripe[i].count()) /
                   static_cast<uint64_t>(v.dims[1]);
    made[node.outputs[0]] = i;
    for (const ValueId id : node.inputs)
      if (const auto it = made.find(id); it != made.end()) last[it->second] = i;
  }
  bytes.back() = 0;  // is part of the whole result
  uint64_t most = 0;
  for (size_t i = 0; i < count; ++i) {
    const Node& node = graph.nodes[region.nodes[i]];
    uint64_t sum = workspace[i] + bytes[i];
    for (size_t k = 0; k < i; ++k)
      if (last[k] >= i) sum += bytes[k];
    if ((op_info(node.op())->traits & kInPlace) != 0)
      for (const ValueId id : node.inputs)
        if (const auto it = made.find(id);
            it != made.end() && it->second < i && last[it->second] == i && bytes[it->second] == bytes[i]) {
          sum -= bytes[i];
          break;
        }
    most = std::max(most, sum);
  }
  return most;
}

// Returns the work of rows that are computed more than once.
double repeated_work(const Graph& graph, const StripeRegion& region, const std::vector<Stripe>& stripes) {
  double work = 0;
  for (size_t i = 0; i < region.nodes.size(); ++i) {
    const Node& node = graph.nodes[region.nodes[i]];
    int64_t rows = 0;
    for (const Stripe& stripe : stripes) rows += stripe[i].count();
    const auto all = static_cast<double>(graph.value(node.outputs[0]).dims[1]);
    work += estimated_work(CallShape(graph, node)) * (static_cast<double>(rows) - all) / all;
  }
  return work;
}

Candidate estimate(const Graph& graph, const StripeRegion& region, std::vector<Stripe> stripes,
                   const Draft& draft, bool packs) {
  std::set<ValueId> own, needed;
  for (const size_t n : region.nodes) {
    const Node& node = graph.nodes[n];
    for (const ValueId id : node.inputs)
      if (id != kAbsent && own.count(id) == 0 && !graph.is_constant(id)) needed.insert(id);
    own.insert(node.outputs[0]);
  }
  const ValueId result = graph.nodes[region.nodes.back()].outputs[0];
  const Value& whole = graph.value(result);
  Candidate c;
  for (const Stripe& stripe : stripes)
    c.bytes = std::max(c.bytes, stripe_bytes(graph, region, stripe, draft));
  c.bytes += draft.around(result, own, needed) + dense_bytes(whole.dtype, whole.dims);
  c.work = repeated_work(graph, region, stripes);
  // Kernels that pack their weights do so for each stripe. Of those alike in all that the fewest steps.
  for (const size_t n : region.nodes)
    for (const ValueId id : graph.nodes[n].inputs)
      if (packs && graph.is_constant(id))
        c.work += static_cast<double>(stripes.size() - 1) *
                  static_cast<double>(graph.value(id).constant->byte_size());
  c.work += static_cast<double>(stripes.size() * region.nodes.size());
  c.striping = {region, std::move(stripes)};
  return c;
}

bool overlap(const StripeRegion& a, const StripeRegion& b) {
  return std::any_of(a.nodes.begin(), a.nodes.end(),
                     [&](size_t n) { return std::binary_search(b.nodes.begin(), b.nodes.end(), n); });
}

// The graph with some of its steps in stripes, and what that takes.
struct StripedGraph {
  std::vector<Striping> stripings;  // of the nodes of the graph as it was
  Graph graph;
  std::vector<size_t> origin;  // of each node
  std::vector<uint64_t> live;  // bytes while it runs; 0 where the planner has no such step
};

class Fitter {
 public:
  Fitter(const Graph& graph, const PlanOptions& options)
      : graph_(graph), options_(options), uses_(graph), draft_(graph, options) {}

  // Stripes until no step has more than `target` live bytes, or nothing helps the fullest one. Each change
  // makes the steps that it touches need less than the fullest one did, so that there is an end.
  StripedGraph reach(uint64_t target) {
    StripedGraph now = *with({});
    while (!now.live.empty() && left_ > 0) {
      const auto fullest = std::max_element(now.live.begin(), now.live.end());
      if (*fullest <= target) break;
      std::optional<StripedGraph> next = lower(now, static_cast<size_t>(fullest - now.live.begin()), target);
      if (!next) break;
      now = std::move(*next);
    }
    return now;
  }

 private:
  // Nodes in all drafts that are made: a bound for the time.
  static constexpr size_t kBudget = 250'000;

  std::optional<StripedGraph> with(std::vector<Striping> stripings) {
    StripedGraph state{std::move(stripings), graph_, {}, {}};
    auto origin = compute_in_stripes(state.graph, state.stripings);
    if (!origin) return std::nullopt;
    left_ -= std::min(left_, origin->size());
    state.origin = std::move(*origin);
    const Draft draft(state.graph, options_);
    for (const Node& node : state.graph.nodes) state.live.push_back(draft.live(a_result(node)));
    return state;
  }

  // Those that may suffice first, the cheapest in front; then those that need the fewest bytes.
  std::vector<Candidate> candidates(size_t fullest, uint64_t target) const {
    std::vector<Candidate> all;
    for (size_t last = fullest; last < std::min(graph_.nodes.size(), fullest + 1 + kMostAhead); ++last)
      for (const StripeRegion& region : regions_ending(graph_, uses_, last, kMostTogether)) {
        if (!std::binary_search(region.nodes.begin(), region.nodes.end(), fullest)) continue;
        for (const int64_t parts : kParts)
          if (region.nodes.size() * static_cast<size_t>(parts) > kMostSteps)
            break;
          else if (auto stripes = cut_stripes(graph_, region, parts); !stripes.empty())
            all.push_back(estimate(graph_, region, std::move(stripes), draft_, !options_.platforms.empty()));
      }
    std::stable_sort(all.begin(), all.end(), [&](const Candidate& a, const Candidate& b) {
      const bool a_fits = a.bytes <= target, b_fits = b.bytes <= target;
      if (a_fits != b_fits) return a_fits;
      return a_fits ? a.work < b.work : a.bytes < b.bytes;
    });
    return all;
  }

  // The cheapest change that brings node `n`, and what else it touches, to `target`; else the one that brings
  // them lowest, if that is below what `n` needs now.
  std::optional<StripedGraph> lower(const StripedGraph& now, size_t n, uint64_t target) {
    uint64_t least = now.live[n];
    std::optional<StripedGraph> best;
    int trials = 0;
    for (Candidate& c : candidates(now.origin[n], target)) {
      if (least <= target || ++trials > kMostTrials || left_ == 0) break;
      std::set<size_t> touched(c.striping.region.nodes.begin(), c.striping.region.nodes.end());
      std::vector<Striping> stripings;
      for (const Striping& s : now.stripings) {
        if (overlap(s.region, c.striping.region))
          touched.insert(s.region.nodes.begin(), s.region.nodes.end());
        else
          stripings.push_back(s);
      }
      stripings.push_back(std::move(c.striping));
      std::optional<StripedGraph> tried = with(std::move(stripings));
      if (!tried) continue;
      uint64_t most = 0;
      for (size_t k = 0; k < tried->live.size(); ++k)
        if (touched.count(tried->origin[k]) > 0) most = std::max(most, tried->live[k]);
      if (most < least) least = most, best = std::move(tried);
    }
    return best;
  }

  const Graph& graph_;
  const PlanOptions& options_;
  const Uses uses_;
  const Draft draft_;  // of all steps whole
  size_t left_ = kBudget;
};

uint64_t arena_of(const PlannedModel& model) { return model.programs.front().arena_bytes; }

// The graph with its nodes in the plan's order.
Graph in_order_of(const PlannedModel& model, const Graph& graph) {
  std::map<ValueId, size_t> step;
  const std::vector<Node>& planned = model.programs.front().graph->nodes;
  for (size_t n = 0; n < planned.size(); ++n) step[a_result(planned[n])] = n;
  Graph ordered = graph;
  const auto known = [&](const Node& node) { return step.count(a_result(node)) > 0; };
  if (std::all_of(ordered.nodes.begin(), ordered.nodes.end(), known))
    std::stable_sort(ordered.nodes.begin(), ordered.nodes.end(), [&](const Node& a, const Node& b) {
      return step.at(a_result(a)) < step.at(a_result(b));
    });
  return ordered;
}

// Returns the bytes of a session of the plan without packed weights and control structures: its arena, and
// the memory that the first candidate of each step keeps.
uint64_t kept_by(const PlannedModel& model, const std::vector<const Platform*>& platforms) {
  uint64_t sum = arena_of(model);
  for (const PlannedProgram& program : model.programs)
    for (size_t n = 0; n < program.steps.size(); ++n) {
      const PlannedStep& step = program.steps[n];
      const Node& node = program.graph->nodes[n];
      if (step.elided || !node.bodies.empty() || step.candidates[0] >= platforms.size()) continue;
      const CallView view(*program.graph, node);
      if (!checked_add<uint64_t>(sum, kept_bytes(*platforms[step.candidates[0]], view.call), &sum))
        return UINT64_MAX;
    }
  return sum;
}

}  // namespace

FittedPlan plan_to_fit(const Graph& graph, const PlanOptions& options, uint64_t limit) {
  FittedPlan best;
  best.model = plan_model(deep_copy(graph), options);
  best.fits = arena_of(best.model) <= limit;
  if (best.fits) return best;
  const uint64_t kept_whole = kept_by(best.model, options.platforms);
  const Graph ordered = in_order_of(best.model, graph);
  Fitter fitter(ordered, options);
  // Stripes are in a good order already, and so alike that the search for a better one finds no end.
  PlanOptions striped = options;
  striped.effort = options.effort / 16;
  const double work = work_of(graph);
  const auto attempt = [&](uint64_t target) {
    const StripedGraph state = fitter.reach(target);
    FittedPlan plan;
    plan.model = plan_model(deep_copy(state.graph), striped);
    double more = 0;
    for (const Striping& s : state.stripings) {
      more += repeated_work(ordered, s.region, s.stripes);
      plan.stripes.push_back({ordered.nodes[s.region.nodes.front()].name,
                              ordered.nodes[s.region.nodes.back()].name, s.region.nodes.size(),
                              static_cast<int64_t>(s.stripes.size())});
    }
    const auto fullest = std::max_element(state.live.begin(), state.live.end());
    if (fullest != state.live.end())
      plan.fullest = state.graph.nodes[static_cast<size_t>(fullest - state.live.begin())].name;
    plan.extra_work = work > 0 ? more / work : 0;
    plan.fits = arena_of(plan.model) <= limit;
    // The memory that kernels keep for each stripe must not undo the savings of the stripes.
    const uint64_t kept = kept_by(plan.model, options.platforms);
    if (plan.fits && kept > kept_whole) {
      PlanOptions compact = striped;
      compact.preference = Preference::kMemory;
      PlannedModel other = plan_model(deep_copy(state.graph), compact);
      if (arena_of(other) <= limit && kept_by(other, options.platforms) < kept) plan.model = std::move(other);
    }
    if (arena_of(plan.model) < arena_of(best.model))
      best = std::move(plan);
    else if (best.fullest.empty())
      best.fullest = plan.fullest;
    return fullest == state.live.end() ? uint64_t{0} : *fullest;
  };
  uint64_t target = limit - std::min<uint64_t>(limit, kReadPadding);
  constexpr int kAttempts = 4;
  for (int i = 0; i < kAttempts && !best.fits; ++i) {
    if (attempt(target) > target || best.fits) break;
    // Gaps between places: as much less is to live.
    const uint64_t over = arena_of(best.model) - limit;
    target -= std::min(target, over);
  }
  // The smallest possible one, and then the cheapest way there.
  if (!best.fits) attempt(attempt(0));
  return best;
}

}  // namespace sinter::convert
