// Encodings of AIMET and ranges of torch's observers.
//
// AIMET 0.6 has a dictionary of lists with "bitwidth", "min" and "max"; 1.0 a list with "name", "bw", "scale"
// and "offset", a number being scale * (q + offset) with q from 0; 2.0 the form of ONNX with "y_scale",
// "y_zero_point" and "output_dtype".
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "converter/diagnostics/errors.h"
#include "converter/diagnostics/printable.h"
#include "converter/quantize/settings/quantize_settings.h"

namespace sinter::convert {
namespace {

using nlohmann::json;

// Returns a number, or the only one of a list; NaN where it is neither.
double single(const json& item) {
  if (item.is_number()) return item.get<double>();
  return item.is_array() && item.size() == 1 ? single(item[0]) : std::nan("");
}
double single(const json& object, const char* key) {
  const auto at = object.find(key);
  return at == object.end() ? std::nan("") : single(*at);
}

// Adds a value; one that no integers of 8 or 16 bits have with one scale is passed over.
void add_range(const std::string& name, double low, double high, double bits, QuantizeSettings* settings) {
  if ((bits != 8 && bits != 16) || !std::isfinite(low) || !std::isfinite(high) || !(low < high)) {
    ++settings->parameters;
    return;
  }
  settings->values[name] = {static_cast<int>(bits), Range{std::min(low, 0.0), std::max(high, 0.0)}};
}

void add_offset(const std::string& name, double scale, double offset, double bits,
                QuantizeSettings* settings) {
  add_range(name, scale * offset, scale * (offset + std::exp2(bits) - 1), bits, settings);
}

// An entry of AIMET 0.6 or 1.0. Float encodings state no range and are passed over.
void add_entry(const std::string& name, const json& entry, QuantizeSettings* settings) {
  if (!entry.is_object()) return;
  const bool older = entry.contains("bitwidth");
  const double bits = single(entry, older ? "bitwidth" : "bw");
  if (older)
    add_range(name, single(entry, "min"), single(entry, "max"), bits, settings);
  else
    add_offset(name, single(entry, "scale"), single(entry, "offset"), bits, settings);
}

std::string name_of(const json& entry) {
  const auto at = entry.is_object() ? entry.find("name") : entry.end();
  return entry.is_object() && at != entry.end() && at->is_string() ? at->get<std::string>() : std::string();
}

void read_aimet_parts(const json& activations, QuantizeSettings* settings) {
  if (activations.is_array())
    for (const json& entry : activations) add_entry(name_of(entry), entry, settings);
  else if (activations.is_object())
    for (const auto& [name, list] : activations.items())
      add_entry(name, list.is_array() && list.size() == 1 ? list[0] : list, settings);
}

// AIMET 2.0 has one list. Whether an entry is a parameter's shows in its name alone, which no value has.
void read_aimet_list(const json& list, QuantizeSettings* settings) {
  for (const json& entry : list) {
    if (!entry.is_object()) continue;
    const auto type = entry.find("output_dtype");
    const std::string word = type != entry.end() && type->is_string() ? type->get<std::string>() : "";
    const bool is_signed = word.starts_with("int");
    const double bits = word.ends_with("16") ? 16 : word.ends_with("t8") ? 8 : 0;
    const double zero = entry.contains("y_zero_point") && !entry["y_zero_point"].is_null()
                            ? single(entry, "y_zero_point")
                            : 0;
    const double lowest = is_signed ? -std::exp2(bits - 1) : 0;
    add_offset(name_of(entry), single(entry, "y_scale"), lowest - zero, bits, settings);
  }
}

// Collects "min_val" and "max_val", nested by names or behind them ("conv1.activation_post_process.min_val").
void read_observers(const json& object, QuantizeSettings* settings) {
  constexpr std::string_view kLow = "min_val", kHigh = "max_val", kObserver = ".activation_post_process";
  for (const auto& [key, item] : object.items()) {
    std::string name = key;
    double low = std::nan(""), high = low;
    if (item.is_object() && item.contains(kLow) && item.contains(kHigh)) {
      low = single(item, kLow.data()), high = single(item, kHigh.data());
    } else if (name.ends_with(kLow) && !item.is_object()) {
      const std::string stem = name.substr(0, name.size() - kLow.size());
      low = single(item), high = single(object, (stem + std::string(kHigh)).c_str());
      name = stem.ends_with('.') ? stem.substr(0, stem.size() - 1) : stem;
    } else {
      continue;
    }
    if (name.ends_with(kObserver)) name.resize(name.size() - kObserver.size());
    add_range(name, low, high, 8, settings);
  }
}

}  // namespace

std::optional<QuantizeSettings> read_foreign_settings(const json& whole, const std::string& file) {
  if (!whole.is_object()) return std::nullopt;
  QuantizeSettings settings;
  settings.file = file, settings.own = false;
  if (const auto at = whole.find("activation_encodings"); at != whole.end()) {
    read_aimet_parts(*at, &settings);
    if (const auto given = whole.find("param_encodings"); given != whole.end())
      settings.parameters += given->size();
  } else if (const auto list = whole.find("encodings"); list != whole.end() && list->is_array()) {
    read_aimet_list(*list, &settings);
  } else {
    read_observers(whole, &settings);
    if (settings.values.empty() && settings.parameters == 0) return std::nullopt;
  }
  settings.values.erase("");
  if (settings.values.empty())
    throw UsageError(
        fmt::format("--quantize-config {}: no encoding has 8 or 16 bits and one scale for the whole value; "
                    "remove the option, or "
                    "export encodings of activations",
                    printable(file)));
  return settings;
}

}  // namespace sinter::convert
