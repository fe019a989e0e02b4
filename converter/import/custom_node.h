// Nodes of custom operators (sinter/custom_op.h) become Custom operations.
#pragma once

#include "converter/import/onnx_operator.h"

namespace sinter::convert {

struct ImportedNode;
class GraphLowering;

// How such a node is lowered, if an operator of its domain, name and version is given; else null.
const OnnxOperator* find_custom(const GraphLowering& lowering, const ImportedNode& node);

// Returns what the user can do about a node that neither Sinter nor a given operator computes. "": nothing is
// known of its domain.
std::string custom_advice(const GraphLowering& lowering, const ImportedNode& node);

}  // namespace sinter::convert
