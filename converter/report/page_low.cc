// Outputs with a low SQNR: the rounding that adds most noise, its cause, and the gain of each remedy.
#include <fmt/format.h>

#include "converter/report/page.h"

namespace sinter::convert {

std::string low_outputs(const nlohmann::json& report) {
  if (!report.contains("quantized")) return {};
  const auto& q = report.at("quantized");
  if (!q.contains("low") || q.at("low").empty()) return {};
  const auto text = [](const nlohmann::json& j, const char* key) {
    return escaped(j.value(key, std::string()));
  };
  const auto db = [](const nlohmann::json& j, const char* key) {
    return fmt::format("<span class=\"chip {}\">{}</span>", noise_class(j.at(key)),
                       escaped(db_words(j.at(key))));
  };
  std::string rows;
  for (const auto& low : q.at("low"))
    rows += fmt::format(
        "<tr><td class=\"w\">{}</td><td class=\"n\">{}</td><td class=\"w\">{}</td><td class=\"n\">{}</td>"
        "<td class=\"w\">{}</td></tr>\n",
        text(low, "name"), db(low, "sqnr_db"),
        low.at("weights").get<bool>()                ? text(low, "node") + ", its weights"
        : low.at("value").get<std::string>().empty() ? text(low, "node") + ", its result"
                                                     : text(low, "value"),
        low.at("alone_db") >= 999 ? "" : db(low, "alone_db"), text(low, "cause"));
  std::string page =
      "<div class=\"scroll\"><table><thead><tr><th>output</th><th class=\"n\">has</th><th>largest "
      "noise</th><th class=\"n\">alone</th><th>cause</th></tr></thead><tbody>\n" +
      rows + "</tbody></table></div>\n";
  rows.clear();
  for (const auto& r : q.at("remedies"))
    rows += fmt::format(
        "<tr><td><code>{}</code></td><td class=\"n\">{:+.1f} dB</td><td "
        "class=\"n\">{}</td><td>{}</td></tr>\n",
        text(r, "flags"), r.at("gain_db").get<double>(), db(r, "after_db"), text(r, "what"));
  if (!rows.empty())
    page +=
        "<h3>What to try</h3>\n<p>Measured on the same samples, in the worst output.</p>\n<div "
        "class=\"scroll\"><table><thead><tr><th>option</th><th class=\"n\">gain</th><th "
        "class=\"n\">SQNR</th><th>change</th></tr></thead><tbody>\n" +
        rows + "</tbody></table></div>\n";
  return page;
}

}  // namespace sinter::convert
