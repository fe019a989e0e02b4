#include "converter/cli/fallbacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "converter/cli/terminal.h"
#include "converter/diagnostics/printable.h"

namespace sinter::convert {

nlohmann::json fallback_json(const FallbackStep& f) {
  return {{"program", f.program},   {"step", f.step},       {"op", f.op},        {"name", f.name},
          {"expected", f.expected}, {"backend", f.backend}, {"reason", f.reason}};
}

nlohmann::json fallbacks_json(const HostSession& host) {
  nlohmann::json list = nlohmann::json::array();
  for (const FallbackStep& f : host.fallbacks()) list.push_back(fallback_json(f));
  return list;
}

std::string fallbacks_text(const HostSession& host) {
  const std::vector<FallbackStep>& fallbacks = host.fallbacks();
  if (fallbacks.empty()) return {};
  size_t steps = 0;
  for (const auto& [backend, count] : host.backend_counts()) steps += count;
  constexpr size_t kShown = 6;
  std::vector<std::pair<std::string, size_t>> groups;  // a kind of fallback and its number of steps
  for (const FallbackStep& f : fallbacks) {
    const std::string what = fmt::format("{} from {} to {} ({})", f.op, f.expected, f.backend, f.reason);
    const auto known =
        std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == what; });
    if (known == groups.end())
      groups.emplace_back(what, 1);
    else
      ++known->second;
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text = fmt::format("{} of {} steps {}: ", fallbacks.size(), steps,
                                 fallbacks.size() == 1 ? "falls back" : "fall back");
  for (size_t i = 0; i < std::min(groups.size(), kShown); ++i)
    text += fmt::format("{}{} {}", i > 0 ? ", " : "", groups[i].second, groups[i].first);
  if (groups.size() > kShown)
    text += fmt::format(", and {} more kinds; sinter inspect --steps lists them", groups.size() - kShown);
  return text;
}

std::string fallback_note(const FallbackStep& f) { return fmt::format("[not {}: {}]", f.expected, f.reason); }

void warn_of_fallbacks(const HostSession& host) {
  if (const std::string text = fallbacks_text(host); !text.empty())
    print_messages(fmt::format("sinter: {}\n", printable(text)));
}

}  // namespace sinter::convert
