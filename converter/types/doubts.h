// Warnings about a node whose operands meet in one type.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "converter/types/settle.h"

namespace sinter::convert {

struct Doubt {
  std::string what, advice;
};

// `leaders` are the places of the operands that lead, and meet in `type`. Two kinds: truth values that are
// counted (rule promote.bool), and integers that are compared with floating-point numbers of fewer bits
// (promote.int-float).
std::optional<Doubt> doubt_about(const OperandRules& rules, const std::vector<OperandFact>& operands,
                                 const std::vector<size_t>& leaders, DType type, const ResultFact& result);

}  // namespace sinter::convert
