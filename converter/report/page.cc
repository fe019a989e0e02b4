#include "converter/report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "converter/diagnostics/printable.h"
#include "converter/report/columns.h"

namespace sinter::convert {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostGraphs = 24, kMostTypeRows = 3000;

std::string text_of(const Json& j, const char* key) {
  const auto at = j.find(key);
  return at == j.end() || !at->is_string() ? std::string() : at->get<std::string>();
}
double number_of(const Json& j, const char* key) {
  const auto at = j.find(key);
  return at == j.end() || !at->is_number() ? 0 : at->get<double>();
}

std::string card(const std::string& number, const std::string& what) {
  return fmt::format("<div class=\"card\"><b>{}</b><span>{}</span></div>\n", escaped(number), escaped(what));
}

std::string chip(const std::string& look, const std::string& text) {
  return fmt::format("<span class=\"chip {}\">{}</span>", look, escaped(text));
}

std::string type_chip(const std::string& type) { return chip("t " + type_class(type), type); }

// Returns the output with the lowest SQNR, else the one with the fewest right integers; null if none has one.
const Json* worst_output(const Json& outputs) {
  const auto key = [](const Json& o) {
    const bool whole = o.at("sqnr_db").is_null();
    return std::pair(whole, number_of(o, whole ? "equal" : "sqnr_db"));
  };
  const Json* worst = nullptr;
  for (const Json& o : outputs)
    if (worst == nullptr || key(o) < key(*worst)) worst = &o;
  return worst;
}

// Returns the number and the name of an output's card.
std::pair<std::string, std::string> quality_of(const Json& output) {
  if (output.at("sqnr_db").is_null())
    return {fmt::format("{:.4g} %", 100 * number_of(output, "equal")), "equal integers"};
  return {db_words(output.at("sqnr_db")), "SQNR"};
}

std::string summary(const Json& r) {
  std::string cards;
  if (r.contains("quantized")) {
    const Json& q = r.at("quantized");
    if (const Json* worst = worst_output(q.at("outputs")))
      cards += card(quality_of(*worst).first,
                    fmt::format("{}, {}'{}', {} samples{}{}", quality_of(*worst).second,
                                q.at("outputs").size() > 1 ? "worst output " : "", text_of(*worst, "name"),
                                q.at("measured_samples").dump(),
                                !q.at("weights").is_null()   ? ""
                                : q.value("held_out", false) ? " held out"
                                                             : " that also chose the ranges",
                                worst->contains("low_db")
                                    ? fmt::format("; with 95 % confidence {:.1f} to {:.1f} dB",
                                                  number_of(*worst, "low_db"), number_of(*worst, "high_db"))
                                    : ""));
    const Json* evaluated =
        q.contains("evaluation") ? worst_output(q.at("evaluation").at("outputs")) : nullptr;
    if (evaluated != nullptr)
      cards += card(quality_of(*evaluated).first,
                    fmt::format("{} on the data to evaluate, worst output '{}', {} samples",
                                quality_of(*evaluated).second, text_of(*evaluated, "name"),
                                q.at("evaluation").at("samples").dump()));
    const auto& layers = q.at("layers");
    const auto integer = std::count_if(layers.begin(), layers.end(),
                                       [](const Json& l) { return l.at("integer").template get<bool>(); });
    cards += card(
        fmt::format("{} of {}", integer, layers.size()),
        fmt::format("operations quantized ({})", text_of(q, "mode").empty() ? "int8" : text_of(q, "mode")));
    if (q.contains("integer_multiply_adds_share"))
      cards += card(fmt::format("{:.0f} %", 100 * number_of(q, "integer_multiply_adds_share")),
                    fmt::format("of the multiply-adds on integers, {:.0f} % of the estimated time",
                                100 * number_of(q, "integer_time_share")));
    cards += card(q.at("samples").dump(), "samples that chose the ranges");
  }
  if (const Json& q = r.value("quantized", Json::object()); q.contains("accuracy"))
    cards += card(fmt::format("{:.2f} %", 100 * number_of(q, "accuracy")),
                  q.contains("float_accuracy")
                      ? fmt::format("accuracy; {:.2f} % in float", 100 * number_of(q, "float_accuracy"))
                      : "accuracy");
  else if (r.contains("top1"))
    cards += card(fmt::format("{:.2f} %", 100 * number_of(r, "top1")), "right answers (top 1)");
  const double bytes = number_of(r, "file_bytes"), onnx = number_of(r, "onnx_bytes");
  cards += card(bytes_words(bytes), fmt::format("file, of {} ONNX", bytes_words(onnx)));
  cards += card(bytes_words(number_of(r, "weight_bytes")), "weights");
  const double arena = number_of(r, "arena_bytes"), bound = number_of(r, "arena_lower_bound");
  cards += card(bytes_words(arena), arena <= bound ? "arena; no plan of these steps can use less"
                                                   : fmt::format("arena, {:.1f} % above the lower bound",
                                                                 100 * (arena / std::max(bound, 1.0) - 1)));
  if (const Json& work = r.value("multiply_adds", Json::object()); number_of(work, "file") > 0)
    cards += card(
        readable_count(number_of(work, "file")),
        fmt::format("multiply-adds in a run, {} in the ONNX graph", readable_count(number_of(work, "onnx"))));
  cards += card(r.at("steps").dump(), fmt::format("steps, {} of them free, from {} ONNX nodes",
                                                  r.at("elided_steps").dump(), r.at("onnx_nodes").dump()));
  return "<div class=\"cards\">\n" + cards + "</div>\n";
}

// Returns the shape sets; empty where there is one.
std::string shape_sets(const Json& r) {
  const Json entries = r.value("entries", Json::array());
  if (entries.size() < 2) return {};
  std::string rows;
  for (const Json& e : entries)
    rows += fmt::format(
        "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
        escaped(text_of(e, "shapes")), e.at("steps").dump(), readable_count(number_of(e, "multiply_adds")),
        bytes_words(number_of(e, "arena_bytes")));
  return "<div class=\"scroll\"><table><thead><tr><th>shapes</th><th class=\"n\">steps</th><th "
         "class=\"n\">multiply-adds</th><th class=\"n\">arena</th></tr></thead><tbody>\n" +
         rows + "</tbody></table></div>\n";
}

// Returns why an operation is kept in float: the code, and the detail if there is one.
std::string reason_of(const Json& layer) {
  const std::string reason = text_of(layer, "reason"), detail = text_of(layer, "detail");
  return detail.empty() ? reason : reason.empty() ? detail : reason + ": " + detail;
}

// Returns the techniques for accuracy, with their gains.
std::string techniques(const Json& r) {
  if (!r.contains("quantized") || r.at("quantized").value("techniques", Json::array()).empty()) return {};
  std::string rows;
  for (const Json& t : r.at("quantized").at("techniques")) {
    const double gain = number_of(t, "after_db") - number_of(t, "before_db");
    const bool kept = t.value("kept", false);
    rows += fmt::format(
        "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{:+.1f} "
        "dB</td><td>{}</td><td class=\"w\">{}</td></tr>\n",
        escaped(text_of(t, "name")), db_words(t.at("before_db")), db_words(t.at("after_db")), gain,
        kept ? "kept" : "left out", escaped(text_of(t, "what")));
  }
  return "<div class=\"scroll\"><table><thead><tr><th>technique</th><th class=\"n\">without</th><th "
         "class=\"n\">with</th><th class=\"n\">gain</th><th></th><th>what</th></tr></thead><tbody>\n" +
         rows + "</tbody></table></div>\n";
}

// Returns the SQNR of the worst output if a single tensor were rounded, for each source of noise.
std::string sources(const Json& r) {
  constexpr size_t kMostRows = 15;
  if (!r.contains("quantized") || r.at("quantized").value("noise", Json::array()).empty()) return {};
  std::string rows;
  const Json& list = r.at("quantized").at("noise");
  for (size_t i = 0; i < list.size() && i < kMostRows; ++i) {
    const Json& s = list[i];
    const std::string value = text_of(s, "value");
    rows += fmt::format(
        "<tr><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td><td class=\"w\">{}</td><td "
        "class=\"w\">{}</td></tr>\n",
        i + 1, chip(noise_class(s.at("alone_db")), db_words(s.at("alone_db"))), escaped(text_of(s, "op")),
        escaped(text_of(s, "node")),
        s.value("weights", false) ? "its weights"
        : value.empty()           ? "its result"
                                  : escaped(value));
  }
  return "<h3>Noise in the outputs</h3>\n<p>The SQNR of the worst output if only this were rounded; the "
         "largest noise first.</p>\n<div class=\"scroll tall\"><table><thead><tr><th "
         "class=\"n\">rank</th><th "
         "class=\"n\">alone</th><th>op</th><th>node</th><th>rounded</th></tr></thead><tbody>\n" +
         rows + "</tbody></table></div>\n";
}

std::string left_in_float(const Json& r) {
  if (!r.contains("quantized")) return {};
  std::map<std::string, std::vector<const Json*>> by_reason;
  for (const Json& l : r.at("quantized").at("layers"))
    if (!l.at("integer").get<bool>()) by_reason[reason_of(l)].push_back(&l);
  if (by_reason.empty()) return "<p>No operation is kept in float.</p>\n";
  std::string rows;
  for (const auto& [reason, layers] : by_reason) {
    std::string names;
    for (const Json* l : layers)
      names += fmt::format("{}{} {}", names.empty() ? "" : ", ", text_of(*l, "op"), text_of(*l, "node"));
    rows += fmt::format("<tr><td>{}</td><td class=\"n\">{}</td><td class=\"w\">{}</td></tr>\n",
                        escaped(reason.empty() ? "not given" : reason), layers.size(), escaped(names));
  }
  return "<h3>Kept in float</h3>\n<div class=\"scroll tall\"><table><thead><tr><th>reason</th><th "
         "class=\"n\">operations</th><th>names</th></tr></thead><tbody>\n" +
         rows + "</tbody></table></div>\n";
}

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

std::string layers_table(const std::vector<const Json*>& rows) {
  std::string body;
  int rank = 0;
  for (const Json* row : rows) {
    const Json& l = *row;
    const bool integers = l.contains("levels");
    const double used = number_of(l, "levels_used"), levels = std::max(number_of(l, "levels"), 1.0);
    std::string worst;
    if (l.contains("worst_channel") && number_of(l, "sqnr_db") < 999)
      worst = fmt::format("{} of {}: {}", l.at("worst_channel").dump(), l.at("channels").dump(),
                          db_words(l.at("worst_channel_sqnr_db")));
    body += fmt::format(
        "<tr id=\"{}\"><td class=\"n\">{}</td><td class=\"n\">{}</td><td "
        "class=\"n\">{}</td><td>{}</td><td>{}</td>"
        "<td class=\"w\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"w\">{}</td></tr>\n",
        text_of(l, "id"), ++rank,
        l.at("own_sqnr_db").is_null() ? "moves only"
                                      : chip(noise_class(l.at("own_sqnr_db")), db_words(l.at("own_sqnr_db"))),
        chip(noise_class(l.at("sqnr_db")), db_words(l.at("sqnr_db"))), escaped(text_of(l, "op")),
        type_chip(text_of(l, "type")), escaped(text_of(l, "value")),
        integers ? fmt::format("<span class=\"level\"><i style=\"width:{:.0f}%\"></i></span>{:.0f} of {:.0f}",
                               std::min(100.0, 100 * used / levels), used, levels)
                 : "",
        escaped(worst), escaped(text_of(l, "cause")));
  }
  return "<div class=\"tools\"><input type=\"search\" placeholder=\"find a layer\" data-rows=\"layer-table\" "
         "aria-label=\"find a layer\"/></div>\n<div class=\"scroll tall\" "
         "id=\"layer-table\"><table><thead><tr>"
         "<th class=\"n\">rank</th><th class=\"n\">own</th><th "
         "class=\"n\">all</th><th>op</th><th>type</th><th>layer</th>"
         "<th class=\"n\">levels used</th><th class=\"n\">worst channel</th><th>"
         "findings</th></tr></thead><tbody>\n" +
         body + "</tbody></table></div>\n";
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

std::string histograms(const std::vector<const Json*>& rows) {
  std::string first, rest;
  size_t count = 0;
  for (const Json* row : rows) {
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
                    escaped(text_of(l, "value")),
                    chip(noise_class(l.at("sqnr_db")), db_words(l.at("sqnr_db"))), escaped(about), svg);
  }
  if (first.empty()) return {};
  std::string out = "<div class=\"graphs\">\n" + first + "</div>\n";
  if (!rest.empty())
    out += fmt::format("<details><summary>{} more</summary><div class=\"graphs\">\n{}</div></details>\n",
                       count - kMostGraphs, rest);
  return out;
}

std::string types(const Json& r) {
  std::string out;
  if (r.contains("plan")) {
    std::string rows;
    const Json& values = r.at("values");
    for (size_t s = 0; s < r.at("plan").size(); ++s) {
      const Json& step = r.at("plan")[s];
      const std::string op = text_of(step, "op");
      if (op != "Cast" && op != "Quantize" && op != "Dequantize") continue;
      const int in = step.at("inputs")[0], to = step.at("outputs")[0];
      if (in < 0 || to < 0) continue;
      const Json &a = values[static_cast<size_t>(in)], &b = values[static_cast<size_t>(to)];
      rows += fmt::format(
          "<tr><td class=\"n\">{}</td><td>{}</td><td>{} &#8594; {}</td><td class=\"w\">{}</td><td "
          "class=\"w\">{}</td></tr>\n",
          s, escaped(op), type_chip(text_of(a, "type")), type_chip(text_of(b, "type")),
          escaped(text_of(a, "name")), escaped(text_of(b, "name")));
    }
    if (rows.empty())
      out += "<p>No value changes its type at run time.</p>\n";
    else
      out +=
          "<h3>Casts at run time</h3>\n<div class=\"scroll tall\"><table><thead><tr><th "
          "class=\"n\">step</th><th>op</th><th>types</th><th>of</th><th>gives</th></tr></thead><tbody>\n" +
          rows + "</tbody></table></div>\n";
  }
  const Json& ledger = r.at("types");
  if (ledger.empty()) return out + "<p>No types had to be decided.</p>\n";
  std::map<std::string, int> rules;
  for (const Json& t : ledger) ++rules[text_of(t, "rule")];
  std::string counts, rows;
  for (const auto& [rule, n] : rules) counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", rule, n);
  for (size_t i = 0; i < ledger.size() && i < kMostTypeRows; ++i) {
    const Json& t = ledger[i];
    rows += fmt::format(
        "<tr><td class=\"w\">{}</td><td class=\"w\">{}</td><td>{} &#8594; {}</td><td>{}</td><td>{}</td><td "
        "class=\"w\">{}</td></tr>\n",
        escaped(text_of(t, "value")), escaped(text_of(t, "node")), escaped(text_of(t, "before")),
        escaped(text_of(t, "after")), escaped(text_of(t, "rule")), escaped(text_of(t, "effect")),
        escaped(text_of(t, "reason")));
  }
  if (ledger.size() > kMostTypeRows)
    rows += fmt::format("<tr><td colspan=\"6\">and {} more (--report FILE.jsonl has all of them)</td></tr>\n",
                        ledger.size() - kMostTypeRows);
  out += fmt::format(
      "<h3>Decisions about types</h3>\n<p>{} decisions: {}.</p>\n<details{}><summary>all of "
      "them</summary>\n<div class=\"tools\">"
      "<input type=\"search\" placeholder=\"find a value\" data-rows=\"type-table\" aria-label=\"find a "
      "value\"/></div>"
      "<div class=\"scroll tall\" id=\"type-table\"><table><thead><tr><th>value</th><th>read "
      "by</th><th>type</th><th>rule</th>"
      "<th>effect</th><th>why</th></tr></thead><tbody>\n{}</tbody></table></div></details>\n",
      ledger.size(), escaped(counts), ledger.size() <= 30 ? " open=\"open\"" : "", rows);
  return out;
}

std::string passes(const Json& r) {
  std::string rows;
  for (const Json& p : r.at("passes"))
    if (number_of(p, "changes") > 0)
      rows += fmt::format(
          "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"w\">{}</td></tr>\n",
          escaped(text_of(p, "pass")), p.at("changes").dump(), p.at("nodes_after").dump(),
          escaped(text_of(p, "what")));
  return "<div class=\"scroll\"><table><thead><tr><th>pass</th><th class=\"n\">changes</th><th "
         "class=\"n\">operations after</th>"
         "<th>what</th></tr></thead><tbody>\n" +
         rows + "</tbody></table></div>\n";
}

std::string remarks(const Json& r) {
  std::string rows;
  for (const Json& d : r.at("diagnostics")) {
    const std::string node = text_of(d, "node"), op = text_of(d, "op"), remedy = text_of(d, "remedy");
    rows += fmt::format(
        "<li>{}: {}{}{}</li>\n", escaped(text_of(d, "severity")),
        node.empty() ? "" : escaped(fmt::format("'{}'{}: ", node, op.empty() ? "" : " (" + op + ")")),
        escaped(text_of(d, "message")), remedy.empty() ? "" : escaped("; " + remedy));
  }
  return rows.empty() ? "<p>None.</p>\n" : "<ul class=\"findings\">\n" + rows + "</ul>\n";
}

std::string key(const char* look, const char* what) {
  return fmt::format("<span><span class=\"key {}\"></span>{}</span>", look, what);
}
std::string network(const Json& r) {
  constexpr size_t kMostBoxes = 4000;
  if (!r.contains("plan")) return {};
  if (r.at("plan").size() > kMostBoxes)
    return fmt::format("<p>{} steps are too many for a drawing; sinter inspect --steps lists them.</p>\n",
                       r.at("plan").size());
  const std::string noises = key("n0", "40 dB and more") + key("n1", "30 to 40") + key("n2", "20 to 30") +
                             key("n3", "10 to 20") + key("n4", "less than 10 dB");
  std::string buttons =
      "<button id=\"zoom-out\">&#8722;</button><button id=\"zoom-in\">+</button><button id=\"zoom-one\">1 : "
      "1</button>"
      "<button id=\"zoom-fit\">whole</button>";
  if (r.contains("noise"))
    buttons +=
        "<button id=\"by-type\" class=\"on\">colour by type</button><button id=\"by-noise\">colour by "
        "noise</button>";
  return fmt::format(
      "<div id=\"network\" class=\"by-type\">\n<div class=\"tools\">{}</div>\n<div class=\"keys "
      "types\">{}</div>\n"
      "<div class=\"keys noises\">{}</div>\n<div class=\"scroll view\">\n{}</div>\n</div>\n",
      buttons, type_keys(), noises, network_drawing(r));
}

}  // namespace

std::string type_keys() {
  return key("p8", "int8") + key("p16", "int16") + key("ph", "float16, bfloat16") +
         key("pf", "float32, float64") + key("pi", "other");
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : printable_lines(text)) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
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

std::string as_page(const Json& r) {
  const std::string model = text_of(r, "model");
  const size_t slash = model.rfind('/');
  const std::string name = slash == std::string::npos ? model : model.substr(slash + 1);
  std::string sections, links;
  const auto section = [&](const char* id, const char* title, const char* about, const std::string& content) {
    if (content.empty()) return;
    links += fmt::format("<a href=\"#{}\">{}</a>", id, title);
    sections += fmt::format("<section id=\"s-{}\"><h2 id=\"{}\">{}</h2>\n", id, id, title);
    if (*about != 0) sections += fmt::format("<p>{}</p>\n", about);
    sections += content + "</section>\n";
  };
  section("shapes", "Shape sets", "The file has a plan for each; the rest of this page is about the first.",
          shape_sets(r));
  const std::vector<const Json*> rows = ranked(r);
  section("network-part", "Network",
          "Steps from top to bottom, each below its operands; numbers are the SQNR in dB. Hover for types, "
          "kernels and reasons; click to go to the layer's row. Dashed: free at run time.",
          network(r));
  section("low", "Low SQNR", "Outputs whose noise is too large for the target, or for most uses.",
          low_outputs(r));
  section("layers", "Noise by layer",
          "SQNR against the float model, on calibration samples. Own: the layer alone, given exact operands; "
          "all: with its actual operands. Worst first.",
          rows.empty() ? std::string() : layers_table(rows) + sources(r));
  section("techniques", "Techniques for accuracy", "SQNR of the worst output, before and after.",
          techniques(r));
  section("float", "Precision", "", left_in_float(r));
  section("ranges", "Values and ranges",
          "How often values occur (logarithms of the counts). Shaded: the range that the integers cover; "
          "red: clipped values.",
          histograms(rows));
  section("types", "Types and casts", "", types(r));
  section("memory", "Memory over time",
          "Every value at its offset in the arena, from the step that computes it to the last one that reads "
          "it. Hover for names.",
          r.contains("placements") && !r.at("placements").empty()
              ? "<div class=\"keys\">" + type_keys() + "</div>\n" + memory_drawings(r)
              : std::string());
  section("passes", "Passes", "", passes(r));
  section("remarks", "Remarks", "", remarks(r));
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta "
         "charset=\"utf-8\"/>\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>" +
         escaped(name) + " - Sinter conversion</title>\n<style>" + kPageStyle +
         "</style>\n</head>\n<body>\n<nav>" + links + "</nav>\n<main>\n<h1>" + escaped(name) + "</h1>\n<p>" +
         escaped(fmt::format("{} for {}", text_of(r, "out"),
                             text_of(r, "target").empty() ? "this machine" : text_of(r, "target"))) +
         "</p>\n" + summary(r) + sections + "</main>\n<script>" + kPageScript +
         "</script>\n</body>\n</html>\n";
}

}  // namespace sinter::convert
