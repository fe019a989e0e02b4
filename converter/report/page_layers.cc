// Layers: outputs with a low SQNR, the noise of each layer, and histograms of values.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "converter/report/page.h"

namespace sinter::convert {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostGraphs = 24;

// Returns the layers by the noise that they add, the worst first, and layers that only move elements last.
std::vector<const Json*> ranked(const Json& r) {
  std::vector<const Json*> rows;
  if (r.contains("noise"))
    for (const Json& row : r.at("noise")) rows.push_back(&row);
  std::stable_sort(rows.begin(), rows.end(), [](const Json* a, const Json* b) {
    const bool moves_a = a->at("own_sqnr_db").is_null(), moves_b = b->at("own_sqnr_db").is_null();
    if (moves_a != moves_b) return moves_b;
    const char* key = moves_a ? "sqnr_db" : "own_sqnr_db";
    return number_of(*a, key) < number_of(*b, key);
  });
  return rows;
}

// Returns the SQNR of the worst output if a single tensor were rounded, for each source of noise.
std::string sources(const Json& r) {
  constexpr size_t kMostRows = 15;
  if (!r.contains("quantized") || r.at("quantized").value("noise", Json::array()).empty()) return {};
  PageTable table({"#rank", "#alone", "op", "~node", "~rounded"});
  const Json& list = r.at("quantized").at("noise");
  for (size_t i = 0; i < list.size() && i < kMostRows; ++i) {
    const Json& s = list[i];
    const std::string value = text_of(s, "value");
    table.add({std::to_string(i + 1), noise_chip(s.at("alone_db")), escaped(text_of(s, "op")),
               escaped(text_of(s, "node")),
               s.value("weights", false) ? "its weights"
               : value.empty()           ? "its result"
                                         : escaped(value)});
  }
  return "<h3>Noise in the outputs</h3>\n<p>The SQNR of the worst output if only this were rounded; the "
         "largest noise first.</p>\n" +
         table.html("scroll tall") + "\n";
}

// Returns a drawing of the counts' logarithms, which show tails; clipped values have another colour.
std::string histogram(const Json& l) {
  constexpr double kW = 240, kH = 84, kFloor = 70;
  const Json& h = l.at("histogram");
  const double low = number_of(h, "low"), high = number_of(h, "high");
  const Json& counts = h.at("counts");
  double most = 0;
  for (const Json& c : counts) most = std::max(most, std::log1p(c.get<double>()));
  if (counts.empty() || !(high > low) || most == 0) return {};
  const auto x_of = [&](double v) { return std::clamp((v - low) / (high - low), 0.0, 1.0) * kW; };
  const bool chosen = l.contains("chosen_low");
  const double from = chosen ? x_of(number_of(l, "chosen_low")) : 0,
               to = chosen ? x_of(number_of(l, "chosen_high")) : kW;
  std::string inside, outside;
  const double w = kW / static_cast<double>(counts.size());
  for (size_t i = 0; i < counts.size(); ++i) {
    const double height = std::log1p(counts[i].get<double>()) / most * (kFloor - 4);
    if (height <= 0) continue;
    const double x = w * static_cast<double>(i), middle = x + w / 2;
    (middle >= from && middle <= to ? inside : outside) +=
        fmt::format("M{:.1f} {:.0f}v-{:.1f}h{:.1f}v{:.1f}z", x, kFloor, std::max(height, 0.8), w * 0.9,
                    std::max(height, 0.8));
  }
  std::string svg = fmt::format("<svg class=\"graph\" viewBox=\"0 0 {} {}\">", kW, kH);
  if (chosen)
    svg += fmt::format("<rect class=\"kept\" x=\"{:.1f}\" y=\"0\" width=\"{:.1f}\" height=\"{}\"/>", from,
                       to - from, kFloor);
  svg += fmt::format("<path class=\"bars\" d=\"{}\"/>", inside);
  if (!outside.empty()) svg += fmt::format("<path class=\"cutbars\" d=\"{}\"/>", outside);
  svg += fmt::format(
      "<path class=\"base\" d=\"M0 {}H{}\"/><text x=\"0\" y=\"{}\">{:.3g}</text><text class=\"right\" "
      "x=\"{}\" y=\"{}\">"
      "{:.3g}</text>",
      kFloor, kW, kH - 3, low, kW, kH - 3, high);
  if (low < 0 && high > 0 && x_of(0) > 45 && x_of(0) < kW - 45)
    svg += fmt::format("<text class=\"middle\" x=\"{:.1f}\" y=\"{}\">0</text>", x_of(0), kH - 3);
  return svg + "</svg>";
}

}  // namespace

std::string low_outputs(const Json& report) {
  if (!report.contains("quantized")) return {};
  const auto& q = report.at("quantized");
  if (!q.contains("low") || q.at("low").empty()) return {};
  PageTable outputs({"~output", "#has", "~largest noise", "#alone", "~cause"});
  for (const auto& low : q.at("low")) {
    const std::string node = escaped(text_of(low, "node")), value = escaped(text_of(low, "value"));
    outputs.add({escaped(text_of(low, "name")), noise_chip(low.at("sqnr_db")),
                 low.at("weights").get<bool>() ? node + ", its weights"
                 : value.empty()               ? node + ", its result"
                                               : value,
                 low.at("alone_db") >= 999 ? "" : noise_chip(low.at("alone_db")),
                 escaped(text_of(low, "cause"))});
  }
  PageTable remedies({"option", "#gain", "#SQNR", "change"});
  for (const auto& r : q.at("remedies"))
    remedies.add({"<code>" + escaped(text_of(r, "flags")) + "</code>",
                  fmt::format("{:+.1f} dB", r.at("gain_db").get<double>()), noise_chip(r.at("after_db")),
                  escaped(text_of(r, "what"))});
  std::string page = outputs.html() + "\n";
  if (!remedies.empty())
    page += "<h3>What to try</h3>\n<p>Measured on the same samples, in the worst output.</p>\n" +
            remedies.html() + "\n";
  return page;
}

std::string layer_tables(const Json& r) {
  const std::vector<const Json*> rows = ranked(r);
  if (rows.empty()) return {};
  PageTable table(
      {"#rank", "#own", "#all", "op", "type", "~layer", "#levels used", "#worst channel", "~findings"});
  int rank = 0;
  for (const Json* row : rows) {
    const Json& l = *row;
    const double used = number_of(l, "levels_used"), levels = std::max(number_of(l, "levels"), 1.0);
    std::string worst, level;
    if (l.contains("worst_channel") && number_of(l, "sqnr_db") < 999)
      worst = fmt::format("{} of {}: {}", l.at("worst_channel").dump(), l.at("channels").dump(),
                          db_words(l.at("worst_channel_sqnr_db")));
    if (l.contains("levels"))
      level = fmt::format("<span class=\"level\"><i style=\"width:{:.0f}%\"></i></span>{:.0f} of {:.0f}",
                          std::min(100.0, 100 * used / levels), used, levels);
    const Json& own = l.at("own_sqnr_db");
    table.add({std::to_string(++rank), own.is_null() ? "moves only" : noise_chip(own),
               noise_chip(l.at("sqnr_db")), escaped(text_of(l, "op")), type_chip(text_of(l, "type")),
               escaped(text_of(l, "value")), level, escaped(worst), escaped(text_of(l, "cause"))},
              text_of(l, "id"));
  }
  return search_box("layer", "layer-table") + "\n" + table.html("scroll tall", "layer-table") + "\n" +
         sources(r);
}

std::string range_histograms(const Json& r) {
  std::string first, rest;
  size_t count = 0;
  for (const Json* row : ranked(r)) {
    const Json& l = *row;
    if (!l.contains("scale")) continue;
    const std::string svg = histogram(l);
    if (svg.empty()) continue;
    std::string about =
        fmt::format("range {:.4g} to {:.4g}, step {:.3g}, zero at {}", number_of(l, "chosen_low"),
                    number_of(l, "chosen_high"), number_of(l, "scale"), l.at("zero_point").dump());
    if (const double clipped = number_of(l, "clipped"); clipped > 0)
      about += fmt::format(", {:.2g} % clipped", 100 * clipped);
    (++count <= kMostGraphs ? first : rest) +=
        fmt::format("<figure><figcaption><b>{}</b> {}<br/><span>{}</span></figcaption>{}</figure>\n",
                    escaped(text_of(l, "value")), noise_chip(l.at("sqnr_db")), escaped(about), svg);
  }
  if (first.empty()) return {};
  std::string out = "<div class=\"graphs\">\n" + first + "</div>\n";
  if (!rest.empty())
    out += fmt::format("<details><summary>{} more</summary><div class=\"graphs\">\n{}</div></details>\n",
                       count - kMostGraphs, rest);
  return out;
}

}  // namespace sinter::convert
