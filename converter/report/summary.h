// The summary of a dozen lines that `sinter convert` prints at its end.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "converter/convert.h"

namespace sinter::convert {

// Returns ports, open dimensions, targets, work, types, sizes and memory, in `columns`; long lists are cut.
std::string to_text(const ConversionReport& report, size_t columns);
// Returns these facts without cuts: "inputs", "outputs", "open_dims", "multiply_adds".
nlohmann::json summary_json(const ConversionReport& report);

// Returns "1.24 G multiply-adds: int8 82 %, float32 18 %".
std::string products_text(const TypedProducts& products);

}  // namespace sinter::convert
