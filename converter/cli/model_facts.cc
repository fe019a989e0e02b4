#include "converter/cli/model_facts.h"

#include <fmt/format.h>

#include "converter/cli/state_facts.h"

namespace sinter::convert {

namespace {

nlohmann::json port_json(const PortInfo& port, bool bindable) {
  return {{"name", port.name},
          {"type", dtype_name(port.dtype)},
          {"shape", std::vector<int64_t>(port.dims.begin(), port.dims.end())},
          {"bindable", bindable}};
}

uint32_t input_value(const FileView& view, uint32_t i) {
  return view.entry_program().inputs()->Get(i)->value();
}
uint32_t output_value(const FileView& view, uint32_t i) {
  return view.entry_program().outputs()->Get(i)->value();
}

std::string port_text(const char* what, const PortInfo& port, bool bindable) {
  return fmt::format("{:<9} {}  {}{}\n", what, port.name, port_type(port), bindable ? "  bindable" : "");
}

}  // namespace

nlohmann::json ports_json(const Model& model, uint32_t entry) {
  nlohmann::json json{{"inputs", nlohmann::json::array()}, {"outputs", nlohmann::json::array()}};
  const FileView view(model, model.default_profile(), entry);
  for (uint32_t i = 0; i < model.input_count(entry); ++i)
    json["inputs"].push_back(port_json(model.input(i, entry), is_bindable(view, input_value(view, i))));
  for (uint32_t i = 0; i < model.output_count(entry); ++i)
    json["outputs"].push_back(port_json(model.output(i, entry), is_bindable(view, output_value(view, i))));
  json["states"] = states_json(view);
  return json;
}

std::string ports_text(const Model& model, uint32_t entry) {
  std::string text;
  const FileView view(model, model.default_profile(), entry);
  for (uint32_t i = 0; i < model.input_count(entry); ++i)
    text += port_text("input", model.input(i, entry), is_bindable(view, input_value(view, i)));
  for (uint32_t i = 0; i < model.output_count(entry); ++i)
    text += port_text("output", model.output(i, entry), is_bindable(view, output_value(view, i)));
  return text + states_text(view);
}

std::string readable_bytes(uint64_t bytes) {
  const auto n = static_cast<double>(bytes);
  if (bytes < 10000) return fmt::format("{} B", bytes);
  if (n < 10e6) return fmt::format("{:.1f} kB", n / 1e3);
  return fmt::format("{:.1f} MB", n / 1e6);
}

}  // namespace sinter::convert
