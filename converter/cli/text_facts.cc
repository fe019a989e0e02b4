#include "converter/cli/text_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "converter/data/class_names.h"
#include "converter/diagnostics/printable.h"
#include "converter/quantize/samples/port_numbers.h"
#include "converter/report/columns.h"

namespace sinter::convert {
namespace {

constexpr size_t kMostBest = 5, kMostRowsShown = 10, kMostLabelsShown = 8, kMostColumns = 80;

std::vector<std::string> labels_of(const Model& model, const char* output) {
  std::vector<std::string> labels;
  for (uint32_t k = 0; k < model.label_count(output); ++k) labels.emplace_back(model.label(output, k));
  return labels;
}

// Returns the indices of the highest of these scores, the first of equal ones first; NaN comes last.
std::vector<size_t> highest(std::span<const double> scores) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto best = order.begin() + static_cast<ptrdiff_t>(std::min(kMostBest, order.size()));
  std::partial_sort(order.begin(), best, order.end(), [&](size_t a, size_t b) {
    const bool no_a = std::isnan(scores[a]), no_b = std::isnan(scores[b]);
    if (no_a != no_b) return no_b;
    return scores[a] != scores[b] && !no_a ? scores[a] > scores[b] : a < b;
  });
  order.erase(best, order.end());
  return order;
}

}  // namespace

nlohmann::json texts_json(const Model& model) {
  nlohmann::json metadata = nlohmann::json::object(), labels = nlohmann::json::object();
  for (uint32_t i = 0; i < model.metadata_count(); ++i)
    metadata[model.metadata_key(i)] = model.metadata_value(i);
  for (uint32_t i = 0; i < model.output_count(); ++i)
    if (const char* output = model.output(i).name; model.label_count(output) > 0)
      labels[output] = labels_of(model, output);
  return {{"metadata", metadata}, {"labels", labels}};
}

std::string texts_text(const Model& model) {
  std::string text;
  for (uint32_t i = 0; i < model.metadata_count(); ++i)
    text += fmt::format("metadata  {}: {}\n", printable(model.metadata_key(i)),
                        cut_to(printable(model.metadata_value(i)), kMostColumns));
  for (uint32_t i = 0; i < model.output_count(); ++i) {
    const char* output = model.output(i).name;
    if (model.label_count(output) == 0) continue;
    const std::string all = some_of(labels_of(model, output), kMostLabelsShown);
    text += fmt::format("labels    {}: {}\n", printable(output), printable(all));
  }
  return text;
}

nlohmann::json best_classes(const Model& model, const PortInfo& port, const ConstantPtr& scores) {
  nlohmann::json rows = nlohmann::json::array();
  if (model.label_count(port.name) == 0 || port.dims.empty()) return rows;
  const std::vector<std::string> labels = labels_of(model, port.name);
  const ConstantPtr numbers = port.scale > 0 ? as_numbers(scores, integer_scale(port)) : scores;
  const std::vector<double> all = numbers->as_doubles();
  const auto classes = static_cast<size_t>(port.dims[class_axis(port.dims)]);
  for (size_t at = 0; classes > 0 && at + classes <= all.size(); at += classes) {
    nlohmann::json best = nlohmann::json::array();
    const std::span<const double> row = std::span(all).subspan(at, classes);
    for (const size_t i : highest(row)) {
      best.push_back({{"index", i}, {"score", row[i]}});
      if (i < labels.size()) best.back()["label"] = labels[i];
    }
    rows.push_back(std::move(best));
  }
  return rows;
}

std::string best_text(const nlohmann::json& rows) {
  std::string text;
  for (size_t r = 0; r < std::min(rows.size(), kMostRowsShown); ++r) {
    std::vector<std::string> classes;
    for (const auto& c : rows[r]) {
      const std::string name = c.contains("label") ? c["label"].get<std::string>() : c["index"].dump();
      classes.push_back(fmt::format("{} {:.4g}", printable(name), c["score"].get<double>()));
    }
    text += fmt::format("  {}{}\n", rows.size() > 1 ? fmt::format("{}: ", r) : "", fmt::join(classes, ", "));
  }
  if (rows.size() > kMostRowsShown)
    text += fmt::format("  and {} more rows; --json has them\n", rows.size() - kMostRowsShown);
  return text;
}

}  // namespace sinter::convert
