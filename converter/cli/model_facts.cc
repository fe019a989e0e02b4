#include "converter/cli/model_facts.h"

#include <fmt/format.h>

#include <cstdlib>

#include "converter/cli/state_facts.h"
#include "converter/diagnostics/printable.h"

namespace sinter::convert {

namespace {

nlohmann::json port_json(const PortInfo& port, bool bindable) {
  nlohmann::json json{{"name", port.name},
                      {"type", dtype_name(port.dtype)},
                      {"shape", std::vector<int64_t>(port.dims.begin(), port.dims.end())},
                      {"bindable", bindable}};
  if (port.scale > 0) json["scale"] = port.scale, json["zero_point"] = port.zero_point;
  return json;
}

uint32_t input_value(const FileView& view, uint32_t i) {
  return view.entry_program().inputs()->Get(i)->value();
}
uint32_t output_value(const FileView& view, uint32_t i) {
  return view.entry_program().outputs()->Get(i)->value();
}

std::string port_text(const char* what, const PortInfo& port, const std::string& type, bool bindable) {
  std::string numbers;
  if (port.scale > 0)
    numbers = fmt::format("  (q {} {}) * {}", port.zero_point < 0 ? '+' : '-', std::abs(port.zero_point),
                          port.scale);
  return fmt::format("{:<9} {}  {}{}{}\n", what, printable(port.name), type, numbers,
                     bindable ? "  bindable" : "");
}

// Returns the bounded axes of an input, whose lengths callers give; empty if it has none.
nlohmann::json lengths_json(const FileView& view, uint32_t input) {
  nlohmann::json list = nlohmann::json::array();
  const fb::Program& program = view.entry_program();
  const auto* bounded = program.values()->Get(input_value(view, input))->bounded_dims();
  for (uint32_t e = 0; e < detail::length(bounded); ++e) {
    const fb::Length& length =
        *program.lengths()->Get(detail::find_length(program, bounded->Get(e)->length()));
    list.push_back({{"axis", bounded->Get(e)->axis()},
                    {"name", length.name()->str()},
                    {"minimum", length.minimum()},
                    {"maximum", length.maximum()}});
  }
  return list;
}

// Returns the type of an output, with "at most 128" for an axis whose length a run computes.
std::string output_type(const FileView& view, const PortInfo& port, uint32_t output) {
  const auto* bounded = view.entry_program().values()->Get(output_value(view, output))->bounded_dims();
  std::vector<std::string> sizes;
  for (const int64_t dim : port.dims) sizes.push_back(fmt::format("{}", dim));
  for (uint32_t e = 0; e < detail::length(bounded); ++e)
    sizes[static_cast<size_t>(bounded->Get(e)->axis())].insert(0, "at most ");
  return fmt::format("{}[{}]", dtype_name(port.dtype), fmt::join(sizes, ","));
}

}  // namespace

nlohmann::json ports_json(const Model& model, uint32_t entry) {
  nlohmann::json json{{"inputs", nlohmann::json::array()}, {"outputs", nlohmann::json::array()}};
  const FileView view(model, model.default_profile(), entry);
  for (uint32_t i = 0; i < model.input_count(entry); ++i) {
    nlohmann::json input = port_json(model.input(i, entry), is_bindable(view, input_value(view, i)));
    input["lengths"] = lengths_json(view, i);
    json["inputs"].push_back(std::move(input));
  }
  for (uint32_t i = 0; i < model.output_count(entry); ++i)
    json["outputs"].push_back(port_json(model.output(i, entry), is_bindable(view, output_value(view, i))));
  json["states"] = states_json(view);
  return json;
}

std::string ports_text(const Model& model, uint32_t entry) {
  std::string text;
  const FileView view(model, model.default_profile(), entry);
  for (uint32_t i = 0; i < model.input_count(entry); ++i)
    text += port_text("input", model.input(i, entry), input_type(model, i, entry),
                      is_bindable(view, input_value(view, i)));
  for (uint32_t i = 0; i < model.output_count(entry); ++i)
    text += port_text("output", model.output(i, entry), output_type(view, model.output(i, entry), i),
                      is_bindable(view, output_value(view, i)));
  return text + states_text(view);
}

std::string readable_bytes(uint64_t bytes) {
  const auto n = static_cast<double>(bytes);
  if (bytes < 10000) return fmt::format("{} B", bytes);
  if (n < 10e6) return fmt::format("{:.1f} kB", n / 1e3);
  return fmt::format("{:.1f} MB", n / 1e6);
}

}  // namespace sinter::convert
