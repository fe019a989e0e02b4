#include "converter/types/power.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "converter/types/promote.h"

namespace sinter::convert {
namespace {

// Returns whether the exponent is whole and not negative: every integer has an integer power of it.
bool whole_and_not_negative(const ConstantPtr& exponent) {
  if (!exponent) return false;
  const std::vector<double> items = exponent->as_doubles();
  return std::all_of(items.begin(), items.end(), [](double v) { return v == std::floor(v) && v >= 0; });
}

DType as_number(DType t) { return t == DType::kBool ? DType::kInt32 : t; }

}  // namespace

void settle_power(const std::vector<OperandFact>& operands, size_t base, size_t exponent,
                  const ResultFact& result, Settlement* settled) {
  const OperandFact &b = operands[base], &e = operands[exponent];
  const DType from = as_number(b.dtype), by = as_number(e.dtype);
  const auto become = [&](size_t i, DType to, TypeRule rule, std::string reason) {
    if (operands[i].dtype != to) settled->operands[i] = {to, rule, std::move(reason)};
  };
  DType inner = DType::kNone;
  if (is_float(from) && is_float(by) && from != by) {
    inner = *promote(from, by);
    settled->result = {from, TypeRule::kPowBase, "the power has the type of its base"};
  } else if (!is_float(from) && (is_float(by) || e.constant) && !whole_and_not_negative(e.constant)) {
    if (result.fractions) {
      // Integers of more than 16 bits are not all float32 numbers.
      inner = bit_width(from) > 16 ? DType::kFloat64 : DType::kFloat32;
      settled->result = {by == DType::kFloat64 ? inner : DType::kFloat32, TypeRule::kPowBase,
                         "the power is read or declared as floating point"};
    } else {
      settled->warning = fmt::format(
          "an integer base ({}, {}) with a {} exponent ({}, {}) gives integers, as the standard "
          "requires",
          b.name, dtype_name(from), is_float(by) ? "float" : "negative", e.name, dtype_name(by));
      settled->advice = "cast the base to float if fractions are intended";
    }
  }
  for (const size_t i : {base, exponent})
    if (inner == DType::kNone)
      become(i, as_number(operands[i].dtype), TypeRule::kPromoteBool, "0 and 1 as numbers");
    else
      become(i, inner, TypeRule::kPowBase, fmt::format("the power is computed in {}", dtype_name(inner)));
  if (inner != DType::kNone) settled->inner = inner;
}

}  // namespace sinter::convert
