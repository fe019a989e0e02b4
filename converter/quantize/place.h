// Where a float graph is rounded to int8: Quantize and Dequantize are put around what the integer pass
// (integer_form.h) then computes on integers.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "converter/quantize/quant_params.h"

namespace sinter::convert {

// What became of an operation that takes or gives float32.
struct LayerFate {
  std::string name, op;
  bool integer = false;
  std::string reason;  // why it stays float
};

enum class Role {
  kFloat,
  kReader,   // a product in float whose operand comes from integers
  kInteger,  // products with constant weights, and what lies between them
};
// One for every node.
std::vector<Role> assign_roles(const Graph& graph, std::vector<LayerFate>* fates = nullptr);
// The float values, no constants, that are to be rounded for their readers.
std::vector<ValueId> values_to_round(const Graph& graph, const std::vector<Role>& roles);

// Rounds these values, and the constants of integer operations (weights to 255 symmetric steps per output
// channel). Values without an entry stay float, and so do the operations that read them. Returns the count of
// values that are rounded.
int place_quantizers(Graph& graph, const std::vector<Role>& roles,
                     const std::map<ValueId, QuantParams>& params);

}  // namespace sinter::convert
