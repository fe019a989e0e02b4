#include "converter/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string_view>

#include "converter/diagnostics/errors.h"
#include "converter/diagnostics/printable.h"
#include "converter/import/caches/states.h"
#include "converter/import/read/reader.h"
#include "converter/ir/deep_copy.h"
#include "converter/ir/resident_limit.h"
#include "converter/passes/follow_nodes.h"
#include "converter/plan_entries.h"
#include "converter/quantize/report/low_sqnr_outputs.h"
#include "converter/quantize/report/type_rows.h"
#include "converter/quantize/samples/carried_states.h"
#include "converter/quantize/samples/check_scale.h"
#include "converter/quantize/samples/sample_split.h"
#include "converter/quantize/search/check_labels.h"
#include "converter/quantize/search/check_one_class.h"
#include "converter/quantize/search/metric_program.h"
#include "converter/quantize/search/trial_magnitudes.h"
#include "converter/quantize/weights/rounded_activations.h"
#include "converter/quantize/weights/weight_only.h"
#include "converter/target/target_names.h"
#include "converter/target/target_platforms.h"
#include "converter/types/check_types.h"
#include "runtime/backend/backend.h"
#include "runtime/backend/cpu.h"

namespace sinter::convert {

namespace {

// Inputs that a model is not made for may be larger than those of the trial, so that little of the range is
// allowed there; that bytes come unscaled is the worst case.
constexpr double kAllowedByUnit = 65504.0 / 16, kAllowedByBytes = 65504;

// Computes in `type` where a platform that the plan may use does.
void prefer(const HalfType& type, Graph& graph, const Target& target,
            const std::vector<const Platform*>& platforms, const std::vector<Backend*>& backends,
            Diagnostics& diagnostics) {
  std::vector<const Platform*> with_kernels = platforms;
  std::erase_if(with_kernels, [&](const Platform* p) { return !computes_half(*p, target, type.dtype); });
  if (with_kernels.empty()) {
    diagnostics.warn(
        "", "",
        fmt::format("{}: target '{}' has no kernels that compute in {} ({}); the model computes in "
                    "float32",
                    type.flag, target_text(target), type.name, type.machines),
        fmt::format("without the option, {} weights stay {} in the file", type.name, type.name));
    return;
  }
  Reached reached;
  if (type.is_narrow()) {
    RunnerOptions runner;
    runner.backends = backends;
    for (const auto& [id, range] : try_out(graph, runner))
      reached[id] = std::max(range.unit / kAllowedByUnit, range.bytes / kAllowedByBytes);
  }
  const auto accept = [&](const OpCall& call, size_t* workspace) {
    Status status;
    for (const Platform* p : with_kernels)
      if (status = p->accept(target, call, target.cores, workspace); status.ok()) break;
    return status;
  };
  const HalfSummary done = compute_in_half(graph, type, accept, reached);
  if (done.computed == 0)
    diagnostics.warn("", "",
                     fmt::format("{}: no operation of this model can compute in {}; the model computes in "
                                 "float32",
                                 type.flag, type.name),
                     "sinter inspect --types lists the reasons");
  if (done.unproven > 0)
    diagnostics.warn(
        done.first_unproven, done.first_op,
        fmt::format("{}: {} of {} operations in {}, the first of them this one, are not proven to "
                    "stay below {}; larger values become infinite",
                    type.flag, done.unproven, done.computed, type.name, type.largest),
        "test typical inputs with sinter compare, or remove the option");
  const auto is_missing = [&](const Platform* p) {
    return p->on_request && std::none_of(backends.begin(), backends.end(), [&](const Backend* b) {
             return std::string_view(b->name()) == p->name;
           });
  };
  const auto missing = std::ranges::find_if(with_kernels, is_missing);
  if (done.computed > 0 && missing != with_kernels.end())
    diagnostics.warn(
        "", "",
        fmt::format("{}: products in {} need {} on target '{}', which this build lacks and which the "
                    "device's runtime "
                    "may lack; there they run on the reference kernels, many times slower than in float32",
                    type.flag, type.name, (*missing)->name, target_text(target)),
        fmt::format("build the device's runtime with {}, or remove the option", (*missing)->name));
}

QuantizeSummary quantize_weights(Graph& graph, SampleSource* samples, SampleSource* evaluated,
                                 const ConversionOptions& options) {
  std::optional<Graph> exact;
  if (samples != nullptr || evaluated != nullptr) exact = graph;
  WeightOnlyOptions weights;
  weights.bits = weight_only_bits(options.quantize);
  weights.block = options.block;
  QuantizeSummary summary;
  summary.mode = weights.bits != 0 ? options.quantize : "activations";
  if (weights.bits != 0) {
    WeightOnlySummary done = narrow_weights(graph, weights);
    summary.layers = std::move(done.layers);
    file_left_float(graph, summary.layers, graph.ledger.get());
    summary.bytes_before = done.bytes_before, summary.bytes_after = done.bytes_after;
  }
  if (options.round_activations) summary.rounded_products = round_activations(graph);
  if (evaluated != nullptr)
    summary.evaluation = evaluate_noise(*exact, graph, *evaluated, options.quantization);
  if (samples == nullptr) return summary;
  const auto measure = [&](const Graph& tried) {
    return measure_noise(*exact, tried, *samples, options.quantization, &summary.measured);
  };
  summary.outputs = measure(graph);
  summary.wanted_db = kLittleSignal;
  if (worst_of(summary.outputs) >= kLittleSignal) return summary;
  constexpr int64_t kMostLookedAt = 8;
  summary.low =
      low_by_layers(summary.outputs, graph,
                    report_layers(*exact, graph, *samples,
                                  {.runner = options.quantization.runner, .most_samples = kMostLookedAt}),
                    summary.layers);
  const auto try_out = [&](std::string flags, std::string what, int bits, int64_t block) {
    WeightOnlyOptions other;
    other.bits = bits, other.block = block;
    Graph tried = *exact;
    tried.ledger = std::make_shared<TypeLedger>();
    narrow_weights(tried, other);
    if (options.round_activations) round_activations(tried);
    const std::vector<OutputNoise> outputs = measure(tried);
    summary.remedies.push_back(
        {std::move(flags), std::move(what), worst_of(summary.outputs), worst_of(outputs), outputs, {}, {}});
  };
  if (options.round_activations) {
    Graph tried = *exact;
    tried.ledger = std::make_shared<TypeLedger>();
    if (weights.bits != 0) narrow_weights(tried, weights);
    const std::vector<OutputNoise> outputs = measure(tried);
    summary.remedies.push_back({"without --activations int8",
                                "activations in float",
                                worst_of(summary.outputs),
                                worst_of(outputs),
                                outputs,
                                {},
                                {}});
  }
  if (weights.bits != 0 && weights.block > 16)
    try_out(fmt::format("--quantize {} --block 16", summary.mode), "more scales", weights.bits, 16);
  if (weights.bits != 0 && weights.bits < 8)
    try_out("--quantize int8w", "weights of 8 bits", 8, weights.block);
  rank_remedies(summary.wanted_db, &summary.remedies);
  return summary;
}

}  // namespace

namespace {

// --evaluate without labels. Checked before anything runs; its warnings are dropped.
std::unique_ptr<SampleSource> open_evaluation(const std::string& data, const std::vector<SampleInput>& inputs,
                                              const Preprocessing& how) {
  try {
    std::unique_ptr<SampleSource> samples = open_samples(data, inputs, {.preprocessing = how});
    Diagnostics ignored;
    check_samples(*samples, inputs, ignored);
    return samples;
  } catch (const DataError& e) {
    throw DataError(fmt::format("--evaluate: {}", e.what()));
  }
}

void warn_left_out(const char* flag, const SampleSource& samples, ConversionReport& report,
                   Diagnostics& diagnostics) {
  if (samples.left_out().empty()) return;
  diagnostics.warn("", "", fmt::format("{}: {}", flag, left_out_text(samples)),
                   "repair or remove these files");
  report.skipped.insert(report.skipped.end(), samples.left_out().begin(), samples.left_out().end());
}

RunnerOptions runner_of(const ConversionOptions& options) {
  RunnerOptions runner = options.quantization.runner;
  runner.backends = options.backends;
  return runner;
}

// A warning about labels from what the float model gives for some of the samples.
void check_some_labels(const Graph& graph, const std::vector<SampleInput>& inputs,
                       const ConversionOptions& options, Diagnostics& diagnostics) {
  if (options.evaluate.empty() || !options.metric.has_labels()) return;
  // Sequences stay whole.
  const int64_t most = graph.states.empty() ? kLabelledPredictions : -1;
  LabelledSamples some =
      open_labelled(options.evaluate, inputs, options.labels, {most, options.preprocessing});
  check_labels(graph, some, options.metric, runner_of(options), options.sequence, diagnostics);
}

// A limit that leaves nothing to integers undoes --quantize.
void warn_without_integers(const QuantizeSummary& summary, const ConversionOptions& options,
                           Diagnostics& diagnostics) {
  const auto& layers = summary.layers;
  const bool limited = options.quantization.min_sqnr || options.quantization.max_drop;
  const auto for_accuracy = std::count_if(
      layers.begin(), layers.end(), [](const LayerFate& l) { return l.left.reason == Reason::kAccuracy; });
  if (!limited || for_accuracy == 0 ||
      std::any_of(layers.begin(), layers.end(), [](const LayerFate& l) { return l.integer; }))
    return;
  const std::string limit = options.quantization.min_sqnr
                                ? fmt::format("--min-sqnr {:g}", *options.quantization.min_sqnr)
                                : fmt::format("--max-drop {:g}%", 100 * *options.quantization.max_drop);
  diagnostics.warn("", "",
                   fmt::format("{} keeps every operation in float, {} of {} for their accuracy, so that "
                               "nothing computes on integers",
                               limit, for_accuracy, layers.size()),
                   options.quantize == "int8"
                       ? "allow a larger loss, try --quantize int8x16, or remove --quantize"
                       : "allow a larger loss, or remove --quantize");
}

// A program's metric as a share of that of the float model, which is measured first.
double share_of_float(double value, const ProgramMetric& program, std::optional<ProgramValues>& values) {
  if (!values) {
    if (value == 0)
      throw DataError(
          fmt::format("--metric: the {} of the float model is 0, of which no share can be lost; leave out "
                      "--quantize, or print another number",
                      program.name()));
    values = {program.name(), value, value};
  }
  values->now = value;
  return 1 + (value - values->in_float) / std::fabs(values->in_float);
}

void describe_ports(const Graph& graph, const ImportedGraph& source, ConversionReport& report) {
  const auto port = [&](ValueId id, const std::vector<ImportedValueInfo>& declarations) {
    const Value& v = graph.value(id);
    PortReport p{v.name, v.dtype, v.dims, DType::kNone};
    for (const ImportedValueInfo& declared : declarations)
      if (declared.name == v.name) p.declared = declared.dtype;
    if (is_float(p.declared) && is_integer(v.dtype)) p.integers = {v.scale, v.zero_point};
    return p;
  };
  report.inputs.clear(), report.outputs.clear();
  for (const ValueId id : graph.inputs)
    if (graph.state_read(id) == nullptr && graph.given_length(id) == nullptr)
      report.inputs.push_back(port(id, source.inputs));
  for (const ValueId id : graph.outputs)
    if (graph.state_written(id) == nullptr) report.outputs.push_back(port(id, source.outputs));
}

// Why the result misses a target; empty: it does not.
std::string short_of(const QuantizeSummary& summary, const ConversionOptions& options) {
  if (!summary.reached && options.quantization.max_drop && options.metric.kind == Metric::Kind::kProgram)
    return fmt::format(
        "--max-drop {:.2g}%: with any choice of operations kept in float the metric is at most {:.2f} % of "
        "the float "
        "model's; more samples, or samples more like those to evaluate, may help",
        100 * *options.quantization.max_drop, 100 * summary.accuracy.value_or(0));
  if (!summary.reached && options.quantization.max_drop)
    return fmt::format(
        "--max-drop {:.2g}%: with any choice of operations kept in float at most {:.2f} % of the answers are "
        "right, {:.2f} % in float; more samples, or samples more like the labelled ones, may help",
        100 * *options.quantization.max_drop, 100 * summary.accuracy.value_or(0),
        100 * summary.float_accuracy.value_or(0));
  if (!summary.reached && summary.evaluation)
    return fmt::format(
        "--min-sqnr {:g}: no choice of operations kept in float gives this SQNR on the data of --evaluate; "
        "the last one tried gives {:.1f} dB there in the worst output, and {:.1f} dB on {} of --calibrate's "
        "samples{}",
        *options.quantization.min_sqnr, worst_of(summary.evaluation->outputs), worst_of(summary.outputs),
        summary.measured,
        worst_of(summary.outputs) >= *options.quantization.min_sqnr
            ? "; more of these, or samples more like the data to evaluate, may help"
            : "");
  if (!summary.reached)
    return fmt::format(
        "--min-sqnr {:g}: no choice of operations kept in float gives this SQNR; the best one found gives "
        "{:.1f} dB in the worst output",
        *options.quantization.min_sqnr, worst_of(summary.outputs));
  if (!options.require_int8) return {};
  std::string list;
  for (const LayerFate& l : summary.layers)
    if (!l.integer)
      list += fmt::format("\n  {} '{}': {}{}{}", l.op, printable(l.name), reason_name(l.left.reason),
                          l.left.detail.empty() ? "" : ", ", l.left.detail);
  return list.empty() ? "" : "--require-int8: these operations are kept in float:" + list;
}

bool fits_any_machine(const std::string& target) {
  std::string fault;
  const std::optional<Target> parsed = parse_target(target, &fault);
  return parsed && parsed->architecture == Architecture::kPortable;
}

}  // namespace

std::optional<Graph> load_graph(const std::filesystem::path& onnx, const LoweringOptions& options,
                                Diagnostics& diagnostics, ConversionReport* report) {
  const std::optional<ImportedModel> imported = import_model(onnx, diagnostics, 2 * options.most_operations);
  if (!imported) return std::nullopt;
  if (report != nullptr) report->onnx_nodes = imported->graph.nodes.size();
  return lower_model(*imported, options, diagnostics);
}

namespace {

// The diagnostics of a shape set: what the first one has as well is there once, the rest names its set.
void add_of_set(const Diagnostics& own, size_t set, const ConversionOptions& options,
                Diagnostics& diagnostics) {
  const std::vector<Diagnostic> before = diagnostics.all();
  for (Diagnostic d : own.all()) {
    if (set > 0 && std::find(before.begin(), before.end(), d) == before.end())
      d.message += fmt::format(" (with --shapes \"{}\")", options.shape_sets[set].text);
    diagnostics.add(std::move(d));
  }
}

// All entries lowered. Empty: refused; a refusal of a further set that does not concern the first one as well
// names the set.
std::vector<Entry> lower_entries(const ImportedModel& imported, const ConversionOptions& options,
                                 const std::vector<LoweringOptions>& lowerings, ConversionReport& report,
                                 Diagnostics& diagnostics) {
  std::vector<Graph> graphs;
  for (size_t i = 0; i < lowerings.size(); ++i) {
    Diagnostics own;
    NodeFates fates;
    std::optional<Graph> graph = lower_model(imported, lowerings[i], own, i == 0 ? &report.fates : &fates,
                                             i == 0 ? &report.settled_dims : nullptr);
    add_of_set(own, i, options, diagnostics);
    if (!graph || diagnostics.refused()) return {};
    graphs.push_back(std::move(*graph));
  }
  if (!options.shape_sets.empty()) attribute_to_sets(imported, options.lowering, report.settled_dims);
  check_sets(graphs, options.shape_sets, diagnostics);
  if (diagnostics.refused()) return {};
  std::vector<Entry> entries;
  for (size_t i = 0; i < graphs.size(); ++i)
    entries.push_back({options.shape_sets.empty() ? "" : options.shape_sets[i].text, std::move(graphs[i])});
  return entries;
}

}  // namespace

std::optional<ConversionReport> convert_file(const std::filesystem::path& onnx,
                                             const std::filesystem::path& out,
                                             const ConversionOptions& options, Diagnostics& diagnostics) {
  const auto stage = [&](const char* name) {
    if (options.progress) options.progress(name);
  };
  const ResidentLimit limit;  // of what is read, run, planned, written and read back
  ConversionReport report;
  stage("reading");
  const std::optional<ImportedModel> imported =
      import_model(onnx, diagnostics, 2 * options.lowering.most_operations);
  if (!imported) return std::nullopt;
  if (options.external_files) options.external_files(imported->external_files);
  report.onnx_nodes = imported->graph.nodes.size();
  const std::vector<LoweringOptions> lowerings =
      options_of_sets(*imported, options.lowering, options.shape_sets, diagnostics);
  if (diagnostics.refused()) return std::nullopt;
  std::vector<Entry> entries = lower_entries(*imported, options, lowerings, report, diagnostics);
  if (entries.empty()) return std::nullopt;
  Graph* const graph = &entries.front().graph;
  const auto each_other = [&](const auto& use) {
    for (size_t i = 1; i < entries.size(); ++i) use(entries[i].graph);
  };
  describe_ports(*graph, imported->graph, report);
  report.onnx_multiply_adds = total(multiply_adds(*graph));
  report.proposed_states = propose_states(*graph);
  // Data that does not fit is refused before anything runs.
  const std::vector<SampleInput> inputs = sample_inputs(*graph, &imported->graph);
  check_preprocessing(options.preprocessing, {options.calibrate, options.evaluate}, inputs);
  std::unique_ptr<SampleSource> samples;
  const bool chooses = options.quantize == "int8" || options.quantize == "int8x16";
  bool scale_warned = false;
  if (!options.calibrate.empty()) {
    stage("reading samples");
    const bool stateful = !graph->states.empty();
    samples =
        open_samples(options.calibrate, inputs, {stateful ? -1 : options.samples, options.preprocessing});
    check_samples(*samples, inputs, diagnostics);
    warn_left_out("--calibrate", *samples, report, diagnostics);
    if (!stateful && chooses && samples->is_file())
      scale_warned =
          check_scale(*graph, imported->graph,
                      *open_samples(options.calibrate, inputs, {kScaleSamples, options.preprocessing}),
                      options.quantization.runner, diagnostics);
    if (stateful)
      samples = with_states(std::move(samples), *graph, options.quantization.runner, options.sequence,
                            options.samples);
    if (const int64_t count = samples->count(); chooses && count >= 0 && SampleSplit(count).judges() == 0)
      diagnostics.warn("", "",
                       fmt::format("calibration data: none of {} sample{} can be held out, so the SQNR is "
                                   "measured on the samples that chose the ranges",
                                   count, count == 1 ? "" : "s"),
                       fmt::format("give at least 5 samples, preferably {}", 5 * kManyJudges));
  }
  const bool by_program = options.metric.kind == Metric::Kind::kProgram;
  std::unique_ptr<SampleSource> evaluated;
  std::optional<LabelledSamples> labelled;
  std::optional<ProgramMetric> program;
  if (!options.evaluate.empty() && options.metric.has_labels())
    labelled =
        open_labelled(options.evaluate, inputs, options.labels, {.preprocessing = options.preprocessing});
  else if (!options.evaluate.empty() &&
           (!options.quantize.empty() || options.round_activations || by_program))
    evaluated = open_evaluation(options.evaluate, inputs, options.preprocessing);
  if (labelled) warn_left_out("--evaluate", *labelled->samples, report, diagnostics);
  if (evaluated) warn_left_out("--evaluate", *evaluated, report, diagnostics);
  if (evaluated && !by_program && !graph->states.empty())
    evaluated = with_states(std::move(evaluated), *graph, options.quantization.runner, options.sequence, -1);
  if (options.strict && diagnostics.count(Severity::kWarning) > 0) return std::nullopt;
  std::error_code ignored;
  report.onnx_bytes = std::filesystem::file_size(onnx, ignored);
  report.lowered_nodes = count_nodes(*graph);
  if (options.narrow_float64)
    for (Entry& entry : entries) narrow_float64(entry.graph);
  stage("rewriting");
  report.passes = run_passes(*graph, options.passes, report.fates);
  each_other([&](Graph& other) { run_passes(other, options.passes); });
  check_some_labels(*graph, inputs, options, diagnostics);
  if (samples && samples->is_file() && chooses && !scale_warned && graph->states.empty())
    check_one_class(*graph,
                    *open_samples(options.calibrate, inputs, {kOneClassSamples, options.preprocessing}),
                    runner_of(options), diagnostics);
  if (options.strict && diagnostics.count(Severity::kWarning) > 0) return std::nullopt;
  const NodeFates::Picture rewritten(*graph);
  if (options.prefer != nullptr) {
    stage("trying out");
    const Target& first = options.targets.front();
    for (size_t i = 0; i < entries.size(); ++i) {
      Diagnostics own;
      prefer(*options.prefer, entries[i].graph, first, platforms_to_plan(first, options), options.backends,
             own);
      add_of_set(own, i, options, diagnostics);
    }
    if (options.strict && diagnostics.count(Severity::kWarning) > 0) return std::nullopt;
  }
  std::optional<Graph> exact;
  if (samples && options.details) exact = *graph;
  if (weight_only_bits(options.quantize) != 0 || options.round_activations) {
    stage("quantizing weights");
    const bool by_noise = options.metric.kind == Metric::Kind::kSqnr;
    report.quantized = quantize_weights(*graph, samples.get(), by_noise ? evaluated.get() : nullptr, options);
    if (options.round_activations && report.quantized->rounded_products == 0)
      diagnostics.warn(
          "", "",
          "--activations int8: no product of this model has weights that are integers of few bits; "
          "all activations stay in float",
          "add --quantize int4w (or int8w), or remove the option");
    // Of the same weights the same integers.
    each_other([&](Graph& other) { quantize_weights(other, nullptr, nullptr, options); });
  } else if (samples) {
    stage("quantizing");
    QuantizeOptions quantization = options.quantization;
    quantization.require_int8 = options.require_int8;
    const Target& first = options.targets.front();
    quantization.cpu = platforms_to_plan(first, options).empty() ? reference_cpu_of(first) : cpu_of(first);
    if (!options.evaluate.empty() && by_program) {
      program.emplace(options.metric.program, options.evaluate, options.metric.seconds);
      quantization.accuracy = [&](const Graph& tried) {
        return share_of_float(program->measure(*evaluated, tried, quantization.runner, options.sequence),
                              *program, report.metric);
      };
    }
    if (labelled)
      quantization.accuracy = [&](const Graph& tried) {
        return share_right(*labelled, options.metric, tried, quantization.runner, options.sequence);
      };
    if (evaluated && !program)
      quantization.evaluate = [&](const Graph& before, const Graph& after) {
        return evaluate_noise(before, after, *evaluated, quantization);
      };
    std::vector<Graph*> others;
    each_other([&](Graph& other) { others.push_back(&other); });
    quantization.integer_ports = mark_integer_ports(*graph, options.public_types);
    for (Graph* other : others) mark_integer_ports(*other, options.public_types);
    report.quantized = quantize_graph(*graph, *samples, quantization, others);
    report.quantized->mode = options.quantize;
    report.withheld = short_of(*report.quantized, options);
    if (!report.withheld.empty()) return report;
    warn_without_integers(*report.quantized, options, diagnostics);
  }
  if (options.public_types.any()) {
    give_public_types(*graph, options.public_types);
    each_other([&](Graph& other) { give_public_types(other, options.public_types); });
    describe_ports(*graph, imported->graph, report);
  }
  if (exact)
    report.layers =
        report_layers(*exact, *graph, *samples,
                      {.runner = options.quantization.runner, .progress = options.quantization.progress});
  if (const bool whole = options.passes.disabled.empty() && options.passes.stop_after < 0; whole)
    for (const Entry& entry : entries)
      if (std::string fault = check_types(entry.graph); !fault.empty()) throw std::logic_error(fault);
  if (options.prefer != nullptr) report.fates.follow(options.prefer->flag, rewritten, *graph);
  if (report.quantized)
    report.fates.follow(options.quantize.empty() ? "--activations" : "--quantize", rewritten, *graph);
  for (Entry& entry : entries) compact_values(entry.graph);
  report.ledger = graph->ledger;
  stage("planning");
  std::vector<PlannedModel> plans;
  for (size_t i = 0; i < options.targets.size(); ++i) {
    const bool last = i + 1 == options.targets.size();
    const auto graph_of = [&](size_t k) {
      Graph& own = entries[k].graph;
      return last ? std::make_shared<Graph>(std::move(own)) : deep_copy(own);
    };
    std::optional<PlannedModel> plan =
        plan_entries(options.targets[i], entries, graph_of, i == 0, options, report);
    if (!plan) return report;
    plans.push_back(std::move(*plan));
  }
  // Sessions take the first that fits their machine.
  std::stable_sort(plans.begin(), plans.end(), [](const PlannedModel& a, const PlannedModel& b) {
    return fits_any_machine(a.target) < fits_any_machine(b.target);
  });
  for (const PlannedModel& plan : plans)
    report.profiles.push_back({plan.target, step_count(plan), plan.programs.front().arena_bytes});
  stage("writing");
  EmitOptions emit = options.emit;
  emit.debug_text = to_lines(*report.ledger) + to_lines(report.fates, *plans.front().programs.front().graph);
  if (options.check)
    emit.check = [&](const std::filesystem::path& file) { options.check(plans, lowerings, file); };
  report.file = emit_model(plans, out, emit);
  return report;
}

}  // namespace sinter::convert
