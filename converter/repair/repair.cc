#include "converter/repair/repair.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "converter/import/onnx_operator.h"
#include "converter/import/refused_operators.h"
#include "converter/repair/type_walk.h"
#include "runtime/model/format.h"

namespace sinter::convert {
namespace {

// The types of a model whose sizes are not all given: decisions about types seldom depend on sizes. The first
// of these sizes that fits takes the place of every open one.
constexpr int64_t kTrialSizes[] = {0, 16, 64, 256, 1};

bool lower_types(const ImportedModel& model, const LoweringOptions& options, NodeTypesByPlace* types,
                 Diagnostics& diagnostics) {
  std::optional<Diagnostics> first;
  for (const int64_t size : kTrialSizes) {
    LoweringOptions trial = options;
    trial.assumed = size;
    Diagnostics found;
    types->clear();
    if (lower_model(model, trial, found, nullptr, nullptr, types) && !found.refused()) {
      for (const Diagnostic& d : found.all()) diagnostics.add(d);
      return true;
    }
    if (!first) first = std::move(found);
  }
  for (const Diagnostic& d : first->all()) diagnostics.add(d);
  return false;
}

// Operators that are newer than the imported set: the set is raised where every other operator of the model
// stays in its version.
bool raise_operator_set(const ImportedModel& model, ModelEdits* edits, Diagnostics& diagnostics) {
  const auto imported = model.opsets.find("");
  const int64_t opset = imported == model.opsets.end() ? 1 : imported->second;
  int64_t needed = opset;
  std::vector<const ImportedNode*> nodes, early;
  each_graph(model.graph, [&](const ImportedGraph& graph) {
    for (const ImportedNode& n : graph.nodes) {
      const auto signature = n.domain.empty() ? signature_of("", n.op_type, opset) : std::nullopt;
      if (!signature) continue;
      nodes.push_back(&n);
      if (signature->version() > opset)
        early.push_back(&n), needed = std::max<int64_t>(needed, signature->version());
    }
  });
  if (early.empty()) return true;
  for (const ImportedNode* n : nodes) {
    const int before = version_in_force("", n->op_type, opset),
              after = version_in_force("", n->op_type, needed);
    if (before == after || before == 0) continue;
    diagnostics.refuse(
        early.front()->name, early.front()->op_type,
        fmt::format(
            "{} was introduced with opset {}, but the model imports {}; opset {} has another version of {}, "
            "which node '{}' uses",
            early.front()->op_type, needed, opset, needed, n->op_type, n->name),
        "convert the model to that opset with onnx.version_converter, and repair the result");
    return false;
  }
  edits->opset = needed;
  edits->list.push_back(
      {EditKind::kOperatorSet, fmt::format("opset {}", opset), early.front()->name, early.front()->op_type, 0,
       0, rule_id(TypeRule::kClaimMetadata),
       fmt::format("{} was introduced with opset {}, and every other operator of the model is "
                   "the same there",
                   early.front()->op_type, needed),
       fmt::format("opset {}", needed)});
  return true;
}

}  // namespace

std::optional<Repair> find_repair(const std::filesystem::path& path, const LoweringOptions& options,
                                  Diagnostics& diagnostics) {
  Repair repair;
  const InputFile input(path);
  repair.file = MappedFile::open(input);
  if (format::read_header(repair.file->bytes).ok()) {
    diagnostics.refuse({}, {}, fmt::format("{} is a .sinter file, the result of a conversion", path.string()),
                       "give the ONNX model that it was made from");
    return std::nullopt;
  }
  const DataFolders folders(path.has_parent_path() ? path.parent_path() : std::filesystem::path("."),
                            input.real_path().parent_path());
  NodeTypesByPlace types;
  {
    auto inlined = read_model(repair.file, repair.file->bytes, folders, diagnostics);
    if (!inlined || !inline_functions(*inlined, diagnostics)) return std::nullopt;
    check_and_sort(*inlined, diagnostics);
    if (diagnostics.refused() || !lower_types(*inlined, options, &types, diagnostics)) return std::nullopt;
  }
  Diagnostics known;
  auto model = read_model(repair.file, repair.file->bytes, folders, known);
  if (!model) return std::nullopt;
  check_and_sort(*model, known);
  repair.model = std::move(*model);
  ModelEdits start;
  if (!raise_operator_set(repair.model, &start, diagnostics)) return std::nullopt;
  // Each walk that is not the last widens a carried type, of which there are few.
  WalkContext context{repair.model, types, diagnostics, &repair.edits};
  for (int walks = 0; walks < 100; ++walks) {
    context.again = false;
    repair.edits = start;
    RootWalk walk(context, start.opset.value_or(0));
    walk.main_graph();
    if (diagnostics.refused()) return std::nullopt;
    repair.edits.main = std::move(walk.edits());
    for (Edit& e : walk.list()) repair.edits.list.push_back(std::move(e));
    if (!context.again) return repair;
  }
  diagnostics.refuse("", "", "the types that its loops carry do not settle",
                     "cast the carried values to one type");
  return std::nullopt;
}

}  // namespace sinter::convert
