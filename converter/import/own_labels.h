// Class names that an ONNX file has itself.
#pragma once

#include <string>
#include <vector>

#include "converter/import/read/imported_graph.h"

namespace sinter::convert {

// The entry of a file's metadata in which exporters of picture networks put the names.
inline constexpr const char* kNamesKey = "names";

struct OwnLabels {
  std::string output;  // empty: the only one, if the file's metadata has the names
  std::vector<std::string> names;
};

// Returns the labels of ai.onnx.ml's classifiers and maps whose scores are an output of the graph, and the
// list or dict of names in the metadata, in JSON or as Python prints it. Labels 0, 1, 2, ... are left out,
// because they name nothing.
std::vector<OwnLabels> own_labels(const ImportedModel& model);

}  // namespace sinter::convert
