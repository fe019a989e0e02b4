// The report of a quantization: as JSON, and as text of a dozen lines.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "converter/quantize/quantize.h"

namespace sinter::convert {

nlohmann::json to_json(const QuantizeSummary& summary);
std::string to_text(const QuantizeSummary& summary);

}  // namespace sinter::convert
