#include "converter/report/quantize_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>

#include "converter/diagnostics/printable.h"
#include "converter/quantize/report/low_sqnr_outputs.h"
#include "converter/quantize/samples/sample_split.h"
#include "converter/report/standard_report.h"

namespace sinter::convert {
namespace {

constexpr size_t kMostOutputs = 3, kMostSources = 3, kMostReasons = 4, kMostCauses = 3, kMostNamed = 2,
                 kMostRemedies = 2;
constexpr double kLittleVariation = 0.01;

std::string decibels(double db) {
  return db >= 999 ? "no noise" : db <= -999 ? "no signal" : fmt::format("{:.1f} dB", db);
}

std::string described(const NoiseSource& s) {
  if (!s.value.empty()) return fmt::format("'{}'", printable(s.value));
  return fmt::format("{} of {} '{}'", s.weights ? "weights" : "the result", s.op, printable(s.layer));
}

// The shares of the work that is done on integers, from 0 to 1.
struct Shares {
  double multiply_adds = 0, time = 0;
};
Shares integer_shares(const QuantizeSummary& q) {
  Shares integers, all;
  for (const LayerFate& l : q.layers) {
    const double time = l.integer ? l.integer_time : l.float_time;
    all.multiply_adds += l.multiply_adds, all.time += time;
    if (l.integer) integers.multiply_adds += l.multiply_adds, integers.time += time;
  }
  return {all.multiply_adds > 0 ? integers.multiply_adds / all.multiply_adds : 0,
          all.time > 0 ? integers.time / all.time : 0};
}

// Returns the SQNR of an output, or the share of right integers.
std::string value_text(const OutputNoise& o) {
  return o.equal ? fmt::format("{:.4g} % equal", 100 * *o.equal) : decibels(o.db);
}

nlohmann::json to_json(const OutputNoise& o) {
  nlohmann::json json = {{"name", o.name}, {"sqnr_db", o.db}};
  if (o.equal) json["sqnr_db"] = nullptr, json["equal"] = *o.equal;
  if (const auto& interval = o.spread.interval)
    json["low_db"] = interval->low, json["high_db"] = interval->high;
  if (const auto& single = o.spread.single)
    json["median_sample_db"] = single->median, json["worst_sample_db"] = single->worst;
  return json;
}

nlohmann::json to_json(const std::vector<OutputNoise>& outputs) {
  nlohmann::json list = nlohmann::json::array();
  for (const OutputNoise& o : outputs) list.push_back(to_json(o));
  return list;
}

// Returns " (28.4 to 31.9)", the confidence interval of the SQNR.
std::string interval_text(const OutputNoise& o) {
  const auto& interval = o.spread.interval;
  return interval ? fmt::format(" ({:.1f} to {:.1f})", interval->low, interval->high) : "";
}

// Returns ", median sample 47.9, worst 31.2", in dB; empty: of one sample or none.
std::string samples_text(const QuantizeSummary& q, const OutputNoise& o) {
  if (!o.spread.single || q.measured < 2) return {};
  return fmt::format(", median sample {:.1f}, worst {:.1f}", o.spread.single->median, o.spread.single->worst);
}

// Returns " (cannot tell from 12 samples to within 10 dB)" if an interval among `outputs` is wide, else "".
std::string doubt_text(const QuantizeSummary& q, std::span<const OutputNoise> outputs) {
  const bool wide = std::any_of(outputs.begin(), outputs.end(), [](const OutputNoise& o) {
    return o.spread.interval && o.spread.interval->high - o.spread.interval->low > kTellingWidth;
  });
  return wide ? fmt::format(" (cannot tell from {} samples to within {:.0f} dB)", q.measured, kTellingWidth)
              : "";
}

// Returns the number and kind of the samples on which the SQNR was measured.
std::string measured_text(const QuantizeSummary& q) {
  const std::string count = fmt::format("{} sample{}", q.measured, q.measured == 1 ? "" : "s");
  if (q.bytes_before > 0) return count;
  return count + (q.held_out ? " held out" : " that also chose the ranges");
}

// Returns the number of operations kept in float by reason, the most frequent first.
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
  if (ranked.size() > kMostReasons) text += ", ... (--report has all of them)";
  return text;
}

std::string advice(const QuantizeSummary& q) {
  const bool kept_for_accuracy = std::any_of(q.layers.begin(), q.layers.end(), [](const LayerFate& l) {
    return l.left.reason == Reason::kAccuracy;
  });
  const bool any =
      std::any_of(q.layers.begin(), q.layers.end(), [](const LayerFate& l) { return l.integer; });
  if (!any && !q.layers.empty() && q.bytes_before == 0)
    return fmt::format(
        "no operation computes on integers: --force-int8 uses integers even where they are slower; "
        "--quantize int8w{} makes all weights small",
        without_flags(q.byte_flags));
  if (q.bytes_before == 0 && q.samples < 32) return "more samples: these are too few to choose ranges from";
  if (kept_for_accuracy)
    return "--require-int8 lists the operations kept in float with reasons; --min-sqnr sets another target";
  return {};
}

// Returns why outputs have a low SQNR, in a line for each cause.
std::string causes_text(const QuantizeSummary& q) {
  std::vector<std::pair<const LowOutput*, std::vector<std::string>>> groups;
  for (const LowOutput& low : q.low) {
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& g) {
      const NoiseSource &a = g.first->loudest, &b = low.loudest;
      return a.layer == b.layer && a.value == b.value && g.first->cause == low.cause;
    });
    if (same == groups.end())
      groups.push_back({&low, {low.name}});
    else
      same->second.push_back(low.name);
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto& a, const auto& b) { return a.first->db < b.first->db; });
  std::string text;
  size_t told = 0;
  for (size_t i = 0; i < groups.size() && i < kMostCauses; ++i) {
    const auto& [low, names] = groups[i];
    std::string in;
    for (size_t n = 0; n < names.size() && n < kMostNamed; ++n)
      in += fmt::format("{}'{}'", n == 0 ? "" : ", ", printable(names[n]));
    if (names.size() > kMostNamed) in += fmt::format(" and {} others", names.size() - kMostNamed);
    text += fmt::format("cause     in {}: ", in);
    const NoiseSource& loudest = low->loudest;
    if (loudest.db < 999)
      text += fmt::format("{} alone leave{} {}: ", described(loudest), loudest.weights ? "" : "s",
                          decibels(loudest.db));
    text += printable(low->cause);
    told += names.size();
    if (i + 1 == kMostCauses && told < q.low.size())
      text += fmt::format("; --json has {} outputs more", q.low.size() - told);
    text += "\n";
  }
  return text;
}

// Returns the settings that raise the SQNR, with their gains, in the order in which to try them.
std::string remedies_text(const QuantizeSummary& q) {
  std::string text, useless;
  size_t told = 0;
  for (const Suggestion& r : q.remedies) {
    const double gain = r.after_db - r.before_db;
    const std::string accuracy =
        r.accuracy ? fmt::format(", accuracy {:.2f} %", 100 * *r.accuracy) : std::string();
    if (!(gain >= kWorthTelling)) {
      useless += fmt::format("{}{}{}", useless.empty() ? "" : ", ", r.flags, accuracy);
      continue;
    }
    if (told++ == kMostRemedies) break;
    text += fmt::format("{}{} ", told == 1 ? "" : "\n          ", printable(r.flags));
    text +=
        r.after_db >= 999 ? "leaves no noise" : fmt::format("wins {:.1f} dB: {}", gain, decibels(r.after_db));
    const std::string evaluated =
        r.evaluated_db ? fmt::format(", {} on the data to evaluate", decibels(*r.evaluated_db)) : "";
    text += fmt::format("{}{}{} ({})", q.outputs.size() > 1 ? " in the worst output" : "", accuracy,
                        evaluated, r.what);
  }
  if (!text.empty()) return text;
  if (!useless.empty()) text = fmt::format("no gain was measured for {}; ", useless);
  return text + "sinter compare --per-layer shows the layers that lose it";
}

// Returns the SQNR of the worst output on the data of --evaluate.
std::string evaluation_text(const QuantizeSummary& q) {
  if (!q.evaluation || q.evaluation->outputs.empty()) return {};
  const auto& all = q.evaluation->outputs;
  const OutputNoise& worst = *std::min_element(
      all.begin(), all.end(), [](const OutputNoise& a, const OutputNoise& b) { return a.db < b.db; });
  const bool little = worst.db < kLittleSignal;
  // There is nothing to compare with where no calibration data was measured.
  const bool unlike = little && !q.outputs.empty() && worst_of(q.outputs) >= kLittleSignal;
  return fmt::format("evaluation: worst output '{}' {}, on {} samples{}{}\n", printable(worst.name),
                     value_text(worst), q.evaluation->samples, little ? ": too little for most uses" : "",
                     unlike ? "; calibrate with samples more like these" : "");
}

// Returns what became of the file of settings.
std::string applied_text(const AppliedSettings& a) {
  std::string text = fmt::format("config    {} values and {} operations as {} gives them", a.values, a.layers,
                                 printable(a.file));
  const auto add = [&](size_t count, const char* what) {
    if (count > 0) text += fmt::format("; {} {}", count, what);
  };
  add(a.rescaled, "ranges do not fit their rescaled channels and were chosen anew");
  add(a.not_found, "names belong to no value that is rounded");
  add(a.parameters, "encodings of parameters, or of other bits, were left out");
  return text + "\n";
}

}  // namespace

nlohmann::json to_json(const QuantizeSummary& q) {
  nlohmann::json layers = nlohmann::json::array(), techniques = layers, sources = layers;
  for (const LayerFate& l : q.layers)
    layers.push_back({{"node", l.name},
                      {"op", l.op},
                      {"integer", l.integer},
                      {"multiply_adds", l.multiply_adds},
                      {"float_ns", l.float_time},
                      {"integer_ns", l.integer_time},
                      {"reason", reason_name(l.left.reason)},
                      {"detail", l.left.detail},
                      {"int16_activations", l.wide}});
  for (const TechniqueGain& t : q.techniques)
    techniques.push_back({{"name", t.name},
                          {"what", t.what},
                          {"before_db", t.before_db},
                          {"after_db", t.after_db},
                          {"kept", t.kept}});
  for (const NoiseSource& s : q.sources)
    sources.push_back({{"node", s.layer},
                       {"op", s.op},
                       {"value", s.value},
                       {"weights", s.weights},
                       {"alone_db", s.db},
                       {"done", s.done}});
  nlohmann::json low = nlohmann::json::array(), remedies = low;
  for (const LowOutput& l : q.low)
    low.push_back({{"name", l.name},
                   {"sqnr_db", l.db},
                   {"node", l.loudest.layer},
                   {"op", l.loudest.op},
                   {"value", l.loudest.value},
                   {"weights", l.loudest.weights},
                   {"alone_db", l.loudest.db},
                   {"cause", l.cause}});
  for (const Suggestion& r : q.remedies) {
    remedies.push_back({{"flags", r.flags},
                        {"what", r.what},
                        {"before_db", r.before_db},
                        {"after_db", r.after_db},
                        {"gain_db", r.after_db - r.before_db},
                        {"outputs", to_json(r.outputs)}});
    if (r.accuracy) remedies.back()["accuracy"] = *r.accuracy;
    if (r.evaluated_db) remedies.back()["evaluated_db"] = *r.evaluated_db;
  }
  nlohmann::json weights;
  if (q.bytes_before > 0) weights = {{"bytes_before", q.bytes_before}, {"bytes_after", q.bytes_after}};
  nlohmann::json result = {{"mode", q.mode},
                           {"weights", weights},
                           {"samples", q.samples},
                           {"rounded_values", q.rounded},
                           {"rounded_products", q.rounded_products},
                           {"integer_steps", q.integer_steps},
                           {"layers", layers},
                           {"measured_samples", q.measured},
                           {"held_out", q.held_out},
                           {"fitted_samples", std::max(q.samples, q.refitted)},
                           {"outputs", to_json(q.outputs)},
                           {"techniques", techniques},
                           {"noise", sources},
                           {"low", low},
                           {"remedies", remedies},
                           {"reached", q.reached}};
  if (q.bytes_before == 0 && q.mode != "activations") {
    const Shares shares = integer_shares(q);
    result["cpu"] = cpu_name(q.cpu);
    result["quantize_config"] = to_json(q.settings);
    result["integer_multiply_adds_share"] = shares.multiply_adds, result["integer_time_share"] = shares.time;
  }
  if (q.standard) result["standard"] = to_json(*q.standard);
  if (q.variation) result["output_variation"] = *q.variation;
  if (q.float_accuracy) result["float_accuracy"] = *q.float_accuracy;
  if (q.accuracy) result["accuracy"] = *q.accuracy;
  if (q.evaluation) {
    result["evaluation"] = {
        {"metric", "sqnr"}, {"samples", q.evaluation->samples}, {"outputs", to_json(q.evaluation->outputs)}};
  }
  return result;
}

std::string to_text(const QuantizeSummary& q) {
  const auto integer =
      std::count_if(q.layers.begin(), q.layers.end(), [](const LayerFate& l) { return l.integer; });
  const Shares shares = integer_shares(q);
  std::string text =
      q.mode == "activations" ? std::string()
      : q.bytes_before > 0
          ? fmt::format("{:<9} weights of {} of {} operations, {} -> {} bytes\n", q.mode, integer,
                        q.layers.size(), q.bytes_before, q.bytes_after)
          : fmt::format(
                "{:<9} {:.0f} % of the multiply-adds and {:.0f} % of the estimated time ({}), {} of {} "
                "operations; ranges of {} values from {} samples\n",
                q.mode, 100 * shares.multiply_adds, 100 * shares.time, cpu_name(q.cpu), integer,
                q.layers.size(), q.rounded, std::max(q.samples, q.refitted));
  if (q.rounded_products > 0)
    text += fmt::format("int8      activations of {} products with weights of few bits, block by block\n",
                        q.rounded_products);
  if (const std::string reasons = reasons_text(q); !reasons.empty()) text += "float     " + reasons + "\n";
  if (const auto wide =
          std::count_if(q.layers.begin(), q.layers.end(), [](const LayerFate& l) { return !l.wide.empty(); }))
    text += fmt::format("int16     {} operations have int16 activations (accuracy)\n", wide);
  if (q.applied) text += applied_text(*q.applied);
  std::string tried;
  for (const TechniqueGain& t : q.techniques)
    if (t.kept && t.after_db > t.before_db)
      tried +=
          fmt::format("{}{} {:.1f} -> {:.1f} dB", tried.empty() ? "" : ", ", t.name, t.before_db, t.after_db);
  if (!tried.empty()) text += "helped    " + tried + "\n";
  std::vector<OutputNoise> outputs, integers;
  for (const OutputNoise& o : q.outputs) (o.equal ? integers : outputs).push_back(o);
  std::stable_sort(outputs.begin(), outputs.end(),
                   [](const OutputNoise& a, const OutputNoise& b) { return a.db < b.db; });
  std::stable_sort(integers.begin(), integers.end(),
                   [](const OutputNoise& a, const OutputNoise& b) { return *a.equal < *b.equal; });
  for (size_t i = 0; i < outputs.size() && i < kMostOutputs; ++i)
    text +=
        outputs[i].db >= 999
            ? fmt::format("signal    '{}' is exact, on {}\n", printable(outputs[i].name), measured_text(q))
            : fmt::format("signal    {}{} over noise in '{}'{}, on {}{}\n", decibels(outputs[i].db),
                          interval_text(outputs[i]), printable(outputs[i].name), samples_text(q, outputs[i]),
                          measured_text(q),
                          outputs[i].db < kLittleSignal ? ": too little for most uses" : "");
  if (!outputs.empty() && q.held_out && q.bytes_before == 0 && q.mode != "activations")
    text +=
        fmt::format("          for data of this kind{}; other data can give less{}\n",
                    doubt_text(q, std::span(outputs).first(std::min(outputs.size(), kMostOutputs))),
                    q.refitted > 0 ? fmt::format("; the file was then fitted to all {} samples", q.refitted)
                                   : std::string());
  if (!outputs.empty() && q.measured < kManyJudges)
    text += fmt::format("          few samples: with at least {} for --calibrate the interval is narrower\n",
                        5 * kManyJudges);
  if (outputs.size() > kMostOutputs)
    text += fmt::format("          {} other outputs have more\n", outputs.size() - kMostOutputs);
  for (size_t i = 0; i < integers.size() && i < kMostOutputs; ++i)
    text += fmt::format("equal     {:.4g} % of the integers in '{}', on {}{}\n", 100 * *integers[i].equal,
                        printable(integers[i].name), measured_text(q),
                        outputs.empty() ? "" : "; they have no SQNR, and nothing is chosen by them");
  if (integers.size() > kMostOutputs)
    text += fmt::format("          {} other outputs of integers have as many or more\n",
                        integers.size() - kMostOutputs);
  if (q.variation && *q.variation < kLittleVariation)
    text += fmt::format(
        "data      the outputs of different samples differ by only {:.2g} % of their size: check that "
        "--calibrate is scaled as in training\n",
        100 * *q.variation);
  std::string loudest;
  for (size_t i = 0; q.low.empty() && i < q.sources.size() && i < kMostSources; ++i)
    loudest +=
        fmt::format("{}{} {}{}", i == 0 ? "" : ", ", described(q.sources[i]), decibels(q.sources[i].db),
                    q.sources[i].done.empty() ? "" : fmt::format(" (now {})", q.sources[i].done));
  text += causes_text(q);
  if (!loudest.empty()) text += "loudest   rounded alone: " + loudest + "\n";
  if (q.accuracy && q.float_accuracy)
    text += fmt::format("accuracy  {:.2f} % in float, {:.2f} % now\n", 100 * *q.float_accuracy,
                        100 * *q.accuracy);
  text += evaluation_text(q);
  if (q.standard) text += to_text(*q.standard);
  if (const std::string next = q.remedies.empty() && q.low.empty() ? advice(q) : remedies_text(q);
      !next.empty())
    text += "next      " + next + "\n";
  return text;
}

}  // namespace sinter::convert
