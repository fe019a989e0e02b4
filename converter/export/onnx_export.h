// Writes a graph of the converter as an ONNX model.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "converter/diagnostics/diagnostics.h"
#include "converter/import/read/imported_graph.h"
#include "converter/ir/graph.h"

namespace sinter::convert {

// The versions of ai.onnx that can be written, and the oldest that is written without being asked for: the
// first one that has every operator which runtimes compute as a whole (LayerNormalization among them).
inline constexpr int kOldestWrittenOpset = 13, kUsualOpset = 17, kNewestWrittenOpset = 23;

struct OnnxExport {
  int opset = kUsualOpset;
  // Whether operators of com.microsoft are written where ai.onnx has none of the same meaning.
  bool microsoft = false;
  // Whether initializers are in a file beside the model, OUT.data. They are, too, where the model would be
  // larger than protobuf allows (2 GB).
  bool external_data = false;
  std::string producer, domain, doc;
  int64_t model_version = 0;
  std::map<std::string, std::string> metadata;
  std::map<std::string, std::string> node_docs;  // by node
};

// Takes over what an ONNX model states about itself: domain, version, texts and metadata.
void keep_texts(const ImportedModel& model, OnnxExport* options);

// Returns the name of the file of external data beside a model.
std::filesystem::path external_data_path(const std::filesystem::path& model);

struct WrittenOnnx {
  size_t nodes = 0;            // of the main graph
  bool external_data = false;  // whether a file was written beside the model
};

// Writes a lowered or rewritten graph. Inputs, outputs and the values that are still there keep their names.
// Values whose axes the converter has reordered (Value::order) are written in the order of their ONNX value
// where an operator allows that. nullopt: an operation has no ONNX form, and nothing is written; the
// diagnostics have the reason for each. Throws FileError.
std::optional<WrittenOnnx> export_onnx(const Graph& graph, const std::filesystem::path& out,
                                       const OnnxExport& options, Diagnostics& diagnostics);

}  // namespace sinter::convert
