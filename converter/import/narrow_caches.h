// --kv-cache TYPE: the states that --max-context makes of keys and values hold narrower elements than the
// model's.
#pragma once

#include <string>
#include <vector>

#include "converter/import/lower.h"

namespace sinter::convert {

// Retypes the states of the caches (names of inputs) where new rows enter by CacheUpdate and only Attention
// reads them: rows are cast, or with int8 rounded with a scale each (QuantizeRows), for which a state
// `NAME.scales` is added. False: another operation needs a cache in the model's type; refused with its name.
bool narrow_caches(const std::vector<std::string>& caches, DType type, Graph& graph,
                   Diagnostics& diagnostics);

}  // namespace sinter::convert
