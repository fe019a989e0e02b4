// A trace of a session's steps in the Trace Event Format, which chrome://tracing and Perfetto open.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "converter/cli/host_session.h"

namespace sinter::convert {

class StepTrace {
 public:
  // The most steps that a trace has; those that follow are counted.
  static constexpr size_t kMostSteps = 100000;

  // Observes the session's runs from now on. The trace must outlive them.
  void attach(Session& session);
  // Are called around each run.
  void begin_run();
  void end_run();
  [[nodiscard]] bool full() const { return steps_.size() >= kMostSteps; }

  // Writes a complete event for each run and for each step of it, within that of the If or Loop whose body
  // has it. Throws FileError; no part of a file remains then.
  void write(const std::filesystem::path& path, const HostSession& host, const LoadedModel& loaded,
             int threads) const;
  [[nodiscard]] nlohmann::json json() const;  // the numbers of runs and steps, and of steps left out
  [[nodiscard]] std::string text() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Span {
    Clock::time_point begin, end;
  };
  struct Step {
    Span time;
    uint32_t program = 0, step = 0;
    const char* backend = "";
    const char* kernel = nullptr;
  };
  void add(const StepInfo& info);
  [[nodiscard]] double microseconds(Clock::time_point time) const;
  [[nodiscard]] nlohmann::json event(const std::string& name, const char* category, const Span& time) const;

  StepObserver observer_;
  std::vector<Clock::time_point> open_;  // when the steps began that have not ended, the outermost first
  std::vector<Span> runs_;
  std::vector<Step> steps_;
  size_t left_out_ = 0;
};

}  // namespace sinter::convert
