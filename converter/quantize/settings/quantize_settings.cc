#include "converter/quantize/settings/quantize_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "converter/diagnostics/errors.h"
#include "converter/diagnostics/nearest_name.h"
#include "converter/diagnostics/printable.h"
#include "converter/files/input_file.h"
#include "converter/quantize/techniques.h"

namespace sinter::convert {
namespace {

using nlohmann::json;

constexpr const char *kMark = "sinter_quantize_config", *kInReport = "quantize_config";
constexpr int kVersion = 1;

[[noreturn]] void refuse(const std::string& file, const std::string& what) {
  throw UsageError(fmt::format("--quantize-config {}: {}", file, what));
}

// Returns the finite number of a key; nullopt: the key is absent.
std::optional<double> number_of(const json& item, const char* key, const std::string& file,
                                const std::string& name) {
  const auto at = item.find(key);
  if (at == item.end()) return std::nullopt;
  if (!at->is_number() || !std::isfinite(at->get<double>()))
    refuse(file, fmt::format("'{}' of value '{}' is not a number; give one", key, printable(name)));
  return at->get<double>();
}

ValueSetting value_of(const json& item, const std::string& file, const std::string& name) {
  const auto wrong = [&](const char* what) {
    refuse(file, fmt::format("value '{}': {}", printable(name), what));
  };
  if (!item.is_object()) wrong("this is not an object with \"bits\", or \"low\" and \"high\"; give one");
  for (const auto& [key, value] : item.items())
    if (key != "bits" && key != "low" && key != "high" && key != "rescaled")
      wrong("the keys are bits, low, high and rescaled; remove the others");
  ValueSetting setting;
  if (const std::optional<double> bits = number_of(item, "bits", file, name)) {
    if (*bits != 8 && *bits != 16) wrong("\"bits\" is 8 or 16; give one of them");
    setting.bits = static_cast<int>(*bits);
  }
  const std::optional<double> low = number_of(item, "low", file, name),
                              high = number_of(item, "high", file, name);
  if (low.has_value() != high.has_value()) wrong("\"low\" and \"high\" need each other; give both");
  if (low && !(*low <= 0 && *high >= 0 && *low < *high))
    wrong("a range contains 0 and more than 0; give \"low\" <= 0 <= \"high\"");
  if (low) setting.range = Range{*low, *high};
  return setting;
}

void read_techniques(const json& list, QuantizeSettings* settings) {
  std::vector<std::string> known;
  for (const Technique* technique : kTechniques) known.emplace_back(technique->name);
  if (!list.is_array()) refuse(settings->file, "\"techniques\" is not a list of names; give one");
  settings->techniques.emplace();
  for (const json& item : list) {
    const std::string name = item.is_string() ? item.get<std::string>() : item.dump();
    if (std::ranges::find(known, name) == known.end())
      refuse(settings->file,
             fmt::format("'{}' is not a technique; {}", printable(name), advise_name(known, name)));
    settings->techniques->push_back(name);
  }
}

QuantizeSettings read_own(const json& object, const std::string& file) {
  QuantizeSettings settings;
  settings.file = file;
  const json& version = object.at(kMark);
  if (version != kVersion)
    refuse(file, fmt::format("\"{}\" is {}; this program reads version {}: use a newer one", kMark,
                             printable(version.dump()), kVersion));
  for (const auto& [key, part] : object.items()) {
    if (key == kMark) continue;
    if (key == "techniques") {
      read_techniques(part, &settings);
      continue;
    }
    if (key != "values" && key != "layers")
      refuse(file, fmt::format("the key '{}' is unknown; the keys are techniques, values and layers",
                               printable(key)));
    if (!part.is_object()) refuse(file, fmt::format("\"{}\" is not an object by names; give one", key));
    for (const auto& [name, item] : part.items()) {
      if (key == "values") {
        settings.values[name] = value_of(item, file, name);
      } else if (item == "float" || item == "int8") {
        settings.layers[name] = item == "int8";
      } else {
        refuse(file, fmt::format("layer '{}' is {}; give \"float\" or \"int8\"", printable(name),
                                 printable(item.dump())));
      }
    }
  }
  return settings;
}

// Returns the object of settings in a file, or in a report; null: there is none.
const json* own_object(const json& whole) {
  if (!whole.is_object()) return nullptr;
  if (whole.contains(kMark)) return &whole;
  if (const auto at = whole.find(kInReport); at != whole.end()) return own_object(*at);
  // A report has the quantization in a part of its own.
  for (const char* part : {"quantized", "report"})
    if (const auto at = whole.find(part); at != whole.end() && at->is_object())
      if (const json* const found = own_object(*at)) return found;
  return nullptr;
}

}  // namespace

QuantizeSettings read_quantize_settings(const std::filesystem::path& path) {
  const std::vector<std::byte> bytes = bytes_of_file(path);
  const auto* const text = reinterpret_cast<const char*>(bytes.data());
  const json whole = json::parse(text, text + bytes.size(), nullptr, false);
  const std::string file = path.string();
  if (whole.is_discarded()) refuse(file, "this is not JSON; give a report (--report FILE.json) or encodings");
  if (const json* const own = own_object(whole)) return read_own(*own, file);
  if (std::optional<QuantizeSettings> foreign = read_foreign_settings(whole, file))
    return std::move(*foreign);
  refuse(file,
         "this has no settings of a quantization; give the report of one (--report FILE.json), AIMET's "
         "encodings, "
         "or \"min_val\" and \"max_val\" of observers by name");
}

json to_json(const QuantizeSettings& settings) {
  json values = json::object(), layers = json::object();
  for (const auto& [name, value] : settings.values) {
    json& item = values[name] = {{"bits", value.bits}};
    if (value.range)
      item["low"] = value.range->low, item["high"] = value.range->high;
    else
      item["rescaled"] = true;
  }
  for (const auto& [name, integer] : settings.layers) layers[name] = integer ? "int8" : "float";
  json result = {{kMark, kVersion}, {"values", values}, {"layers", layers}};
  if (settings.techniques) result["techniques"] = *settings.techniques;
  return result;
}

}  // namespace sinter::convert
