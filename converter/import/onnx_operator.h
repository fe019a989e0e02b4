// The facts about an ONNX operator: one row, in the family file that lowers it
// (converter/import/lower/*.cc).
//
//   {"ReduceSum", 1, lower_reduce<ReduceFn::kSum>, "N i", kTakesBounded | kGrows},
//
// docs/ops.md is generated from these rows.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "converter/import/read/reader.h"
#include "converter/types/operand_rules.h"

namespace sinter::convert {

class NodeLowering;

inline constexpr std::string_view kMicrosoft = "com.microsoft";  // a domain

// Bits of OnnxOperator::traits.
enum OnnxTrait : uint32_t {
  kNoTraits = 0,
  // It takes bounded operands: it emits operations of them, and does not take their padded dims for their
  // shape.
  kTakesBounded = 1,
  kSumsProducts = 2,  // OperandRules::sums
  kDivides = 4,       // OperandRules::divides
  kGrows = 8,         // OperandRules::grows
  // The operator's results are sums, multiples or copies of its operands: the angle of a sine may be computed
  // by it.
  kLinear = 16,
  // The operator's result has no operand's type: truths, positions.
  kOwnType = 32,
  // It accepts unknown operands or handles refused inputs itself (control flow); otherwise it is not lowered
  // when any given operand is unknown.
  kTakesUnknown = 64,
  // Operand 0 may be a sequence (NodeLowering::sequence); other operands that are sequences are refused.
  kTakesSequence = 128,
  kInt32Sums = 256,          // OperandRules::int32_sums
  kFractions = 512,          // OperandRules::fractions
  kCarriesSequences = 1024,  // the same of all operands from 2 on: what a loop carries
  // Operands that a node may not leave out: the first one without any of these.
  kNoInput = 2048,
  kTwoInputs = 4096,
  kThreeInputs = 8192,
};

// Emits operations for a node. Returns false if it refused (or met an unknown operand).
using LowerFunction = bool (*)(NodeLowering&);

struct OnnxOperator {
  std::string_view op_type;
  // The operator-set version that introduced it; 1 for those of the first set, of other domains, and for
  // operators that files used before they were standard.
  int since;
  LowerFunction lower;
  std::string_view operands;  // one word each (converter/types/operand_rules.h); "": all are its own affair
  uint32_t traits;
  std::string_view domain = "";  // "" is ai.onnx
  // Bit i: operand i may be bounded, though others may not.
  uint32_t bounded_operands = 0;

  bool takes_bounded(size_t operand) const {
    return has(kTakesBounded) || (operand < 32 && (bounded_operands >> operand & 1) != 0);
  }
  size_t least_inputs() const { return has(kThreeInputs) ? 3 : has(kTwoInputs) ? 2 : has(kNoInput) ? 0 : 1; }
  bool has(OnnxTrait trait) const { return (traits & trait) != 0; }
  bool takes_sequence(size_t operand) const {
    return (operand == 0 && has(kTakesSequence)) || (operand >= 2 && has(kCarriesSequences));
  }
  OperandRules operand_rules() const {
    return {op_type,     operands,        has(kSumsProducts), has(kDivides),
            has(kGrows), has(kInt32Sums), has(kFractions)};
  }
};

// All operators that are read, family by family; duplicates are a bug that a test finds.
std::span<const std::span<const OnnxOperator>> onnx_operators();
// Null for an operator that is not read.
const OnnxOperator* find_operator(std::string_view domain, std::string_view op_type);

}  // namespace sinter::convert
