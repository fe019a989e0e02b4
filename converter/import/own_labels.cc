#include "converter/import/own_labels.h"

#include <algorithm>
#include <string_view>

#include "converter/data/class_names.h"
#include "converter/diagnostics/printable.h"

namespace sinter::convert {
namespace {

// Returns the number of the result with scores of an operator that has class labels; -1: it has none.
int scores_of(const ImportedNode& node) {
  if (node.domain != "ai.onnx.ml") return -1;
  if (node.op_type == "ZipMap") return 0;
  for (const char* classifier : {"LinearClassifier", "SVMClassifier", "TreeEnsembleClassifier"})
    if (node.op_type == classifier) return 1;
  return -1;
}

std::vector<std::string> labels_of_node(const ImportedNode& node) {
  std::vector<std::string> names;
  if (const ImportedAttribute* strings = node.find("classlabels_strings")) names = strings->strings;
  for (const char* attribute : {"classlabels_int64s", "classlabels_ints"})
    if (const ImportedAttribute* integers = node.find(attribute); integers != nullptr && names.empty())
      for (const int64_t label : integers->ints) names.push_back(std::to_string(label));
  return names;
}

bool only_count(const std::vector<std::string>& names) {
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] != std::to_string(i)) return false;
  return true;
}

}  // namespace

std::vector<OwnLabels> own_labels(const ImportedModel& model) {
  std::vector<OwnLabels> found;
  const auto add = [&](const std::string& output, std::vector<std::string> names) {
    if (!only_count(names)) found.push_back({output, std::move(names)});
  };
  for (const ImportedNode& node : model.graph.nodes) {
    const int scores = scores_of(node);
    if (scores < 0 || static_cast<size_t>(scores) >= node.outputs.size()) continue;
    const std::string& output = node.outputs[static_cast<size_t>(scores)];
    if (std::any_of(model.graph.outputs.begin(), model.graph.outputs.end(),
                    [&](const ImportedValueInfo& info) { return info.name == output; }))
      add(output, labels_of_node(node));
  }
  const auto text = model.metadata.find(kNamesKey);
  if (text == model.metadata.end() || as_utf8(text->second) != text->second) return found;
  auto names = names_in_json(text->second);
  if (!names) names = names_in_python(text->second);
  if (names) add("", std::move(*names));
  return found;
}

}  // namespace sinter::convert
