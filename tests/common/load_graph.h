// The graph of an ONNX file, lowered without any pass.
#pragma once

#include <filesystem>
#include <optional>

#include "converter/import/lower.h"
#include "converter/import/read/reader.h"

namespace sinter::convert {

// Returns nothing if the model is refused, with the reasons in `diagnostics`.
inline std::optional<Graph> load_graph(const std::filesystem::path& onnx, Diagnostics& diagnostics) {
  const auto imported = import_model(onnx, diagnostics);
  return imported ? lower_model(*imported, {}, diagnostics) : std::nullopt;
}

}  // namespace sinter::convert
