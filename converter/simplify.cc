#include "converter/simplify.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "converter/import/read/reader.h"
#include "converter/ir/resident_limit.h"
#include "converter/passes/pass.h"
#include "runtime/model/format.h"

namespace sinter::convert {
namespace {

// The passes after which the graph has no operation that ONNX lacks. The others look for operations that
// Sinter has kernels for, or choose types by what these compute fast.
constexpr const char* kSimplifying[] = {
    "dead-code", "simplify",      "common-subexpressions",      "layout",        "fold-batch-norm",
    "fuse-pad",  "simplify-last", "common-subexpressions-last", "dead-code-last"};

// Refuses sizes that import would choose: they would no longer be open in the new model.
void check_dims(const std::vector<SettledDim>& settled, Diagnostics& diagnostics) {
  for (const SettledDim& dim : settled) {
    if (dim.by != SettledDim::By::kDefault && dim.by != SettledDim::By::kReader) continue;
    const std::string symbol = dim.symbol.empty() ? "" : fmt::format(" '{}'", dim.symbol);
    diagnostics.refuse("", "",
                       fmt::format("input '{}': dimension {}{} is open, and the new model has fixed shapes",
                                   dim.input, dim.axis, symbol),
                       dim.symbol.empty()
                           ? fmt::format("give --shape {}=...", dim.input)
                           : fmt::format("give --dim {}=N or --shape {}=...", dim.symbol, dim.input));
  }
}

int opset_for(const ImportedModel& model, int requested) {
  if (requested != 0) return requested;
  const auto own = model.opsets.find("");
  const int64_t version = own == model.opsets.end() ? 0 : own->second;
  return static_cast<int>(std::clamp<int64_t>(version, kUsualOpset, kNewestWrittenOpset));
}

uint64_t size_of_model(const std::filesystem::path& file) {
  std::error_code ignored;
  return std::filesystem::file_size(file, ignored);
}

// The most times that a model is written: what one operation became can be simplified in turn.
constexpr int kMostRounds = 5;

struct Round {
  size_t nodes_before = 0;
  int opset = 0;
  WrittenOnnx written;
};

// Writes the model simplified once. nullopt: it is refused.
std::optional<Round> simplify_once(const std::filesystem::path& onnx, const std::filesystem::path& out,
                                   const SimplifyOptions& options, Diagnostics& diagnostics) {
  const auto model = import_model(onnx, diagnostics, 2 * options.lowering.most_operations);
  if (!model) return std::nullopt;
  if (options.external_files) options.external_files(model->external_files);
  std::vector<SettledDim> settled;
  std::optional<Graph> graph = lower_model(*model, options.lowering, diagnostics, nullptr, &settled);
  if (graph) check_dims(settled, diagnostics);
  if (!graph || diagnostics.refused()) return std::nullopt;
  for (const char* pass : kSimplifying) run_pass(*graph, pass);
  graph->name = model->graph.name;
  OnnxExport with;
  with.opset = opset_for(*model, options.opset);
  with.external_data = options.external_data;
  with.microsoft = model->opsets.count("com.microsoft") != 0;
  with.producer = "sinter simplify";
  keep_texts(*model, &with);
  const std::optional<WrittenOnnx> written = export_onnx(*graph, out, with, diagnostics);
  if (!written) return std::nullopt;
  return Round{model->graph.nodes.size(), with.opset, *written};
}

// Returns the digest of a file's bytes.
std::string digest_of_file(const std::filesystem::path& file) {
  const format::Digest digest = format::digest_of(MappedFile::open(file)->bytes);
  return {std::begin(digest.bytes), std::end(digest.bytes)};
}

}  // namespace

std::optional<SimplifyReport> simplify_file(const std::filesystem::path& onnx,
                                            const std::filesystem::path& out, const SimplifyOptions& options,
                                            Diagnostics& diagnostics) {
  const ResidentLimit limit;
  SimplifyReport report;
  report.bytes_before = size_of_model(onnx);
  const std::string before = digest_of_file(onnx);
  const std::optional<Round> first = simplify_once(onnx, out, options, diagnostics);
  if (!first) return std::nullopt;
  report.nodes_before = first->nodes_before;
  report.opset = first->opset;
  WrittenOnnx written = first->written;
  SimplifyOptions again;
  again.opset = first->opset;
  again.external_data = written.external_data;
  again.lowering.max_trips = options.lowering.max_trips;
  again.lowering.bounds = options.lowering.bounds;
  again.lowering.custom_ops = options.lowering.custom_ops;
  // Some choices among equal forms alternate: the end is a model that has been there before.
  std::set<std::string> seen{before, digest_of_file(out)};
  for (int round = 1; round < kMostRounds; ++round) {
    Diagnostics unread;  // they are those of the first round
    const std::optional<Round> next = simplify_once(out, out, again, unread);
    if (!next) break;
    written = next->written;
    if (!seen.insert(digest_of_file(out)).second) break;
  }
  report.nodes_after = written.nodes;
  report.external_data = written.external_data;
  report.bytes_after = size_of_model(out);
  return report;
}

}  // namespace sinter::convert
