// The time of each step of the entry program. The time of a body is part of the step that runs it.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "converter/cli/host_session.h"

namespace sinter::convert {

using ProfileClock = std::chrono::steady_clock;
inline double ms_since(ProfileClock::time_point start) {
  return std::chrono::duration<double, std::milli>(ProfileClock::now() - start).count();
}

// Returns the percentile of the times at this share, 0.5 for the median. `sorted` must not be empty.
double percentile(const std::vector<double>& sorted, double share);

class StepProfile {
 public:
  // Observes the session's runs from now on. The profile must outlive them.
  void attach(Session& session);

  // Returns a line, or an object, for each step of the entry that ran, by its median: the minimum and
  // percentiles of its times, its multiply-adds, and their number per second of the median.
  [[nodiscard]] std::string text(const HostSession& host, const Model& model) const;
  [[nodiscard]] nlohmann::json json(const HostSession& host, const Model& model) const;

 private:
  struct Times {
    const char* backend = "";
    const char* kernel = nullptr;
    std::vector<double> seconds;  // the times of the first kMostTimes runs; sorted for a report
  };
  static constexpr size_t kMostTimes = 10000;
  using Row = std::pair<uint32_t, Times>;
  void add(const StepInfo& info);
  [[nodiscard]] std::vector<Row> longest_first() const;

  StepObserver observer_;
  ProfileClock::time_point start_;
  std::map<uint32_t, Times> times_;
};

}  // namespace sinter::convert
