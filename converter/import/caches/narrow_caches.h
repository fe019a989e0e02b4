// --kv-cache TYPE: the states that --max-context makes of keys and values hold narrower elements than the
// model's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "converter/import/lower.h"

namespace sinter::convert {

// The end of the name of a cache's state of scales.
inline constexpr std::string_view kCacheScales = ".scales";

// Retypes the states of the caches (names of inputs), whose new rows enter by CacheUpdate: rows are cast, or
// with int8 rounded with a scale each (QuantizeRows), for which a state `NAME.scales` is added. Attention
// reads the narrow cache, other operations a Cast or Dequantize of it, which goes where they are recognised
// as Attention (recognise-attention). A cache whose type is as narrow keeps it, with a warning. False: a
// cache is not of this form; refused with the node's name.
bool narrow_caches(const std::vector<std::string>& caches, DType type, Graph& graph,
                   Diagnostics& diagnostics);

// The same for caches whose outputs are wider than their inputs, to the type of the inputs. Those that are as
// narrow already stay.
bool round_caches(const std::vector<std::string>& caches, DType type, Graph& graph, Diagnostics& diagnostics);

}  // namespace sinter::convert
