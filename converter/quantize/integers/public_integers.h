// --input-type int8 and --output-type: inputs that the caller rounds, and outputs that stay as the integers
// that the network computed. The file holds their scale and zero point.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "converter/diagnostics/node_fates.h"
#include "converter/ir/graph.h"

namespace sinter::convert {

// The type of all inputs or outputs of float32, or of one.
struct PortType {
  std::string port;  // empty: all
  DType type = DType::kNone;
};
struct PublicTypes {
  std::vector<PortType> inputs, outputs;
  std::string remedy;  // where a port does not have integers of its type
  bool any() const { return !inputs.empty() || !outputs.empty(); }
  // The flags that only integers of 8 bits satisfy ("--input-type int8 and --output-type y=uint8"); empty:
  // none.
  std::string byte_flags() const;
};

// Puts a View behind every input and before every output that is to be an integer, whose result quantization
// rounds. Returns these results.
std::set<ValueId> mark_integer_ports(Graph& graph, const PublicTypes& types);

// Takes the Quantize behind inputs and the Dequantize before outputs out of the graph. Throws UsageError
// where an input is not rounded to its type, an output is not computed in it, or a name is not one of a port;
// `fates` name the ONNX nodes then.
void give_public_types(Graph& graph, const PublicTypes& types, const NodeFates& fates);

}  // namespace sinter::convert
