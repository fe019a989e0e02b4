#include "converter/quantize/quantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "converter/diagnostics/errors.h"
#include "converter/diagnostics/nearest_name.h"
#include "converter/ir/op_traits.h"
#include "converter/ir/weight_memory.h"
#include "converter/quantize/integers/given_integers.h"
#include "converter/quantize/quantizer.h"
#include "converter/quantize/ranges/kept_packings.h"
#include "converter/quantize/report/low_sqnr_outputs.h"
#include "converter/quantize/report/type_rows.h"
#include "converter/quantize/search/cheaper_in_float.h"
#include "converter/quantize/search/plan_for_shapes.h"
#include "converter/quantize/weights/weight_only.h"

namespace sinter::convert {
namespace {

constexpr size_t kFewestInTrial = 8;

// On all samples of `trials`, with intervals.
std::vector<OutputNoise> judged(const Graph& exact, const Graph& rounded, const Trials& trials) {
  std::vector<std::optional<Interval>> intervals;
  std::vector<OutputNoise> outputs = noise_by_output(exact, trials.measure(rounded, &intervals));
  for (size_t i = 0; i < outputs.size(); ++i) outputs[i].interval = intervals[i];
  return outputs;
}

double system_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Quantizer::Quantizer(Graph& graph, SampleSource& samples, const QuantizeOptions& options,
                     std::span<Graph* const> others)
    : graph_(graph),
      others_(others),
      exact_(graph),
      samples_(samples, Trials::most_samples(graph)),
      options_(options),
      work_(options.clock ? options.clock : system_seconds, [this](Work kind) {
        if (total_ < 0 && (kind == Work::kTrial || kind == Work::kRounding)) ++done_;
        report();
      }) {
  plan_.graph = graph;
  plan_.graph.ledger = std::make_shared<TypeLedger>();  // trials decide nothing
  plan_.left.force_int8 = options.force_int8;
  plan_.left.require_int8 = options.require_int8;
  plan_.left.cpu = options.cpu;
  summary_.cpu = options.cpu;
  summary_.byte_flags = options.byte_flags;
  plan_.left.integer_ports = options.integer_ports;
  for (const Turn& turn : all_turns()) {
    if (std::ranges::count(options.disabled, turn.technique->name) > 0) continue;
    turns_.push_back(turn);
    if (turn.permission != nullptr) this->*turn.permission = true;
  }
}

double Quantizer::measured(const QuantizationPlan& plan, Part part) const {
  return trials_->measure(build(plan).graph, few_, part).worst_db();
}

QuantizationPlan Quantizer::from_half(const QuantizationPlan& plan) const {
  QuantizationPlan half = plan;
  for (const auto& [id, params] : half_params_) half.params[id] = params;
  if (!plan.weights.empty()) half.weights = half_weights_;
  if (plan.correct) half.correct = half_correct_;
  return half;
}

Noise Quantizer::foresee(const QuantizationPlan& plan, size_t most) const {
  return trials_->measure(build(from_half(plan)).graph, most, Part::kOdd);
}

double Quantizer::judge(const Graph& rounded) {
  if (!options_.evaluate) return judging().measure(rounded).worst_db();
  summary_.evaluation = options_.evaluate(exact_, rounded);
  return worst_of(summary_.evaluation->outputs);
}

QuantizeSummary Quantizer::run() {
  keep_what_the_user_wants();
  if (!options_.force_int8)
    for (auto& [id, why] : slower_on_integers(plan_.graph, plan_.left))
      plan_.left.emplace(id, std::move(why));
  const auto observe_plan = [this] { return observe_all(assign_roles(plan_.graph, plan_.left)); };
  Observations seen = observe_plan();
  summary_.samples = seen.samples;
  begin(phase::kRewriting);
  spare_recurrent(seen);
  if (rewrite()) {
    seen = observe_plan();
    plan_.recurrent = same_layers(recurrent_scales(plan_.graph, seen));
  }
  begin(phase::kWeighingRules);
  choose(seen);
  begin(phase::kRounding);
  round_weights();
  half_.reset();
  expect_refit(summary_.samples * 5 / 4, trials_->size(), true);
  begin(phase::kBiases);
  now_ = foresee(plan_, few_);
  propose(phase::kBiases);
  expect_refit(summary_.samples * 5 / 4, trials_->size(), true);
  begin(phase::kLeavingFloat);
  leave();
  begin(phase::kRuns);
  propose(phase::kRuns);
  begin(phase::kMeasuring);
  finish();
  return std::move(summary_);
}

void Quantizer::keep_what_the_user_wants() {
  for (const std::string& name : options_.keep_float) {
    bool found = false;
    std::vector<std::string> names;
    for (const Node& node : plan_.graph.nodes) {
      if (node.outputs.empty() || node.outputs[0] < 0) continue;
      if (names.empty() || names.back() != node.name) names.push_back(node.name);
      if (node.name != name && plan_.graph.value(node.outputs[0]).name != name) continue;
      plan_.left[node.outputs[0]] = {Reason::kUser, "--keep-float"};
      found = true;
    }
    if (!found)
      throw UsageError(
          fmt::format("--keep-float {}: after rewriting, no operation has or computes this name; {} "
                      "(--report FILE.json lists the names)",
                      name, advise_name(names, name)));
  }
}

Observations Quantizer::observe_all(const std::vector<Role>& roles) {
  ObserveOptions observing;
  observing.runner = options_.runner;
  observing.channels = false;
  observing.progress = step(phase::kCalibrating);
  std::vector<ValueId> values = values_to_round(plan_.graph, roles);
  for (const Node& node : plan_.graph.nodes)
    if (is_recurrent(node.op()) && std::find(values.begin(), values.end(), node.inputs[0]) == values.end())
      values.push_back(node.inputs[0]);
  samples_.rewind();
  if (!trials_ && samples_.count() >= 0) {
    const auto count = static_cast<size_t>(samples_.count());
    work_.expect(phase::kCalibrating, Work::kObserving, static_cast<double>(count));
    expect_phases(samples_.count(), std::min(count, Trials::most_samples(exact_)));
  }
  if (trials_) return observe(plan_.graph, samples_, values, observing);
  Observations seen = observe(plan_.graph, samples_, values, observing);
  trials_.emplace(exact_, samples_.take_choosing(), options_.runner);
  if (std::vector<Sample> judges = samples_.take_judging(); !judges.empty())
    judges_.emplace(exact_, std::move(judges), options_.runner);
  work_.did(Work::kObserving, 0);  // the exact outputs
  trials_->count(&work_);
  if (judges_) judges_->count(&work_);
  few_ = affordable(kTrialBudget, trials_->size()), fewer_ = affordable(kSmallTrialBudget, trials_->size());
  expect_phases(seen.samples, trials_->size());
  return seen;
}

size_t Quantizer::affordable(double budget, size_t kept) const {
  const auto count = static_cast<size_t>(budget / std::max(1.0, run_cost(exact_)));
  return std::clamp(count, kFewestInTrial, kept + kFewestInTrial);
}

Observations Quantizer::observe_half(const Graph& graph) const {
  return trials_->observe(graph, observable_values(graph), true, Part::kEven);
}

const std::shared_ptr<const Observations>& Quantizer::half() {
  if (!half_) half_ = std::make_shared<const Observations>(observe_half(plan_.graph));
  return half_;
}

QuantizationPlan Quantizer::on_half(const Graph& graph, const Observations& half,
                                    const RangeRule& rule) const {
  QuantizationPlan plan;
  plan.graph = graph;
  plan.left = plan_.left;
  plan.recurrent = same_layers(recurrent_scales(graph, half));
  Observations seen;
  for (const ValueId id : values_to_round(graph, assign_roles(graph, plan.left)))
    if (const TensorSummary* tensor = half.find(id)) seen.values.emplace(id, *tensor);
  cut_to_useful(graph, rule.cut, &seen);
  for (const auto& [id, tensor] : seen.values)
    if (tensor.elements > 0 && tensor.not_finite == 0) plan.params[id] = rule.params(tensor);
  return plan;
}

void Quantizer::build_others() {
  if (others_.empty()) return;
  const CorrectedBiases corrected = corrected_biases(plan_);
  for (Graph* other : others_) {
    const Graph exact = *other;
    IntegerGraph built = build(plan_for_shapes(plan_, exact_, exact, corrected));
    const std::shared_ptr<TypeLedger> ledger = other->ledger;
    *other = std::move(built.graph);
    for (const TypeDecision& decision : other->ledger->all()) ledger->add(decision);
    other->ledger = ledger;
    file_quantized(exact, *other, std::max(summary_.samples, summary_.refitted));
  }
}

void Quantizer::finish() {
  plan_.graph.ledger = std::make_shared<TypeLedger>();  // what trials filed is void
  IntegerGraph result = build(plan_);
  summary_.measured = static_cast<int64_t>(judging().size());
  summary_.variation = trials_->variation();
  summary_.held_out = judges_.has_value();
  summary_.outputs = judged(exact_, result.graph, judging());
  if (options_.min_sqnr && has_judges())
    summary_.reached =
        worst_of(options_.evaluate ? summary_.evaluation->outputs : summary_.outputs) >= *options_.min_sqnr;
  list_sources();
  advise(result.graph);
  refit(&result);
  if (options_.accuracy && !summary_.accuracy) {
    summary_.float_accuracy = options_.accuracy(exact_);
    summary_.accuracy = options_.accuracy(result.graph);
  }
  if (options_.evaluate && !summary_.evaluation)
    summary_.evaluation = options_.evaluate(exact_, result.graph);
  summary_.rounded = result.rounded;
  summary_.integer_steps = result.integer_steps;
  summary_.layers = std::move(result.layers);
  const std::shared_ptr<TypeLedger> ledger = graph_.ledger;
  graph_ = std::move(result.graph);
  for (const TypeDecision& decision : graph_.ledger->all()) ledger->add(decision);
  graph_.ledger = ledger;
  file_quantized(exact_, graph_, std::max(summary_.samples, summary_.refitted));
  file_left_float(plan_.graph, summary_.layers, ledger.get());
  build_others();
}

void Quantizer::list_sources() {
  const Graph& graph = plan_.graph;
  const Uses uses(graph);
  const auto layer = [&](ValueId id) {
    const int n = uses.producer[static_cast<size_t>(id)];
    return n < 0 ? NoiseSource{"", "input", "", 0, false}
                 : NoiseSource{graph.nodes[static_cast<size_t>(n)].name,
                               op_info(graph.nodes[static_cast<size_t>(n)].op())->name, "", 0, false};
  };
  const std::vector<Role> roles = assign_roles(graph, plan_.left);
  const std::vector<ValueId> list = values_to_round(graph, roles);
  const std::set<ValueId> rounded(list.begin(), list.end());
  std::vector<ValueId> values;
  for (const auto& [id, value] : plan_.wide) values.push_back(id);
  const std::map<ValueId, ValueId> wide = with_moved(graph, roles, values);
  const auto done = [&](ValueId id, bool weights) -> std::string {
    if (!weights && rounded.contains(id)) return wide.contains(id) ? "int16 activations" : "";
    const int n = uses.producer[static_cast<size_t>(id)];
    return weights && roles[static_cast<size_t>(n)] == Role::kInteger ? "" : "float";
  };
  for (const bool weights : {false, true})
    for (const auto& [id, noise] : weights ? sensitivity_.weights : sensitivity_.values) {
      NoiseSource source = layer(id);
      if (!weights) source.value = graph.value(id).name;
      source.weights = weights;
      source.db = noise.worst_db();
      source.done = done(id, weights);
      summary_.sources.push_back(std::move(source));
    }
  std::stable_sort(summary_.sources.begin(), summary_.sources.end(),
                   [](const NoiseSource& a, const NoiseSource& b) { return a.db < b.db; });
}

std::string without_flags(const std::string& flags) { return flags.empty() ? "" : " without " + flags; }

std::vector<OutputNoise> noise_by_output(const Graph& graph, const Noise& noise) {
  std::vector<OutputNoise> result;
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    result.push_back({graph.value(graph.outputs[i]).name, to_db(noise.outputs[i])});
    if (noise.unequal[i]) result.back().equal = 1 - *noise.unequal[i];
  }
  return result;
}

std::vector<OutputNoise> measure_noise(const Graph& exact, const Graph& rounded, SampleSource& samples,
                                       const QuantizeOptions& options, int64_t* measured) {
  samples.rewind();
  KeptSamples kept(Trials::most_samples(exact), samples.count());
  for (Sample sample; samples.next(&sample);) kept.offer(sample);
  const Trials trials(exact, kept.take(), options.runner);
  *measured = static_cast<int64_t>(trials.size());
  return judged(exact, rounded, trials);
}

Evaluation evaluate_noise(const Graph& exact, const Graph& rounded, SampleSource& samples,
                          const QuantizeOptions& options) {
  Evaluation result;
  const auto progress = [&](int64_t done, int64_t total) {
    if (options.progress) options.progress(phase::kEvaluating, done, total, std::nullopt);
  };
  result.outputs =
      noise_by_output(exact, measure_all(exact, rounded, samples, options.runner, progress, &result.samples));
  if (result.samples == 0) throw DataError("--evaluate: the data holds no samples");
  return result;
}

QuantizeSummary quantize_graph(Graph& graph, SampleSource& samples, const QuantizeOptions& options,
                               std::span<Graph* const> others) {
  require_stage(graph, Stage::kRewritten, "quantization");
  const std::vector<size_t> byte_inputs = dequantize_bytes(graph);
  for (Graph* other : others) dequantize_bytes(*other);
  // Before it takes minutes.
  for (const Graph* other : others)
    if (const std::string difference = shape_difference(graph, *other); !difference.empty())
      throw UsageError(fmt::format(
          "--quantize with several --shapes: the sets do not have the same operations, so that they "
          "cannot share ranges: {}; convert each set into a file of its own",
          difference));
  // Rounded weights and their integers take 5 bytes for 4; those of a plan, and of some of another; and
  // copies that runs map. Large ones are in files (large_bytes.h).
  size_t bytes = 0;
  for (const Value& v : graph.values) bytes += v.constant ? v.constant->byte_size() : 0;
  const WeightMemory memory(std::max(3 * bytes, size_t{8} << 20));
  // Integers take a quarter of the bytes of the weights; those of two trials.
  KeptPackings packings(std::max(bytes / 2, size_t{8} << 20));
  QuantizeOptions with = options;
  with.runner.packings = &packings;
  QuantizeSummary summary = Quantizer(graph, samples, with, others).run();
  for (const size_t i : byte_inputs) {
    graph.value(graph.inputs[i]).scale = 0;
    for (Graph* other : others) other->value(other->inputs[i]).scale = 0;
  }
  return summary;
}

}  // namespace sinter::convert
