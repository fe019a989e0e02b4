#include "converter/report/conversion_report.h"

#include <fmt/format.h>

#include "converter/diagnostics/errors.h"
#include "converter/diagnostics/printable.h"
#include "converter/files/pending_file.h"
#include "converter/report/page.h"
#include "converter/report/quantize_report.h"
#include "converter/report/summary.h"

namespace sinter::convert {

nlohmann::json to_json(const ConversionReport& r, const Diagnostics& diagnostics) {
  nlohmann::json passes = nlohmann::json::array();
  for (const PassReport::Entry& e : r.passes.entries)
    passes.push_back(
        {{"pass", e.name}, {"what", e.description}, {"changes", e.changes}, {"nodes_after", e.nodes_after}});
  if (const PassReport::Entry* pass = r.passes.stopped())
    passes.back().update({{"rewrites", pass->rewrites.made}, {"last_rewritten", pass->rewrites.last}});
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
                           {"given_order_arena_bytes", r.given_order_arena_bytes},
                           {"order_proved", r.order_proved},
                           {"file_bytes", r.file.file_bytes},
                           {"weight_bytes", r.file.weight_bytes},
                           {"diagnostics", diagnostics.to_json()}};
  result.update(summary_json(r));
  for (const ProfileReport& p : r.profiles)
    result["profiles"].push_back({{"target", p.target}, {"steps", p.steps}, {"arena_bytes", p.arena_bytes}});
  for (const EntryReport& e : r.entries)
    result["entries"].push_back({{"shapes", e.shapes},
                                 {"steps", e.steps},
                                 {"multiply_adds", e.multiply_adds},
                                 {"arena_bytes", e.arena_bytes}});
  result["states"] = nlohmann::json::array();
  for (const StateReport& s : r.states)
    result["states"].push_back({{"input", s.input},
                                {"output", s.output},
                                {"type", dtype_name(s.dtype)},
                                {"shape", s.dims},
                                {"bytes", s.bytes},
                                {"in_place", s.in_place},
                                {"copied_bytes", s.in_place ? 0 : s.bytes}});
  for (const auto& [output, input] : r.proposed_states)
    result["proposed_states"].push_back({{"input", input}, {"output", output}});
  if (r.onnx)
    result["onnx"] = {{"opset", r.onnx->opset},
                      {"nodes", r.onnx->nodes},
                      {"bytes", r.onnx->bytes},
                      {"data_bytes", r.onnx->data_bytes}};
  if (r.quantized) result["quantized"] = to_json(*r.quantized);
  if (!r.skipped.empty()) result["skipped"] = r.skipped;
  if (!r.stripes.empty()) {
    for (const StripedSteps& s : r.stripes)
      result["stripes"].push_back(
          {{"first", s.first}, {"last", s.last}, {"steps", s.steps}, {"parts", s.parts}});
    result["extra_work"] = r.extra_work;
  }
  return result;
}

nlohmann::json details_json(const ConversionReport& r) {
  nlohmann::json json = nlohmann::json::object();
  if (!r.layers.empty()) {
    json["noise"] = nlohmann::json::array();
    for (const LayerReport& layer : r.layers) {
      json["noise"].push_back(to_json(layer));
      json["noise"].back()["id"] = fmt::format("layer{}", json["noise"].size());
    }
  }
  if (!r.plan) return json;
  const PlannedProgram& program = r.plan->programs.front();
  const Graph& graph = *program.graph;
  nlohmann::json values = nlohmann::json::array(), steps = nlohmann::json::array(),
                 placements = nlohmann::json::array();
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const Value& v = graph.values[i];
    const auto id = static_cast<ValueId>(i);
    values.push_back({{"name", v.name},
                      {"type", dtype_name(v.dtype)},
                      {"shape", v.dims},
                      {"kind", v.constant            ? "constant"
                               : graph.is_input(id)  ? "input"
                               : graph.is_output(id) ? "output"
                                                     : "temporary"}});
    const PlannedValue& place = program.values[i];
    if (place.placed)
      placements.push_back({{"value", i},
                            {"region", place.region},
                            {"offset", place.offset},
                            {"bytes", place.bytes},
                            {"first_step", place.first_step},
                            {"last_step", place.last_step},
                            {"alias_of", place.alias_of}});
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const PlannedStep& step = program.steps[n];
    steps.push_back({{"op", op_info(node.op())->name},
                     {"multiply_adds", total(multiply_adds(graph, node))},
                     {"node", node.name},
                     {"origin", node.origin},
                     {"inputs", node.inputs},
                     {"outputs", node.outputs},
                     {"kernel", step.elided               ? "none"
                                : step.candidates.empty() ? "reference"
                                                          : r.plan->backends[step.candidates.front()]},
                     {"elided", step.elided},
                     {"workspace_region", step.workspace_region},
                     {"workspace_offset", step.workspace_offset},
                     {"workspace_bytes", step.workspace_bytes},
                     {"subprograms", step.subprograms.size()}});
    for (const PlannedDeviceWorkspace& w : step.device_workspaces)
      steps.back()["device_workspaces"].push_back(
          {{"region", w.region}, {"offset", w.offset}, {"bytes", w.bytes}});
  }
  json["target"] = r.plan->target;
  json["regions"] = nlohmann::json::array();
  for (const PlannedRegion& region : program.regions)
    json["regions"].push_back({{"memory", region.memory == 0 ? "host" : r.plan->backends[region.memory - 1u]},
                               {"state", region.state},
                               {"bytes", region.bytes},
                               {"lower_bound", region.lower_bound}});
  json["values"] = values, json["plan"] = steps, json["placements"] = placements;
  return json;
}

namespace {

std::string as_lines(const nlohmann::json& report) {
  std::string text;
  for (const auto& pass : report.at("passes")) text += json_text(pass, -1) + "\n";
  for (const auto& d : report.at("types")) text += json_text(d, -1) + "\n";
  if (report.contains("noise"))
    for (const auto& d : report.at("noise")) text += json_text(d, -1) + "\n";
  for (const auto& d : report.at("diagnostics")) text += json_text(d, -1) + "\n";
  return text;
}

}  // namespace

void check_report_name(const std::filesystem::path& path) {
  const std::string extension = path.extension().string();
  if (extension != ".json" && extension != ".jsonl" && extension != ".html")
    throw UsageError(fmt::format("--report {}: the name must end in .json, .jsonl or .html", path.string()));
}

void write_report(const std::filesystem::path& path, const nlohmann::json& report) {
  check_report_name(path);
  const std::string extension = path.extension().string();
  std::string text;
  if (extension == ".json")
    text = json_text(report) + "\n";
  else if (extension == ".jsonl")
    text = as_lines(report);
  else
    text = as_page(report);
  write_whole(path, text);
}

}  // namespace sinter::convert
