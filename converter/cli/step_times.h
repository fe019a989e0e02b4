// The time of each step on each backend that can compute it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "converter/cli/host_session.h"

namespace sinter::convert {

// The lowest time of a step in one run; the runs of a body are added.
struct StepTime {
  uint32_t program = 0, step = 0;
  std::string backend;
  double nanoseconds = 0;
  std::string kernel;  // the backend's, where it has several for the operation and the step was timed here
};

// Runs a shape set of the model on every backend of its profile that this program has, in turns, for about
// `seconds` in all. Returns times in the order of program, step, and the profile's backends.
std::vector<StepTime> measure_steps(const LoadedModel& loaded, uint32_t entry, const Arrays& inputs,
                                    int threads, double seconds);

// Returns the times that sinter_time_steps printed on another machine. Throws FileError and DataError.
std::vector<StepTime> read_step_times(const std::filesystem::path& path, std::string* profile);

}  // namespace sinter::convert
