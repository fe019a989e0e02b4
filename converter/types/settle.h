// The solver: the common types of one node's operands, from all their requests.
//
// Requests are collected first (operand_rules.h: each operand's word; the facts below), then settled
// together, then applied by the caller, who enters them into the ledger. Settling operands that are settled
// decides nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "converter/ir/constant.h"
#include "converter/ir/integer_range.h"
#include "converter/ir/ledger.h"
#include "converter/types/operand_rules.h"
#include "runtime/core/dtype.h"

namespace sinter::convert {

// The facts about an operand.
struct OperandFact {
  std::string name;                   // "operand 0 ('x')", for messages
  DType dtype = DType::kNone;         // kNone: absent or unknown
  ConstantPtr constant;               // set: its value is known
  bool exact_in_float = false;        // an integer proven within 2^24 in magnitude
  std::optional<IntegerRange> range;  // of an integer that is not constant, as far as it is proven
  bool whole = false;                 // a floating-point number without a fraction
  bool bounded =
      false;  // a floating-point value of modest size, known to float32's precision (a sine, a sigmoid)
  bool long_sum =
      false;  // enters sums of many products, where float32 rounding of the operand is lost in the sum's own
};

// The use of the node's first result.
struct ResultFact {
  DType declared = DType::kNone;  // set: it is an output of the model of this type
  bool fractions = false;         // it is declared or read as a floating-point number
  bool angle = false;             // it becomes the argument of a sine or cosine
  bool truth = false;             // all that read it take it for a truth value
  std::string index;              // set: the node that reads it as an index
};

struct OperandSettlement {
  DType type = DType::kNone;  // what it becomes; kNone: stays
  TypeRule rule{};            // by which, where it becomes something
  std::string reason;
  std::string advice = {};  // set: it is worth a warning, and what the user can do about it
};

struct Settlement {
  std::vector<OperandSettlement> operands;  // one each
  // The settlement of the node's first result, once it is computed.
  OperandSettlement result;
  // The type that the operator computes in: that of the operands which lead, or a wider one in which these
  // meet the parameters of a norm (word p). kNone: no operand leads.
  DType inner = DType::kNone;
  // Set: what is doubtful about the node as a whole.
  std::string warning;
  // Set: nothing that the operator could do with these (the sentence of a refusal).
  std::string refusal;
  std::string advice;  // what the user can do about the warning or the refusal
};

// `angle`: the result becomes the argument of a sine or cosine, so that its absolute error counts; the
// precision of float64 operands beyond float32 is kept.
Settlement settle(const OperandRules& rules, const std::vector<OperandFact>& operands,
                  const ResultFact& result = {});

}  // namespace sinter::convert
