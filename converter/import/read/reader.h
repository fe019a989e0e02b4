// Reading an ONNX file: bytes to ImportedModel, then functions inlined, order and names checked.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>

#include "converter/diagnostics/diagnostics.h"
#include "converter/diagnostics/errors.h"
#include "converter/files/input_file.h"
#include "converter/import/read/imported_graph.h"

namespace sinter::convert {

inline constexpr int64_t kNewestOpset = 28;

// A file's bytes, mapped read-only; large weights stay there.
struct MappedFile {
  // Both throw FileError.
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  static std::shared_ptr<const MappedFile> open(const InputFile& file);
  MappedFile() = default;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();
  std::span<const std::byte> bytes;
};

// The folders in which a model's external data may be (docs/security.md).
struct DataFolders {
  DataFolders() = default;  // nowhere: the model was not read from a file
  DataFolders(std::filesystem::path folder) : named(folder), actual(std::move(folder)) {}  // NOLINT
  DataFolders(std::filesystem::path of_name, std::filesystem::path of_file)
      : named(std::move(of_name)), actual(std::move(of_file)) {}

  std::filesystem::path named;   // of the model's name, where data is looked for
  std::filesystem::path actual;  // of the file that the name leads to, where links may lead to as well
};

// The maximum number of nodes that a model's functions may expand to.
inline constexpr size_t kMostInlined = 500'000;

// The whole front end: read, inline functions, check, sort. Everything wrong is filed; nothing is returned
// where no usable graph is left.
std::optional<ImportedModel> import_model(const std::filesystem::path& path, Diagnostics& diagnostics,
                                          size_t most_inlined = kMostInlined);
// Reads the model from memory that `owner` keeps alive.
std::optional<ImportedModel> import_model(std::shared_ptr<const void> owner, std::span<const std::byte> bytes,
                                          const DataFolders& folders, Diagnostics& diagnostics,
                                          size_t most_inlined = kMostInlined);

// The steps, for tests. `read_model` returns nothing where the bytes are not an ONNX model.
std::optional<ImportedModel> read_model(std::shared_ptr<const void> owner, std::span<const std::byte> bytes,
                                        const DataFolders& folders, Diagnostics& diagnostics);
// Replaces every call of a model-local function by its body. False: too much to continue with; a refusal is
// filed.
bool inline_functions(ImportedModel& model, Diagnostics& diagnostics, size_t most = kMostInlined);
// Duplicate names, missing producers, cycles, opsets; sorts nodes (stable). Subgraphs too.
void check_and_sort(ImportedModel& model, Diagnostics& diagnostics);

}  // namespace sinter::convert
