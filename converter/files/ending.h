// Further work when a signal ends the program (unfinished.h).
#pragma once

#include <sys/types.h>

namespace sinter::convert {

// A group of processes that this one has started. The signals of unfinished.h end it: with SIGTERM first, and
// with SIGKILL if it is there a moment later.
class UnfinishedGroup {
 public:
  // Returns false if a signal is ending this process, and the group must not begin.
  bool begin(pid_t group);
  void end();
  // Forgets, in a new process, the files and groups that belong to its parent.
  static void forget_all();

 private:
  int slot_ = -1;
};

// Ends a group that this process has started, and waits for its leader.
void end_group(pid_t group);

// Prints a message about SIGBUS also on stdout, in the form of --json.
void print_json_on_signals();

}  // namespace sinter::convert
