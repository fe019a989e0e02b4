// The memory of a model and of a session of it on the machine that a profile is planned for.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "converter/cli/host_session.h"

namespace sinter::convert {

struct TargetMemory {
  // The memory that Model::open() takes where the file's memory can change, where it cannot
  // (OpenOptions::stable), and there in a sealed build; and the part that stays taken.
  size_t open = 0, stable_open = 0, sealed_open = 0;
  size_t retained = 0, stable_retained = 0;
  // The bytes that Session::requirements() states there, for one thread.
  size_t session = 0;
  // The bytes of a session whose values are in a SharedArena, of which it takes `shareable` bytes.
  size_t sharing_session = 0, shareable = 0;
  bool names_backends = false;  // the plan names kernels other than the reference kernels
  // The meaning of `session` where it is not exact; empty: the numbers are exact.
  std::string session_is;
};

// Returns the memory. Throws ModelFileError where the profile cannot be measured here.
TargetMemory target_memory(const LoadedModel& loaded, uint32_t profile, uint32_t entry = 0);
nlohmann::json to_json(const TargetMemory& memory);
std::string to_text(const TargetMemory& memory);

}  // namespace sinter::convert
