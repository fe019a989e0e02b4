// One element at a time: unary functions, arithmetic, comparisons, logic, choice.
#include <cmath>

#include "converter/import/lower/common.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

// ---- one input

// Takes numbers of any kind.
template <class Attrs>
bool lower_number(NodeLowering& n) {
  ignore_legacy(n);
  return n.output(0, n.emit(Attrs{}, {n.input(0)}));
}
// Takes floats.
template <class Attrs>
bool lower_float(NodeLowering& n) {
  ignore_legacy(n);
  return n.output(0, n.emit(Attrs{}, {n.input(0)}));
}
template <TrigFn Fn>
bool lower_trig(NodeLowering& n) {
  return n.output(0, n.emit(TrigAttrs{static_cast<int64_t>(Fn)}, {n.input(0)}));
}
template <RoundFn Fn>
bool lower_round(NodeLowering& n) {
  ignore_legacy(n);
  const ValueId x = n.input(0);
  if (x >= 0 && !is_float(n.dtype(x))) return n.output(0, x);
  return n.output(0, n.round(Fn, {x}));
}
bool lower_reciprocal(NodeLowering& n) {
  ignore_legacy(n);
  const ValueId x = n.input(0);
  return n.output(0, n.div(n.scalar(n.dtype(x), 1), x));
}
bool lower_not(NodeLowering& n) { return n.output(0, n.emit(BitNotAttrs{}, {n.input(0)})); }
bool lower_is_nan(NodeLowering& n) { return n.output(0, n.emit(ClassifyAttrs{kClassifyNan}, {n.input(0)})); }
bool lower_is_inf(NodeLowering& n) {
  const int64_t mask = (n.attr_int("detect_positive", 1) != 0 ? kClassifyPositiveInf : 0) |
                       (n.attr_int("detect_negative", 1) != 0 ? kClassifyNegativeInf : 0);
  return n.output(0, n.emit(ClassifyAttrs{mask}, {n.input(0)}));
}

// ---- two inputs

template <class Attrs>
bool lower_arithmetic(NodeLowering& n) {
  ValueId a, b;
  if (!binary_operands(n, &a, &b)) return false;
  const ValueId y = n.emit(Attrs{}, {a, b});
  warn_of_wrapping(n, y);
  return n.output(0, y);
}

// Base and exponent may have different types (rule pow.base).
bool lower_pow(NodeLowering& n) {
  ValueId base, exponent;
  return binary_operands(n, &base, &exponent) && n.output(0, n.emit(PowAttrs{}, {base, exponent}));
}

// fmod 0 gives the divisor's sign; of floats since opset 28, from the truncated remainder.
bool lower_mod(NodeLowering& n) {
  ValueId a, b;
  if (!binary_operands(n, &a, &b)) return false;
  const int64_t fmod = n.attr_int("fmod", 0);
  if (fmod != 0 && fmod != 1) return n.refuse("attribute fmod is {}, not 0 or 1", fmod);
  if (fmod == 1 || !is_float(n.dtype(a))) return n.output(0, n.emit(ModAttrs{fmod}, {a, b}));
  const ValueId zero = n.scalar(n.dtype(a), 0);
  const ValueId r = n.emit(ModAttrs{1}, {a, b});
  const auto compare = [&](CompareFn fn, ValueId x) { return n.compare(fn, {x, zero}); };
  const ValueId differs =
      n.compare(CompareFn::kNotEqual, {compare(CompareFn::kLess, r), compare(CompareFn::kLess, b)});
  const ValueId wrong = n.bitwise(BitwiseFn::kAnd, {compare(CompareFn::kNotEqual, r), differs});
  return n.output(0, n.where({wrong, n.add(r, b), r}));
}

template <CompareFn Fn>
bool lower_compare(NodeLowering& n) {
  ValueId a, b;
  if (!binary_operands(n, &a, &b)) return false;
  return n.output(0, n.compare(Fn, {a, b}));
}

// And with a constant false, Or with a constant true: known although the other side is not.
template <BitwiseFn Fn>
bool lower_logic(NodeLowering& n) {
  ValueId a, b;
  if (!binary_operands(n, &a, &b)) return false;
  const ValueId y = n.bitwise(Fn, {a, b});
  if (y < 0 || n.constant(y) || Fn == BitwiseFn::kXor) return n.output(0, y);
  for (const ValueId side : {a, b}) {
    const ConstantPtr c = n.constant(side);
    if (!c || c->size() != 1 || (c->as_doubles()[0] != 0) != (Fn == BitwiseFn::kOr)) continue;
    return n.output(0, n.broadcast(n.scalar(DType::kBool, Fn == BitwiseFn::kOr), n.dims(y)));
  }
  return n.output(0, y);
}
template <BitwiseFn Fn>
bool lower_bitwise(NodeLowering& n) {
  ValueId a, b;
  if (!binary_operands(n, &a, &b)) return false;
  return n.output(0, n.bitwise(Fn, {a, b}));
}
bool lower_bit_shift(NodeLowering& n) {
  ValueId a, b;
  if (!binary_operands(n, &a, &b)) return false;
  const std::string direction = n.attr_string("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    return n.refuse("direction is '{}', not LEFT or RIGHT", direction);
  const BitwiseFn fn = direction == "LEFT" ? BitwiseFn::kShiftLeft : BitwiseFn::kShiftRight;
  return n.output(0, n.bitwise(fn, {a, b}));
}

bool lower_where(NodeLowering& n) { return n.output(0, n.where({n.input(0), n.input(1), n.input(2)})); }

// ---- any number of inputs

template <class Attrs>
ValueId chain(NodeLowering& n) {
  ignore_legacy(n);
  ValueId result = n.input(0);
  for (size_t i = 1; i < n.input_count(); ++i) {
    if (!n.has_input(i)) return n.refuse("an operand is missing");
    result = n.emit(Attrs{}, {result, n.input(i)});
  }
  return result;
}
template <class Attrs>
bool lower_chain(NodeLowering& n) {
  return n.output(0, chain<Attrs>(n));
}
bool lower_mean(NodeLowering& n) {
  const ValueId sum = chain<AddAttrs>(n);
  if (sum < 0 || n.input_count() == 1) return n.output(0, sum);
  return n.output(0, n.div(sum, n.scalar(n.dtype(sum), static_cast<double>(n.input_count()))));
}

}  // namespace

std::span<const OnnxOperator> elementwise_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"Abs", 1, lower_number<AbsAttrs>, "N", kTakesBounded},
      {"Neg", 1, lower_number<NegAttrs>, "N", kTakesBounded | kLinear},
      {"Sign", 9, lower_number<SignAttrs>, "N", kTakesBounded},
      {"Round", 11, lower_round<RoundFn::kNearestEven>, "", kTakesBounded},
      {"Floor", 1, lower_round<RoundFn::kFloor>, "", kTakesBounded},
      {"Ceil", 1, lower_round<RoundFn::kCeil>, "", kTakesBounded},
      {"Sqrt", 1, lower_float<SqrtAttrs>, "F", kTakesBounded},
      {"Exp", 1, lower_float<ExpAttrs>, "F", kTakesBounded},
      {"Log", 1, lower_float<LogAttrs>, "F", kTakesBounded},
      {"Erf", 9, lower_float<ErfAttrs>, "F", kTakesBounded},
      {"Reciprocal", 1, lower_reciprocal, "F", kTakesBounded},
      {"Sin", 7, lower_trig<TrigFn::kSin>, "F", kTakesBounded},
      {"Cos", 7, lower_trig<TrigFn::kCos>, "F", kTakesBounded},
      {"Tan", 7, lower_trig<TrigFn::kTan>, "F", kTakesBounded},
      {"Asin", 7, lower_trig<TrigFn::kAsin>, "F", kTakesBounded},
      {"Acos", 7, lower_trig<TrigFn::kAcos>, "F", kTakesBounded},
      {"Atan", 7, lower_trig<TrigFn::kAtan>, "F", kTakesBounded},
      {"Sinh", 9, lower_trig<TrigFn::kSinh>, "F", kTakesBounded},
      {"Cosh", 9, lower_trig<TrigFn::kCosh>, "F", kTakesBounded},
      {"Asinh", 9, lower_trig<TrigFn::kAsinh>, "F", kTakesBounded},
      {"Acosh", 9, lower_trig<TrigFn::kAcosh>, "F", kTakesBounded},
      {"Atanh", 9, lower_trig<TrigFn::kAtanh>, "F", kTakesBounded},
      {"Not", 1, lower_not, "b", kTakesBounded},
      {"BitwiseNot", 18, lower_number<BitNotAttrs>, "I", kTakesBounded},
      {"IsNaN", 9, lower_is_nan, "F", kTakesBounded},
      {"IsInf", 10, lower_is_inf, "F", kTakesBounded},
      {"Add", 1, lower_arithmetic<AddAttrs>, "N N", kTakesBounded | kLinear},
      {"Sub", 1, lower_arithmetic<SubAttrs>, "N N", kTakesBounded | kLinear},
      {"Mul", 1, lower_arithmetic<MulAttrs>, "N N", kTakesBounded | kLinear},
      {"Div", 1, lower_arithmetic<DivAttrs>, "N N", kTakesBounded | kDivides | kLinear},
      {"Pow", 1, lower_pow, "A e", kTakesBounded},
      {"Mod", 10, lower_mod, "N N", kTakesBounded},
      {"Equal", 1, lower_compare<CompareFn::kEqual>, "A A", kTakesBounded | kOwnType},
      {"Less", 1, lower_compare<CompareFn::kLess>, "N N", kTakesBounded | kOwnType},
      {"LessOrEqual", 12, lower_compare<CompareFn::kLessOrEqual>, "N N", kTakesBounded | kOwnType},
      {"Greater", 1, lower_compare<CompareFn::kGreater>, "N N", kTakesBounded | kOwnType},
      {"GreaterOrEqual", 12, lower_compare<CompareFn::kGreaterOrEqual>, "N N", kTakesBounded | kOwnType},
      {"And", 1, lower_logic<BitwiseFn::kAnd>, "b b", kTakesBounded},
      {"Or", 1, lower_logic<BitwiseFn::kOr>, "b b", kTakesBounded},
      {"Xor", 1, lower_logic<BitwiseFn::kXor>, "b b", kTakesBounded},
      {"BitwiseAnd", 18, lower_bitwise<BitwiseFn::kAnd>, "I I", kTakesBounded},
      {"BitwiseOr", 18, lower_bitwise<BitwiseFn::kOr>, "I I", kTakesBounded},
      {"BitwiseXor", 18, lower_bitwise<BitwiseFn::kXor>, "I I", kTakesBounded},
      {"BitShift", 11, lower_bit_shift, "I n", kTakesBounded},
      {"Where", 9, lower_where, "b A A", kTakesBounded | kThreeInputs},
      {"Min", 1, lower_chain<MinAttrs>, "N+", kTakesBounded},
      {"Max", 1, lower_chain<MaxAttrs>, "N+", kTakesBounded},
      {"Sum", 1, lower_chain<AddAttrs>, "N+", kTakesBounded},
      {"BiasAdd", 1, lower_chain<AddAttrs>, "F F F", kTakesBounded, kMicrosoft},
      {"Mean", 1, lower_mean, "F+", kTakesBounded},
  };
  return kRules;
}

}  // namespace sinter::convert
