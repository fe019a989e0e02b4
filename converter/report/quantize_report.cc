#include "converter/report/quantize_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace sinter::convert {
namespace {

constexpr double kLittleSignal = 20;  // dB
constexpr size_t kMostOutputs = 3, kMostSources = 3, kMostReasons = 4;

std::string decibels(double db) { return db >= 999 ? "no noise" : fmt::format("{:.1f} dB", db); }

std::string described(const NoiseSource& s) {
  if (!s.value.empty()) return fmt::format("'{}'", s.value);
  return fmt::format("weights of {} '{}'", s.op, s.layer);
}

// How many operations stay float, by reason; the most frequent first.
std::string reasons_text(const QuantizeSummary& q) {
  std::map<std::string, int> left;
  for (const LayerFate& l : q.layers)
    if (!l.integer) ++left[fmt::format("{} ({})", l.op, reason_name(l.left.reason))];
  std::vector<std::pair<std::string, int>> ranked(left.begin(), left.end());
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (size_t i = 0; i < ranked.size() && i < kMostReasons; ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", ranked[i].second, ranked[i].first);
  if (ranked.size() > kMostReasons) text += ", ... (--report has all)";
  return text;
}

std::string advice(const QuantizeSummary& q, double worst) {
  const bool kept_for_accuracy = std::any_of(q.layers.begin(), q.layers.end(), [](const LayerFate& l) {
    return l.left.reason == Reason::kAccuracy;
  });
  if (worst < kLittleSignal)
    return fmt::format(
        "--min-sqnr {:.0f} leaves more in float; sinter compare --per-layer tells where it is lost",
        kLittleSignal + 4);
  const bool any =
      std::any_of(q.layers.begin(), q.layers.end(), [](const LayerFate& l) { return l.integer; });
  if (!any && !q.layers.empty() && q.bytes_before == 0)
    return "nothing computes on integers: --force-int8 does so where it is slower; --quantize int8w makes "
           "all weights small";
  if (q.samples < 32) return "more samples: these are few to choose ranges from";
  if (kept_for_accuracy)
    return "--require-int8 lists what stays float and why; --min-sqnr sets another target";
  return {};
}

}  // namespace

nlohmann::json to_json(const QuantizeSummary& q) {
  nlohmann::json layers = nlohmann::json::array(), outputs = layers, techniques = layers, sources = layers;
  for (const LayerFate& l : q.layers)
    layers.push_back({{"node", l.name},
                      {"op", l.op},
                      {"integer", l.integer},
                      {"reason", reason_name(l.left.reason)},
                      {"detail", l.left.detail},
                      {"int16_activations", l.wide}});
  for (const OutputNoise& o : q.outputs) outputs.push_back({{"name", o.name}, {"sqnr_db", o.db}});
  for (const TechniqueGain& t : q.techniques)
    techniques.push_back({{"name", t.name},
                          {"what", t.what},
                          {"before_db", t.before_db},
                          {"after_db", t.after_db},
                          {"kept", t.kept}});
  for (const NoiseSource& s : q.sources)
    sources.push_back(
        {{"node", s.layer}, {"op", s.op}, {"value", s.value}, {"alone_db", s.db}, {"done", s.done}});
  nlohmann::json weights;
  if (q.bytes_before > 0) weights = {{"bytes_before", q.bytes_before}, {"bytes_after", q.bytes_after}};
  nlohmann::json result = {{"mode", q.mode},
                           {"weights", weights},
                           {"samples", q.samples},
                           {"rounded_values", q.rounded},
                           {"integer_steps", q.integer_steps},
                           {"layers", layers},
                           {"measured_samples", q.tried},
                           {"outputs", outputs},
                           {"techniques", techniques},
                           {"noise", sources},
                           {"reached", q.reached}};
  if (q.float_accuracy) result["float_accuracy"] = *q.float_accuracy;
  if (q.accuracy) result["accuracy"] = *q.accuracy;
  return result;
}

std::string to_text(const QuantizeSummary& q) {
  const auto integer =
      std::count_if(q.layers.begin(), q.layers.end(), [](const LayerFate& l) { return l.integer; });
  std::string text = q.bytes_before > 0
                         ? fmt::format("{:<9} weights of {} of {} operations, {} -> {} bytes\n", q.mode,
                                       integer, q.layers.size(), q.bytes_before, q.bytes_after)
                         : fmt::format("{:<9} {} of {} operations, ranges of {} values from {} samples\n",
                                       q.mode, integer, q.layers.size(), q.rounded, q.samples);
  if (const std::string reasons = reasons_text(q); !reasons.empty()) text += "float     " + reasons + "\n";
  if (const auto wide =
          std::count_if(q.layers.begin(), q.layers.end(), [](const LayerFate& l) { return !l.wide.empty(); }))
    text += fmt::format("int16     {} operations have int16 activations (accuracy)\n", wide);
  std::string tried;
  for (const TechniqueGain& t : q.techniques)
    if (t.kept && t.after_db > t.before_db)
      tried +=
          fmt::format("{}{} {:.1f} -> {:.1f} dB", tried.empty() ? "" : ", ", t.name, t.before_db, t.after_db);
  if (!tried.empty()) text += "helped    " + tried + "\n";
  double worst = 999;
  for (const OutputNoise& o : q.outputs) worst = std::min(worst, o.db);
  std::vector<OutputNoise> outputs = q.outputs;
  std::stable_sort(outputs.begin(), outputs.end(),
                   [](const OutputNoise& a, const OutputNoise& b) { return a.db < b.db; });
  for (size_t i = 0; i < outputs.size() && i < kMostOutputs; ++i)
    text += fmt::format("signal    {} over noise in '{}', on {} samples{}\n", decibels(outputs[i].db),
                        outputs[i].name, q.tried,
                        outputs[i].db < kLittleSignal ? ": too little for most uses" : "");
  if (outputs.size() > kMostOutputs)
    text += fmt::format("          {} other outputs have more\n", outputs.size() - kMostOutputs);
  std::string loudest;
  for (size_t i = 0; i < q.sources.size() && i < kMostSources; ++i)
    loudest +=
        fmt::format("{}{} {}{}", i == 0 ? "" : ", ", described(q.sources[i]), decibels(q.sources[i].db),
                    q.sources[i].done.empty() ? "" : fmt::format(" (now {})", q.sources[i].done));
  if (!loudest.empty()) text += "loudest   rounded alone: " + loudest + "\n";
  if (q.accuracy && q.float_accuracy)
    text += fmt::format("accuracy  {:.2f} % in float, {:.2f} % now\n", 100 * *q.float_accuracy,
                        100 * *q.accuracy);
  if (const std::string next = advice(q, worst); !next.empty()) text += "next      " + next + "\n";
  return text;
}

}  // namespace sinter::convert
