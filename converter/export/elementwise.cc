// Rows of operations on single elements.
#include <cmath>

#include "converter/export/rows.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

bool is_bool(const NodeExport& n) { return n.dtype(0) == DType::kBool; }

// Writes an operation whose result is computed in steps of the operand, which have its type and dims.
template <class Steps>
bool in_steps(NodeExport& n, const Steps& steps) {
  const Axes axes = n.axes_of(0);
  return steps(n.in(0, axes), n.dtype(0), n.out(0, axes));
}

}  // namespace

bool write_row(NodeExport& n, const AbsAttrs&) { return n.unary("Abs"); }
bool write_row(NodeExport& n, const NegAttrs&) { return n.unary("Neg"); }
bool write_row(NodeExport& n, const SignAttrs&) { return n.unary("Sign"); }
bool write_row(NodeExport& n, const SqrtAttrs&) { return n.unary("Sqrt"); }
bool write_row(NodeExport& n, const ExpAttrs&) { return n.unary("Exp"); }
bool write_row(NodeExport& n, const LogAttrs&) { return n.unary("Log"); }
bool write_row(NodeExport& n, const ErfAttrs&) { return n.unary("Erf"); }
bool write_row(NodeExport& n, const SigmoidAttrs&) { return n.unary("Sigmoid"); }
bool write_row(NodeExport& n, const TanhAttrs&) { return n.unary("Tanh"); }
bool write_row(NodeExport& n, const HardSwishAttrs&) {
  if (n.opset() >= 14) return n.unary("HardSwish");
  const Axes axes = n.axes_of(0);
  const std::string x = n.in(0, axes), gate = n.temporary();
  n.add("HardSigmoid", {x}, {gate}).set_float("alpha", 1.0 / 6).set_float("beta", 0.5);
  n.add("Mul", {x, gate}, {n.out(0, axes)});
  return true;
}
bool write_row(NodeExport& n, const SoftplusAttrs&) { return n.unary("Softplus"); }
bool write_row(NodeExport& n, const CopyAttrs&) { return n.unary("Identity"); }

bool write_row(NodeExport& n, const RoundAttrs& a) {
  constexpr const char* kNames[] = {"Round", "Floor", "Ceil"};
  return n.unary(kNames[a.fn]);
}

bool write_row(NodeExport& n, const TrigAttrs& a) {
  constexpr const char* kNames[] = {"Sin",  "Cos",  "Tan",   "Asin",  "Acos", "Atan",
                                    "Sinh", "Cosh", "Asinh", "Acosh", "Atanh"};
  return n.unary(kNames[a.fn]);
}

bool write_row(NodeExport& n, const RsqrtAttrs&) {
  return in_steps(n, [&](const std::string& x, DType, const std::string& y) {
    n.add("Reciprocal", {n.step("Sqrt", {x})}, {y});
    return true;
  });
}

bool write_row(NodeExport& n, const BitNotAttrs&) {
  if (is_bool(n)) return n.unary("Not");
  return n.needs_opset(18, "BitwiseNot") && n.unary("BitwiseNot");
}

bool write_row(NodeExport& n, const ClassifyAttrs& a) {
  const Axes axes = n.axes_of(0);
  std::string x = n.in(0, axes);
  const std::string y = n.out(0, axes);
  const bool nan = (a.mask & kClassifyNan) != 0, infinite = (a.mask & ~kClassifyNan) != 0;
  const auto is_infinite = [&](const std::string& to) {
    // Before opset 20 IsInf takes no floats of 16 bits.
    if (!is_wide_float(n.dtype(0)) && n.opset() < 20) x = n.cast(x, DType::kFloat32);
    n.add("IsInf", {x}, {to})
        .set("detect_positive", int64_t{(a.mask & kClassifyPositiveInf) != 0})
        .set("detect_negative", int64_t{(a.mask & kClassifyNegativeInf) != 0});
  };
  if (nan && infinite) {
    const std::string both[] = {n.step("IsNaN", {x}), n.temporary()};
    is_infinite(both[1]);
    n.add("Or", {both[0], both[1]}, {y});
  } else if (nan) {
    n.add("IsNaN", {x}, {y});
  } else {
    is_infinite(y);
  }
  return true;
}

bool write_row(NodeExport& n, const ClampAttrs& a) {
  if (a.min == 0 && a.max == kInfinity && n.node().origin != "Clip" && n.has_relu()) return n.unary("Relu");
  const Axes axes = n.axes_of(0);
  const std::string x = n.in(0, axes), lowest = a.min == -kInfinity ? "" : n.scalar(n.dtype(0), a.min);
  n.add("Clip", {x, lowest, a.max == kInfinity ? "" : n.scalar(n.dtype(0), a.max)}, {n.out(0, axes)});
  return true;
}

bool write_row(NodeExport& n, const HardSigmoidAttrs& a) {
  const Axes axes = n.axes_of(0);
  const std::string x = n.in(0, axes);
  n.add("HardSigmoid", {x}, {n.out(0, axes)}).set_float("alpha", a.alpha).set_float("beta", a.beta);
  return true;
}

bool write_row(NodeExport& n, const GeluAttrs& a) {
  return in_steps(n, [&](const std::string& x, DType t, const std::string& y) {
    if (n.opset() >= 20) {
      n.add("Gelu", {x}, {y}).set("approximate", std::string(a.tanh_approximation != 0 ? "tanh" : "none"));
      return true;
    }
    const auto number = [&](double v) { return n.scalar(t, v); };
    std::string inner;
    if (a.tanh_approximation != 0) {
      const std::string cube = n.step("Mul", {n.step("Mul", {x, x}), x});
      const std::string sum = n.step("Add", {x, n.step("Mul", {cube, number(0.044715)})});
      inner = n.step("Tanh", {n.step("Mul", {sum, number(std::sqrt(2 / M_PI))})});
    } else {
      inner = n.step("Erf", {n.step("Div", {x, number(std::sqrt(2.0))})});
    }
    const std::string half = n.step("Mul", {x, number(0.5)});
    n.add("Mul", {half, n.step("Add", {inner, number(1)})}, {y});
    return true;
  });
}

bool write_row(NodeExport& n, const SiluAttrs& a) {
  return in_steps(n, [&](const std::string& x, DType t, const std::string& y) {
    const std::string scaled = a.alpha == 1 ? x : n.step("Mul", {x, n.scalar(t, a.alpha)});
    n.add("Mul", {x, n.step("Sigmoid", {scaled})}, {y});
    return true;
  });
}

bool write_row(NodeExport& n, const EluAttrs& a) {
  return in_steps(n, [&](const std::string& x, DType t, const std::string& y) {
    const auto number = [&](double v) { return n.scalar(t, v); };
    if (a.beta == 1 && a.gamma == 1) {
      n.add("Elu", {x}, {y}).set_float("alpha", a.alpha);
    } else if (a.beta == 1) {
      n.add("Selu", {x}, {y}).set_float("alpha", a.alpha).set_float("gamma", a.gamma);
    } else if (a.gamma == 1 && a.beta == 1 / a.alpha && t == DType::kFloat32) {
      n.add("Celu", {x}, {y}).set_float("alpha", a.alpha);
    } else {
      const std::string power = n.step("Exp", {n.step("Mul", {x, number(a.beta)})});
      const std::string below = n.step("Mul", {n.step("Sub", {power, number(1)}), number(a.gamma * a.alpha)});
      const std::string above = a.gamma == 1 ? x : n.step("Mul", {x, number(a.gamma)});
      n.add("Where", {n.step("Greater", {x, number(0)}), above, below}, {y});
    }
    return true;
  });
}

bool write_row(NodeExport& n, const LeakyReluAttrs& a) {
  const Axes axes = n.axes_of(0);
  const std::string x = n.in(0, axes);
  n.add("LeakyRelu", {x}, {n.out(0, axes)}).set_float("alpha", a.alpha);
  return true;
}

bool write_row(NodeExport& n, const PReluAttrs&) { return n.binary("PRelu"); }

bool write_row(NodeExport& n, const AddAttrs& a) { return n.binary("Add", a.act_min, a.act_max); }
bool write_row(NodeExport& n, const SubAttrs& a) { return n.binary("Sub", a.act_min, a.act_max); }
bool write_row(NodeExport& n, const MulAttrs& a) { return n.binary("Mul", a.act_min, a.act_max); }
bool write_row(NodeExport& n, const DivAttrs& a) { return n.binary("Div", a.act_min, a.act_max); }
bool write_row(NodeExport& n, const PowAttrs&) { return n.binary("Pow"); }
bool write_row(NodeExport& n, const MinAttrs&) { return n.binary("Min"); }
bool write_row(NodeExport& n, const MaxAttrs&) { return n.binary("Max"); }

bool write_row(NodeExport& n, const ModAttrs& a) {
  const Axes axes = n.common_axes({0, 1});
  const std::string x = n.broadcast_in(0, axes), by = n.broadcast_in(1, axes);
  n.add("Mod", {x, by}, {n.out(0, axes)}).set("fmod", a.fmod);
  return true;
}

bool write_row(NodeExport& n, const CompareAttrs& a) {
  constexpr const char* kNames[] = {"Equal", "", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"};
  const bool differ = static_cast<CompareFn>(a.fn) == CompareFn::kNotEqual;
  if (!differ) return n.binary(kNames[a.fn]);
  if (is_bool(n)) return n.binary("Xor");
  const Axes axes = n.common_axes({0, 1});
  const std::string x = n.broadcast_in(0, axes), y = n.broadcast_in(1, axes);
  n.add("Not", {n.step("Equal", {x, y})}, {n.out(0, axes)});
  return true;
}

bool write_row(NodeExport& n, const BitwiseAttrs& a) {
  const auto fn = static_cast<BitwiseFn>(a.fn);
  if (fn == BitwiseFn::kShiftLeft || fn == BitwiseFn::kShiftRight) {
    if (is_signed_integer(n.dtype(0)))
      return n.refuse("ONNX's BitShift takes unsigned integers", "shift unsigned integers in the model");
    const Axes axes = n.common_axes({0, 1});
    const std::string x = n.broadcast_in(0, axes), by = n.broadcast_in(1, axes);
    n.add("BitShift", {x, by}, {n.out(0, axes)})
        .set("direction", std::string(fn == BitwiseFn::kShiftLeft ? "LEFT" : "RIGHT"));
    return true;
  }
  constexpr const char* kLogic[] = {"And", "Or", "Xor"};
  constexpr const char* kBits[] = {"BitwiseAnd", "BitwiseOr", "BitwiseXor"};
  if (is_bool(n)) return n.binary(kLogic[a.fn]);
  return n.needs_opset(18, kBits[a.fn]) && n.binary(kBits[a.fn]);
}

bool write_row(NodeExport& n, const WhereAttrs&) {
  const Axes axes = n.common_axes({0, 1, 2});
  const std::string test = n.broadcast_in(0, axes), yes = n.broadcast_in(1, axes),
                    no = n.broadcast_in(2, axes);
  n.add("Where", {test, yes, no}, {n.out(0, axes)});
  return true;
}

}  // namespace sinter::convert
