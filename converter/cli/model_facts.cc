#include "converter/cli/model_facts.h"

#include <fmt/format.h>

namespace sinter::convert {

namespace {

nlohmann::json port_json(const PortInfo& port) {
  return {{"name", port.name},
          {"type", dtype_name(port.dtype)},
          {"shape", std::vector<int64_t>(port.dims.begin(), port.dims.end())}};
}

}  // namespace

nlohmann::json ports_json(const Model& model) {
  nlohmann::json json{{"inputs", nlohmann::json::array()}, {"outputs", nlohmann::json::array()}};
  for (uint32_t i = 0; i < model.input_count(); ++i) json["inputs"].push_back(port_json(model.input(i)));
  for (uint32_t i = 0; i < model.output_count(); ++i) json["outputs"].push_back(port_json(model.output(i)));
  return json;
}

std::string ports_text(const Model& model) {
  std::string text;
  for (uint32_t i = 0; i < model.input_count(); ++i)
    text += fmt::format("input     {}  {}\n", model.input(i).name, port_type(model.input(i)));
  for (uint32_t i = 0; i < model.output_count(); ++i)
    text += fmt::format("output    {}  {}\n", model.output(i).name, port_type(model.output(i)));
  return text;
}

std::string readable_bytes(uint64_t bytes) {
  const auto n = static_cast<double>(bytes);
  if (bytes < 10000) return fmt::format("{} B", bytes);
  if (n < 10e6) return fmt::format("{:.1f} kB", n / 1e3);
  return fmt::format("{:.1f} MB", n / 1e6);
}

}  // namespace sinter::convert
