// The flags of commands that run a session: its threads and its backend.
#pragma once

#include <string>

#include "converter/cli/flags.h"
#include "converter/cli/host_session.h"

namespace sinter::convert {

struct SessionFlags {
  int threads = 1;
  std::string processors, backend;
  void add_to(CLI::App& command);
  // Returns the options of a session of a shape set. Throws UsageError where --processors lists none.
  HostSession::Options options(uint32_t entry) const;
};

}  // namespace sinter::convert
