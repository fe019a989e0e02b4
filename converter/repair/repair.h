// Makes an ONNX model well typed with the fewest edits, after the decisions that a conversion takes.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "converter/diagnostics/diagnostics.h"
#include "converter/import/lower.h"
#include "converter/import/read/reader.h"
#include "converter/repair/edits.h"

namespace sinter::convert {

struct Repair {
  std::shared_ptr<const MappedFile> file;
  ImportedModel model;  // as it is written, but with nodes in order
  ModelEdits edits;
};

// Finds the edits of a model. nullopt: refused; diagnostics hold every reason. Throws FileError.
std::optional<Repair> find_repair(const std::filesystem::path& path, const LoweringOptions& options,
                                  Diagnostics& diagnostics);

}  // namespace sinter::convert
