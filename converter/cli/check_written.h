// Checks of a file before it gets its final name: it is read back as on a device, with the device's
// verifier; a session is created if that takes little memory, and runs once if that takes little
// time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "converter/cli/trial_run.h"

namespace sinter::convert {

// A session of more bytes, with its file, is only measured.
inline constexpr uint64_t kMostCheckedBytes = uint64_t{512} << 20;

// Of one shape set.
struct WrittenCheck {
  uint64_t arena_bytes = 0, session_bytes = 0;
  bool session_created = false;
  TrialRun trial;
};

struct CheckOptions {
  std::filesystem::path onnx;                  // the model that the file comes from
  std::span<const LoweringOptions> lowerings;  // and how, by shape set
  std::optional<PublicKey> signer;
  bool trial = true;
  std::string not_compared = {};  // try_once()
};

// `plans`: of the file's profiles, in their order. The result is by shape set. Throws ModelFileError where
// the file is not what a device accepts. Memory: below kMostCheckedBytes.
std::vector<WrittenCheck> check_written(const std::filesystem::path& file,
                                        std::span<const PlannedModel> plans, const CheckOptions& options,
                                        Diagnostics& diagnostics);

}  // namespace sinter::convert
