// The form of the ONNX standard that a quantization was given, as text and JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "converter/quantize/quantize.h"

namespace sinter::convert {

nlohmann::json to_json(const StandardSummary& standard);
// Returns the numbers of pairs and of integer constants, how near the form is to the integer operations that
// were measured, and what it states otherwise.
std::string to_text(const StandardSummary& standard);

}  // namespace sinter::convert
