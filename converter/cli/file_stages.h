// The stages of `sinter convert` that check, pack and sign the written file before it takes its name.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "converter/cli/convert_arguments.h"
#include "converter/cli/pack_command.h"
#include "converter/convert.h"
#include "converter/sign/keys.h"

namespace sinter::convert {

// Thrown with --strict, where the trial of the written file gave a warning.
struct RefusedByTrial {};

// The stages that the flags request, and their results.
class FileStages {
 public:
  // Reads the key of --sign, and adds the stages to `options`. All of these outlive the conversion.
  FileStages(const ConvertArguments& a, ConversionOptions& options, Diagnostics& diagnostics);
  FileStages(const FileStages&) = delete;
  FileStages& operator=(const FileStages&) = delete;

  bool packs() const { return arguments_.pack || arguments_.packed_only; }
  std::optional<PublicKey> signer;
  nlohmann::json sizes;  // bytes of the arena and of sessions, and the trial; null: the file was not checked
  PackedFile packed;

 private:
  void check(const WrittenFile& file);
  void pack(const WrittenFile& file);
  void sign(const WrittenFile& file) const;

  const ConvertArguments& arguments_;
  const ConversionOptions& options_;
  Diagnostics& diagnostics_;
  std::shared_ptr<const SecretKey> key_;
};

}  // namespace sinter::convert
