#include "converter/quantize/search/leave_float.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "converter/ir/op_traits.h"
#include "converter/passes/integers/integer_form.h"
#include "converter/quantize/search/cheaper_in_float.h"

namespace sinter::convert {
namespace {

constexpr int kRounds = 6;              // of choosing and measuring
constexpr size_t kMostActions = 48;     // that are weighed against each other in one step
constexpr int kMostTakenBack = 16;      // attempts
constexpr double kUsuallyTaken = 0.06;  // of the integer operations
constexpr double kEpsilon = 0.005;      // of the whole: what costs nothing is not chosen blindly
constexpr double kLeastShare = 0.1;     // of activations in what is measured
constexpr double kWideNoise = 1e-4;     // of 16 bits, as a share of what 8 bits do

// Operations kept in float together, because that leaves one value or one layer's weights unrounded; or,
// with no operations, the value gets 16 bits.
struct Action {
  ValueId value = kAbsent;  // absent: weights
  std::vector<int> nodes;
  std::string why;
};

class Leaving {
 public:
  Leaving(QuantizationPlan* plan, const Trials& trials, const MeasurePlan& measure,
          const Sensitivity& sensitivity, const std::map<ValueId, QuantParams>& fine, Remedy remedy,
          const LeaveTarget& target, const MeasurementsLeft& left)
      : plan_(*plan),
        graph_(plan->graph),
        trials_(trials),
        measure_(measure),
        sensitivity_(sensitivity),
        fine_(fine),
        remedy_(remedy),
        target_(target),
        left_(left),
        uses_(graph_),
        most_noise_(std::pow(10, -target.db / 10)) {
    roles_ = assign_roles(graph_, plan_.left);
    whole_ = cost(roles_, kAbsent);
    layers_ = integers(roles_);
  }

  LeaveResult run() {
    LeaveResult result;
    measure();
    result.before_db = result.after_db = db_;
    expect(db_ < target_.db ? 2 + std::min<double>(kMostTakenBack, kUsuallyTaken * layers_) : 0);
    if (remedy_ == Remedy::kWide && db_ < target_.db) measure_weights();
    const LeftMap before = plan_.left;
    const std::map<ValueId, WideValue> wide_before = plan_.wide;
    for (int round = 0; round < kRounds && db_ < target_.db; ++round) {
      const size_t had = taken_.size();
      while (excess(expected(roles_)) > 0 && take_best()) trials_.did(Work::kChoosing);
      if (taken_.size() == had) break;
      measure();
      expect(std::min<double>(static_cast<double>(taken_.size()), kMostTakenBack) +
             (db_ < target_.db ? 2 : 0));
    }
    if (!taken_.empty() && db_ < result.before_db + 0.1) {
      // It helps nothing.
      plan_.left = before, plan_.wide = wide_before;
      roles_ = assign_roles(graph_, plan_.left);
      measure();
    } else if (db_ >= target_.db) {
      take_back();
    }
    expect(0);
    result.after_db = db_;
    result.reached = db_ >= target_.db;
    return result;
  }

 private:
  void expect(double measurements) const {
    if (left_) left_(measurements);
  }
  static double integers(const std::vector<Role>& roles) {
    return static_cast<double>(std::count(roles.begin(), roles.end(), Role::kInteger));
  }
  // `also`: gets 16 bits too.
  Noise summed(const std::vector<Role>& roles, ValueId also = kAbsent) const {
    Noise noise = predict(sensitivity_, graph_, roles);
    const auto finer = [&](ValueId id) {
      const Noise& own = sensitivity_.values.at(id);
      for (size_t i = 0; i < noise.outputs.size(); ++i)
        noise.outputs[i] = std::max(0.0, noise.outputs[i] - (1 - kWideNoise) * own.outputs[i]);
    };
    // They are not summed up.
    for (size_t n = 0; !weights_.outputs.empty() && n < graph_.nodes.size(); ++n) {
      if (roles[n] != Role::kInteger) continue;
      const auto at = sensitivity_.weights.find(graph_.nodes[n].outputs[0]);
      if (at == sensitivity_.weights.end()) continue;
      for (size_t i = 0; i < noise.outputs.size(); ++i)
        noise.outputs[i] = std::max(0.0, noise.outputs[i] - at->second.outputs[i]);
    }
    if (plan_.wide.empty() && also < 0) return noise;
    for (const ValueId id : scaled_values(graph_, roles))
      if ((id == also || plan_.wide.contains(id)) && sensitivity_.values.contains(id)) finer(id);
    return noise;
  }
  Noise expected(const std::vector<Role>& roles, ValueId also = kAbsent) const {
    Noise noise = summed(roles, also);
    for (double& x : noise.outputs) x *= correction_;
    noise += weights_;
    return noise;
  }
  double cost(const std::vector<Role>& roles, ValueId also) const {
    std::vector<ValueId> wide;
    for (const auto& [id, value] : plan_.wide) wide.push_back(id);
    if (also >= 0) wide.push_back(also);
    return placement_cost(plan_.left.cpu, graph_, roles, wide);
  }
  double excess(const Noise& noise) const {
    double sum = 0;
    for (const double x : noise.outputs) sum += std::max(0.0, x - most_noise_);
    return sum;
  }
  void measure() {
    const Noise noise = measure_(plan_);
    db_ = noise.worst_db();
    const double sum = summed(roles_).worst();
    // A little more than was measured, or the last step would be repeated for ever.
    const double activations = std::max(noise.worst() - weights_.worst(), kLeastShare * noise.worst());
    if (sum > 0 && activations > 0) correction_ = std::clamp(activations / sum * 1.05, 0.2, 50.0);
  }

  // Where only activations can be helped, the noise of all weights together is what is left, and decides how
  // many must be: by now they are rounded better than each was alone.
  void measure_weights() {
    Graph graph = with_rounded_weights(plan_, roles_);
    round_weights(graph, roles_);
    weights_ = trials_.measure(graph, std::max<size_t>(sensitivity_.samples, 4));
    measure();
  }

  // All integer operations that read a value, or what was only moved from it.
  void add_readers(ValueId id, std::set<int>* nodes) const {
    for (const int r : uses_.readers[static_cast<size_t>(id)]) {
      if (r < 0 || roles_[static_cast<size_t>(r)] == Role::kFloat || nodes->contains(r)) continue;
      nodes->insert(r);
      const Node& node = graph_.nodes[static_cast<size_t>(r)];
      if (selected_operands(node) == 1) add_readers(node.outputs[0], nodes);
    }
  }
  std::vector<Action> actions() const {
    std::vector<std::pair<double, Action>> list;
    for (const ValueId id : scaled_values(graph_, roles_)) {
      const auto at = sensitivity_.values.find(id);
      if (at == sensitivity_.values.end()) continue;
      std::set<int> nodes;
      add_readers(id, &nodes);
      if (nodes.empty() || plan_.wide.contains(id)) continue;
      list.push_back({at->second.worst(),
                      {id,
                       {nodes.begin(), nodes.end()},
                       fmt::format("'{}' rounded to 8 bits alone would give {:.1f} dB", graph_.value(id).name,
                                   at->second.worst_db())}});
    }
    for (size_t n = 0; remedy_ != Remedy::kWide && n < graph_.nodes.size(); ++n) {
      if (roles_[n] != Role::kInteger) continue;
      const auto at = sensitivity_.weights.find(graph_.nodes[n].outputs[0]);
      if (at == sensitivity_.weights.end()) continue;
      list.push_back(
          {at->second.worst(),
           {kAbsent,
            {static_cast<int>(n)},
            fmt::format("its weights rounded to 8 bits alone would give {:.1f} dB", at->second.worst_db())}});
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
  // Whether everything around a value computes on int16, too. Not all does: softmax, functions that jump.
  bool stays_integer(ValueId id) {
    const auto floats = [](QuantizationPlan plan) {
      plan.correct = {};
      const std::vector<LayerFate> layers = build(plan).layers;
      return std::count_if(layers.begin(), layers.end(), [](const LayerFate& l) { return !l.integer; });
    };
    if (floats_ < 0) floats_ = floats(plan_);
    QuantizationPlan plan = plan_;
    plan.wide[id] = {fine_.at(id), ""};
    const auto now = floats(std::move(plan));
    const bool stays = now <= floats_;
    if (stays) floats_ = now;
    return stays;
  }
  // Whether an input or output has the value's integers, which are int8.
  bool is_port(ValueId id) const {
    if (plan_.left.integer_ports.empty()) return false;
    const auto held = with_moved(graph_, roles_, {id});
    return std::any_of(held.begin(), held.end(),
                       [&](const auto& entry) { return plan_.left.integer_ports.contains(entry.first); });
  }
  bool may_widen(ValueId id) const {
    return remedy_ != Remedy::kFloat && id >= 0 && fine_.contains(id) && !no_kernel_.contains(id) &&
           !is_port(id);
  }
  // The gain of an action for its cost; 0: it gains nothing, or costs too much.
  double rate(double won, double cost, double layers) const {
    if (cost > (1 + target_.most_time) * whole_ || layers < (1 - target_.most_layers) * layers_) return 0;
    return won / (std::max(0.0, cost - spent_) / whole_ + (integers(roles_) - layers) / layers_ + kEpsilon);
  }
  bool take_best() {
    while (true) {
      std::optional<Action> chosen = best();
      if (!chosen) return false;
      const bool wide = chosen->nodes.empty();
      if (wide && !stays_integer(chosen->value)) {
        no_kernel_.insert(chosen->value);
        continue;
      }
      const double had = expected(roles_).worst_db();
      const double gets = wide ? expected(roles_, chosen->value).worst_db()
                               : expected(assign_roles(graph_, with(*chosen))).worst_db();
      chosen->why = fmt::format("{}; {} the outputs go from about {:.1f} to {:.1f} dB", chosen->why,
                                wide ? "with int16 activations" : "kept in float", had, gets);
      if (wide)
        plan_.wide[chosen->value] = {fine_.at(chosen->value), chosen->why};
      else
        plan_.left = with(*chosen), floats_ = -1;
      roles_ = assign_roles(graph_, plan_.left);
      taken_.push_back(std::move(*chosen));
      return true;
    }
  }
  std::optional<Action> best() {
    const double now = excess(expected(roles_));
    spent_ = cost(roles_, kAbsent);
    double most = 0;
    std::optional<Action> chosen;
    const auto consider = [&](const Action& action, double won, double spends, double layers) {
      const double r = won > 1e-3 * now ? rate(won, spends, layers) : 0;
      if (r > most) most = r, chosen = action;
    };
    for (Action& action : actions()) {
      double in_float = 0;
      if (remedy_ != Remedy::kWide) {
        const std::vector<Role> roles = assign_roles(graph_, with(action));
        in_float = cost(roles, kAbsent);
        consider(action, now - excess(expected(roles)), in_float, integers(roles));
      }
      if (!may_widen(action.value)) continue;
      const double on_int16 = cost(roles_, action.value);
      if (remedy_ == Remedy::kCheaper && on_int16 > in_float) continue;
      action.nodes.clear();
      consider(action, now - excess(expected(roles_, action.value)), on_int16, integers(roles_));
    }
    return chosen;
  }
  void take_back() {
    int attempts = 0;
    size_t untried = taken_.size();
    // The last ones won least.
    if (remedy_ == Remedy::kWide) std::reverse(taken_.begin(), taken_.end());
    for (const Action& action : taken_) {
      const LeftMap kept = plan_.left;
      const std::map<ValueId, WideValue> kept_wide = plan_.wide;
      if (action.nodes.empty()) plan_.wide.erase(action.value);
      for (const int n : action.nodes) {
        const auto at = plan_.left.find(graph_.nodes[static_cast<size_t>(n)].outputs[0]);
        if (at != plan_.left.end() && at->second.reason == Reason::kAccuracy &&
            at->second.detail == action.why)
          plan_.left.erase(at);
      }
      roles_ = assign_roles(graph_, plan_.left);
      const bool hopeful = attempts < kMostTakenBack && excess(expected(roles_)) <= most_noise_;
      const double was = db_;
      if (hopeful) {
        ++attempts, measure();
        expect(std::min(static_cast<double>(--untried), static_cast<double>(kMostTakenBack - attempts)));
      } else {
        --untried;
      }
      if (hopeful && db_ >= target_.db) continue;
      plan_.left = kept, plan_.wide = kept_wide;
      roles_ = assign_roles(graph_, plan_.left);
      db_ = was;
    }
  }

  QuantizationPlan& plan_;
  const Graph& graph_;
  const Trials& trials_;
  const MeasurePlan& measure_;
  const Sensitivity& sensitivity_;
  const std::map<ValueId, QuantParams>& fine_;
  const Remedy remedy_;
  const LeaveTarget target_;
  const MeasurementsLeft& left_;
  Uses uses_;
  double most_noise_;
  std::vector<Role> roles_;
  double whole_ = 0, layers_ = 0;  // time and integer operations at first
  double correction_ = 1;          // what was measured over what was summed up
  double db_ = 0;
  std::ptrdiff_t floats_ = -1;   // operations in float now; -1: not counted yet
  Noise weights_;                // all of them rounded; empty: they are summed up
  double spent_ = 0;             // time, as it is now
  std::set<ValueId> no_kernel_;  // values that cannot have 16 bits
  std::vector<Action> taken_;
};

}  // namespace

LeaveResult leave_float(QuantizationPlan* plan, const Trials& trials, const MeasurePlan& measure,
                        const Sensitivity& sensitivity, const std::map<ValueId, QuantParams>& fine,
                        Remedy remedy, const LeaveTarget& target, const MeasurementsLeft& left) {
  return Leaving(plan, trials, measure, sensitivity, fine, remedy, target, left).run();
}

}  // namespace sinter::convert
