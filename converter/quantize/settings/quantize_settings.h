// Settings of single values and operations: what a report states of a quantization, and what
// --quantize-config takes from such a report or from the encodings of another tool.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "converter/quantize/ranges/calibrators.h"

namespace sinter::convert {

// What is given of a value, by its name in the model.
struct ValueSetting {
  int bits = 8;                // or 16
  std::optional<Range> range;  // in the value's own unit; nullopt: as the samples give it
};

struct QuantizeSettings {
  std::string file;  // for messages
  // The names are those of this converter, and each must be in the model. Else they are another tool's: names
  // that the model or its fused operations do not have are counted, and channels keep their scales.
  bool own = true;
  std::map<std::string, ValueSetting> values;
  std::map<std::string, bool> layers;                  // by node or by value that it computes: on integers
  std::optional<std::vector<std::string>> techniques;  // that are used; nullopt: all
  size_t parameters = 0;  // encodings of weights and biases, which are rounded from their own numbers
};

// What became of the settings of a file.
struct AppliedSettings {
  std::string file;
  size_t values = 0;     // that have the given range, bits, or both
  size_t layers = 0;     // that were kept in float, or on integers
  size_t rescaled = 0;   // whose channels a technique has rescaled, so that a given range does not fit
  size_t not_found = 0;  // another tool's names that the rounded values do not have
  size_t parameters = 0;
};

// Reads a file of settings: an object with "sinter_quantize_config", a report that contains one, AIMET's
// encodings (0.6, 1.0, 2.0), or "min_val" and "max_val" of torch's observers by the names of values, nodes or
// modules. Throws FileError, and UsageError where it is none of them or states what is not supported.
QuantizeSettings read_quantize_settings(const std::filesystem::path& path);

// Returns another tool's settings; nullopt: it is none that is known. Throws UsageError.
std::optional<QuantizeSettings> read_foreign_settings(const nlohmann::json& json, const std::string& file);

// Returns the settings as a file states them.
nlohmann::json to_json(const QuantizeSettings& settings);

}  // namespace sinter::convert
