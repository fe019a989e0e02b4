#include "converter/quantize/quantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

#include "converter/quantize/adaptive_rounding.h"
#include "converter/quantize/bias_correction.h"
#include "converter/quantize/equalize.h"
#include "converter/quantize/grids.h"
#include "converter/quantize/leave_float.h"
#include "converter/quantize/sensitivity.h"
#include "converter/quantize/slower.h"
#include "converter/quantize/useful_ranges.h"
#include "converter/quantize/weight_only.h"
#include "converter/report/errors.h"

namespace sinter::convert {
namespace {

constexpr int64_t kInt8Lowest = -128;

constexpr Technique kTechniques[] = {
    {"equalize", "rescale channels between products so that all of them use the steps that they share"},
    {"depthwise-scales", "rescale channels in front of depthwise convolutions, where that is free"},
    {"smooth", "move outlier channels into the weights of the products that read them"},
    {"function-ranges", "cut ranges to where the functions that read a value tell numbers apart"},
    {"measured-ranges", "of several ranges for a value, take the one that costs the outputs least"},
    {"weight-steps", "cut single large weights that the inputs hardly use, where that makes finer steps"},
    {"adaptive-rounding", "round weights up or down so that they make up for each other's errors"},
    {"bias-correction", "take back what rounding shifts the means of channels by"},
    {"leave-float", "leave in float what costs the outputs most and time little"},
};

// Without a wish: up to the signal to noise on the left as much time, and as many operations, as behind it.
constexpr LeaveTarget kWorthIt[] = {{24}, {28, 0.5, 0.4}, {32, 0.1, 0.15}, {40, 0.03, 0.06}};
// Signal to noise that a recurrent layer's weights must leave, and above what is asked for, in dB.
constexpr double kLeastRecurrent = 35, kRecurrentMargin = 6;
// Rewriting and correcting must win this much, in dB.
constexpr double kWorthRewriting = 0.5, kWorthCorrecting = 0.2;
constexpr double kSame = 1e-3;      // of a channel's reach: it is what it was
constexpr double kSmoothing = 0.5;  // the outliers' share that goes to the weights, as a power
// In run_cost's unit: for measuring once, and for finding out means.
constexpr double kTrialBudget = 0.4e9, kCorrectionBudget = 1e9;
// Multiplications that adaptive rounding may take if it was not asked for: some seconds.
constexpr double kRoundingBudget = 2e10;
// Of fewer samples means say too little: face landmarks lost 9 dB on others than the 11 seen.
constexpr size_t kFewestToRun = 16;
// What is measured on few samples must differ by so many dB to count.
constexpr double kSurelyBetter = 1;
// With max_drop: signal to noise is raised by this much until the accuracy is there.
constexpr double kStepDb = 4, kLastDb = 80;

QuantParams params_of(const Range& range, DType type) {
  if (type == DType::kInt16) {
    const Grid grid = grid_of(range, kInt16Levels);
    return {type, static_cast<double>(static_cast<float>(grid.scale)), 0};
  }
  const Grid grid = grid_of(range, kInt8Levels);
  return {DType::kInt8, static_cast<double>(static_cast<float>(grid.scale)), grid.zero + kInt8Lowest};
}

// A rule, and what its ranges are widened by for what was not seen.
struct Rule {
  CalibratorOptions calibrator;
  DType type = DType::kInt8;
  double margin = 0;
  Cut cut = Cut::kFlat;

  QuantParams params(const TensorSummary& seen) const {
    Range range = choose_range(seen, calibrator, type == DType::kInt16 ? kInt16Levels : kInt8Levels).range;
    range.low *= 1 + margin, range.high *= 1 + margin;
    return params_of(range, type);
  }
};

// That are tried on all values at once, then value by value.
std::vector<Rule> rules_to_try(const CalibratorOptions& asked, DType type, bool several, Cut cut) {
  std::vector<Rule> rules = {{asked, type, 0, cut}};
  if (!several || asked.rule != Calibrator::kBest) return rules;
  if (cut != Cut::kNone) rules.push_back({asked, type, 0, Cut::kNoise});
  rules.push_back(rules[0]), rules.back().calibrator.clipping_weight = 8;
  Rule all = rules[0];
  all.calibrator.rule = Calibrator::kMinMax;
  for (const double margin : {0.0, 0.25, 0.6}) all.margin = margin, rules.push_back(all);
  return rules;
}

std::vector<OutputNoise> named(const Graph& graph, const Noise& noise) {
  std::vector<OutputNoise> result;
  for (size_t i = 0; i < graph.outputs.size(); ++i)
    result.push_back({graph.value(graph.outputs[i]).name, to_db(noise.outputs[i])});
  return result;
}

bool alike(const QuantParams& a, const QuantParams& b) {
  return std::fabs(a.scale / b.scale - 1) < 0.02 && std::abs(a.zero - b.zero) <= 1;
}

class Quantizer {
 public:
  Quantizer(Graph& graph, SampleSource& samples, const QuantizeOptions& options)
      : graph_(graph), exact_(graph), samples_(samples), options_(options) {
    plan_.graph = graph;
  }

  QuantizeSummary run() {
    keep_what_the_user_wants();
    if (!options_.force_int8)
      for (auto& [id, why] : slower_on_integers(plan_.graph, plan_.left))
        plan_.left.emplace(id, std::move(why));
    Observations seen = observe_all();
    summary_.samples = seen.samples;
    spare_recurrent();
    if (rewrite()) seen = observe_all();
    choose(seen);
    round_weights();
    correct_by_means();
    leave();
    correct_by_runs();
    finish();
    return std::move(summary_);
  }

 private:
  bool enabled(const char* technique) const {
    return std::find(options_.disabled.begin(), options_.disabled.end(), technique) ==
           options_.disabled.end();
  }
  Cut cut() const { return enabled("function-ranges") ? Cut::kFlat : Cut::kNone; }
  Step step(const char* what) const {
    if (!options_.progress) return {};
    return [this, what](int64_t done, int64_t total) { options_.progress(what, done, total); };
  }

  void keep_what_the_user_wants() {
    for (const std::string& name : options_.keep_float) {
      bool found = false;
      for (const Node& node : plan_.graph.nodes) {
        if (node.outputs.empty() || node.outputs[0] < 0) continue;
        if (node.name != name && plan_.graph.value(node.outputs[0]).name != name) continue;
        plan_.left[node.outputs[0]] = {Reason::kUser, "--keep-float"};
        found = true;
      }
      if (!found)
        throw UsageError(
            fmt::format("--keep-float {}: after all rewriting no operation has this name, and "
                        "none computes it (--report lists the names)",
                        name));
    }
  }

  Observations observe_all() {
    ObserveOptions observing;
    observing.runner = options_.runner;
    observing.channels = false;
    observing.progress = step("calibrating");
    const std::vector<ValueId> values = values_to_round(plan_.graph, assign_roles(plan_.graph, plan_.left));
    samples_.rewind();
    if (trials_) return observe(plan_.graph, samples_, values, observing);
    KeepingSource keeping(samples_, Trials::most_samples(exact_));
    Observations seen = observe(plan_.graph, keeping, values, observing);
    trials_.emplace(exact_, keeping.take(), options_.runner);
    const double each = std::max(1.0, run_cost(exact_));
    few_ = std::clamp<size_t>(static_cast<size_t>(kTrialBudget / each), 4, trials_->size() + 4);
    return seen;
  }

  // Recurrent layers whose weights lose too much in 8 bits keep them in float.
  void spare_recurrent() {
    const double least = std::max(kLeastRecurrent, options_.min_sqnr.value_or(0) + kRecurrentMargin);
    std::set<ValueId> all;
    for (const Node& node : plan_.graph.nodes)
      if (node.op() == Op::kLstm || node.op() == Op::kGru || node.op() == Op::kRnn)
        for (const ValueId id : node.outputs)
          if (id >= 0) {
            all.insert(id);
            break;
          }
    const auto alone = [&](const std::set<ValueId>& skipped) {
      Graph graph = plan_.graph;
      WeightOnlyOptions recurrent;
      recurrent.recurrent_only = true;
      recurrent.skipped = skipped;
      narrow_weights(graph, recurrent);
      return trials_->measure(graph, few_).worst_db();
    };
    if (all.empty() || alone({}) >= least) return;
    for (const ValueId id : all) {
      std::set<ValueId> skipped = all;
      skipped.erase(id);
      if (const double db = alone(skipped); db < least)
        plan_.left[id] = {Reason::kAccuracy, fmt::format("its weights in 8 bits alone leave {:.1f} dB", db)};
    }
  }

  // With ranges from one half of the kept samples, to be measured on the other.
  QuantizationPlan on_half(Graph graph, const Rule& rule) const {
    QuantizationPlan plan;
    plan.left = plan_.left;
    const std::vector<ValueId> values = values_to_round(graph, assign_roles(graph, plan.left));
    Observations seen = trials_->observe(graph, values, false, Part::kEven);
    cut_to_useful(graph, rule.cut, &seen);
    for (const auto& [id, tensor] : seen.values)
      if (tensor.elements > 0 && tensor.not_finite == 0) plan.params[id] = rule.params(tensor);
    plan.graph = std::move(graph);
    return plan;
  }
  double measured(const QuantizationPlan& plan, Part part = Part::kAll) const {
    return trials_->measure(build(plan).graph, few_, part).worst_db();
  }

  using Rewriting = int (*)(Graph&, const Observations&);
  // Changed groups of channels.
  int apply(Rewriting function, Graph* graph, Part part) const {
    return function(*graph, trials_->observe(*graph, observable_values(*graph), true, part));
  }
  // Whether the float graph changed. One after the other is tried on what is there; then all of them, for
  // where one alone shows nothing as long as another's noise is louder.
  bool rewrite() {
    std::vector<std::pair<const char*, Rewriting>> list;
    for (const auto& [name, function] : std::initializer_list<std::pair<const char*, Rewriting>>{
             {"equalize", equalize},
             {"depthwise-scales", scale_before_depthwise},
             {"smooth", [](Graph&g, const Observations&seen) { return smooth(g, seen, kSmoothing); }}})
      if (enabled(name)) list.push_back({name, function});
    const auto worth = [&](const Graph& graph) {
      return measured(on_half(graph, {options_.calibrator, options_.activations, 0, cut()}), Part::kOdd);
    };
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
  // A value with other channels is not what the model calls by its name.
  void rename_scaled() {
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

  // Weights are chosen on one half of the samples, measured on the other, and then chosen on all of them.
  void round_weights() {
    using Rounding = std::function<void(Graph&, Part)>;
    const auto steps = [&](Graph& graph, Part part) {
      choose_weight_steps(graph, trials_->observe(graph, observable_values(graph), true, part));
    };
    AdaptiveRoundingOptions rounding;
    rounding.runner = options_.runner;
    const auto adaptively = [&](Graph& graph, Part part) {
      round_adaptively(graph, trials_->samples(part), rounding);
    };
    std::vector<std::pair<const char*, Rounding>> list;
    if (enabled("weight-steps")) list.push_back({"weight-steps", steps});
    if (enabled("adaptive-rounding") &&
        (options_.adaptive_rounding || adaptive_rounding_cost(plan_.graph, rounding) < kRoundingBudget))
      list.push_back({"adaptive-rounding", adaptively});
    std::optional<double> before;
    for (const auto& [name, function] : list) {
      const auto chosen = [&](Part part) {
        QuantizationPlan plan = plan_;
        Graph graph = plan_.graph;
        function(graph, part);
        plan.weights = rounded_weights(plan_.graph, graph);
        return plan;
      };
      const QuantizationPlan half = chosen(Part::kEven);
      if (half.weights.empty()) continue;
      if (!before) before = measured(plan_, Part::kOdd);
      const double after = measured(half, Part::kOdd);
      const bool kept = after > *before + kWorthCorrecting;
      summary_.techniques.push_back(
          {name, fmt::format("{} products", half.weights.size()), *before, after, kept});
      if (kept) half_weights_ = half.weights, plan_ = chosen(Part::kAll), before = after;
    }
  }

  void correct_by_means() {
    now_ = trials_->measure(build(plan_).graph);
    if (!enabled("bias-correction")) return;
    std::vector<ValueId> read;
    for (const Node& node : plan_.graph.nodes)
      if (weight_axis(plan_.graph, node) >= 0) read.push_back(node.inputs[0]);
    if (read.empty()) return;
    const auto seen = std::make_shared<const Observations>(trials_->observe(plan_.graph, read, true));
    try_correction("by what was seen of the inputs",
                   [seen](Graph& rounded, const Graph& exact) { correct_biases(rounded, exact, *seen); });
  }
  // At last biases by running, and once more whether adaptive rounding is better with that: what is chosen on
  // one half of the samples is measured on the other.
  void correct_by_runs() {
    // What the accuracy was measured of stays as it is.
    if (!enabled("bias-correction") || options_.max_drop) return;
    size_t products = 0;
    for (const Node& node : plan_.graph.nodes) products += weight_axis(plan_.graph, node) >= 0;
    const size_t samples = std::min(few_, trials_->size());
    if (products == 0 || samples < kFewestToRun ||
        run_cost(plan_.graph) * static_cast<double>(products * samples) > kCorrectionBudget)
      return;
    const auto way = [&](Part part, bool weights, bool runs) {
      QuantizationPlan plan = plan_;
      if (part == Part::kEven && weights) plan.weights = half_weights_;
      if (!weights) plan.weights.clear();
      if (runs)
        plan.correct = [this, samples, list = trials_->samples(part)](Graph& rounded, const Graph& exact) {
          correct_biases(rounded, exact, std::span(list).first(std::min(samples, list.size())),
                         options_.runner);
        };
      return plan;
    };
    const bool rounded = !plan_.weights.empty();
    const double before = measured(way(Part::kEven, rounded, false), Part::kOdd);
    double after = measured(way(Part::kEven, rounded, true), Part::kOdd);
    bool weights = rounded;
    if (const double bare = rounded ? measured(way(Part::kEven, false, true), Part::kOdd) : after;
        bare > after + kWorthCorrecting)
      after = bare, weights = false;
    const bool kept = after > before + kWorthCorrecting;
    summary_.techniques.push_back({"bias-correction", "by running", before, after, kept});
    if (!kept) return;
    plan_ = way(Part::kAll, weights, true);
    for (TechniqueGain& gain : summary_.techniques)
      if (!weights && (gain.name == "adaptive-rounding" || gain.name == "weight-steps")) gain.kept = false;
    now_ = trials_->measure(build(plan_).graph);
  }
  void try_correction(const char* what, std::function<void(Graph&, const Graph&)> correct) {
    QuantizationPlan plan = plan_;
    plan.correct = std::move(correct);
    const Noise noise = trials_->measure(build(plan).graph);
    const bool kept = noise.worst_db() > now_.worst_db() + kWorthCorrecting;
    summary_.techniques.push_back({"bias-correction", what, now_.worst_db(), noise.worst_db(), kept});
    if (kept) plan_ = std::move(plan), now_ = noise;
  }

  void choose(const Observations& seen) {
    const Graph& graph = plan_.graph;
    // What cannot be rounded leaves its readers float.
    const std::vector<Role> all_roles = assign_roles(graph, plan_.left);
    std::set<ValueId> bad;
    for (const ValueId id : values_to_round(graph, all_roles)) {
      const TensorSummary* tensor = seen.find(id);
      if (tensor == nullptr || tensor->elements == 0 || tensor->not_finite > 0) bad.insert(id);
    }
    for (const Node& node : graph.nodes)
      for (const ValueId id : node.inputs)
        if (bad.contains(id) && !node.outputs.empty())
          plan_.left.emplace(node.outputs[0], LeftFloat{Reason::kRange, fmt::format("'{}' is not finite",
                                                                                    graph.value(id).name)});
    const std::vector<Role> roles = assign_roles(graph, plan_.left);
    choose_ranges(seen, roles);
    measure_weights(*trials_, graph, roles, &sensitivity_, step("weighing layers"));
  }

  void choose_ranges(const Observations& seen, const std::vector<Role>& roles) {
    const std::vector<ValueId> values = values_to_round(plan_.graph, roles);
    const bool several = enabled("measured-ranges");
    const std::vector<Rule> rules = rules_to_try(options_.calibrator, options_.activations, several, cut());
    if (cut() != Cut::kNone) {
      const double without = measured(
                       on_half(plan_.graph, {options_.calibrator, options_.activations, 0, Cut::kNone}),
                       Part::kOdd),
                   with = measured(on_half(plan_.graph, rules[0]), Part::kOdd);
      if (with != without) summary_.techniques.push_back({"function-ranges", "", without, with, true});
    }
    // Which rule, is told by samples that its ranges were not made from.
    size_t rule = 0;
    double first = 0, before = 0;
    for (size_t r = 0; several && r < rules.size(); ++r) {
      const double db = measured(on_half(plan_.graph, rules[r]), Part::kOdd);
      if (r == 0) first = before = db;
      if (db > before + (rule == 0 ? kSurelyBetter : 0)) before = db, rule = r;
    }
    std::vector<std::map<ValueId, QuantParams>> proposed;
    for (const Rule& each : rules) {
      std::map<ValueId, QuantParams> params;
      Observations useful = seen;
      cut_to_useful(plan_.graph, each.cut, &useful);
      for (const ValueId id : values) params[id] = each.params(*useful.find(id));
      const Grids grids(plan_.graph, roles, {values.begin(), values.end()}, params);
      for (auto& [id, p] : params)
        if (const QuantParams* own = grids.find(id)) p = *own;
      proposed.push_back(std::move(params));
    }
    std::map<ValueId, std::vector<QuantParams>> candidates;
    for (const ValueId id : values_with_grids(plan_.graph, roles)) {
      auto& list = candidates[id] = {proposed[rule][id]};
      for (const auto& params : proposed)
        if (std::none_of(list.begin(), list.end(),
                         [&](const QuantParams& p) { return alike(p, params.at(id)); }))
          list.push_back(params.at(id));
    }
    std::map<ValueId, QuantParams> chosen = proposed[rule];
    choose_grids(*trials_, plan_.graph, candidates, &chosen, &sensitivity_, step("choosing ranges"));
    share_noise(values);
    plan_.params = proposed[rule];
    if (!several) return;
    const double whole = measured(plan_.params), mixed = measured(chosen);
    if (mixed > whole + kSurelyBetter) plan_.params = chosen, before += mixed - whole;
    const bool kept = before > first;
    summary_.techniques.push_back(
        {"measured-ranges",
         fmt::format("{}, margin {:.2f}{}", to_string(rules[rule].calibrator), rules[rule].margin,
                     rules[rule].cut == Cut::kNoise ? ", cut for the least noise" : ""),
         first, before, kept});
  }
  // What is moved is as loud as what it is moved from, should it ever be rounded by itself.
  void share_noise(const std::vector<ValueId>& values) {
    const Graph& graph = plan_.graph;
    const Uses uses(graph);
    for (const ValueId id : values) {
      ValueId from = id;
      while (!sensitivity_.values.contains(from)) {
        const int n = uses.producer[static_cast<size_t>(from)];
        if (n < 0 || graph.nodes[static_cast<size_t>(n)].inputs.empty()) break;
        from = graph.nodes[static_cast<size_t>(n)].inputs[0];
        if (from < 0) break;
      }
      if (from >= 0 && from != id && sensitivity_.values.contains(from))
        sensitivity_.values[id] = sensitivity_.values.at(from);
    }
  }
  double measured(const std::map<ValueId, QuantParams>& params) const {
    QuantizationPlan plan = plan_;
    plan.params = params;
    return measured(plan);
  }

  void leave() {
    const double before = now_.worst_db();
    const LeftMap had = plan_.left;
    if (options_.max_drop) {
      leave_by_accuracy();
    } else if (options_.min_sqnr) {
      summary_.reached = leave_float(&plan_, *trials_, sensitivity_, {.db = *options_.min_sqnr}).reached;
    } else if (enabled("leave-float")) {
      for (const LeaveTarget& target : kWorthIt) leave_float(&plan_, *trials_, sensitivity_, target);
    }
    if (plan_.left.size() == had.size()) return;
    now_ = trials_->measure(build(plan_).graph);
    summary_.techniques.push_back({"leave-float",
                                   fmt::format("{} operations", plan_.left.size() - had.size()), before,
                                   now_.worst_db(), true});
  }

  void leave_by_accuracy() {
    summary_.float_accuracy = options_.accuracy(exact_);
    const auto drop = [&] {
      summary_.accuracy = options_.accuracy(build(plan_).graph);
      return *summary_.float_accuracy - *summary_.accuracy;
    };
    // Binomial luck aside: compared as measured.
    constexpr double kRounding = 1e-9;
    double left = drop();
    for (double db = std::ceil(now_.worst_db()); left > *options_.max_drop + kRounding && db < kLastDb;) {
      db += kStepDb;
      const size_t had = plan_.left.size();
      const LeaveResult result = leave_float(&plan_, *trials_, sensitivity_, {.db = db});
      if (plan_.left.size() != had) left = drop();
      if (!result.reached && plan_.left.size() == had) break;
    }
    summary_.reached = left <= *options_.max_drop + kRounding;
  }

  void finish() {
    IntegerGraph result = build(plan_);
    if (options_.accuracy && !summary_.accuracy) {
      summary_.float_accuracy = options_.accuracy(exact_);
      summary_.accuracy = options_.accuracy(result.graph);
    }
    now_ = trials_->measure(result.graph);
    summary_.tried = static_cast<int64_t>(trials_->size());
    summary_.outputs = named(exact_, now_);
    list_sources();
    summary_.rounded = result.rounded;
    summary_.integer_steps = result.integer_steps;
    summary_.layers = std::move(result.layers);
    graph_ = std::move(result.graph);
  }

  void list_sources() {
    const Graph& graph = plan_.graph;
    const Uses uses(graph);
    const auto layer = [&](ValueId id) {
      const int n = uses.producer[static_cast<size_t>(id)];
      return n < 0 ? NoiseSource{"", "input", "", 0}
                   : NoiseSource{graph.nodes[static_cast<size_t>(n)].name,
                                 op_info(graph.nodes[static_cast<size_t>(n)].op())->name, "", 0};
    };
    for (const bool weights : {false, true})
      for (const auto& [id, noise] : weights ? sensitivity_.weights : sensitivity_.values) {
        NoiseSource source = layer(id);
        if (!weights) source.value = graph.value(id).name;
        source.db = noise.worst_db();
        summary_.sources.push_back(std::move(source));
      }
    std::stable_sort(summary_.sources.begin(), summary_.sources.end(),
                     [](const NoiseSource& a, const NoiseSource& b) { return a.db < b.db; });
  }

  Graph& graph_;
  const Graph exact_;
  SampleSource& samples_;
  const QuantizeOptions& options_;
  QuantizationPlan plan_;
  std::map<ValueId, RoundedWeights> half_weights_;  // the plan's, as every other sample has them
  std::optional<Trials> trials_;
  Sensitivity sensitivity_;
  Noise now_;
  size_t few_ = 4;  // samples that one measuring of many may take
  QuantizeSummary summary_;
};

}  // namespace

std::vector<OutputNoise> measure_noise(const Graph& exact, const Graph& rounded, SampleSource& samples,
                                       const QuantizeOptions& options, int64_t* tried) {
  KeepingSource keeping(samples, Trials::most_samples(exact));
  keeping.rewind();
  for (Sample sample; keeping.next(&sample);) {
  }
  const Trials trials(exact, keeping.take(), options.runner);
  *tried = static_cast<int64_t>(trials.size());
  return named(exact, trials.measure(rounded));
}

std::span<const Technique> quantization_techniques() { return kTechniques; }

QuantizeSummary quantize_graph(Graph& graph, SampleSource& samples, const QuantizeOptions& options) {
  return Quantizer(graph, samples, options).run();
}

}  // namespace sinter::convert
