// sinter simplify
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "converter/cli/commands.h"
#include "converter/cli/convert_options.h"
#include "converter/cli/model_source.h"
#include "converter/cli/output_paths.h"
#include "converter/cli/terminal.h"
#include "converter/files/pending_file.h"
#include "converter/simplify.h"

namespace sinter::convert {
namespace {

struct SimplifyArguments {
  CommonOptions common;
  ConvertArguments conversion;
  std::string model, out;
  int opset = 0;
  bool external_data = false;
};

void run_simplify(const SimplifyArguments& a, Outcome& outcome) {
  const std::string data = external_data_path(a.out).string();
  check_output(a.out);
  const std::vector<NamedFile> written{{"-o", a.out}, {"the external data beside -o", data}};
  std::vector<NamedFile> read{{"the model", a.model}};
  for (const std::string& file : constant_files(a.conversion)) read.push_back({"--const", file});
  check_outputs(written, read);
  SimplifyOptions options;
  options.lowering = conversion_options(a.conversion).lowering;
  options.opset = a.opset;
  options.external_data = a.external_data;
  options.external_files = check_of_external_data(written);
  Diagnostics diagnostics;
  const std::optional<SimplifyReport> report = simplify_file(a.model, a.out, options, diagnostics);
  if (!report) return outcome.refuse(a.common, diagnostics);
  print_messages(diagnostics.to_text(Severity::kWarning));
  if (a.common.json)
    print_json({{"model", a.model},
                {"out", a.out},
                {"opset", report->opset},
                {"nodes", {report->nodes_before, report->nodes_after}},
                {"bytes", {report->bytes_before, report->bytes_after}},
                {"external_data", report->external_data ? nlohmann::json(data) : nlohmann::json()},
                {"diagnostics", diagnostics.to_json()}});
  else if (!a.common.quiet)
    print_text(fmt::format(
        "graph     {} ONNX nodes -> {}, opset {}\nfile      {} bytes (before: {}){}\nwrote     {}\n",
        report->nodes_before, report->nodes_after, report->opset, report->bytes_after, report->bytes_before,
        report->external_data ? ", weights in " + data : "", a.out));
}

}  // namespace

void add_simplify(CLI::App& app, Outcome& outcome) {
  auto a = std::make_shared<SimplifyArguments>();
  CLI::App* c = app.add_subcommand(
      "simplify", "Write an ONNX model with fixed shapes, folded constants and the fewest nodes");
  c->add_option("model", a->model, "The .onnx file")->required();
  begin_group(*c, flag_group::kOutput);
  add_value(*c, "-o,--output", a->out, "FILE", "The .onnx file to write")->required();
  add_value(*c, "--opset", a->opset, "N",
            fmt::format("The version of ai.onnx of the new model; by default the model's, from {} to {}",
                        kOldestWrittenOpset, kNewestWrittenOpset))
      ->check(CLI::Range(kOldestWrittenOpset, kNewestWrittenOpset));
  c->add_flag("--external-data", a->external_data,
              "Write weights to FILE.data beside the model; without the flag only where the model has more "
              "than 2 GB");
  add_source_flags(*c, a->conversion, false);
  a->common.add_to(*c);
  c->footer(
      "Shapes and what follows from them, functions, constants and batch normalizations are folded; "
      "operators, "
      "names, types and metadata stay.\n"
      "Examples:\n"
      "  sinter simplify net.onnx -o simple.onnx --shape image=1,3,224,224\n"
      "  sinter simplify net.onnx -o simple.onnx --dim batch=1 --external-data");
  c->callback([a, &outcome] { run_simplify(*a, outcome); });
}

}  // namespace sinter::convert
