// sinter ranges: the measurements of calibration, which show the layer that int8 does not suit.
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "converter/cli/commands.h"
#include "converter/cli/convert_options.h"
#include "converter/cli/data_flags.h"
#include "converter/cli/host_session.h"
#include "converter/cli/model_source.h"
#include "converter/cli/process_facts.h"
#include "converter/cli/progress.h"
#include "converter/cli/terminal.h"
#include "converter/convert.h"
#include "converter/diagnostics/errors.h"
#include "converter/diagnostics/printable.h"
#include "converter/import/read/reader.h"
#include "converter/quantize/ranges/calibrators.h"
#include "converter/quantize/ranges/observe.h"
#include "converter/quantize/samples/samples.h"
#include "sinter/thread_pool.h"

namespace sinter::convert {
namespace {

struct RangesArguments {
  CommonOptions common;
  DataFlags flags;
  ConvertArguments conversion;
  std::string model, data, calibrator = "best", backend;
  int64_t samples = -1;
  int threads = 1;
  bool plain = false;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void run_ranges(const RangesArguments& a, Outcome& outcome) {
  const auto rule = parse_calibrator(a.calibrator);
  if (!rule)
    throw UsageError(
        fmt::format("--calibrator {}: not a rule; sinter ranges --help lists them", a.calibrator));
  Diagnostics diagnostics;
  const std::optional<ImportedModel> imported = import_model(a.model, diagnostics);
  std::optional<Graph> graph;
  const LoweringOptions lowering = conversion_options(a.conversion).lowering;
  if (imported) graph = lower_model(*imported, lowering, diagnostics);
  if (!graph || diagnostics.refused()) {
    outcome.refuse(a.common, diagnostics);
    return;
  }
  const std::vector<SampleInput> inputs = sample_inputs(*graph, &imported->graph);
  const Preprocessing how = a.flags.preprocessing();
  check_preprocessing(how, {a.data}, inputs);
  const auto source = open_samples(a.data, inputs, {a.samples, how});
  if (const std::string text = left_out_text(*source); !text.empty())
    diagnostics.warn("", "", "--calibrate: " + text, "repair or remove these files");
  const auto start = std::chrono::steady_clock::now();
  check_samples(*source, inputs, diagnostics);
  const double check_seconds = seconds_since(start);
  run_passes(*graph, {});
  compact_values(*graph);
  ObserveOptions options;
  options.runner.backends = host_backends(a.backend);
  options.runner.backend = a.backend;
  std::optional<PthreadPool> pool;
  if (a.threads > 1) options.runner.threads = &pool.emplace(a.threads);
  Progress progress({{"running the model", 1}}, a.common.quiet);
  progress.begin("running the model");
  options.progress = [&](int64_t done, int64_t total) { progress.step(phase::kCalibrating, done, total); };
  const auto begun = std::chrono::steady_clock::now();
  const double cpu_begun = cpu_seconds();
  const std::vector<ValueId> values = a.plain ? std::vector<ValueId>() : observable_values(*graph);
  const Observations seen = observe(*graph, *source, values, options);
  const double seconds = seconds_since(begun), cpu = cpu_seconds() - cpu_begun;
  progress.finish();
  print_messages(diagnostics.to_text(a.common.quiet ? Severity::kWarning : Severity::kNote));
  nlohmann::json rows = nlohmann::json::array();
  if (!a.common.json && !a.common.quiet)
    print_text(fmt::format("{:>8} {:>10} {:>10} {:>10} {:>10}  {:<15} value\n", "dB", "min", "max", "low",
                           "high", "rule"));
  for (const auto& [id, s] : seen.values) {
    const ChosenRange c = choose_range(s, *rule);
    const std::string& name = graph->value(id).name;
    if (a.common.json)
      rows.push_back({{"name", name},
                      {"min", s.all.min},
                      {"max", s.all.max},
                      {"mean", s.mean()},
                      {"low", c.range.low},
                      {"high", c.range.high},
                      {"rule", calibrator_name(c.rule)},
                      {"sqnr_db", c.error.sqnr_db()},
                      {"not_finite", s.not_finite}});
    else if (!a.common.quiet)
      print_text(fmt::format("{:8.1f} {:10.4g} {:10.4g} {:10.4g} {:10.4g}  {:<15} {}\n", c.error.sqnr_db(),
                             s.all.min, s.all.max, c.range.low, c.range.high, calibrator_name(c.rule),
                             printable(name)));
  }
  if (a.common.json) {
    nlohmann::json json{{"samples", seen.samples}, {"check_seconds", check_seconds},     {"seconds", seconds},
                        {"cpu_seconds", cpu},      {"peak_rss_bytes", peak_rss_bytes()}, {"values", rows}};
    if (!source->left_out().empty()) json["skipped"] = source->left_out();
    print_json(json);
  } else if (!a.common.quiet) {
    print_text(fmt::format("{} samples, {:.2f} s\n", seen.samples, seconds));
  }
}

}  // namespace

void add_ranges(CLI::App& app, Outcome& outcome) {
  auto a = std::make_shared<RangesArguments>();
  CLI::App* c = app.add_subcommand("ranges", "Show the range of every value of an ONNX model on given data");
  c->add_option("model", a->model, "The ONNX file")->required();
  begin_group(*c, flag_group::kInput);
  add_value(*c, "--calibrate", a->data, "DATA",
            fmt::format("Samples: {}, or cmd:COMMAND that writes them", kDataFormats))
      ->required();
  add_value(*c, "--samples", a->samples, "N", "Use N samples, spread evenly over the data")
      ->check(CLI::Range(1, 1 << 30));
  begin_group(*c, flag_group::kQuantization);
  add_value(*c, "--calibrator", a->calibrator, "RULE",
            "best, minmax, moving-average, percentile[=99.99], entropy or mse");
  begin_group(*c, flag_group::kTarget);
  add_threads(*c, a->threads);
  add_value(*c, "--backend", a->backend, "NAME", backend_help());
  begin_group(*c, flag_group::kMeasurement);
  c->add_flag("--plain", a->plain, "Run the samples without observing any value, to compare times");
  a->flags.add_to(*c);
  add_source_flags(*c, a->conversion, false);
  a->common.add_to(*c);
  c->footer("Example:\n  sinter ranges net.onnx --calibrate samples.npz");
  c->callback([a, &outcome] { run_ranges(*a, outcome); });
}

}  // namespace sinter::convert
