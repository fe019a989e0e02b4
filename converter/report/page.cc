#include "converter/report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "converter/report/columns.h"

namespace sinter::convert {
namespace {

using Json = nlohmann::json;

std::string card(const std::string& number, const std::string& what) {
  return fmt::format("<div class=\"card\"><b>{}</b><span>{}</span></div>\n", escaped(number), escaped(what));
}

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
                                (worst->contains("low_db")
                                     ? fmt::format("; with 95 % confidence {:.1f} to {:.1f} dB",
                                                   number_of(*worst, "low_db"), number_of(*worst, "high_db"))
                                     : "") +
                                    (worst->contains("median_sample_db")
                                         ? fmt::format("; median sample {:.1f} dB, worst {:.1f} dB",
                                                       number_of(*worst, "median_sample_db"),
                                                       number_of(*worst, "worst_sample_db"))
                                         : "")));
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
  PageTable table({"shapes", "#steps", "#multiply-adds", "#arena"});
  for (const Json& e : entries)
    table.add({escaped(text_of(e, "shapes")), e.at("steps").dump(),
               readable_count(number_of(e, "multiply_adds")), bytes_words(number_of(e, "arena_bytes"))});
  return table.html() + "\n";
}

// Returns why an operation is kept in float: the code, and the detail if there is one.
std::string reason_of(const Json& layer) {
  const std::string reason = text_of(layer, "reason"), detail = text_of(layer, "detail");
  return detail.empty() ? reason : reason.empty() ? detail : reason + ": " + detail;
}

// Returns the techniques for accuracy, with their gains.
std::string techniques(const Json& r) {
  if (!r.contains("quantized") || r.at("quantized").value("techniques", Json::array()).empty()) return {};
  PageTable table({"technique", "#without", "#with", "#gain", "", "~what"});
  for (const Json& t : r.at("quantized").at("techniques"))
    table.add({escaped(text_of(t, "name")), db_words(t.at("before_db")), db_words(t.at("after_db")),
               fmt::format("{:+.1f} dB", number_of(t, "after_db") - number_of(t, "before_db")),
               t.value("kept", false) ? "kept" : "left out", escaped(text_of(t, "what"))});
  return table.html() + "\n";
}

std::string left_in_float(const Json& r) {
  if (!r.contains("quantized")) return {};
  std::map<std::string, std::vector<const Json*>> by_reason;
  for (const Json& l : r.at("quantized").at("layers"))
    if (!l.at("integer").get<bool>()) by_reason[reason_of(l)].push_back(&l);
  if (by_reason.empty()) return "<p>No operation is kept in float.</p>\n";
  PageTable table({"reason", "#operations", "~names"});
  for (const auto& [reason, layers] : by_reason) {
    std::string names;
    for (const Json* l : layers)
      names += fmt::format("{}{} {}", names.empty() ? "" : ", ", text_of(*l, "op"), text_of(*l, "node"));
    table.add(
        {escaped(reason.empty() ? "not given" : reason), std::to_string(layers.size()), escaped(names)});
  }
  return "<h3>Kept in float</h3>\n" + table.html("scroll tall") + "\n";
}

constexpr size_t kMostTypeRows = 3000;

std::string change(const std::string& from, const std::string& to) { return from + " &#8594; " + to; }

std::string casts(const Json& r) {
  PageTable table({"#step", "op", "types", "~of", "~gives"});
  const Json& values = r.at("values");
  for (size_t s = 0; s < r.at("plan").size(); ++s) {
    const Json& step = r.at("plan")[s];
    const std::string op = text_of(step, "op");
    if (op != "Cast" && op != "Quantize" && op != "Dequantize") continue;
    const int in = step.at("inputs")[0], to = step.at("outputs")[0];
    if (in < 0 || to < 0) continue;
    const Json &a = values[static_cast<size_t>(in)], &b = values[static_cast<size_t>(to)];
    table.add({std::to_string(s), escaped(op),
               change(type_chip(text_of(a, "type")), type_chip(text_of(b, "type"))),
               escaped(text_of(a, "name")), escaped(text_of(b, "name"))});
  }
  if (table.empty()) return "<p>No value changes its type at run time.</p>\n";
  return "<h3>Casts at run time</h3>\n" + table.html("scroll tall") + "\n";
}

std::string types(const Json& r) {
  const std::string at_run_time = r.contains("plan") ? casts(r) : std::string();
  const Json& ledger = r.at("types");
  if (ledger.empty()) return at_run_time + "<p>No types had to be decided.</p>\n";
  std::map<std::string, int> rules;
  for (const Json& t : ledger) ++rules[text_of(t, "rule")];
  std::string counts;
  for (const auto& [rule, n] : rules) counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", rule, n);
  PageTable table({"~value", "~read by", "type", "rule", "effect", "~why"});
  for (size_t i = 0; i < ledger.size() && i < kMostTypeRows; ++i) {
    const Json& t = ledger[i];
    table.add({escaped(text_of(t, "value")), escaped(text_of(t, "node")),
               change(escaped(text_of(t, "before")), escaped(text_of(t, "after"))),
               escaped(text_of(t, "rule")), escaped(text_of(t, "effect")), escaped(text_of(t, "reason"))});
  }
  if (ledger.size() > kMostTypeRows)
    table.add(
        {fmt::format("and {} more (--report FILE.jsonl has all of them)", ledger.size() - kMostTypeRows)});
  return at_run_time +
         fmt::format(
             "<h3>Decisions about types</h3>\n<p>{} decisions: {}.</p>\n<details{}><summary>all of "
             "them</summary>\n{}{}</details>\n",
             ledger.size(), escaped(counts), ledger.size() <= 30 ? " open=\"open\"" : "",
             search_box("value", "type-table"), table.html("scroll tall", "type-table"));
}

std::string passes(const Json& r) {
  PageTable table({"pass", "#changes", "#operations after", "~what"});
  for (const Json& p : r.at("passes"))
    if (number_of(p, "changes") > 0)
      table.add({escaped(text_of(p, "pass")), p.at("changes").dump(), p.at("nodes_after").dump(),
                 escaped(text_of(p, "what"))});
  return table.html() + "\n";
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

std::string network(const Json& r) {
  constexpr size_t kMostBoxes = 4000;
  if (!r.contains("plan")) return {};
  if (r.at("plan").size() > kMostBoxes)
    return fmt::format("<p>{} steps are too many for a drawing; sinter inspect --steps lists them.</p>\n",
                       r.at("plan").size());
  const std::string noises = key_entry("n0", "40 dB and more") + key_entry("n1", "30 to 40") +
                             key_entry("n2", "20 to 30") + key_entry("n3", "10 to 20") +
                             key_entry("n4", "less than 10 dB");
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
  section("network-part", "Network",
          "Steps from top to bottom, each below its operands; numbers are the SQNR in dB. Hover for types, "
          "kernels and reasons; click to go to the layer's row. Dashed: free at run time.",
          network(r));
  section("low", "Low SQNR", "Outputs whose noise is too large for the target, or for most uses.",
          low_outputs(r));
  section("layers", "Noise by layer",
          "SQNR against the float model, on calibration samples. Own: the layer alone, given exact operands; "
          "all: with its actual operands. Worst first.",
          layer_tables(r));
  section("techniques", "Techniques for accuracy", "SQNR of the worst output, before and after.",
          techniques(r));
  section("float", "Precision", "", left_in_float(r));
  section("ranges", "Values and ranges",
          "How often values occur (logarithms of the counts). Shaded: the range that the integers cover; "
          "red: clipped values.",
          range_histograms(r));
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
