#include "converter/types/doubts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string_view>

#include "converter/types/representable.h"

namespace sinter::convert {
namespace {

bool is_one_of(std::string_view op, std::initializer_list<std::string_view> ops) {
  return std::find(ops.begin(), ops.end(), op) != ops.end();
}

std::optional<Doubt> counted(const OperandRules& rules, const std::vector<OperandFact>& operands,
                             const std::vector<size_t>& leaders, DType type, const ResultFact& result) {
  const bool truths = std::all_of(leaders.begin(), leaders.end(),
                                  [&](size_t i) { return operands[i].dtype == DType::kBool; });
  const bool difference = rules.op == "Sub";
  if (!counts_truths(rules) || !truths || leaders.size() < 2 || result.truth || !is_integer(type))
    return std::nullopt;
  return Doubt{
      fmt::format("{} and {} are truth values, which {} takes for the numbers 0 and 1, and its result "
                  "is a number",
                  operands[leaders[0]].name, operands[leaders[1]].name, rules.op),
      fmt::format("cast them to an integer type in the model if numbers are meant, or use {} if a "
                  "truth value is",
                  difference   ? "Xor"
                  : rules.sums ? "a Cast of the result to bool"
                               : "Or")};
}

// Is every number of the integer operand one of the floating-point type, as far as that is proven?
bool all_in(const OperandFact& integer, DType real) {
  if (integer.constant && survives(*integer.constant, real, true)) return true;
  const auto range = integer.constant ? integer_range(*integer.constant) : integer.range;
  return range && holds_range(real, *range);
}

// Are these constants of a size up to which every integer is a number of their type?
bool is_fine(const OperandFact& real) {
  if (!real.constant) return false;
  const std::vector<double> items = real.constant->as_doubles();
  return std::all_of(items.begin(), items.end(), [&](double v) {
    constexpr double kMost = 9e15;
    const auto n = static_cast<int64_t>(std::abs(v) < kMost ? std::ceil(std::abs(v)) : 0);
    return !std::isfinite(v) || (std::abs(v) < kMost && holds_range(real.dtype, {-n, n}));
  });
}

std::optional<Doubt> coarse(const OperandRules& rules, const std::vector<OperandFact>& operands,
                            const std::vector<size_t>& leaders) {
  if (!is_one_of(rules.op, {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"}))
    return std::nullopt;
  for (const size_t i : leaders)
    for (const size_t k : leaders) {
      const OperandFact &whole = operands[i], &real = operands[k];
      if (!is_integer(whole.dtype) || !is_float(real.dtype) || all_in(whole, real.dtype) || is_fine(real))
        continue;
      return Doubt{fmt::format("{} is {} and may hold numbers that {}, which is {}, cannot hold; such "
                               "numbers are compared exactly, and equal none",
                               whole.name, dtype_name(whole.dtype), real.name, dtype_name(real.dtype)),
                   fmt::format("compare integers with integers, or cast {} to {} in the model if its numbers "
                               "are small",
                               whole.name, dtype_name(real.dtype))};
    }
  return std::nullopt;
}

}  // namespace

std::optional<Doubt> doubt_about(const OperandRules& rules, const std::vector<OperandFact>& operands,
                                 const std::vector<size_t>& leaders, DType type, const ResultFact& result) {
  if (const auto doubt = counted(rules, operands, leaders, type, result)) return doubt;
  return coarse(rules, operands, leaders);
}

}  // namespace sinter::convert
