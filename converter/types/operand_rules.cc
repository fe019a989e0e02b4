#include "converter/types/operand_rules.h"

namespace sinter::convert {

char operand_word(const OperandRules& rules, size_t i) {
  const std::string_view words = rules.operands;
  if (2 * i < words.size()) return words[2 * i] == '+' ? words[0] : words[2 * i];
  return !words.empty() && words.back() == '+' ? words[words.size() - 2] : '*';
}

bool counts_truths(const OperandRules& rules) {
  return rules.sums || rules.op == "Add" || rules.op == "Sub" || rules.op == "Sum";
}

}  // namespace sinter::convert
