// The types in which a lowered model's nodes read their operands and give their results, for `sinter repair`.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "converter/types/settle.h"

namespace sinter::convert {

// kNone stands for what is absent, unknown or not a tensor.
struct NodeTypes {
  struct Operand {
    DType given = DType::kNone;  // the value's
    OperandSettlement settled;   // what the node reads it as; type kNone: as it is
    bool left_out = false;       // the node is computed without it
  };
  std::vector<Operand> operands;
  std::vector<DType> results;
};

// Nodes by ImportedNode::place. Of one that is lowered several times (unrolled), the last time counts.
using NodeTypesByPlace = std::map<std::string, NodeTypes>;

}  // namespace sinter::convert
