// StepTime: the time that a step has taken in a session's runs (Runner::time_steps).
#pragma once

#include <cstdint>

namespace sinter {

struct StepTime {
  const char* backend = "";      // the backend that computed it; "session" for an If or Loop
  const char* kernel = nullptr;  // the name of its kernel, if the backend has several for the operation
  uint64_t runs = 0;             // how often it ran; in the body of a loop: in all trips
  uint64_t nanoseconds = 0;      // of all runs; those of an If or Loop include its bodies
  uint64_t least = 0;            // nanoseconds of the shortest run
  uint64_t most = 0;
};

}  // namespace sinter
