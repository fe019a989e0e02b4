// The progress of a long command, on stderr: one line that changes on a terminal, a line every 20 seconds
// elsewhere. A separate thread writes it, so that the time advances while the work does not report. If a
// program has called the command, the working thread calls the program's listener instead.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "converter/cli/listener.h"
#include "converter/quantize/phases.h"

namespace sinter::convert {

// A stage and its share of a usual run, in any unit.
struct ProgressStage {
  std::string name;
  double share = 1;
};

class Progress {
 public:
  // Writes nothing if `quiet`. Stages that are begun but not in the list count as a part of the one before.
  Progress(std::vector<ProgressStage> stages, bool quiet, CommandListener* listener = nullptr);
  ~Progress();  // clears the terminal's line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void begin(const std::string& stage);
  // Notes `done` of `total` (-1: unknown) units of a phase (quantize/phases.h), and the stage's time left.
  void step(const Phase& phase, int64_t done, int64_t total, const std::optional<TimeLeft>& left = {});
  // Clears the line, so that others can print; nothing is written any more.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  void tick();
  void report();              // calls the listener
  std::string doing() const;  // the stage and the finished part of it
  std::string line() const;
  double seconds() const;  // since the command began
  // Returns the seconds left of the command, or nothing if they cannot be estimated.
  std::optional<double> left() const;

  const std::vector<ProgressStage> stages_;
  CommandListener* const listener_;
  const bool terminal_;
  const Clock::time_point start_ = Clock::now();
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::string stage_;
  const Phase* phase_ = nullptr;
  size_t at_ = 0;
  int64_t done_ = 0, total_ = -1;
  std::optional<TimeLeft> left_;  // the time left of the stage at left_at_
  double left_at_ = 0;
  double reported_ = 0;  // the largest reported fraction
  bool finished_ = false;
  std::thread ticker_;
};

}  // namespace sinter::convert
