// --input-type int8 and --output-type: inputs that the caller rounds, and outputs that stay as the integers
// that the network computed. The file holds their scale and zero point.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "converter/ir/graph.h"

namespace sinter::convert {

// The type of all inputs or outputs, or of one.
struct PortType {
  std::string port;  // empty: all
  DType type = DType::kNone;
};
struct PublicTypes {
  std::optional<PortType> inputs, outputs;
  bool any() const { return inputs || outputs; }
};

// Puts a Copy before every output that is to be an integer, so that quantization rounds what it reads.
// Returns the names of these outputs.
std::set<std::string> mark_integer_outputs(Graph& graph, const PublicTypes& types);

// Takes the Quantize behind inputs and the Dequantize before outputs out of the graph. Throws UsageError
// where an input is not rounded to this type, or an output is not computed in it.
void give_public_types(Graph& graph, const PublicTypes& types);

}  // namespace sinter::convert
