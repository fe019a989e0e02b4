// Arithmetic of two operands: Add to Max, Pow and Mod.
#include "platforms/cuda/operators/binary.h"

namespace sinter::cuda {
namespace {

template <class T>
Status add_floats(ElementProgram<T>&& p, Lowering& l, FloatFunction function, double lower, double upper) {
  p.load(l.in(0));
  p.function(function, {p.operand(l.in(1))});
  if (lower != -kInfinity || upper != kInfinity)
    p.function(FloatFunction::kClamp, {}, {static_cast<T>(lower), static_cast<T>(upper)});
  p.store(l.out(0));
  return p.launch();
}

}  // namespace

Status add_binary(Lowering& l, FloatFunction of_floats, IntegerFunction of_integers, double lower,
                  double upper) {
  const DType t = l.in(0).dtype;
  if (computes_in_float(t)) return add_floats(FloatProgram(l, l.out(0).shape()), l, of_floats, lower, upper);
  if (t == DType::kFloat64) return add_floats(DoubleProgram(l, l.out(0).shape()), l, of_floats, lower, upper);
  SINTER_RETURN_UNLESS(is_integer(t) || t == DType::kBool,
                       unsupported("elements of %A are not computed", static_cast<int64_t>(t)));
  IntegerProgram p(l, l.out(0).shape());
  p.of_integers(t);
  p.load(l.in(0));
  p.function(of_integers, {p.operand(l.in(1))});
  p.store(l.out(0));
  return p.launch();
}

Status lower_Add(Lowering& l) {
  const auto& a = l.attrs<AddAttrs>();
  return add_binary(l, FloatFunction::kAdd, IntegerFunction::kAdd, a.act_min, a.act_max);
}
Status lower_Sub(Lowering& l) {
  const auto& a = l.attrs<SubAttrs>();
  return add_binary(l, FloatFunction::kSub, IntegerFunction::kSub, a.act_min, a.act_max);
}
Status lower_Mul(Lowering& l) {
  const auto& a = l.attrs<MulAttrs>();
  return add_binary(l, FloatFunction::kMul, IntegerFunction::kMul, a.act_min, a.act_max);
}
Status lower_Div(Lowering& l) {
  const auto& a = l.attrs<DivAttrs>();
  return add_binary(l, FloatFunction::kDiv, IntegerFunction::kDiv, a.act_min, a.act_max);
}
Status lower_Mod(Lowering& l) {
  const bool truncates = l.attrs<ModAttrs>().fmod != 0;
  return add_binary(l, FloatFunction::kMod,
                    truncates ? IntegerFunction::kModTruncate : IntegerFunction::kModFloor);
}
Status lower_Min(Lowering& l) { return add_binary(l, FloatFunction::kMin, IntegerFunction::kMin); }
Status lower_Max(Lowering& l) { return add_binary(l, FloatFunction::kMax, IntegerFunction::kMax); }

// Computes in float if both are; in integers if both are; else in double, from which integers are saturated.
Status lower_Pow(Lowering& l) {
  const DType base = l.in(0).dtype, exponent = l.in(1).dtype;
  if (!is_integer(base) || !is_integer(exponent)) {
    if (computes_in_float(base) && computes_in_float(exponent))
      return add_floats(FloatProgram(l, l.out(0).shape()), l, FloatFunction::kPow, -kInfinity, kInfinity);
    return add_floats(DoubleProgram(l, l.out(0).shape()), l, FloatFunction::kPow, -kInfinity, kInfinity);
  }
  IntegerProgram p(l, l.out(0).shape());
  p.of_integers(base);
  p.load(l.in(0));
  p.function(IntegerFunction::kPow, {p.operand(l.in(1))}, {is_signed_integer(exponent) ? 0 : 1});
  p.store(l.out(0));
  return p.launch();
}

}  // namespace sinter::cuda
