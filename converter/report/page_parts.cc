// The parts that sections of the page share.
#include <fmt/format.h>

#include <algorithm>

#include "converter/diagnostics/printable.h"
#include "converter/report/page.h"

namespace sinter::convert {

using Json = nlohmann::json;

std::string text_of(const Json& j, const char* key) {
  const auto at = j.find(key);
  return at == j.end() || !at->is_string() ? std::string() : at->get<std::string>();
}

double number_of(const Json& j, const char* key) {
  const auto at = j.find(key);
  return at == j.end() || !at->is_number() ? 0 : at->get<double>();
}

std::string chip(const std::string& look, const std::string& text) {
  return fmt::format("<span class=\"chip {}\">{}</span>", look, escaped(text));
}

std::string noise_chip(const Json& db) { return chip(noise_class(db), db_words(db)); }

std::string type_chip(const std::string& type) { return chip("t " + type_class(type), type); }

std::string key_entry(const char* look, const char* what) {
  return fmt::format("<span><span class=\"key {}\"></span>{}</span>", look, what);
}

std::string type_keys() {
  return key_entry("p8", "int8") + key_entry("p16", "int16") + key_entry("ph", "float16, bfloat16") +
         key_entry("pf", "float32, float64") + key_entry("pi", "other");
}

std::string search_box(const char* what, const char* table) {
  return fmt::format(
      "<div class=\"tools\"><input type=\"search\" placeholder=\"find a {0}\" data-rows=\"{1}\" "
      "aria-label=\"find a {0}\"/></div>",
      what, table);
}

namespace {

const char* look_of(std::string_view head) {
  return head.starts_with('#') ? " class=\"n\"" : head.starts_with('~') ? " class=\"w\"" : "";
}

}  // namespace

void PageTable::add(const std::vector<std::string>& cells, const std::string& id) {
  rows_ += id.empty() ? "<tr>" : fmt::format("<tr id=\"{}\">", id);
  for (size_t i = 0; i < cells.size(); ++i)
    rows_ += fmt::format("<td{}>{}</td>", look_of(heads_[i]), cells[i]);
  rows_ += "</tr>\n";
}

std::string PageTable::html(const char* look, const char* id) const {
  std::string text = fmt::format("<div class=\"{}\"{}><table><thead><tr>", look,
                                 *id == 0 ? "" : fmt::format(" id=\"{}\"", id));
  for (const std::string_view head : heads_)
    text += fmt::format("<th{}>{}</th>", head.starts_with('#') ? look_of(head) : "",
                        head.substr(*look_of(head) != 0));
  return text + "</tr></thead><tbody>\n" + rows_ + "</tbody></table></div>";
}

std::string escaped(const std::string& text) {
  constexpr std::string_view kMarks = "<>&\"";
  constexpr const char* kNames[] = {"&lt;", "&gt;", "&amp;", "&quot;"};
  std::string out;
  for (const char c : printable_lines(text)) {
    const size_t mark = kMarks.find(c);
    mark == std::string_view::npos ? out += c : out += kNames[mark];
  }
  return out;
}

std::string shortened(const std::string& text, size_t most) {
  const auto starts = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
  const auto letters = static_cast<size_t>(std::count_if(text.begin(), text.end(), starts));
  if (letters <= most || most < 4) return text;
  // Ends are more specific than starts, which many names share.
  const size_t head = (most - 1) / 3, tail = most - 1 - head;
  std::string first, last;
  size_t n = 0;
  for (const char c : text) {
    n += starts(c);
    if (n <= head) first += c;
    if (n > letters - tail) last += c;
  }
  return first + "\xE2\x80\xA6" + last;
}

std::string db_words(const Json& db) {
  if (!db.is_number()) return "-";
  const double v = db.get<double>();
  return v >= 999 ? "exact" : v <= -999 ? "lost" : fmt::format("{:.1f} dB", v);
}

std::string noise_class(const Json& db) {
  if (!db.is_number()) return "nx";
  const double v = db.get<double>();
  return v >= 40 ? "n0" : v >= 30 ? "n1" : v >= 20 ? "n2" : v >= 10 ? "n3" : "n4";
}

std::string type_class(const std::string& type) {
  if (type == "int8" || type == "uint8") return "p8";
  if (type == "int16" || type == "uint16") return "p16";
  if (type == "float16" || type == "bfloat16") return "ph";
  return type == "float32" || type == "float64" ? "pf" : "pi";
}

std::string bytes_words(double bytes) {
  if (bytes < 10e3) return fmt::format("{:.0f} B", bytes);
  return bytes < 1e6 ? fmt::format("{:.1f} kB", bytes / 1e3) : fmt::format("{:.1f} MB", bytes / 1e6);
}

}  // namespace sinter::convert
