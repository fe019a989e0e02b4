#include "converter/quantize/leave_float.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "converter/quantize/integer_form.h"
#include "converter/quantize/slower.h"

namespace sinter::convert {
namespace {

constexpr int kRounds = 6;           // of choosing and measuring
constexpr size_t kMostActions = 48;  // that are weighed against each other in one step
constexpr int kMostTakenBack = 16;   // attempts
constexpr double kEpsilon = 0.005;   // of the whole: what costs nothing is not chosen blindly

// Operations that stay float together, because that leaves one value or one layer's weights unrounded.
struct Action {
  std::vector<int> nodes;
  std::string why;
};

class Leaving {
 public:
  Leaving(QuantizationPlan* plan, const Trials& trials, const Sensitivity& sensitivity,
          const LeaveTarget& target)
      : plan_(*plan),
        graph_(plan->graph),
        trials_(trials),
        sensitivity_(sensitivity),
        target_(target),
        uses_(graph_),
        most_noise_(std::pow(10, -target.db / 10)) {
    roles_ = assign_roles(graph_, plan_.left);
    whole_ = placement_cost(graph_, roles_);
    layers_ = integers(roles_);
  }

  LeaveResult run() {
    LeaveResult result;
    measure();
    result.before_db = result.after_db = db_;
    const LeftMap before = plan_.left;
    for (int round = 0; round < kRounds && db_ < target_.db; ++round) {
      const size_t had = taken_.size();
      while (excess(expected(roles_)) > 0 && take_best()) {
      }
      if (taken_.size() == had) break;
      measure();
    }
    if (!taken_.empty() && db_ < result.before_db + 0.1) {
      // It helps nothing.
      plan_.left = before;
      roles_ = assign_roles(graph_, plan_.left);
      measure();
    } else if (db_ >= target_.db) {
      take_back();
    }
    result.after_db = db_;
    result.reached = db_ >= target_.db;
    result.left = static_cast<int>(plan_.left.size() - before.size());
    return result;
  }

 private:
  static double integers(const std::vector<Role>& roles) {
    return static_cast<double>(std::count(roles.begin(), roles.end(), Role::kInteger));
  }
  Noise expected(const std::vector<Role>& roles) const {
    Noise noise = predict(sensitivity_, graph_, roles);
    for (double& x : noise.outputs) x *= correction_;
    return noise;
  }
  double excess(const Noise& noise) const {
    double sum = 0;
    for (const double x : noise.outputs) sum += std::max(0.0, x - most_noise_);
    return sum;
  }
  void measure() {
    const Noise noise = trials_.measure(build(plan_).graph);
    db_ = noise.worst_db();
    const double sum = predict(sensitivity_, graph_, roles_).worst();
    // A little more than was measured, or the last step would be repeated for ever.
    if (sum > 0 && noise.worst() > 0) correction_ = std::clamp(noise.worst() / sum * 1.05, 0.2, 50.0);
  }

  // All integer operations that read a value, or what was only moved from it.
  void add_readers(ValueId id, std::set<int>* nodes) const {
    for (const int r : uses_.readers[static_cast<size_t>(id)]) {
      if (r < 0 || roles_[static_cast<size_t>(r)] == Role::kFloat || nodes->contains(r)) continue;
      nodes->insert(r);
      const Node& node = graph_.nodes[static_cast<size_t>(r)];
      if (moved_operands(node) == 1) add_readers(node.outputs[0], nodes);
    }
  }
  std::vector<Action> actions() const {
    std::vector<std::pair<double, Action>> list;
    for (const ValueId id : values_with_grids(graph_, roles_)) {
      const auto at = sensitivity_.values.find(id);
      if (at == sensitivity_.values.end()) continue;
      std::set<int> nodes;
      add_readers(id, &nodes);
      if (nodes.empty()) continue;
      list.push_back({at->second.worst(),
                      {{nodes.begin(), nodes.end()},
                       fmt::format("'{}' rounded to 8 bits alone would leave {:.1f} dB",
                                   graph_.value(id).name, at->second.worst_db())}});
    }
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (roles_[n] != Role::kInteger) continue;
      const auto at = sensitivity_.weights.find(graph_.nodes[n].outputs[0]);
      if (at == sensitivity_.weights.end()) continue;
      list.push_back({at->second.worst(),
                      {{static_cast<int>(n)},
                       fmt::format("its weights rounded to 8 bits alone would leave {:.1f} dB",
                                   at->second.worst_db())}});
    }
    std::stable_sort(list.begin(), list.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    if (list.size() > kMostActions) list.resize(kMostActions);
    std::vector<Action> result;
    for (auto& [noise, action] : list) result.push_back(std::move(action));
    return result;
  }
  LeftMap with(const Action& action) const {
    LeftMap left = plan_.left;
    for (const int n : action.nodes)
      left.emplace(graph_.nodes[static_cast<size_t>(n)].outputs[0], LeftFloat{Reason::kAccuracy, action.why});
    return left;
  }
  bool take_best() {
    const double now = excess(expected(roles_)), spent = placement_cost(graph_, roles_),
                 before = integers(roles_);
    double best = 0;
    std::optional<Action> chosen;
    for (Action& action : actions()) {
      const std::vector<Role> roles = assign_roles(graph_, with(action));
      const double cost = placement_cost(graph_, roles), layers = integers(roles);
      if (cost > (1 + target_.most_time) * whole_ || layers < (1 - target_.most_layers) * layers_) continue;
      const double won = now - excess(expected(roles));
      const double rate =
          won / (std::max(0.0, cost - spent) / whole_ + (before - layers) / layers_ + kEpsilon);
      if (won > 1e-3 * now && rate > best) best = rate, chosen = std::move(action);
    }
    if (!chosen) return false;
    const double had = expected(roles_).worst_db();
    const double gets = expected(assign_roles(graph_, with(*chosen))).worst_db();
    chosen->why = fmt::format("{}; left in float the outputs go from about {:.1f} to {:.1f} dB", chosen->why,
                              had, gets);
    plan_.left = with(*chosen);
    roles_ = assign_roles(graph_, plan_.left);
    taken_.push_back(std::move(*chosen));
    return true;
  }
  void take_back() {
    int attempts = 0;
    for (const Action& action : taken_) {
      const LeftMap kept = plan_.left;
      for (const int n : action.nodes) {
        const auto at = plan_.left.find(graph_.nodes[static_cast<size_t>(n)].outputs[0]);
        if (at != plan_.left.end() && at->second.reason == Reason::kAccuracy &&
            at->second.detail == action.why)
          plan_.left.erase(at);
      }
      roles_ = assign_roles(graph_, plan_.left);
      const bool hopeful = attempts < kMostTakenBack && excess(expected(roles_)) <= most_noise_;
      const double was = db_;
      if (hopeful) ++attempts, measure();
      if (hopeful && db_ >= target_.db) continue;
      plan_.left = kept;
      roles_ = assign_roles(graph_, plan_.left);
      db_ = was;
    }
  }

  QuantizationPlan& plan_;
  const Graph& graph_;
  const Trials& trials_;
  const Sensitivity& sensitivity_;
  const LeaveTarget target_;
  Uses uses_;
  double most_noise_;
  std::vector<Role> roles_;
  double whole_ = 0, layers_ = 0;  // time and integer operations at first
  double correction_ = 1;          // what was measured over what was summed up
  double db_ = 0;
  std::vector<Action> taken_;
};

}  // namespace

LeaveResult leave_float(QuantizationPlan* plan, const Trials& trials, const Sensitivity& sensitivity,
                        const LeaveTarget& target) {
  return Leaving(plan, trials, sensitivity, target).run();
}

}  // namespace sinter::convert
