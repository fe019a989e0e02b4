// Emission: a PlannedModel becomes a .sinter file, segment by segment, under a temporary name that is renamed
// last.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "converter/plan/planned_model.h"
#include "converter/sign/keys.h"

namespace sinter::convert {

struct EmitOptions {
  bool strip_names = false;
  // Text for people (the type ledger), kept deflated in a debug segment; left out if empty.
  std::string debug_text;
  std::string producer = "sinter 0.1";
  // Signs the file, whose digests are BLAKE2b then.
  std::shared_ptr<const SecretKey> signer;
  // Called with the whole file before it takes its name; what it throws leaves no file.
  std::function<void(const std::filesystem::path&)> check;
};

struct EmitSummary {
  uint64_t file_bytes = 0;
  uint64_t weight_bytes = 0;
  uint64_t constants = 0;
};

// Writes the file; throws FileError (converter/diagnostics/errors.h) naming the path where the system
// refuses, and leaves nothing behind then. The same plan gives the same bytes.
EmitSummary emit_model(const PlannedModel& model, const std::filesystem::path& path,
                       const EmitOptions& options = {});

}  // namespace sinter::convert
