// One-input functions without parameters that matter: Abs .. Trig, BitNot and Classify.
#include <cmath>

#include "runtime/core/float_formats.h"
#include "runtime/core/op_enums.h"
#include "runtime/kernels/reference.h"
#include "runtime/kernels/support.h"

namespace sinter {
namespace {

Status infer_number(OpCall& call) {
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, is_number(call.in(0).dtype)));
  return infer_like_input(call);
}
// F is a function object without state, T -> T.
template <class F>
Status run_number(const OpCall& call, RunContext&) {
  return for_number_or_half(call.in(0).dtype, [&](auto tag) {
    using E = typename decltype(tag)::type;
    map_unary<E, E>(call.out(0), call.in(0), F{});
    return ok_status();
  });
}
template <class F>
Status run_float(const OpCall& call, RunContext&) {
  return for_float_or_half(call.in(0).dtype, [&](auto tag) {
    using E = typename decltype(tag)::type;
    map_unary<E, E>(call.out(0), call.in(0), F{});
    return ok_status();
  });
}

struct AbsOf {
  template <class T>
  T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>)
      return std::fabs(x);
    else
      return x < T(0) ? wrap_sub<T>(T(0), x) : x;
  }
};
struct NegOf {
  template <class T>
  T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>)
      return -x;
    else
      return wrap_sub<T>(T(0), x);
  }
};
struct SignOf {  // zero for both zeros, NaN for NaN
  template <class T>
  T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>) {
      if (x != x) return x;
    }
    return static_cast<T>(int(x > T(0)) - int(x < T(0)));
  }
};
using SqrtOf = decltype([]<class T>(T x) -> T { return std::sqrt(x); });
using RsqrtOf = decltype([]<class T>(T x) -> T {
  return static_cast<T>(1.0 / std::sqrt(static_cast<double>(x)));
});
using ExpOf = decltype([]<class T>(T x) -> T { return std::exp(x); });
using LogOf = decltype([]<class T>(T x) -> T { return std::log(x); });
using ErfOf = decltype([]<class T>(T x) -> T { return std::erf(x); });

Status infer_round(OpCall& call) {
  SINTER_RETURN_IF_ERROR(check_code(call.attrs<RoundAttrs>().fn, 3));
  return infer_float(call);
}
Status run_round(const OpCall& call, RunContext&) {
  return for_float(call.in(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto run = [&](auto f) { map_unary<T, T>(call.out(0), call.in(0), f); };
    switch (static_cast<RoundFn>(call.attrs<RoundAttrs>().fn)) {
      case RoundFn::kNearestEven:
        run([](T x) { return std::nearbyint(x); });
        break;
      case RoundFn::kFloor:
        run([](T x) { return std::floor(x); });
        break;
      case RoundFn::kCeil:
        run([](T x) { return std::ceil(x); });
        break;
    }
    return ok_status();
  });
}

Status infer_trig(OpCall& call) {
  SINTER_RETURN_IF_ERROR(check_code(call.attrs<TrigAttrs>().fn, 11));
  return infer_float(call);
}
Status run_trig(const OpCall& call, RunContext&) {
  return for_float(call.in(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    static constexpr T (*kFunctions[])(T) = {std::sin,   std::cos,   std::tan,  std::asin,
                                             std::acos,  std::atan,  std::sinh, std::cosh,
                                             std::asinh, std::acosh, std::atanh};
    map_unary<T, T>(call.out(0), call.in(0), kFunctions[call.attrs<TrigAttrs>().fn]);
    return ok_status();
  });
}

Status infer_bit_not(OpCall& call) {
  SINTER_RETURN_IF_ERROR(
      check_dtype(call, 0, is_integer(call.in(0).dtype) || call.in(0).dtype == DType::kBool));
  return infer_like_input(call);
}
Status run_bit_not(const OpCall& call, RunContext&) {
  if (call.in(0).dtype == DType::kBool) {
    map_unary<bool, bool>(call.out(0), call.in(0), [](bool x) { return !x; });
    return ok_status();
  }
  return for_width(byte_width(call.in(0).dtype), [&](auto tag) {
    using T = typename decltype(tag)::type;
    map_unary<T, T>(call.out(0), call.in(0), [](T x) { return static_cast<T>(~x); });
    return ok_status();
  });
}

Status infer_classify(OpCall& call) {
  SINTER_RETURN_IF_ERROR(check_code(call.attrs<ClassifyAttrs>().mask, 8));
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, is_compute_float(call.in(0).dtype)));
  return give_output(call, 0, DType::kBool, call.in(0).shape());
}
bool classify(double x, int64_t mask) {
  const int is = x != x           ? kClassifyNan
                 : !std::isinf(x) ? 0
                 : x > 0          ? kClassifyPositiveInf
                                  : kClassifyNegativeInf;
  return (mask & is) != 0;
}
// Reads the 16-bit floats too, because nothing is computed in them.
Status run_classify(const OpCall& call, RunContext&) {
  const int64_t mask = call.attrs<ClassifyAttrs>().mask;
  const TensorView &x = call.in(0), &y = call.out(0);
  if (x.dtype == DType::kFloat16) {
    map_unary<bool, uint16_t>(y, x, [mask](uint16_t v) { return classify(float16_value(v), mask); });
    return ok_status();
  }
  if (x.dtype == DType::kBFloat16) {
    map_unary<bool, uint16_t>(y, x, [mask](uint16_t v) { return classify(bfloat16_value(v), mask); });
    return ok_status();
  }
  return for_float(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    map_unary<bool, T>(y, x, [mask](T v) { return classify(v, mask); });
    return ok_status();
  });
}

}  // namespace

const Kernel kAbsKernel = reference_kernel({Op::kAbs, infer_number, nullptr, run_number<AbsOf>});
const Kernel kNegKernel = reference_kernel({Op::kNeg, infer_number, nullptr, run_number<NegOf>});
const Kernel kSignKernel = reference_kernel({Op::kSign, infer_number, nullptr, run_number<SignOf>});
const Kernel kRoundKernel = reference_kernel({Op::kRound, infer_round, nullptr, run_round});
const Kernel kSqrtKernel = reference_kernel({Op::kSqrt, infer_float, nullptr, run_float<SqrtOf>});
const Kernel kRsqrtKernel = reference_kernel({Op::kRsqrt, infer_float, nullptr, run_float<RsqrtOf>});
const Kernel kExpKernel = reference_kernel({Op::kExp, infer_float, nullptr, run_float<ExpOf>});
const Kernel kLogKernel = reference_kernel({Op::kLog, infer_float, nullptr, run_float<LogOf>});
const Kernel kErfKernel = reference_kernel({Op::kErf, infer_float, nullptr, run_float<ErfOf>});
const Kernel kTrigKernel = reference_kernel({Op::kTrig, infer_trig, nullptr, run_trig});
const Kernel kBitNotKernel = reference_kernel({Op::kBitNot, infer_bit_not, nullptr, run_bit_not});
const Kernel kClassifyKernel = reference_kernel({Op::kClassify, infer_classify, nullptr, run_classify});

}  // namespace sinter
