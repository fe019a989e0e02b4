// Simplifying a model: an ONNX file with fixed shapes, without what is known before it runs.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "converter/export/onnx_export.h"
#include "converter/import/lower.h"

namespace sinter::convert {

struct SimplifyOptions {
  LoweringOptions lowering;  // shapes, constants, trip counts
  int opset = 0;             // of the new model; 0: the model's, if it can be written
  bool external_data = false;
  // Called with the files that hold the model's external data, before anything is written.
  std::function<void(const std::vector<std::filesystem::path>&)> external_files = nullptr;
};

struct SimplifyReport {
  size_t nodes_before = 0, nodes_after = 0;    // of the main graph; functions inlined
  uint64_t bytes_before = 0, bytes_after = 0;  // of the model's file, external data not counted
  int opset = 0;
  bool external_data = false;  // whether a file was written beside the model
};

// Writes the simplified model. nullopt: it is refused (diagnostics has the reasons), and nothing is written.
// Throws FileError.
std::optional<SimplifyReport> simplify_file(const std::filesystem::path& onnx,
                                            const std::filesystem::path& out, const SimplifyOptions& options,
                                            Diagnostics& diagnostics);

}  // namespace sinter::convert
