#include "converter/convert.h"

#include "converter/ir/resident_limit.h"
#include "converter/stages/conversion.h"

namespace sinter::convert {
namespace {

struct StageOfConversion {
  const char* progress;  // what a terminal shows; null: a part of the one before
  bool (*run)(Conversion&);
  bool (*applies)(const Conversion&) = nullptr;  // null: always
};

constexpr StageOfConversion kStages[] = {
    {"reading", read_model},
    {nullptr, lower_entries},
    {"reading samples", open_calibration, [](const Conversion& c) { return !c.options.calibrate.empty(); }},
    {nullptr, open_evaluation, [](const Conversion& c) { return !c.options.evaluate.empty(); }},
    {nullptr, refuse_warnings},
    {"rewriting", rewrite},
    {nullptr, check_data},
    {nullptr, refuse_warnings},
    {"trying out", compute_in_preferred_type,
     [](const Conversion& c) { return c.options.prefer != nullptr; }},
    {nullptr, refuse_warnings},
    {nullptr, keep_float_graph, [](const Conversion& c) { return c.samples && c.options.details; }},
    {"quantizing weights", quantize, [](const Conversion& c) { return c.rounds_weights(); }},
    {"quantizing", quantize, [](const Conversion& c) { return c.samples && !c.rounds_weights(); }},
    {nullptr, publish_types, [](const Conversion& c) { return c.options.public_types.any(); }},
    {nullptr, check_all_types, [](const Conversion& c) { return c.options.passes.runs_all(); }},
    {nullptr, report_rounding},
    {"planning", plan, [](const Conversion& c) { return !c.options.onnx; }},
    {"writing", write, [](const Conversion& c) { return !c.options.onnx; }},
    {"writing", write_onnx, [](const Conversion& c) { return c.options.onnx.has_value(); }},
};

}  // namespace

bool refuse_warnings(Conversion& c) {
  return !c.options.strict || c.diagnostics.count(Severity::kWarning) == 0;
}

std::optional<ConversionReport> convert_file(const std::filesystem::path& onnx,
                                             const std::filesystem::path& out,
                                             const ConversionOptions& options, Diagnostics& diagnostics) {
  const ResidentLimit limit;  // of what is read, run, planned, written and read back
  Conversion c{onnx, out, options, diagnostics};
  for (const StageOfConversion& stage : kStages) {
    if (stage.applies != nullptr && !stage.applies(c)) continue;
    if (stage.progress != nullptr && options.progress) options.progress(stage.progress);
    if (!stage.run(c)) return std::nullopt;
    if (!c.report.withheld.empty()) break;
  }
  return std::move(c.report);
}

}  // namespace sinter::convert
