// sinter repair: an ONNX model with the fewest edits that make it well typed.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "converter/cli/commands.h"
#include "converter/cli/convert_options.h"
#include "converter/cli/model_source.h"
#include "converter/cli/output_paths.h"
#include "converter/cli/terminal.h"
#include "converter/diagnostics/errors.h"
#include "converter/files/pending_file.h"
#include "converter/repair/repair_diff.h"
#include "converter/repair/rewrite.h"

namespace sinter::convert {
namespace {

struct RepairArguments {
  CommonOptions common;
  ConvertArguments conversion;
  std::string model, out;
  bool diff = false, copy_data = false;
};

std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
}

// The files of external data, which the repaired model finds beside itself under the same names.
struct DataCopy {
  std::filesystem::path from, to;
};

std::vector<DataCopy> data_copies(const RepairArguments& a, const ImportedModel& model) {
  std::vector<DataCopy> copies;
  const std::filesystem::path from = folder_of(a.model), to = folder_of(a.out);
  std::error_code ignored;
  if (std::filesystem::equivalent(from, to, ignored)) return copies;
  for (const std::filesystem::path& file : model.external_files)
    copies.push_back({file, to / file.lexically_relative(from)});
  if (!copies.empty() && !a.copy_data)
    throw UsageError(fmt::format(
        "-o {}: the model's data is in other files ('{}'), which it names relative to its own folder; "
        "write it into the folder of the model, or give --external-data to copy them",
        a.out, copies.front().from.string()));
  for (const DataCopy& copy : copies) {
    if (std::filesystem::equivalent(copy.from, copy.to, ignored)) continue;
    if (std::filesystem::exists(copy.to, ignored))
      throw UsageError(
          fmt::format("--external-data: {} exists already; give -o another folder", copy.to.string()));
    std::filesystem::create_directories(copy.to.parent_path(), ignored);
    check_output(copy.to);
  }
  return copies;
}

// Copies that are removed again unless the model is written, too.
class CopiedData {
 public:
  ~CopiedData() {
    std::error_code ignored;
    if (!kept_)
      for (const std::filesystem::path& file : files_) std::filesystem::remove(file, ignored);
  }
  void add(const DataCopy& copy) {
    const auto source = MappedFile::open(copy.from);
    PendingFile file(copy.to);
    file.write(source->bytes.data(), source->bytes.size());
    file.publish();
    files_.push_back(copy.to);
  }
  void keep() { kept_ = true; }

 private:
  std::vector<std::filesystem::path> files_;
  bool kept_ = false;
};

std::map<std::string, size_t> counts_of(const std::vector<Edit>& edits) {
  std::map<std::string, size_t> counts;
  for (const Edit& e : edits) ++counts[edit_name(e.kind)];
  return counts;
}

// The written file has nothing left to repair.
void check_repaired(const std::filesystem::path& written, const LoweringOptions& options) {
  Diagnostics found;
  const auto again = find_repair(written, options, found);
  if (!again || !again->edits.empty())
    throw ModelFileError(
        fmt::format("the repaired model would need a repair again ({}); this is a fault of sinter, and no "
                    "file is written",
                    again ? to_line(again->edits.list.front()) : found.to_text(Severity::kRefusal)));
}

void run_repair(const RepairArguments& a, Outcome& outcome) {
  if (!ModelSource::is_onnx(a.model) && !std::filesystem::exists(a.model))
    throw FileError(fmt::format("{}: no such file", a.model));
  check_outputs({{"-o", a.out}}, {{"the model", a.model}});
  check_output(a.out);
  const ConversionOptions options = conversion_options(a.conversion);
  Diagnostics diagnostics;
  const auto repair = find_repair(a.model, options.lowering, diagnostics);
  if (!repair) return outcome.refuse(a.common, diagnostics);
  const std::vector<Edit>& edits = repair->edits.list;
  CopiedData data;
  for (const DataCopy& copy : data_copies(a, repair->model)) data.add(copy);
  PendingFile file(a.out);
  if (edits.empty())
    file.write(repair->file->bytes.data(), repair->file->bytes.size());
  else
    rewrite_model(repair->file->bytes, repair->edits,
                  [&](const void* data, size_t bytes) { file.write(data, bytes); });
  file.publish([&](const std::filesystem::path& written) {
    if (!edits.empty()) check_repaired(written, options.lowering);
  });
  data.keep();
  const std::string diff = a.diff ? diff_text(*repair) : "";
  if (outcome.listener == nullptr) print_messages(diagnostics.to_text(Severity::kWarning));
  if (outcome.takes_json(a.common)) {
    nlohmann::json json = {{"model", a.model},
                           {"output", a.out},
                           {"changed", !edits.empty()},
                           {"edits", nlohmann::json::array()},
                           {"diagnostics", diagnostics.to_json()}};
    for (const Edit& e : edits) json["edits"].push_back(to_json(e));
    json["counts"] = counts_of(edits);
    if (a.diff) json["diff"] = diff;
    return outcome.give(json);
  }
  if (a.common.quiet) return;
  for (const Edit& e : edits) print_text(to_line(e) + "\n");
  print_text(diff);
  if (edits.empty())
    return print_text(
        fmt::format("{} is well typed: nothing to repair; {} is a copy of it\n", a.model, a.out));
  std::string summary;
  for (const auto& [name, count] : counts_of(edits))
    summary += fmt::format("{}{} {}", summary.empty() ? "" : ", ", count, name);
  print_text(
      fmt::format("wrote {}: {} edit{} ({})\n", a.out, edits.size(), edits.size() == 1 ? "" : "s", summary));
}

}  // namespace

void add_repair(CLI::App& app, Outcome& outcome) {
  auto a = std::make_shared<RepairArguments>();
  CLI::App* c =
      app.add_subcommand("repair", "Write an ONNX model with the fewest edits that make it well typed");
  c->add_option("model", a->model, "The ONNX file")->required();
  add_value(*c, "-o,--output", a->out, "FILE", "The ONNX file to write")
      ->required()
      ->group(flag_group::kOutput);
  c->add_flag("--diff", a->diff, "Print the changed nodes, data and declarations, before and after")
      ->group(flag_group::kOutput);
  c->add_flag("--external-data", a->copy_data,
              "Copy the files of the model's external data where the output is in another folder")
      ->group(flag_group::kOutput);
  add_source_flags(*c, a->conversion, false);
  c->footer("Example:\n  sinter repair net.onnx -o net_fixed.onnx --diff");
  a->common.add_to(*c);
  c->callback([a, &outcome] { run_repair(*a, outcome); });
}

}  // namespace sinter::convert
