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
// Takes floats; integers are cast.
template <class Attrs>
bool lower_float(NodeLowering& n) {
  ignore_legacy(n);
  return n.output(0, n.emit(Attrs{}, {as_float(n, n.input(0))}));
}
template <TrigFn Fn>
bool lower_trig(NodeLowering& n) {
  return n.output(0, n.emit(TrigAttrs{static_cast<int64_t>(Fn)}, {as_float(n, n.input(0))}));
}
template <RoundFn Fn>
bool lower_round(NodeLowering& n) {
  ignore_legacy(n);
  const ValueId x = n.input(0);
  if (x >= 0 && !is_float(n.dtype(x))) return n.output(0, x);
  return n.output(0, n.emit(RoundAttrs{static_cast<int64_t>(Fn)}, {x}));
}
bool lower_reciprocal(NodeLowering& n) {
  ignore_legacy(n);
  const ValueId x = as_float(n, n.input(0));
  return n.output(0, n.div(n.scalar(n.dtype(x), 1), x));
}
bool lower_not(NodeLowering& n) { return n.output(0, n.emit(BitNotAttrs{}, {as_bool(n, n.input(0))})); }
bool lower_is_nan(NodeLowering& n) {
  return n.output(0, n.emit(ClassifyAttrs{kClassifyNan}, {as_float(n, n.input(0))}));
}
bool lower_is_inf(NodeLowering& n) {
  const int64_t mask = (n.attr_int("detect_positive", 1) != 0 ? kClassifyPositiveInf : 0) |
                       (n.attr_int("detect_negative", 1) != 0 ? kClassifyNegativeInf : 0);
  return n.output(0, n.emit(ClassifyAttrs{mask}, {as_float(n, n.input(0))}));
}

// ---- two inputs

template <class Attrs>
bool lower_arithmetic(NodeLowering& n) {
  ValueId a, b;
  if (!binary_operands(n, &a, &b) || !align_types(n, &a, &b)) return false;
  const ValueId y = n.emit(Attrs{}, {a, b});
  warn_of_wrapping(n, y);
  return n.output(0, y);
}

// Rule pow.base. An integer base with a fractional or negative exponent gives the standard's truncated
// integer, with a warning.
bool lower_pow(NodeLowering& n) {
  ValueId base, exponent;
  if (!binary_operands(n, &base, &exponent)) return false;
  if (n.dtype(base) == DType::kBool) base = n.cast(base, DType::kInt32);
  if (n.dtype(exponent) == DType::kBool) exponent = n.cast(exponent, DType::kInt32);
  const ConstantPtr c = n.constant(exponent);
  if (!is_float(n.dtype(base)) && (is_float(n.dtype(exponent)) || c)) {
    bool whole = c != nullptr;
    if (c)
      for (const double v : c->as_doubles()) whole &= v == std::floor(v) && v >= 0;
    if (!whole && n.wants_fractions()) {
      // Integers of more than 16 bits are not all float32 numbers.
      const DType wide = bit_width(n.dtype(base)) > 16 ? DType::kFloat64 : DType::kFloat32;
      const ValueId y = n.emit(PowAttrs{}, {n.cast(base, wide), n.cast(exponent, wide)});
      return n.output(0, n.cast(y, n.dtype(exponent) == DType::kFloat64 ? wide : DType::kFloat32));
    }
    if (!whole)
      n.warn(
          "an integer base ('{}', {}) with a {} exponent ('{}', {}) gives integers, as the standard "
          "requires; cast the base to float if fractions are intended",
          n.node().inputs[0], dtype_name(n.dtype(base)), is_float(n.dtype(exponent)) ? "float" : "negative",
          n.node().inputs[1], dtype_name(n.dtype(exponent)));
  } else if (is_float(n.dtype(base)) && is_float(n.dtype(exponent)) && n.dtype(base) != n.dtype(exponent)) {
    // Both in the wider type, then back to the base's.
    const DType to = n.dtype(base);
    if (!n.promote(&base, &exponent)) return false;
    return n.output(0, n.cast(n.emit(PowAttrs{}, {base, exponent}), to));
  }
  return n.output(0, n.emit(PowAttrs{}, {base, exponent}));
}

// fmod 0 gives the divisor's sign; of floats since opset 28, from the truncated remainder.
bool lower_mod(NodeLowering& n) {
  ValueId a, b;
  if (!binary_operands(n, &a, &b) || !align_types(n, &a, &b)) return false;
  const int64_t fmod = n.attr_int("fmod", 0);
  if (fmod != 0 && fmod != 1) return n.refuse("attribute fmod is {}, not 0 or 1", fmod);
  if (fmod == 1 || !is_float(n.dtype(a))) return n.output(0, n.emit(ModAttrs{fmod}, {a, b}));
  const ValueId zero = n.scalar(n.dtype(a), 0);
  const ValueId r = n.emit(ModAttrs{1}, {a, b});
  const auto compare = [&](CompareFn fn, ValueId x) {
    return n.emit(CompareAttrs{static_cast<int64_t>(fn)}, {x, zero});
  };
  const ValueId differs = n.emit(CompareAttrs{static_cast<int64_t>(CompareFn::kNotEqual)},
                                 {compare(CompareFn::kLess, r), compare(CompareFn::kLess, b)});
  const ValueId wrong = n.emit(BitwiseAttrs{static_cast<int64_t>(BitwiseFn::kAnd)},
                               {compare(CompareFn::kNotEqual, r), differs});
  return n.output(0, n.emit(WhereAttrs{}, {wrong, n.add(r, b), r}));
}

template <CompareFn Fn>
bool lower_compare(NodeLowering& n) {
  ValueId a, b;
  if (!binary_operands(n, &a, &b) || !align_types(n, &a, &b, true)) return false;
  return n.output(0, n.emit(CompareAttrs{static_cast<int64_t>(Fn)}, {a, b}));
}

// And with a constant false, Or with a constant true: known although the other side is not.
template <BitwiseFn Fn>
bool lower_logic(NodeLowering& n) {
  ValueId a, b;
  if (!binary_operands(n, &a, &b)) return false;
  const ValueId y = n.emit(BitwiseAttrs{static_cast<int64_t>(Fn)}, {as_bool(n, a), as_bool(n, b)});
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
  if (!binary_operands(n, &a, &b) || !align_types(n, &a, &b)) return false;
  return n.output(0, n.emit(BitwiseAttrs{static_cast<int64_t>(Fn)}, {a, b}));
}
bool lower_bit_shift(NodeLowering& n) {
  ValueId a, b;
  if (!binary_operands(n, &a, &b)) return false;
  const std::string direction = n.attr_string("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    return n.refuse("direction is '{}', not LEFT or RIGHT", direction);
  b = n.cast(b, n.dtype(a));
  const BitwiseFn fn = direction == "LEFT" ? BitwiseFn::kShiftLeft : BitwiseFn::kShiftRight;
  return n.output(0, n.emit(BitwiseAttrs{static_cast<int64_t>(fn)}, {a, b}));
}

bool lower_where(NodeLowering& n) {
  ValueId a = n.input(1), b = n.input(2);
  if (!align_types(n, &a, &b)) return false;
  return n.output(0, n.emit(WhereAttrs{}, {as_bool(n, n.input(0)), a, b}));
}

// ---- any number of inputs

template <class Attrs>
ValueId chain(NodeLowering& n) {
  ignore_legacy(n);
  ValueId result = n.input(0);
  if (result == kAbsent) return n.refuse("has no input"), kUnknown;
  for (size_t i = 1; i < n.input_count(); ++i) {
    ValueId next = n.input(i);
    if (!align_types(n, &result, &next)) return kUnknown;
    result = n.emit(Attrs{}, {result, next});
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
      {"IsNaN", 9, lower_is_nan, "", kTakesBounded},
      {"IsInf", 10, lower_is_inf, "", kTakesBounded},
      {"Add", 1, lower_arithmetic<AddAttrs>, "N N", kTakesBounded | kLinear},
      {"Sub", 1, lower_arithmetic<SubAttrs>, "N N", kTakesBounded | kLinear},
      {"Mul", 1, lower_arithmetic<MulAttrs>, "N N", kTakesBounded | kLinear},
      {"Div", 1, lower_arithmetic<DivAttrs>, "N N", kTakesBounded | kDivides | kLinear},
      {"Pow", 1, lower_pow, "", kTakesBounded},
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
      {"Where", 9, lower_where, "b A A", kTakesBounded},
      {"Min", 1, lower_chain<MinAttrs>, "N+", kTakesBounded},
      {"Max", 1, lower_chain<MaxAttrs>, "N+", kTakesBounded},
      {"Sum", 1, lower_chain<AddAttrs>, "N+", kTakesBounded},
      {"BiasAdd", 1, lower_chain<AddAttrs>, "F F F", kTakesBounded, kMicrosoft},
      {"Mean", 1, lower_mean, "F+", kTakesBounded},
  };
  return kRules;
}

}  // namespace sinter::convert
