// The data to calibrate and to evaluate with is opened, and compared with what the model expects.
#include <fmt/format.h>

#include "converter/diagnostics/errors.h"
#include "converter/passes/pass.h"
#include "converter/quantize/samples/carried_states.h"
#include "converter/quantize/samples/check_scale.h"
#include "converter/quantize/samples/sample_split.h"
#include "converter/quantize/search/check_labels.h"
#include "converter/quantize/search/check_one_class.h"
#include "converter/stages/conversion.h"

namespace sinter::convert {
namespace {

// --evaluate without labels. Checked before anything runs; its warnings are dropped.
std::unique_ptr<SampleSource> open_checked(const std::string& data, const std::vector<SampleInput>& inputs,
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

void warn_left_out(const char* flag, const SampleSource& samples, Conversion& c) {
  if (samples.left_out().empty()) return;
  c.diagnostics.warn("", "", fmt::format("{}: {}", flag, left_out_text(samples)),
                     "repair or remove these files");
  c.report.skipped.insert(c.report.skipped.end(), samples.left_out().begin(), samples.left_out().end());
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

// Up to `most` samples, as the network's own inputs take them.
std::unique_ptr<SampleSource> some_samples(const Conversion& c, int64_t most) {
  std::unique_ptr<SampleSource> some =
      open_samples(c.options.calibrate, c.inputs, {most, c.options.preprocessing});
  return c.built_in ? behind_scale(std::move(some), *c.built_in, runner_of(c.options)) : std::move(some);
}

}  // namespace

bool open_calibration(Conversion& c) {
  const ConversionOptions& options = c.options;
  const bool stateful = !c.graph().states.empty();
  c.samples =
      open_samples(options.calibrate, c.inputs, {stateful ? -1 : options.samples, options.preprocessing});
  check_samples(*c.samples, c.inputs, c.diagnostics);
  warn_left_out("--calibrate", *c.samples, c);
  if (!stateful && c.computes_on_integers() && c.samples->is_file()) {
    c.built_in = split_built_in_scale(c.graph());
    c.scale_warned = check_scale(c.built_in ? c.built_in->network : c.graph(), c.imported->graph,
                                 *some_samples(c, kScaleSamples), options.quantization.runner, c.diagnostics);
  }
  if (stateful)
    c.samples = with_states(std::move(c.samples), c.graph(), options.quantization.runner, options.sequence,
                            options.samples);
  if (const int64_t count = c.samples->count();
      c.computes_on_integers() && count >= 0 && SampleSplit(count).judges() == 0)
    c.diagnostics.warn("", "",
                       fmt::format("calibration data: none of {} sample{} can be held out, so the SQNR is "
                                   "measured on the samples that chose the ranges",
                                   count, count == 1 ? "" : "s"),
                       fmt::format("give at least 5 samples, preferably {}", 5 * kManyJudges));
  return true;
}

bool open_evaluation(Conversion& c) {
  const ConversionOptions& options = c.options;
  const bool by_program = options.metric.kind == Metric::Kind::kProgram;
  if (options.metric.has_labels()) {
    c.labelled =
        open_labelled(options.evaluate, c.inputs, options.labels, {.preprocessing = options.preprocessing});
    warn_left_out("--evaluate", *c.labelled->samples, c);
  } else if (!options.quantize.empty() || options.round_activations || by_program) {
    c.evaluated = open_checked(options.evaluate, c.inputs, options.preprocessing);
    warn_left_out("--evaluate", *c.evaluated, c);
    if (!by_program && !c.graph().states.empty())
      c.evaluated =
          with_states(std::move(c.evaluated), c.graph(), options.quantization.runner, options.sequence, -1);
  }
  return true;
}

bool check_data(Conversion& c) {
  check_some_labels(c.graph(), c.inputs, c.options, c.diagnostics);
  if (c.samples && c.samples->is_file() && c.computes_on_integers() && !c.scale_warned &&
      c.graph().states.empty()) {
    if (c.built_in) run_passes(c.built_in->network, c.options.passes);
    check_one_class(c.built_in ? c.built_in->network : c.graph(), *some_samples(c, kOneClassSamples),
                    runner_of(c.options), c.diagnostics);
  }
  return true;
}

}  // namespace sinter::convert
