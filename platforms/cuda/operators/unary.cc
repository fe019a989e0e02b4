// Functions of one operand without parameters that matter: Abs to Classify.
#include "platforms/cuda/operators/unary.h"

#include "runtime/core/op_enums.h"

namespace sinter::cuda {

Status add_unary(Lowering& l, FloatFunction function, std::initializer_list<double> with) {
  const auto lower = [&]<class T>(ElementProgram<T>&& p) {
    T constants[3] = {};
    int count = 0;
    for (const double v : with) constants[count++] = static_cast<T>(v);
    p.load(l.in(0));
    p.function(function, {}, {constants[0], constants[1], constants[2]});
    p.store(l.out(0));
    return p.launch();
  };
  const DType t = l.in(0).dtype;
  if (computes_in_float(t)) return lower(FloatProgram(l, l.out(0).shape()));
  SINTER_RETURN_UNLESS(t == DType::kFloat64,
                       unsupported("elements of %A are not computed", static_cast<int64_t>(t)));
  return lower(DoubleProgram(l, l.out(0).shape()));
}

Status add_unary(Lowering& l, IntegerFunction function, std::initializer_list<int64_t> with) {
  IntegerProgram p(l, l.out(0).shape());
  p.of_integers(l.in(0).dtype);
  p.load(l.in(0));
  p.function(function, {}, with);
  p.store(l.out(0));
  return p.launch();
}

namespace {

Status add_number(Lowering& l, FloatFunction of_floats, IntegerFunction of_integers) {
  return is_integer(l.in(0).dtype) ? add_unary(l, of_integers) : add_unary(l, of_floats);
}
FloatFunction behind(FloatFunction first, int64_t code) {
  return static_cast<FloatFunction>(static_cast<int64_t>(first) + code);
}

}  // namespace

Status lower_Abs(Lowering& l) { return add_number(l, FloatFunction::kAbs, IntegerFunction::kAbs); }
Status lower_Neg(Lowering& l) { return add_number(l, FloatFunction::kNeg, IntegerFunction::kNeg); }
Status lower_Sign(Lowering& l) { return add_number(l, FloatFunction::kSign, IntegerFunction::kSign); }
Status lower_Round(Lowering& l) {
  return add_unary(l, behind(FloatFunction::kRoundEven, l.attrs<RoundAttrs>().fn));
}
Status lower_Sqrt(Lowering& l) { return add_unary(l, FloatFunction::kSqrt); }
Status lower_Rsqrt(Lowering& l) { return add_unary(l, FloatFunction::kRsqrt); }
Status lower_Exp(Lowering& l) { return add_unary(l, FloatFunction::kExp); }
Status lower_Log(Lowering& l) { return add_unary(l, FloatFunction::kLog); }
Status lower_Erf(Lowering& l) { return add_unary(l, FloatFunction::kErf); }
Status lower_Trig(Lowering& l) { return add_unary(l, behind(FloatFunction::kSin, l.attrs<TrigAttrs>().fn)); }
Status lower_BitNot(Lowering& l) {
  return add_unary(l, l.in(0).dtype == DType::kBool ? IntegerFunction::kNot : IntegerFunction::kBitNot);
}
Status lower_Classify(Lowering& l) {
  return add_unary(l, FloatFunction::kClassify, {static_cast<double>(l.attrs<ClassifyAttrs>().mask)});
}

}  // namespace sinter::cuda
