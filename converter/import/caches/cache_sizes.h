// Sizes of a decoder's caches that a model leaves open, from the operators that read them.
#pragma once

#include <optional>
#include <string>

#include "converter/import/read/imported_graph.h"

namespace sinter::convert {

// Elements of a row of the cache [B, G, P, size] that GroupQueryAttention reads as past keys or values, in
// bytes of two where it has 4 bits: by the declared width of the operator's queries or keys. nullopt: none
// reads it, or the width is not declared. A declaration may be wrong; the operator checks the cache's shape.
std::optional<int64_t> cache_row_size(const ImportedGraph& graph, const std::string& cache);

}  // namespace sinter::convert
