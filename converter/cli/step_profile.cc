#include "converter/cli/step_profile.h"

#include <fmt/format.h>

#include <algorithm>

#include "converter/cli/fallbacks.h"

namespace sinter::convert {

void StepProfile::attach(Session& session) {
  observer_.context = this;
  observer_.before = [](void* self, const StepInfo& info) {
    if (!info.in_body) static_cast<StepProfile*>(self)->start_ = std::chrono::steady_clock::now();
  };
  observer_.after = [](void* self, const StepInfo& info, const OpCall&) {
    static_cast<StepProfile*>(self)->add(info);
  };
  session.set_observer(&observer_);
}

void StepProfile::add(const StepInfo& info) {
  if (info.in_body) return;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const auto [at, added] = times_.try_emplace(info.step, Time{seconds, info.backend});
  if (added) return;
  Time& t = at->second;
  t.seconds = of_ == Of::kSum ? t.seconds + seconds : std::min(t.seconds, seconds);
}

std::vector<StepProfile::Row> StepProfile::longest_first() const {
  std::vector<Row> rows(times_.begin(), times_.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.second.seconds > b.second.seconds; });
  return rows;
}

std::string StepProfile::text(const HostSession& host, const Model& model) const {
  double total = 0;
  for (const auto& [step, t] : times_) total += t.seconds;
  std::string all;
  for (const auto& [step, t] : longest_first()) {
    const FallbackStep* fallback = host.fallback(host.program(), step);
    all += fmt::format("{:5.1f} %  {:10.1f} us  {:>4} {:<16} {:<10} {}{}\n",
                       total > 0 ? 100 * t.seconds / total : 0, 1e6 * t.seconds, step,
                       model.step_op(step, host.program()), t.backend, model.step_name(step, host.program()),
                       fallback == nullptr ? "" : "  " + fallback_note(*fallback));
  }
  return all;
}

nlohmann::json StepProfile::json(const HostSession& host, const Model& model) const {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& [step, t] : longest_first()) {
    list.push_back({{"step", step},
                    {"op", model.step_op(step, host.program())},
                    {"name", model.step_name(step, host.program())},
                    {"backend", t.backend},
                    {"us", 1e6 * t.seconds}});
    if (const FallbackStep* fallback = host.fallback(host.program(), step))
      list.back()["fallback"] = fallback_json(*fallback);
  }
  return list;
}

}  // namespace sinter::convert
