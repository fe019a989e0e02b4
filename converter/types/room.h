// The type of integers beside a lone number (rule literal.weak).
#pragma once

#include "converter/types/settle.h"

namespace sinter::convert {

// A lone number beside integers takes their type, and the result with it. Not so where the result may leave
// that type and was meant to: a difference of unsigned integers and a signed number, or 8 or 16 bits whose
// result is declared or read as something wider. `first`: the number is the node's first operand.
DType room_for_result(const OperandRules& rules, const ResultFact& wanted, DType type,
                      const Constant& literal, bool first);

}  // namespace sinter::convert
