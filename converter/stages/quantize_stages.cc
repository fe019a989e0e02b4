// The graphs are quantized, and what that did is reported.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "converter/diagnostics/errors.h"
#include "converter/diagnostics/printable.h"
#include "converter/quantize/report/low_sqnr_outputs.h"
#include "converter/quantize/search/metric_program.h"
#include "converter/quantize/weights/weight_only.h"
#include "converter/stages/conversion.h"
#include "converter/types/type_faults.h"
#include "runtime/backend/cpu.h"

namespace sinter::convert {
namespace {

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

}  // namespace

bool Conversion::rounds_weights() const {
  return weight_only_bits(options.quantize) != 0 || options.round_activations;
}

bool keep_float_graph(Conversion& c) {
  c.in_float = c.graph();
  return true;
}

bool quantize(Conversion& c) {
  const ConversionOptions& options = c.options;
  QuantizeOptions how = options.quantization;
  if (c.rounds_weights())
    how.weights = {.bits = weight_only_bits(options.quantize),
                   .block = options.block,
                   .round_activations = options.round_activations};
  how.require_int8 = options.require_int8;
  how.byte_flags = options.public_types.byte_flags();
  const Target& first = options.targets.front();
  how.cpu = platforms_to_plan(first, options).empty() ? reference_cpu_of(first) : cpu_of(first);
  std::optional<ProgramMetric> program;
  if (!options.evaluate.empty() && options.metric.kind == Metric::Kind::kProgram) {
    program.emplace(options.metric.program, options.evaluate, options.metric.seconds);
    how.accuracy = [&](const Graph& tried) {
      return share_of_float(program->measure(*c.evaluated, tried, how.runner, options.sequence), *program,
                            c.report.metric);
    };
  }
  if (c.labelled)
    how.accuracy = [&](const Graph& tried) {
      return share_right(*c.labelled, options.metric, tried, how.runner, options.sequence);
    };
  if (c.evaluated && !program)
    how.evaluate = [&](const Graph& before, const Graph& after) {
      return evaluate_noise(before, after, *c.evaluated, how);
    };
  std::vector<Graph*> others;
  for (Entry& other : c.further()) others.push_back(&other.graph);
  if (!how.weights) {
    how.integer_ports = mark_integer_ports(c.graph(), options.public_types);
    for (Graph* other : others) mark_integer_ports(*other, options.public_types);
  }
  c.report.quantized = quantize_graph(c.graph(), c.samples.get(), how, others);
  if (!how.weights) c.report.quantized->mode = options.quantize;
  if (options.round_activations && c.report.quantized->rounded_products == 0)
    c.diagnostics.warn("", "",
                       "--activations int8: no product of this model has weights that are integers of few "
                       "bits; all activations stay in float",
                       "add --quantize int4w (or int8w), or remove the option");
  c.report.withheld = short_of(*c.report.quantized, options);
  if (c.report.withheld.empty()) warn_without_integers(*c.report.quantized, options, c.diagnostics);
  return true;
}

bool publish_types(Conversion& c) {
  for (Entry& entry : c.entries) give_public_types(entry.graph, c.options.public_types, c.report.fates);
  describe_ports(c);
  return true;
}

bool report_rounding(Conversion& c) {
  const ConversionOptions& options = c.options;
  if (c.in_float)
    c.report.layers =
        report_layers(*c.in_float, c.graph(), *c.samples,
                      {.runner = options.quantization.runner, .progress = options.quantization.progress});
  if (options.prefer != nullptr) c.report.fates.follow(options.prefer->flag, *c.rewritten, c.graph());
  if (c.report.quantized)
    c.report.fates.follow(options.quantize.empty() ? "--activations" : "--quantize", *c.rewritten, c.graph());
  return true;
}

bool check_all_types(Conversion& c) {
  for (const Entry& entry : c.entries)
    if (std::string fault = type_fault(entry.graph); !fault.empty()) throw std::logic_error(fault);
  return true;
}

}  // namespace sinter::convert
