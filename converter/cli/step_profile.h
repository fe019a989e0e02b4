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

class StepProfile {
 public:
  // Of several runs, the sum of a step's times or the lowest one.
  enum class Of : uint8_t { kSum, kLowest };
  explicit StepProfile(Of of = Of::kSum) : of_(of) {}

  // Observes the session's runs from now on; must outlive them.
  void attach(Session& session);

  // One line, or one object, for each step of the entry that ran, an If or Loop with its bodies; the longest
  // step comes first.
  [[nodiscard]] std::string text(const HostSession& host, const Model& model) const;
  [[nodiscard]] nlohmann::json json(const HostSession& host, const Model& model) const;

 private:
  struct Time {
    double seconds = 0;
    const char* backend = "";
  };
  using Row = std::pair<uint32_t, Time>;
  void add(const StepInfo& info);
  [[nodiscard]] std::vector<Row> longest_first() const;

  Of of_;
  StepObserver observer_;
  std::chrono::steady_clock::time_point start_;
  std::map<uint32_t, Time> times_;
};

}  // namespace sinter::convert
