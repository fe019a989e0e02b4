#include "converter/cli/step_profile.h"

#include <fmt/format.h>

#include <algorithm>

#include "converter/cli/fallbacks.h"
#include "converter/cli/file_work.h"
#include "converter/diagnostics/printable.h"

namespace sinter::convert {

namespace {

// Returns 1e9 multiply-adds a second. A step takes at least a nanosecond, the clock's resolution.
double gmac_per_s(double products, double seconds) { return products / std::max(seconds, 1e-9) / 1e9; }

}  // namespace

double percentile(const std::vector<double>& sorted, double share) {
  return sorted[std::min(static_cast<size_t>(share * static_cast<double>(sorted.size())), sorted.size() - 1)];
}

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
  Times& t = times_[info.step];
  t.backend = info.backend, t.kernel = info.kernel;
  if (t.seconds.size() < kMostTimes) t.seconds.push_back(seconds);
}

std::vector<StepProfile::Row> StepProfile::longest_first() const {
  std::vector<Row> rows(times_.begin(), times_.end());
  for (Row& row : rows) std::sort(row.second.seconds.begin(), row.second.seconds.end());
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return percentile(a.second.seconds, 0.5) > percentile(b.second.seconds, 0.5);
  });
  return rows;
}

std::string StepProfile::text(const HostSession& host, const Model& model) const {
  const std::vector<Row> rows = longest_first();
  const FileView view(model, host.profile(), host.entry());
  double all_seconds = 0;
  for (const auto& [step, t] : rows) all_seconds += percentile(t.seconds, 0.5);
  std::string all = fmt::format("{:>7} {:>10} {:>10} {:>10} {:>10} {:>7}  step\n", "share", "p50 us", "p90",
                                "p99", "minimum", "GMAC/s");
  for (const auto& [step, t] : rows) {
    const FallbackStep* fallback = host.fallback(host.program(), step);
    const double median = percentile(t.seconds, 0.5);
    const double products = total(multiply_adds(view, view.entry(), step));
    all += fmt::format("{:5.1f} % {:10.1f} {:10.1f} {:10.1f} {:10.1f} {:>7}  {} {} {}{} {}{}\n",
                       all_seconds > 0 ? 100 * median / all_seconds : 0, 1e6 * median,
                       1e6 * percentile(t.seconds, 0.9), 1e6 * percentile(t.seconds, 0.99),
                       1e6 * t.seconds.front(),
                       products > 0 ? fmt::format("{:.3g}", gmac_per_s(products, median)) : "", step,
                       model.step_op(step, host.program()), t.backend,
                       t.kernel != nullptr ? std::string(" ") + t.kernel : "",
                       printable(model.step_name(step, host.program())),
                       fallback == nullptr ? "" : "  " + fallback_note(*fallback));
  }
  return all;
}

nlohmann::json StepProfile::json(const HostSession& host, const Model& model) const {
  nlohmann::json list = nlohmann::json::array();
  const FileView view(model, host.profile(), host.entry());
  for (const auto& [step, t] : longest_first()) {
    const double products = total(multiply_adds(view, view.entry(), step));
    list.push_back({{"step", step},
                    {"op", model.step_op(step, host.program())},
                    {"name", model.step_name(step, host.program())},
                    {"backend", t.backend},
                    {"runs", t.seconds.size()},
                    {"us", 1e6 * percentile(t.seconds, 0.5)},
                    {"p90_us", 1e6 * percentile(t.seconds, 0.9)},
                    {"p99_us", 1e6 * percentile(t.seconds, 0.99)},
                    {"min_us", 1e6 * t.seconds.front()},
                    {"multiply_adds", products}});
    if (products > 0) list.back()["gmac_per_s"] = gmac_per_s(products, percentile(t.seconds, 0.5));
    if (t.kernel != nullptr) list.back()["kernel"] = t.kernel;
    if (const FallbackStep* fallback = host.fallback(host.program(), step))
      list.back()["fallback"] = fallback_json(*fallback);
  }
  return list;
}

}  // namespace sinter::convert
