// Emission: planned models become a .sinter file, written under a temporary name and renamed last.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "converter/emit/model_texts.h"
#include "converter/plan/planned_model.h"
#include "converter/sign/keys.h"

namespace sinter::convert {

struct EmitOptions {
  bool strip_names = false;
  // JSON objects, one a line (the type ledger), for the debug segment (debug_lines.h); omitted if empty.
  std::string debug_text;
  std::string producer = "sinter 0.1";
  ModelTexts texts;  // within the limits of the reader
  // The key that signs the file, whose digests are BLAKE2b then; null: it is not signed.
  std::shared_ptr<const SecretKey> signer;
  // A function that is called with the whole file before it takes its name. Its exceptions leave no file.
  std::function<void(const std::filesystem::path&)> check;
};

struct EmitSummary {
  uint64_t file_bytes = 0;
  uint64_t weight_bytes = 0;
  uint64_t constants = 0;
};

// Writes a file with one profile for each of the plans, which are of one model (the same inputs and outputs)
// for different targets; a profile has its target's name. Sessions run the first one that fits their machine
// unless they name another, so the most portable comes last. Equal constants are stored once, and so are the
// programs of profiles that have all of them equal. Throws std::invalid_argument where a target comes twice,
// FileError (converter/diagnostics/errors.h) naming the path where the system refuses; no file remains then.
// The same plans give the same bytes.
EmitSummary emit_model(std::span<const PlannedModel> profiles, const std::filesystem::path& path,
                       const EmitOptions& options = {});
inline EmitSummary emit_model(const PlannedModel& model, const std::filesystem::path& path,
                              const EmitOptions& options = {}) {
  return emit_model(std::span(&model, 1), path, options);
}

}  // namespace sinter::convert
