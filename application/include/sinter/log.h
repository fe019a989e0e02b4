// The messages of the library for people who look for the cause of slow or surprising runs. By default there
// are none: failures are returned, and nothing is printed.
#pragma once

#include <cstdint>

namespace sinter {

enum LogLevel : int32_t {
  kLogInfo = 1,  // what was opened: the plan that runs, the memory that is packed
  kLogWarning =
      2,  // what makes runs slower than the plan: steps on other backends, a plan for another machine
};
using LogWrite = void (*)(void* context, int32_t level, const char* text);  // a LogLevel

// Sends the messages of all Runners and of the C API to `write`, one sentence a call, on the thread that
// opens a model or creates a session; none by null. Messages come while models are opened and sessions are
// created, and never from a run. `write` may be in use on other threads until they return.
void set_log(LogWrite write, void* context = nullptr);

}  // namespace sinter
