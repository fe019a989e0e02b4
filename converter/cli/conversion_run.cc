#include "converter/cli/conversion_run.h"

#include <fmt/format.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <nlohmann/json.hpp>

#include "converter/cli/convert_options.h"
#include "converter/cli/file_stages.h"
#include "converter/cli/output_paths.h"
#include "converter/cli/progress.h"
#include "converter/cli/terminal.h"
#include "converter/report/conversion_report.h"
#include "converter/report/quantize_report.h"

namespace sinter::convert {
namespace {

// Returns the stages that convert_file() names, with their usual shares of the time.
std::vector<ProgressStage> stages_of(const ConvertArguments& a) {
  if (a.quantize.empty() && a.activations.empty())
    return {{"reading", 2}, {"rewriting", 4}, {"planning", 4}, {"writing", 2}};
  if (a.calibrate.empty())
    return {{"reading", 1}, {"rewriting", 2}, {"quantizing weights", 4}, {"planning", 2}, {"writing", 2}};
  if (a.quantize.empty() || a.quantize.ends_with('w'))
    return {{"reading", 1},  {"reading samples", 1}, {"rewriting", 2}, {"quantizing weights", 20},
            {"planning", 3}, {"writing", 2}};
  return {{"reading", 1},     {"reading samples", 1}, {"rewriting", 1},
          {"quantizing", 90}, {"planning", 1},        {"writing", 1}};
}

// Folding makes and drops large arrays; clearing new pages for each would take longer than the arithmetic.
void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 256 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

}  // namespace

void check_conversion_files(const ConvertArguments& a, ConversionOptions* options) {
  if (!a.report.empty()) check_report_name(a.report);
  std::vector<NamedFile> read{{"the model", a.model},
                              {"--calibrate", a.calibrate},
                              {"--evaluate", a.evaluate_data},
                              {"--sign", a.sign}};
  for (const std::string& file : constant_files(a)) read.push_back({"--const", file});
  for (const LabelFile& labels : options->label_files) read.push_back({"--labels", labels.file});
  check_output(a.out);
  const std::vector<NamedFile> written{{"-o", a.out}, {"--report", a.report}};
  check_outputs(written, read);
  options->external_files = check_of_external_data(written);
  check_labels(a);
}

std::optional<ConversionReport> run_conversion(const ConvertArguments& a, ConversionOptions options,
                                               Diagnostics& diagnostics, Outcome& outcome) {
  if (outcome.listener == nullptr) keep_freed_memory();  // other programs keep their allocator's settings
  Progress progress(stages_of(a), a.common.quiet, outcome.listener);
  options.progress = [&](const char* stage) { progress.begin(stage); };
  options.quantization.progress = [&](const Phase& phase, int64_t done, int64_t total,
                                      const std::optional<TimeLeft>& left) {
    progress.step(phase, done, total, left);
  };
  std::optional<ConversionReport> report;
  try {
    report = convert_file(a.model, a.out, options, diagnostics);
  } catch (const RefusedByTrial&) {
  }
  progress.finish();
  if (!report && diagnostics.refused()) {
    outcome.refuse(a.common, diagnostics);
    return std::nullopt;
  }
  if (outcome.listener == nullptr) print_messages(diagnostics.to_text(Severity::kWarning));
  if (report) return report;
  constexpr char kStrict[] = "--strict: the model is refused because of its warnings";
  outcome.exit_code = 1;
  if (outcome.takes_json(a.common))
    outcome.give({{"withheld", kStrict}, {"error", kStrict}, {"diagnostics", diagnostics.to_json()}});
  if (outcome.listener == nullptr) print_messages(fmt::format("sinter: {}, which are above\n", kStrict));
  return std::nullopt;
}

bool is_withheld(const ConversionReport& report, const ConvertArguments& a, nlohmann::json json,
                 Outcome& outcome) {
  if (report.withheld.empty()) return false;
  json["withheld"] = json["error"] = report.withheld;
  outcome.exit_code = 1;
  const std::string text = report.quantized ? to_text(*report.quantized) : "";
  if (outcome.takes_json(a.common))
    outcome.give(json, text);
  else if (!a.common.quiet)
    print_text(text);
  if (outcome.listener == nullptr)
    print_messages(fmt::format("sinter: {}\n        no file is written\n", report.withheld));
  return true;
}

void write_conversion_report(const ConversionReport& report, const ConvertArguments& a,
                             const nlohmann::json& json) {
  if (a.report.empty()) return;
  nlohmann::json all = json;
  all.update(details_json(report));
  write_report(a.report, all);
}

void give_conversion(const ConvertArguments& a, const nlohmann::json& json, const std::string& text,
                     const Outcome& outcome) {
  if (outcome.takes_json(a.common))
    outcome.give(json, text);
  else if (!a.common.quiet)
    print_text(fmt::format("{}wrote     {}\n", text, a.out));
}

}  // namespace sinter::convert
