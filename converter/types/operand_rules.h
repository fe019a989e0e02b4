// The element types that an ONNX operator's operands may have, operand by operand (rule input.table). The
// rows of the operators (converter/import/onnx_operator.h) hold the words.
//
// One short word per operand:
//   N F B I   leads a group: the operands of one node that lead meet in one type. N takes numbers (and bool
//             beside a number), F floating-point numbers (integers become float), I integers, A anything
//   n f a     takes the group's type, without influence on it
//   i         an index, an axis, a count: an integer; whole floating-point constants become int64
//   b         a truth value; numbers become "is not zero"
//   m         a mask: as n, but a truth value stays one
//   q         a cache, quantized or not: as F, but elements of 8 bits (int8, uint8, float8e4m3fn) stay,
//             without influence on the group
//   p         a parameter of a norm: it stays. The operator computes in the type that the group and all of
//             these meet in (Settlement::inner), and its result has the group's
//   e         the exponent of a power; the base leads (rule pow.base)
//   *         is the operator's own affair
// A trailing '+' repeats the last word for all further operands. Operands beyond the words are '*'.
#pragma once

#include <string_view>

namespace sinter::convert {

struct OperandRules {
  std::string_view op;        // the operator's name
  std::string_view operands;  // the words
  // Sums of many products: float64 operands that meet narrower ones need not stay so.
  bool sums = false;
  // A fraction is meant where one operand is a floating-point number, be it a whole one.
  bool divides = false;
  // Many integers of 8 or 16 bits make one that these do not hold.
  bool grows = false;
  // Integers of fewer than 32 bits that lead together meet in int32: sums of their products, as in
  // MatMulInteger.
  bool int32_sums = false;
  // Fractions of integers: means, roots, logarithms.
  bool fractions = false;
};

// The word of operand i.
char operand_word(const OperandRules& rules, size_t i);

// Is the result of truth values a sum or a difference, which may leave their range: 1 + 1, 0 - 1?
bool counts_truths(const OperandRules& rules);

}  // namespace sinter::convert
