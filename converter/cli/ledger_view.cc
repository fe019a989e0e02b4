#include "converter/cli/ledger_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "converter/emit/debug_lines.h"
#include "runtime/model/model_state.h"

namespace sinter::convert {

namespace {

// Returns the objects of the file's debug segments, of any kind.
nlohmann::json debug_objects_of(const Model& model) {
  nlohmann::json all = nlohmann::json::array();
  for (const format::Segment& segment : model.state()->segments) {
    if (segment.kind != static_cast<uint32_t>(format::SegmentKind::kDebug)) continue;
    const auto bytes =
        model.state()->file.subspan(static_cast<size_t>(segment.offset), static_cast<size_t>(segment.bytes));
    for (nlohmann::json& object : debug_objects(bytes, *model.state()->root))
      all.push_back(std::move(object));
  }
  return all;
}

bool about_node(const nlohmann::json& line) { return line.contains("onnx_node"); }
bool about_constant(const nlohmann::json& line) { return line.contains("onnx_constant"); }

}  // namespace

nlohmann::json ledger_of(const Model& model) {
  nlohmann::json entries = nlohmann::json::array();
  for (nlohmann::json& line : debug_objects_of(model))
    if (!about_node(line) && !about_constant(line)) entries.push_back(std::move(line));
  return entries;
}

nlohmann::json fates_of(const Model& model, const std::string& name) {
  const nlohmann::json all = debug_objects_of(model);
  nlohmann::json chain = nlohmann::json::array();
  std::set<std::string> visited;
  for (std::string next = name; !next.empty() && visited.insert(next).second;) {
    const auto named = [&](const nlohmann::json& line) {
      if (!about_node(line)) return false;
      if (line.value("onnx_node", std::string()) == next) return true;
      const nlohmann::json outputs = line.value("outputs", nlohmann::json::array());
      return std::find(outputs.begin(), outputs.end(), next) != outputs.end();
    };
    const auto at = std::find_if(all.begin(), all.end(), named);
    if (at == all.end()) break;
    chain.push_back(*at);
    next = at->value("became", std::string()) == "step" ? at->value("onnx_node", std::string())
                                                        : at->value("into", std::string());
  }
  // The nodes that replaced a call of a function are its fates.
  for (const nlohmann::json& line : all)
    if (chain.empty() || chain.front().contains("call"))
      if (about_node(line) && line.value("onnx_node", std::string()).starts_with(name + "/")) {
        chain.push_back(line);
        chain.back()["call"] = name;
      }
  return chain;
}

nlohmann::json constant_of(const Model& model, const std::string& name) {
  for (nlohmann::json& line : debug_objects_of(model))
    if (about_constant(line) && line.value("onnx_constant", std::string()) == name) return std::move(line);
  return nullptr;
}

std::string ledger_line(const nlohmann::json& e) {
  const auto text = [&](const char* key) { return e.value(key, std::string()); };
  std::string line = text("value").empty() ? "a value without a name" : fmt::format("'{}'", text("value"));
  if (!text("node").empty()) line += fmt::format(" at node '{}' ({})", text("node"), text("op"));
  line += text("before") == text("after") ? fmt::format(": {}", text("before"))
                                          : fmt::format(": {} -> {}", text("before"), text("after"));
  line += fmt::format(", {} [{}]: {}", text("effect"), text("rule"), text("reason"));
  const auto number = [&](const char* key) {
    const auto at = e.find(key);
    return at != e.end() && at->is_number() ? at->get<double>() : 0;
  };
  if (number("scale") > 0) {
    line += number("least_scale") > 0
                ? fmt::format("; scales {:.6g} to {:.6g}", number("least_scale"), number("scale"))
                : fmt::format("; scale {:.6g}", number("scale"));
    line += fmt::format(", zero point {:.0f}", number("zero_point"));
  }
  if (const auto requests = e.find("requests");
      requests != e.end() && requests->is_array() && requests->size() > 1) {
    std::string asked;
    for (const auto& r : *requests)
      asked += fmt::format("{}{} {}{}", asked.empty() ? "" : ", ", r.value("operand", std::string()),
                           r.value("has", std::string()), r.value("constant", false) ? " (constant)" : "");
    line += fmt::format("; asked: {}", asked);
  }
  return line;
}

}  // namespace sinter::convert
