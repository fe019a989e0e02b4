#include "converter/types/room.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace sinter::convert {

DType room_for_result(const OperandRules& rules, const ResultFact& wanted, DType type,
                      const Constant& literal, bool first) {
  const bool sub = rules.op == "Sub", mul = rules.op == "Mul", add = rules.op == "Add";
  if (!is_integer(type) || type == DType::kUint64 || type == DType::kInt64 || !is_integer(literal.dtype()))
    return type;
  const bool difference = sub && !is_signed_integer(type) && is_signed_integer(literal.dtype()) &&
                          (!is_integer(wanted.declared) || is_signed_integer(wanted.declared));
  const bool wider =
      (add || sub || mul) && bit_width(type) <= 16 && bit_width(literal.dtype()) > bit_width(type) &&
      (wanted.fractions || (is_integer(wanted.declared) && bit_width(wanted.declared) > bit_width(type)));
  if ((!difference && !wider) || literal.size() == 0) return type;
  const double v = literal.as_doubles()[0];
  const auto range = [](DType t) {
    const double span = std::ldexp(1.0, bit_width(t));
    return is_signed_integer(t) ? std::pair(-span / 2, span / 2 - 1) : std::pair(0.0, span - 1);
  };
  const auto [low, high] = range(type);
  const std::array<double, 2> ends = mul     ? std::array{low * v, high * v}
                                     : add   ? std::array{low + v, high + v}
                                     : first ? std::array{v - low, v - high}
                                             : std::array{low - v, high - v};
  const double least = std::min({low, ends[0], ends[1]}), most = std::max({high, ends[0], ends[1]});
  for (const DType t : {type, DType::kInt16, DType::kInt32})
    if (range(t).first <= least && most <= range(t).second) return t;
  return DType::kInt64;
}

}  // namespace sinter::convert
