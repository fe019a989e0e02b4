// sinter quantize
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "converter/cli/commands.h"
#include "converter/cli/conversion_run.h"
#include "converter/cli/convert_arguments.h"
#include "converter/cli/convert_options.h"
#include "converter/cli/terminal.h"
#include "converter/convert.h"
#include "converter/report/conversion_report.h"
#include "converter/report/summary.h"

namespace sinter::convert {
namespace {

void run_quantize(const ConvertArguments& a, Outcome& outcome) {
  ConversionOptions options = conversion_options(a);
  options.quantization.standard_form = true;
  options.onnx = a.onnx;
  check_conversion_files(a, &options);
  Diagnostics diagnostics;
  const std::optional<ConversionReport> report = run_conversion(a, options, diagnostics, outcome);
  if (!report) return;
  nlohmann::json json = to_json(*report, diagnostics);
  json["model"] = a.model, json["out"] = a.out;
  if (is_withheld(*report, a, json, outcome)) return;
  write_conversion_report(*report, a, json);
  give_conversion(a, json, to_text(*report, terminal_columns(stdout)), outcome);
}

}  // namespace

void add_quantize(CLI::App& app, Outcome& outcome) {
  auto a = std::make_shared<ConvertArguments>();
  a->quantize = "int8";
  CLI::App* c = app.add_subcommand("quantize", "Quantize an ONNX model into an ONNX file for other runtimes");
  add_quantize_flags(*c, *a);
  a->common.add_to(*c);
  c->footer(
      "Examples:\n"
      "  sinter quantize net.onnx -o int8.onnx --calibrate samples.npz\n"
      "  sinter quantize net.onnx -o int8.onnx --calibrate samples.npz --evaluate test.npz --label label \\\n"
      "                  --max-drop 0.5%\n"
      "  sinter quantize net.onnx -o int4.onnx --quantize int4w");
  c->callback([a, &outcome] { run_quantize(*a, outcome); });
}

}  // namespace sinter::convert
