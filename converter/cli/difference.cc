#include "converter/cli/difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "converter/cli/terminal.h"
#include "converter/diagnostics/printable.h"
#include "converter/quantize/search/noise.h"

namespace sinter::convert {

void Difference::add(const std::vector<double>& x, const std::vector<double>& y, DType dtype,
                     const Tolerance& tolerance) {
  double now = 0;
  for (const double v : x)
    if (std::isfinite(v)) now = std::max(now, std::fabs(v));
  peak = std::max(peak, now);
  const bool exact = !is_float(dtype) && !tolerance.rtol && !tolerance.atol;
  const double rtol = tolerance.rtol.value_or(1e-3), atol = tolerance.atol.value_or(1e-5 * now);
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isfinite(x[i]) && std::isfinite(y[i])) {
      const double e = std::fabs(x[i] - y[i]);
      ++finite;
      largest = std::max(largest, e);
      signal += x[i] * x[i], noise += e * e;
      within &= tolerance.min_sqnr || e == 0 || (!exact && e <= atol + rtol * std::fabs(x[i]));
    } else if (const bool nan = std::isnan(x[i]) && std::isnan(y[i]); nan || x[i] == y[i]) {
      ++not_finite_in_both, nan_in_both += nan;
    } else {
      ++not_finite, within = false, largest = std::numeric_limits<double>::infinity();
    }
  }
}

std::optional<double> Difference::sqnr_db() const {
  if (not_finite > 0) return -999;
  if (finite == 0 && not_finite_in_both > 0) return std::nullopt;
  return decibels(signal, noise);
}

void Difference::judge(const Tolerance& tolerance) {
  if (tolerance.min_sqnr) within = not_finite == 0 && sqnr_db().value_or(999) >= *tolerance.min_sqnr;
  within &= !only_nan();
}

nlohmann::json Difference::to_json(const std::string& name) const {
  const auto number = [](double x) { return std::isfinite(x) ? nlohmann::json(x) : nlohmann::json(); };
  const std::optional<double> db = sqnr_db();
  return {{"name", name},
          {"max_abs", number(largest)},
          {"max_rel", number(relative())},
          {"sqnr_db", db ? nlohmann::json(*db) : nlohmann::json()},
          {"not_finite", not_finite},
          {"not_finite_in_both", not_finite_in_both},
          {"within", within}};
}

std::string Difference::to_text() const {
  const std::optional<double> db = sqnr_db();
  std::string text = finite == 0 && not_finite_in_both + not_finite > 0
                         ? std::string("no two finite numbers to compare")
                         : fmt::format("largest difference {:.3g} ({:.3g} of the peak), {:.1f} dB", largest,
                                       relative(), db.value_or(-999));
  if (not_finite > 0)
    text += fmt::format(", {} element{} NaN or infinite in one of the two", not_finite,
                        not_finite == 1 ? "" : "s");
  if (not_finite_in_both > 0)
    text += fmt::format(", {} element{} NaN or infinite in both", not_finite_in_both,
                        not_finite_in_both == 1 ? "" : "s");
  return text;
}

namespace {

nlohmann::json layer_json(const LayerNoise::Row& row, const Difference& difference) {
  nlohmann::json json = difference.to_json(row.name);
  const ValueNoise n = row.accumulated.result();
  json["node"] = row.node, json["op"] = row.op, json["type"] = dtype_name(row.dtype), json["step"] = row.step;
  json["own_sqnr_db"] = row.own && !n.scaled() ? nlohmann::json(row.own->result().db()) : nlohmann::json();
  if (n.rescaled) json["rescaled"] = true, json["sqnr_db"] = n.db();
  if (n.all.appeared > 0) json["appeared"] = n.all.appeared;
  json["low"] = n.all.low, json["high"] = n.all.high;
  if (n.params) {
    json["scale"] = n.params->scale, json["zero_point"] = n.params->zero_point;
    json["levels"] = n.levels(), json["levels_used"] = n.levels_used();
    json["clipped"] = n.clipped_share();
  }
  if (const int64_t worst = n.channels.size() > 1 ? n.worst_channel() : -1; worst >= 0) {
    json["worst_channel"] = worst;
    json["worst_channel_sqnr_db"] = n.channels[static_cast<size_t>(worst)].db();
  }
  json["cause"] = cause_of(n);
  return json;
}

// Returns the layers ordered by the noise that they add, the worst first; behind these, layers that only move
// elements, then layers with factors that the reference does not have, so that numbers are not comparable.
std::vector<const LayerNoise::Row*> ranked(const LayerNoise& noise) {
  std::multimap<std::pair<int, double>, const LayerNoise::Row*> sorted;
  for (const LayerNoise::Row* row : noise.rows()) {
    const ValueNoise n = row->accumulated.result();
    sorted.emplace(std::pair(n.scaled() ? 2
                             : row->own ? 0
                                        : 1,
                             row->own ? row->own->result().db() : n.db()),
                   row);
  }
  std::vector<const LayerNoise::Row*> rows;
  for (const auto& [key, row] : sorted) rows.push_back(row);
  return rows;
}

// Returns the end of a long name, which is more specific than its start.
std::string end_of(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  size_t from = text.size() - (most - 2);
  while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xC0) == 0x80) ++from;
  return ".." + text.substr(from);
}

std::string db_text(double db) {
  return db >= 999 ? "exact" : db <= -999 ? "lost" : fmt::format("{:.1f}", db);
}

}  // namespace

nlohmann::json layers_json(const LayerNoise& noise, const std::vector<Difference>& judged) {
  nlohmann::json list = nlohmann::json::array();
  for (const LayerNoise::Row* row : ranked(noise)) list.push_back(layer_json(*row, judged[row->judged]));
  return list;
}

void print_layers(const LayerNoise& noise, bool all) {
  constexpr size_t kMostRows = 15;
  const auto rows = ranked(noise);
  print_text(fmt::format("{:>6} {:>6}  {:<16} {:<8} {:<30} {:>12}  {:<14} {}\n", "own", "all", "op", "type",
                         "layer", "levels", "worst channel", "why"));
  for (size_t i = 0; i < rows.size() && (all || i < kMostRows); ++i) {
    const LayerNoise::Row& r = *rows[i];
    const ValueNoise n = r.accumulated.result();
    const int64_t worst = n.channels.size() > 1 && n.all.noise > 0 ? n.worst_channel() : -1;
    print_text(fmt::format(
        "{:>6} {:>6}  {:<16} {:<8} {:<30} {:>12}  {:<14} {}\n",
        r.own && !n.scaled() ? db_text(r.own->result().db()) : "-", db_text(n.db()), r.op,
        dtype_name(r.dtype), end_of(printable(r.name), 30),
        n.params ? fmt::format("{:.0f} of {}", n.levels_used(), n.levels()) : "",
        worst < 0 ? "" : fmt::format("{}: {}", worst, db_text(n.channels[static_cast<size_t>(worst)].db())),
        cause_of(n)));
  }
  if (!all && rows.size() > kMostRows)
    print_text(fmt::format("               and {} more (--all)\n", rows.size() - kMostRows));
  print_text(fmt::format("SQNR in dB; own: with exact operands, all: with the model's own operands\n"));
}

}  // namespace sinter::convert
