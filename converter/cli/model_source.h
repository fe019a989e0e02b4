// The model of a command: a .sinter file, or an .onnx file that is converted for this command alone.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "converter/cli/commands.h"
#include "converter/cli/convert_arguments.h"
#include "converter/cli/host_session.h"

namespace sinter::convert {

// Adds the flags for converting an ONNX model: custom operators, shapes, constants and the target.
void add_source_flags(CLI::App& command, ConvertArguments& flags, bool with_target = true);

class ModelSource {
 public:
  ModelSource() = default;
  ~ModelSource();
  ModelSource(const ModelSource&) = delete;
  ModelSource& operator=(const ModelSource&) = delete;

  // Converts an ONNX model, and states so on stderr, with the warnings and refusals that convert prints.
  // Returns false if the model is refused; the outcome then has exit code 3. Throws UsageError where flags of
  // a conversion, or a key, are given with the other kind of file, and FileError.
  bool open(const std::string& model, const ConvertArguments& flags, const CommonOptions& common,
            const TrustOption& trust, Outcome& outcome);
  // Whether the file is an ONNX model, by its extension.
  static bool is_onnx(const std::filesystem::path& model) { return model.extension() == ".onnx"; }
  // Returns the opened .sinter file. A converted file has no name any more, and is removed with this object.
  LoadedModel load(LoadedModel::Reading reading = LoadedModel::Reading::kMapped) const;
  bool is_converted() const { return file_ >= 0; }

 private:
  std::string path_;
  int file_ = -1;
  std::optional<PublicKey> key_;
  std::shared_ptr<const CustomOperators> custom_ops_;
};

}  // namespace sinter::convert
