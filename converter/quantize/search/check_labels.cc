#include "converter/quantize/search/check_labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace sinter::convert {
namespace {

constexpr int64_t kFewestLabelled = 20;
// Chance by the frequencies of labels counts where this many samples do not have the most frequent one.
constexpr int64_t kFewestOthers = 5;
// Another order of the labels is worth a warning from this accuracy on, if it gains this much.
constexpr double kOrdered = 0.5, kGain = 0.25;
constexpr size_t kMostNamed = 4;

struct Answer {
  int64_t label = 0, given = 0;
};

// The answers for labelled samples.
struct Answers {
  std::vector<Answer> all;
  std::map<int64_t, int64_t> labels, given;  // how often each occurs
  int64_t right = 0, classes = 0;

  double share(int64_t n) const { return static_cast<double>(n) / static_cast<double>(all.size()); }
  double accuracy() const { return share(right); }
  // The accuracy of answers that do not depend on the label.
  double chance(int64_t top) const {
    const double even =
        std::min(1.0, static_cast<double>(top) / static_cast<double>(std::max<int64_t>(classes, 1)));
    int64_t most = 0;
    for (const auto& [label, n] : labels) most = std::max(most, n);
    if (static_cast<int64_t>(all.size()) - most < kFewestOthers || top > 1) return even;
    double sum = 0;
    for (const auto& [label, n] : labels)
      if (const auto at = given.find(label); at != given.end()) sum += share(n) * share(at->second);
    return std::max(even, sum);
  }
  // The class that each label is mostly taken for, one to one, the most frequent pairs first. Every second
  // answer from `first` on counts.
  std::map<int64_t, int64_t> order(size_t first) const {
    std::map<std::pair<int64_t, int64_t>, int64_t> count;
    for (size_t i = first; i < all.size(); i += 2) ++count[{all[i].label, all[i].given}];
    std::vector<std::pair<int64_t, std::pair<int64_t, int64_t>>> pairs;
    for (const auto& [pair, n] : count) pairs.emplace_back(n, pair);
    std::stable_sort(pairs.begin(), pairs.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    std::map<int64_t, int64_t> taken;
    std::set<int64_t> used;
    for (const auto& [n, pair] : pairs)
      if (!taken.contains(pair.first) && used.insert(pair.second).second) taken.insert(pair);
    return taken;
  }
  // The share that is right in the order of the other half of the answers, so that chance gains nothing.
  double reordered() const {
    int64_t n = 0;
    const std::map<int64_t, int64_t> orders[2] = {order(0), order(1)};
    for (size_t i = 0; i < all.size(); ++i) {
      const auto& other = orders[1 - i % 2];
      const auto at = other.find(all[i].label);
      n += at != other.end() && at->second == all[i].given;
    }
    return share(n);
  }
};

Answers answers_of(GraphScores& scores, LabelledSamples& data, const Metric& metric) {
  Answers answers;
  data.samples->rewind();
  Sample sample;
  for (size_t i = 0; i < data.labels.size() && data.samples->next(&sample); ++i) {
    const std::vector<double> given = scores(sample);
    const int64_t label = data.labels[i], found = class_of(given);
    answers.all.push_back({label, found});
    ++answers.labels[label], ++answers.given[found];
    answers.right += is_right(given, label, metric.top);
    answers.classes = given.size() > 1 ? static_cast<int64_t>(given.size())
                                       : std::max({answers.classes, label + 1, found + 1});
  }
  return answers;
}

// "'cat', here 0, is mostly 3".
std::string named(const std::map<int64_t, int64_t>& order, const std::map<int64_t, std::string>& folders) {
  std::vector<std::string> texts;
  for (const auto& [label, found] : order) {
    if (label == found) continue;
    if (texts.size() == kMostNamed) {
      texts.emplace_back("...");
      break;
    }
    const auto name = folders.find(label);
    texts.push_back(name == folders.end()
                        ? fmt::format("label {} is mostly class {}", label, found)
                        : fmt::format("'{}', here {}, is mostly class {}", name->second, label, found));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

void check_labels(const Graph& graph, LabelledSamples& data, const Metric& metric,
                  const RunnerOptions& options, int64_t sequence, Diagnostics& diagnostics) {
  if (static_cast<int64_t>(data.labels.size()) < kFewestLabelled) return;
  GraphScores scores(graph, options, sequence);
  const Answers answers = answers_of(scores, data, metric);
  const double chance = answers.chance(metric.top), accuracy = answers.accuracy();
  const double deviation = std::sqrt(chance * (1 - chance) / static_cast<double>(answers.all.size()));
  const double other = answers.reordered();
  const bool another = answers.labels.size() > 1 && other >= kOrdered && other >= accuracy + kGain;
  const bool by_chance = accuracy <= chance + deviation;
  if (!another && !by_chance) return;
  std::string message = fmt::format("--evaluate: {:.2f} % of {} samples are right in float", 100 * accuracy,
                                    answers.all.size());
  if (by_chance) message += fmt::format(", no more than by chance ({:.2f} %)", 100 * chance);
  if (another) {
    const std::string names = named(answers.order(0), data.folders);
    message += fmt::format("; with the labels in another order it would be {:.2f} %{}{}", 100 * other,
                           names.empty() ? "" : ": ", names);
  }
  diagnostics.warn("", "", std::move(message),
                   fmt::format("{}{}",
                               data.folders.empty()
                                   ? "give the numbers of the model's own classes, from 0"
                                   : "sub-folders count from 0 in the order of their names, which need not "
                                     "be the model's: give --classes FILE, the names in the order of the "
                                     "model's scores",
                               another ? "" : ", and scale the data as for training (--mean, --scale)"));
}

}  // namespace sinter::convert
