// What else happens when a signal ends the program (unfinished.h).
#pragma once

#include <sys/types.h>

namespace sinter::convert {

// A group of processes that this one has started. The signals of unfinished.h end it: with SIGTERM first, and
// with SIGKILL if it is there a moment later.
class UnfinishedGroup {
 public:
  // False: a signal is ending this process, and the group must not begin.
  bool begin(pid_t group);
  void end();
  // In a new process: nothing of its parent's is its own to remove.
  static void forget_all();

 private:
  int slot_ = -1;
};

// Ends a group that this process has started, and waits for its leader.
void end_group(pid_t group);

// The message about SIGBUS is followed by one on stdout, as --json has it.
void print_json_on_signals();

}  // namespace sinter::convert
