// Quantize and Dequantize in a float graph, around what the integer pass (integer_form.h) then computes on
// integers.
#pragma once

#include <map>
#include <vector>

#include "converter/ir/quant_params.h"
#include "converter/quantize/integers/roles.h"

namespace sinter::convert {

// Returns the float values, no constants, that are to be rounded for their readers.
std::vector<ValueId> values_to_round(const Graph& graph, const std::vector<Role>& roles);
// Returns the values to round that get their own scale: operations that only move elements keep the scale of
// the operand.
std::vector<ValueId> scaled_values(const Graph& graph, const std::vector<Role>& roles);
// Returns these values, and all that keep their scales because they are only moved from them, with the value
// that each comes from.
std::map<ValueId, ValueId> with_moved(const Graph& graph, const std::vector<Role>& roles,
                                      const std::vector<ValueId>& values);
// Rounds the weights of integer products, and nothing else.
void round_weights(Graph& graph, const std::vector<Role>& roles);

// Rounds these values, and the constants of integer operations (weights to 255 symmetric steps per output
// channel). Values without an entry are kept in float, and so are their readers. Returns the count of
// values that are rounded.
int place_quantizers(Graph& graph, const std::vector<Role>& roles,
                     const std::map<ValueId, QuantParams>& params);

}  // namespace sinter::convert
