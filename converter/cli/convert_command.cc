// sinter convert
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "converter/cli/commands.h"
#include "converter/cli/conversion_run.h"
#include "converter/cli/convert_arguments.h"
#include "converter/cli/convert_options.h"
#include "converter/cli/device_places.h"
#include "converter/cli/file_stages.h"
#include "converter/cli/host_session.h"
#include "converter/cli/input_data.h"
#include "converter/cli/terminal.h"
#include "converter/convert.h"
#include "converter/import/read/arrays.h"
#include "converter/quantize/search/metric.h"
#include "converter/quantize/search/metric_program.h"
#include "converter/report/conversion_report.h"
#include "converter/report/summary.h"

namespace sinter::convert {
namespace {

// A session of the written file, whose samples' states begin anew every `sequence` samples (0: never).
class SequenceSession {
 public:
  SequenceSession(const std::filesystem::path& file, int64_t sequence,
                  std::shared_ptr<const CustomOperators> custom_ops)
      : loaded_(file, {}, LoadedModel::Reading::kMapped, std::move(custom_ops)),
        session_(loaded_, {.backend = backend_here(loaded_.model(), loaded_.model().default_profile())}),
        inputs_(sample_inputs(loaded_.model())),
        sequence_(sequence) {}
  const std::vector<SampleInput>& inputs() const { return inputs_; }
  Arrays run(const Sample& sample) {
    if (sequence_ > 0 && index_++ % sequence_ == 0) session_.session().reset();
    session_.set_inputs(as_arrays(sample, inputs_));
    session_.run();
    return session_.outputs();
  }

 private:
  LoadedModel loaded_;
  HostSession session_;
  std::vector<SampleInput> inputs_;
  int64_t sequence_, index_ = 0;
};

// Returns the share of right answers of the written file.
double share_right(const std::filesystem::path& file, const ConversionOptions& options) {
  SequenceSession session(file, options.sequence, options.lowering.custom_ops);
  LabelledSamples data = open_labelled(options.evaluate, session.inputs(), options.labels,
                                       {.preprocessing = options.preprocessing});
  return share_right(data, options.metric,
                     [&](const Sample& sample) { return session.run(sample).front().second->as_doubles(); });
}

// Returns the name and value of the metric that a program computes from the written file's outputs.
std::pair<std::string, double> measure_by_program(const std::filesystem::path& file,
                                                  const ConversionOptions& options,
                                                  const std::vector<PortReport>& outputs) {
  SequenceSession session(file, options.sequence, options.lowering.custom_ops);
  const auto samples =
      open_samples(options.evaluate, session.inputs(), {.preprocessing = options.preprocessing});
  ProgramMetric program(options.metric.program, options.evaluate, options.metric.seconds);
  // The program gets numbers, as from the float model, in place of the integers of --output-type.
  const double value = program.measure(*samples, [&](const Sample& sample) {
    Arrays arrays = session.run(sample);
    for (auto& [name, array] : arrays)
      for (const PortReport& port : outputs)
        if (port.name == name && port.integers.scale > 0) array = as_numbers(array, port.integers);
    return arrays;
  });
  return {program.name(), value};
}

void run_convert(const ConvertArguments& a, Outcome& outcome) {
  ConversionOptions options = conversion_options(a);
  check_conversion_files(a, &options);
  Diagnostics diagnostics;
  FileStages file(a, options, diagnostics);
  const std::optional<ConversionReport> report = run_conversion(a, options, diagnostics, outcome);
  if (!report) return;
  nlohmann::json json = to_json(*report, diagnostics);
  json["model"] = a.model, json["out"] = a.out;
  if (file.signer) json["key_id"] = file.signer->id();
  if (file.packs()) json["packed"] = file.packed.to_json();
  if (!file.sizes.is_null()) json.update(file.sizes);
  if (is_withheld(*report, a, json, outcome)) return;
  if (!options.evaluate.empty() && options.metric.has_labels()) json[a.metric] = share_right(a.out, options);
  if (options.metric.kind == Metric::Kind::kProgram) {
    const auto [name, value] = measure_by_program(a.out, options, report->outputs);
    json["metric"] = {{"name", name}, {"value", value}};
    if (report->metric) json["metric"]["in_float"] = report->metric->in_float;
  }
  write_conversion_report(*report, a, json);
  std::string text = to_text(*report, terminal_columns(stdout));
  if (json.contains("metric"))
    text += fmt::format("metric    {}: {:g} on this machine\n", json["metric"]["name"].get<std::string>(),
                        json["metric"]["value"].get<double>());
  if (json.contains(a.metric) && !(report->quantized && report->quantized->accuracy))
    text += fmt::format("accuracy  {:.2f} %{}\n", 100 * json[a.metric].get<double>(),
                        options.metric.top == 1 ? "" : fmt::format(" (top {})", options.metric.top));
  if (!report->stripes.empty() && file.sizes.contains("session_bytes"))
    text += fmt::format("session   {} bytes on this machine, including weights packed for each stripe\n",
                        file.sizes["session_bytes"].get<size_t>());
  if (file.packs()) text += file.packed.to_text();
  if (file.signer) text += fmt::format("signed    with key {}\n", file.signer->id());
  give_conversion(a, json, text, outcome);
}

}  // namespace

void add_convert(CLI::App& app, Outcome& outcome) {
  auto a = std::make_shared<ConvertArguments>();
  CLI::App* c = app.add_subcommand("convert", "Convert an ONNX model into a .sinter file");
  add_convert_flags(*c, *a);
  a->common.add_to(*c);
  c->footer(
      "Examples:\n"
      "  sinter convert net.onnx -o net.sinter --dim sequence=128\n"
      "  sinter convert net.onnx -o net.sinter --quantize int8w\n"
      "  sinter convert net.onnx -o net.sinter --quantize int8 --calibrate samples.npz\n"
      "  sinter convert net.onnx -o net.sinter --quantize int8 --calibrate samples.npz \\\n"
      "                 --evaluate test.npz --label label --max-drop 0.5%");
  c->callback([a, &outcome] { run_convert(*a, outcome); });
}

}  // namespace sinter::convert
