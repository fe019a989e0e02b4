#include "converter/report/conversion_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "converter/report/errors.h"

namespace sinter::convert {
namespace {

constexpr double kLittleSignal = 20;  // dB

nlohmann::json to_json(const QuantizeSummary& q) {
  nlohmann::json layers = nlohmann::json::array(), outputs = nlohmann::json::array();
  for (const LayerFate& l : q.layers)
    layers.push_back({{"node", l.name}, {"op", l.op}, {"integer", l.integer}, {"reason", l.reason}});
  for (const OutputNoise& o : q.outputs) outputs.push_back({{"name", o.name}, {"sqnr_db", o.db}});
  nlohmann::json weights;
  if (q.bytes_before > 0) weights = {{"bytes_before", q.bytes_before}, {"bytes_after", q.bytes_after}};
  return {{"mode", q.mode},
          {"weights", weights},
          {"samples", q.samples},
          {"rounded_values", q.rounded},
          {"integer_steps", q.integer_steps},
          {"layers", layers},
          {"measured_samples", q.tried},
          {"outputs", outputs}};
}

// A few lines: how much is integer, what the rest is, and what it did to the outputs.
std::string quantized_text(const QuantizeSummary& q) {
  const auto integer =
      std::count_if(q.layers.begin(), q.layers.end(), [](const LayerFate& l) { return l.integer; });
  std::map<std::string, int> left;
  for (const LayerFate& l : q.layers)
    if (!l.integer) ++left[l.op + " (" + l.reason + ")"];
  std::string text = q.bytes_before > 0
                         ? fmt::format("{:<9} weights of {} of {} operations, {} -> {} bytes\n", q.mode,
                                       integer, q.layers.size(), q.bytes_before, q.bytes_after)
                         : fmt::format("{:<9} {} of {} operations, ranges of {} values from {} samples\n",
                                       q.mode, integer, q.layers.size(), q.rounded, q.samples);
  constexpr int kMostLines = 4;
  std::string kept;
  int lines = 0;
  for (const auto& [what, n] : left)
    if (++lines <= kMostLines) kept += fmt::format("{}{} {}", kept.empty() ? "" : ", ", n, what);
  if (!kept.empty())
    text += fmt::format("float     {}{}\n", kept, lines > kMostLines ? ", ... (--report has all)" : "");
  lines = 0;
  for (const OutputNoise& o : q.outputs)
    if (++lines <= kMostLines)
      text += fmt::format("signal    {:.1f} dB over noise in '{}', on {} samples{}\n", o.db, o.name, q.tried,
                          o.db < kLittleSignal ? ": too little for most uses" : "");
  return text;
}

}  // namespace

nlohmann::json to_json(const ConversionReport& r, const Diagnostics& diagnostics) {
  nlohmann::json passes = nlohmann::json::array();
  for (const PassReport::Entry& e : r.passes.entries)
    passes.push_back(
        {{"pass", e.name}, {"what", e.description}, {"changes", e.changes}, {"nodes_after", e.nodes_after}});
  nlohmann::json types = nlohmann::json::array();
  if (r.ledger)
    for (const TypeDecision& d : r.ledger->all()) types.push_back(to_json(d));
  nlohmann::json result = {{"types", types},
                           {"onnx_bytes", r.onnx_bytes},
                           {"onnx_nodes", r.onnx_nodes},
                           {"lowered_nodes", r.lowered_nodes},
                           {"steps", r.steps},
                           {"elided_steps", r.elided_steps},
                           {"passes", passes},
                           {"arena_bytes", r.arena_bytes},
                           {"arena_lower_bound", r.arena_lower_bound},
                           {"file_bytes", r.file.file_bytes},
                           {"weight_bytes", r.file.weight_bytes},
                           {"diagnostics", diagnostics.to_json()}};
  if (r.quantized) result["quantized"] = to_json(*r.quantized);
  return result;
}

namespace {

// How many decisions about types there were, by rule; nothing where there was none.
std::string types_text(const ConversionReport& r) {
  if (!r.ledger || r.ledger->size() == 0) return {};
  std::string rules;
  for (const auto& [rule, count] : r.ledger->by_rule())
    rules += fmt::format("{}{} {}", rules.empty() ? "" : ", ", rule, count);
  return fmt::format(
      "types     {} decisions: {}\n          (sinter explain FILE NAME tells one, --report FILE.jsonl all)\n",
      r.ledger->size(), rules);
}

}  // namespace

std::string to_text(const ConversionReport& r) {
  std::string text = fmt::format("graph     {} ONNX nodes -> {} operations -> {} steps, {} of them free\n",
                                 r.onnx_nodes, r.lowered_nodes, r.steps, r.elided_steps);
  for (const PassReport::Entry& e : r.passes.entries)
    if (e.changes > 0) text += fmt::format("          {:<20} {:>4}  {}\n", e.name, e.changes, e.description);
  text += types_text(r);
  if (r.quantized) text += quantized_text(*r.quantized);
  text += fmt::format("file      {} bytes (ONNX: {}), weights {}\n", r.file.file_bytes, r.onnx_bytes,
                      r.file.weight_bytes);
  text += fmt::format("arena     {} bytes", r.arena_bytes);
  text +=
      r.arena_bytes == r.arena_lower_bound
          ? " (no plan can use less)\n"
          : fmt::format(
                " ({:.1f} % above the lower bound of {})\n",
                100.0 * (static_cast<double>(r.arena_bytes) / static_cast<double>(r.arena_lower_bound) - 1),
                r.arena_lower_bound);
  return text;
}

namespace {

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

std::string as_lines(const nlohmann::json& report) {
  std::string text;
  for (const auto& pass : report.at("passes")) text += pass.dump() + "\n";
  for (const auto& d : report.at("types")) text += d.dump() + "\n";
  for (const auto& d : report.at("diagnostics")) text += d.dump() + "\n";
  return text;
}

std::string as_page(const nlohmann::json& report) {
  std::string rows;
  for (const auto& [key, value] : report.items())
    if (!value.is_structured())
      rows += fmt::format("<tr><td>{}<td>{}\n", escaped(key), escaped(value.dump()));
  std::string passes;
  for (const auto& p : report.at("passes"))
    passes += fmt::format("<tr><td>{}<td>{}<td>{}<td>{}\n", escaped(p.at("pass")), p.at("changes").dump(),
                          p.at("nodes_after").dump(), escaped(p.at("what")));
  std::string types;
  for (const auto& t : report.at("types"))
    types += fmt::format("<tr><td>{}<td>{}<td>{} &rarr; {}<td>{}<td>{}<td>{}\n", escaped(t.at("value")),
                         escaped(t.at("node")), escaped(t.at("before")), escaped(t.at("after")),
                         escaped(t.at("rule")), escaped(t.at("effect")), escaped(t.at("reason")));
  std::string said;
  for (const auto& d : report.at("diagnostics")) said += fmt::format("<li>{}\n", escaped(d.dump()));
  return fmt::format(
      "<!doctype html><meta charset=utf-8><title>Sinter conversion</title>\n"
      "<style>body{{font:15px sans-serif;margin:2em}}td,th{{padding:2px "
      "12px;text-align:left;border-bottom:1px solid "
      "#ddd}}</style>\n<h1>Conversion</h1>\n<table>\n{}</table>\n<h2>Passes</"
      "h2>\n<table>\n<tr><th>pass<th>changes"
      "<th>nodes after<th>what\n{}</table>\n<h2>Types</h2>\n<table>\n<tr><th>value<th>read "
      "by<th>type<th>rule<th>effect<th>why\n{}</table>\n<h2>Remarks</h2>\n<ul>\n{}</ul>\n",
      rows, passes, types, said);
}

}  // namespace

void write_report(const std::filesystem::path& path, const nlohmann::json& report) {
  const std::string extension = path.extension().string();
  std::string text;
  if (extension == ".json")
    text = report.dump(2) + "\n";
  else if (extension == ".jsonl")
    text = as_lines(report);
  else if (extension == ".html")
    text = as_page(report);
  else
    throw UsageError(fmt::format("--report {}: the name must end in .json, .jsonl or .html", path.string()));
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw FileError(path.string() + ": cannot be written");
}

}  // namespace sinter::convert
