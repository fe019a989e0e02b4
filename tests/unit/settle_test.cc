// The type solver: what operands meet in, and that what is settled stays so.
#include "converter/types/settle.h"

#include <gtest/gtest.h>

#include <random>

#include "converter/import/onnx_operator.h"
#include "converter/ir/ledger.h"

namespace sinter::convert {
namespace {

OperandRules words_of(std::string_view op) { return find_operator("", op)->operand_rules(); }

OperandFact active(DType t) {
  OperandFact f;
  f.name = "operand";
  f.dtype = t;
  return f;
}
OperandFact constant(ConstantPtr c) {
  OperandFact f = active(c->dtype());
  f.constant = std::move(c);
  return f;
}
ConstantPtr pair(double a, double b) {
  const double items[] = {a, b};
  return Constant::of<double>(DType::kFloat64, {2}, items);
}

DType became(const Settlement& s, const std::vector<OperandFact>& facts, size_t i) {
  return s.operands[i].type == DType::kNone ? facts[i].dtype : s.operands[i].type;
}
DType meeting(const char* op, const std::vector<OperandFact>& facts) {
  const Settlement s = settle(words_of(op), facts);
  EXPECT_EQ(s.refusal, "");
  const DType t = became(s, facts, 0);
  for (size_t i = 1; i < facts.size(); ++i) EXPECT_EQ(became(s, facts, i), t);
  return t;
}

TEST(Settle, FloatsMeetInTheWider) {
  EXPECT_EQ(meeting("Add", {active(DType::kFloat16), active(DType::kFloat32)}), DType::kFloat32);
  EXPECT_EQ(meeting("Add", {active(DType::kFloat16), active(DType::kBFloat16)}), DType::kFloat32);
  EXPECT_EQ(meeting("Einsum", {active(DType::kFloat64), active(DType::kFloat16)}), DType::kFloat64);
  EXPECT_EQ(meeting("MatMul", {active(DType::kFloat8E4M3FN), active(DType::kFloat8E4M3FN)}), DType::kFloat32);
}

TEST(Settle, DoubleGoesWhereNothingIsLost) {
  OperandFact sine = active(DType::kFloat64);
  sine.bounded = true;
  EXPECT_EQ(meeting("Mul", {sine, active(DType::kFloat16)}), DType::kFloat32);
  EXPECT_EQ(meeting("Mul", {sine, active(DType::kFloat64)}), DType::kFloat64);
  EXPECT_EQ(meeting("Mul", {sine, active(DType::kInt64)}), DType::kFloat64);
  EXPECT_EQ(meeting("Add", {active(DType::kFloat32), constant(pair(0.1, 2))}), DType::kFloat32);
  // Beyond 2^24 whole numbers matter; beyond the range everything does.
  EXPECT_EQ(meeting("Add", {active(DType::kFloat32), constant(pair(0.1, 1700000001))}), DType::kFloat64);
  EXPECT_EQ(meeting("Add", {active(DType::kFloat32), constant(pair(0.1, 1e300))}), DType::kFloat64);
}

TEST(Settle, SumsWithALiteralGetRoomWhereItIsMeant) {
  const auto with = [](const char* op, DType t, int64_t v, ResultFact result) {
    const std::vector<OperandFact> facts{active(t), constant(Constant::scalar_int(DType::kInt64, v))};
    const Settlement s = settle(words_of(op), facts, result);
    EXPECT_EQ(became(s, facts, 0), became(s, facts, 1));
    return became(s, facts, 0);
  };
  ResultFact wide, narrow, read;
  wide.declared = DType::kInt32, narrow.declared = DType::kUint8, read.fractions = true;
  EXPECT_EQ(with("Sub", DType::kUint8, 128, {}), DType::kInt16);
  EXPECT_EQ(with("Sub", DType::kUint32, 8, {}), DType::kInt64);
  EXPECT_EQ(with("Sub", DType::kUint8, 0, {}), DType::kUint8);
  EXPECT_EQ(with("Sub", DType::kUint8, 128, narrow), DType::kUint8);
  EXPECT_EQ(with("Add", DType::kInt8, 100, {}), DType::kInt8);
  EXPECT_EQ(with("Add", DType::kInt8, 100, wide), DType::kInt16);
  EXPECT_EQ(with("Mul", DType::kUint8, 200, read), DType::kInt32);
  EXPECT_EQ(with("Mul", DType::kInt32, 200, read), DType::kInt32);
  EXPECT_EQ(with("BitwiseAnd", DType::kUint8, 15, wide), DType::kUint8);
}

TEST(Settle, IntegersMeetFloatsWithoutLoss) {
  EXPECT_EQ(meeting("Add", {active(DType::kInt16), active(DType::kFloat32)}), DType::kFloat32);
  EXPECT_EQ(meeting("Add", {active(DType::kInt16), active(DType::kFloat16)}), DType::kFloat32);
  EXPECT_EQ(meeting("Add", {active(DType::kInt64), active(DType::kFloat32)}), DType::kFloat64);
  EXPECT_EQ(meeting("Add", {active(DType::kFloat32), active(DType::kInt64)}), DType::kFloat64);
  OperandFact small = active(DType::kInt64);
  small.exact_in_float = true;
  EXPECT_EQ(meeting("Add", {small, active(DType::kFloat32)}), DType::kFloat32);
  EXPECT_EQ(meeting("Add", {active(DType::kFloat32), small}), DType::kFloat32);
  EXPECT_EQ(meeting("Div", {active(DType::kInt16), constant(Constant::scalar(DType::kFloat32, 255))}),
            DType::kFloat32);
  EXPECT_EQ(meeting("Mul", {active(DType::kInt16), constant(Constant::scalar(DType::kFloat32, 255))}),
            DType::kInt16);
  EXPECT_EQ(meeting("Conv", {active(DType::kUint8), active(DType::kFloat32)}), DType::kFloat32);
}

TEST(Settle, OperandsHaveTypesOfTheirOwn) {
  const std::vector<OperandFact> facts{active(DType::kFloat32),
                                       constant(Constant::scalar(DType::kFloat64, 2))};
  const Settlement gather = settle(words_of("Gather"), facts);
  EXPECT_EQ(gather.operands[0].type, DType::kNone);
  EXPECT_EQ(gather.operands[1].type, DType::kInt64);
  const std::vector<OperandFact> fraction{active(DType::kFloat32),
                                          constant(Constant::scalar(DType::kFloat64, 2.5))};
  EXPECT_NE(settle(words_of("Gather"), fraction).refusal, "");
  EXPECT_EQ(
      settle(words_of("Where"), {active(DType::kInt32), active(DType::kFloat32), active(DType::kFloat32)})
          .operands[0]
          .type,
      DType::kBool);
  EXPECT_NE(settle(words_of("BitwiseAnd"), {active(DType::kInt32), active(DType::kFloat32)}).refusal, "");
}

TEST(Settle, APowerHasTheTypeOfItsBase) {
  ResultFact fractions;
  fractions.fractions = true;
  const auto power = [](OperandFact base, OperandFact exponent, ResultFact result = {}) {
    return settle(words_of("Pow"), {std::move(base), std::move(exponent)}, result);
  };
  const Settlement floats = power(active(DType::kFloat16), active(DType::kFloat32));
  EXPECT_EQ(floats.operands[0].type, DType::kFloat32);
  EXPECT_EQ(floats.operands[1].type, DType::kNone);
  EXPECT_EQ(floats.result.type, DType::kFloat16);
  // The kernel takes an exponent of another kind as it is.
  const Settlement whole = power(active(DType::kInt32), constant(Constant::scalar(DType::kFloat32, 2)));
  EXPECT_EQ(whole.operands[1].type, DType::kNone);
  EXPECT_EQ(whole.warning, "");
  const OperandFact half = constant(Constant::scalar(DType::kFloat32, 0.5));
  EXPECT_NE(power(active(DType::kInt32), half).warning, "");
  const Settlement root = power(active(DType::kInt32), half, fractions);
  EXPECT_EQ(root.operands[0].type, DType::kFloat64);
  EXPECT_EQ(root.operands[1].type, DType::kFloat64);
  EXPECT_EQ(root.result.type, DType::kFloat32);
  EXPECT_EQ(root.operands[0].rule, TypeRule::kPowBase);
  EXPECT_EQ(root.warning, "");
  EXPECT_EQ(power(active(DType::kUint8), half, fractions).operands[0].type, DType::kFloat32);
  EXPECT_EQ(power(active(DType::kBool), active(DType::kInt64)).operands[0].type, DType::kInt32);
}

TEST(Settle, NormsComputeInTheTypeThatTheirParametersNeed) {
  const auto norm = [](DType x, DType scale, DType bias) {
    return settle(words_of("LayerNormalization"), {active(x), active(scale), active(bias)});
  };
  const Settlement wider = norm(DType::kFloat16, DType::kFloat32, DType::kFloat16);
  EXPECT_EQ(wider.inner, DType::kFloat32);
  for (const OperandSettlement& s : wider.operands) EXPECT_EQ(s.type, DType::kNone);
  EXPECT_EQ(norm(DType::kFloat16, DType::kFloat16, DType::kBFloat16).inner, DType::kFloat32);
  EXPECT_EQ(norm(DType::kFloat32, DType::kFloat16, DType::kNone).inner, DType::kFloat32);
  const Settlement counts = norm(DType::kInt64, DType::kFloat64, DType::kFloat64);
  EXPECT_EQ(counts.operands[0].type, DType::kFloat32);
  EXPECT_EQ(counts.inner, DType::kFloat64);
}

TEST(Settle, SumsOfProductsOfIntegersAreInt32) {
  for (const char* op : {"MatMul", "Gemm", "Einsum"}) {
    EXPECT_EQ(meeting(op, {active(DType::kInt8), active(DType::kInt8)}), DType::kInt32) << op;
    EXPECT_EQ(meeting(op, {active(DType::kUint8), active(DType::kInt16)}), DType::kInt32) << op;
    EXPECT_EQ(meeting(op, {active(DType::kInt8), active(DType::kInt64)}), DType::kInt64) << op;
  }
  // One operand is not multiplied.
  EXPECT_EQ(meeting("Einsum", {active(DType::kInt8)}), DType::kInt8);
}

TEST(Settle, MeansOfIntegersHoldFractionsWhereTheyAreMeant) {
  ResultFact fractions;
  fractions.fractions = true;
  for (const char* op : {"ReduceMean", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp"}) {
    EXPECT_EQ(settle(words_of(op), {active(DType::kInt64)}).operands[0].type, DType::kNone) << op;
    const Settlement s = settle(words_of(op), {active(DType::kInt64)}, fractions);
    EXPECT_EQ(s.operands[0].type, DType::kFloat64) << op;
    EXPECT_NE(s.operands[0].advice, "") << op;
    EXPECT_EQ(s.result.type, DType::kFloat32) << op;
    const Settlement picture = settle(words_of(op), {active(DType::kUint8)}, fractions);
    EXPECT_EQ(picture.operands[0].type, DType::kFloat32) << op;
    EXPECT_EQ(picture.operands[0].advice, "") << op;
  }
}

TEST(Settle, MasksAreTruthsOrNumbersOfTheGroup) {
  const auto mask = [](DType t) {
    const std::vector<OperandFact> facts{active(DType::kFloat16), active(DType::kFloat16),
                                         active(DType::kFloat16), active(t)};
    return became(settle(words_of("Attention"), facts), facts, 3);
  };
  EXPECT_EQ(mask(DType::kBool), DType::kBool);
  EXPECT_EQ(mask(DType::kFloat32), DType::kFloat16);
  EXPECT_EQ(mask(DType::kInt32), DType::kFloat16);
}

TEST(Settle, QuantizedCachesStay) {
  const OperandRules rules = find_operator(kMicrosoft, "GroupQueryAttention")->operand_rules();
  const auto of = [&](DType query, DType cache) {
    const std::vector<OperandFact> facts{active(query), active(query), active(query), active(cache),
                                         active(cache)};
    const Settlement s = settle(rules, facts);
    EXPECT_EQ(s.refusal, "");
    return std::pair(became(s, facts, 0), became(s, facts, 3));
  };
  for (const DType quantized : {DType::kInt8, DType::kUint8})
    EXPECT_EQ(of(DType::kFloat16, quantized), std::pair(DType::kFloat16, quantized));
  EXPECT_EQ(of(DType::kFloat16, DType::kFloat32), std::pair(DType::kFloat32, DType::kFloat32));
}

// What is settled stays settled, whatever the operands were.
TEST(Settle, DecidesNothingTheSecondTime) {
  constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16,
                              DType::kInt8,    DType::kUint8,   DType::kInt16,   DType::kInt32,
                              DType::kInt64,   DType::kUint32,  DType::kBool,    DType::kFloat8E5M2};
  constexpr const char* kOps[] = {"Add",    "Div",  "Where",     "Concat",     "MatMul",
                                  "Conv",   "Less", "BitwiseOr", "Clip",       "ScatterND",
                                  "Einsum", "Mean", "Pow",       "ReduceMean", "BatchNormalization"};
  std::mt19937 random(7);
  int settled = 0;
  for (int round = 0; round < 4000; ++round) {
    const char* op = kOps[random() % std::size(kOps)];
    const OperandRules rules = words_of(op);
    std::vector<OperandFact> facts;
    for (unsigned i = 0; i < 2 + random() % 2; ++i) {
      const DType t = kTypes[random() % std::size(kTypes)];
      const double value = static_cast<double>(random() % 300) / (1 + random() % 2);
      facts.push_back(random() % 3 == 0 && byte_width(t) != 0 && !is_float8(t)
                          ? constant(is_float(t) ? Constant::scalar(t, value)
                                                 : Constant::scalar_int(t, static_cast<int64_t>(value) % 2))
                          : active(t));
      facts.back().bounded = random() % 4 == 0, facts.back().exact_in_float = random() % 4 == 0;
    }
    const Settlement first = settle(rules, facts);
    if (!first.refusal.empty()) continue;
    for (size_t i = 0; i < facts.size(); ++i) {
      if (first.operands[i].type == DType::kNone) continue;
      ++settled;
      EXPECT_NE(first.operands[i].reason, "");
      facts[i].dtype = first.operands[i].type;
      if (facts[i].constant)
        facts[i] = constant(Constant::scalar(facts[i].dtype, facts[i].constant->as_doubles()[0]));
    }
    for (const OperandSettlement& s : settle(rules, facts).operands)
      EXPECT_EQ(s.type, DType::kNone) << op << " round " << round << ": " << s.reason;
  }
  EXPECT_GT(settled, 1000);
}

TEST(TypeLedger, KeepsOrderOnceAndForgetsOnRequest) {
  TypeLedger ledger;
  const TypeDecision d{
      "x", "n", "Add", DType::kFloat16, DType::kFloat32, TypeRule::kPromoteFloat, "why", TypeEffect::kCast,
      {}};
  ledger.add(d);
  ledger.add(d);
  EXPECT_EQ(ledger.size(), 1u);
  TypeDecision other = d;
  other.node = "m";
  ledger.add(other);
  EXPECT_EQ(ledger.by_rule().at("promote.float"), 2u);
  ledger.rewind(1);
  ledger.add(other);
  EXPECT_EQ(ledger.size(), 2u);
  EXPECT_NE(to_line(d).find("float16 -> float32"), std::string::npos);
}

}  // namespace
}  // namespace sinter::convert
