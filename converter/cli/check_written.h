// Checks of a file before it gets its final name: the device's verifier reads it back, a session is created
// if that takes little memory, and runs once if that takes little time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "converter/cli/trial_run.h"

namespace sinter::convert {

// The most bytes of a session and its file for which the session is created; a larger one is only measured.
inline constexpr uint64_t kMostCheckedBytes = uint64_t{512} << 20;

// The result of the check of one shape set.
struct WrittenCheck {
  uint64_t arena_bytes = 0, session_bytes = 0;
  bool session_created = false;
  TrialRun trial;
};

struct CheckOptions {
  std::filesystem::path onnx;                  // the model that the file comes from
  std::span<const LoweringOptions> lowerings;  // the options of its import, by shape set
  std::optional<PublicKey> signer;
  bool trial = true;
  std::string not_compared = {};  // as try_once() takes it
};

// Returns a result for each shape set. `plans` are those of the file's profiles, in their order. Throws
// ModelFileError where a device would refuse the file. Takes less memory than kMostCheckedBytes.
std::vector<WrittenCheck> check_written(const std::filesystem::path& file,
                                        std::span<const PlannedModel> plans, const CheckOptions& options,
                                        Diagnostics& diagnostics);

}  // namespace sinter::convert
