// The progress of a long command, on stderr: one line that changes on a terminal, a line every 20 seconds
// elsewhere. A separate thread writes it, so that the time advances while the work does not report. Or of one
// that a program has called: its listener is called instead, by the thread that works.
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
  // `quiet`: nothing is written. Stages that are begun but not in the list count as a part of the one before.
  Progress(std::vector<ProgressStage> stages, bool quiet, CommandListener* listener = nullptr);
  ~Progress();  // clears the terminal's line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void begin(const std::string& stage);
  // Within the stage: `done` of `total` (-1: unknown) of what the phase, one of quantize/phases.h, counts;
  // `left`: of the stage, where it is known.
  void step(const Phase& phase, int64_t done, int64_t total, const std::optional<TimeLeft>& left = {});
  // Clears the line, for output of others; nothing is written any more.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  void tick();
  void report();              // to the listener
  std::string doing() const;  // the stage and how far it is
  std::string line() const;
  double seconds() const;  // since the command began
  // Of the command, in seconds; nothing: it cannot be estimated.
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
  std::optional<TimeLeft> left_;  // of the stage, at
  double left_at_ = 0;
  double reported_ = 0;  // the largest fraction
  bool finished_ = false;
  std::thread ticker_;
};

}  // namespace sinter::convert
