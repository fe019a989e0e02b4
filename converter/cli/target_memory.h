// What a model and a session of it take on the machine that a profile is planned for.
#pragma once

#include <string>

#include "converter/cli/host_session.h"

namespace sinter::convert {

struct TargetMemory {
  // Memory that Model::open() takes, where the file's memory can change and where it cannot
  // (OpenOptions::stable); the second also in a sealed build, and what of it stays taken.
  size_t open = 0, stable_open = 0, sealed_open = 0;
  size_t retained = 0, stable_retained = 0;
  // What Session::requirements() states there, for one thread.
  size_t session = 0;
  // The same where its values are in a SharedArena, of which it takes `shareable` bytes.
  size_t sharing_session = 0, shareable = 0;
  bool names_backends = false;  // the plan names kernels other than the reference kernels
  // Empty: the numbers are exact. Otherwise what `session` is instead.
  std::string session_is;
};

// Throws ModelFileError where the profile cannot be measured here.
TargetMemory target_memory(const LoadedModel& loaded, uint32_t profile, uint32_t entry = 0);

}  // namespace sinter::convert
