// Arithmetic of two operands with broadcasting: Add, Sub, Mul, Div, Mod, Min, Max, Pow.
#include <cmath>

#include "runtime/core/float_formats.h"
#include "runtime/kernels/reference.h"
#include "runtime/kernels/support.h"

namespace sinter {
namespace {

Status infer_broadcast(OpCall& call) {
  Dims dims(call.in(0).shape());
  SINTER_RETURN_IF_ERROR(broadcast_into(&dims, call.in(1).shape()));
  return give_output(call, 0, call.in(0).dtype, dims.span());
}
Status infer_numbers(OpCall& call) {
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, is_number(call.in(0).dtype)));
  SINTER_RETURN_IF_ERROR(check_same_dtype(call, 1, 0));
  return infer_broadcast(call);
}

// The attributes act_min and act_max are a fused clamp, of floats only.
template <class Attrs>
Status infer_arithmetic(OpCall& call) {
  const auto& a = call.attrs<Attrs>();
  SINTER_RETURN_UNLESS(a.act_min == a.act_min && a.act_max == a.act_max, invalid("a bound is not a number"));
  SINTER_RETURN_UNLESS(!is_integer(call.in(0).dtype) || (std::isinf(a.act_min) && std::isinf(a.act_max)),
                       unsupported("a fused activation needs floating-point operands"));
  return infer_numbers(call);
}
template <class Attrs, class F>
Status run_arithmetic(const OpCall& call, RunContext&) {
  const auto& a = call.attrs<Attrs>();
  return for_number_or_half(call.in(0).dtype, [&](auto tag) {
    using E = typename decltype(tag)::type;
    using T = Computed<E>;
    const F f{};
    if constexpr (std::is_floating_point_v<T>) {
      if (a.act_min != -kInfinity || a.act_max != kInfinity) {
        const T lower = static_cast<T>(a.act_min), upper = static_cast<T>(a.act_max);
        map_binary<E, E, E>(call.out(0), call.in(0), call.in(1), [=](T x, T y) {
          const T v = f(x, y);
          const T raised = v < lower ? lower : v;
          return raised > upper ? upper : raised;
        });
        return ok_status();
      }
    }
    map_binary<E, E, E>(call.out(0), call.in(0), call.in(1), f);
    return ok_status();
  });
}

using AddOf = decltype([]<class T>(T x, T y) -> T { return wrap_add(x, y); });
using SubOf = decltype([]<class T>(T x, T y) -> T { return wrap_sub(x, y); });
using MulOf = decltype([]<class T>(T x, T y) -> T { return wrap_mul(x, y); });
struct DivOf {  // integers: towards zero, x / 0 = 0, lowest / -1 wraps
  template <class T>
  T operator()(T x, T y) const {
    if constexpr (std::is_floating_point_v<T>) {
      return x / y;
    } else {
      if (y == T(0)) return T(0);
      if constexpr (std::is_signed_v<T>) {
        if (y == T(-1)) return wrap_sub(T(0), x);
      }
      return static_cast<T>(x / y);
    }
  }
};

// fmod = 0: the result has the divisor's sign (integers only); 1: the dividend's, as in C. x mod 0 = 0 for
// integers.
Status infer_mod(OpCall& call) {
  const auto& a = call.attrs<ModAttrs>();
  SINTER_RETURN_IF_ERROR(check_code(a.fmod, 2));
  SINTER_RETURN_UNLESS(a.fmod == 1 || !is_float(call.in(0).dtype), invalid("Mod of floats needs fmod = 1"));
  return infer_numbers(call);
}
Status run_mod(const OpCall& call, RunContext&) {
  const bool c_sign = call.attrs<ModAttrs>().fmod != 0;
  return for_number(call.in(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    map_binary<T, T, T>(call.out(0), call.in(0), call.in(1), [=](T x, T y) -> T {
      if constexpr (std::is_floating_point_v<T>) {
        return std::fmod(x, y);
      } else {
        if (y == T(0)) return T(0);
        if constexpr (std::is_signed_v<T>) {
          if (y == T(-1)) return T(0);
          const T r = static_cast<T>(x % y);
          return !c_sign && r != T(0) && (r < T(0)) != (y < T(0)) ? static_cast<T>(r + y) : r;
        }
        return static_cast<T>(x % y);
      }
    });
    return ok_status();
  });
}

// The result is NaN if an operand is.
using MinOf = decltype([]<class T>(T x, T y) -> T { return x < y || x != x ? x : y; });
using MaxOf = decltype([]<class T>(T x, T y) -> T { return x > y || x != x ? x : y; });
template <class F>
Status run_numbers(const OpCall& call, RunContext&) {
  return for_number_or_half(call.in(0).dtype, [&](auto tag) {
    using E = typename decltype(tag)::type;
    map_binary<E, E, E>(call.out(0), call.in(0), call.in(1), F{});
    return ok_status();
  });
}

Status infer_pow(OpCall& call) {
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, is_number(call.in(0).dtype)));
  SINTER_RETURN_IF_ERROR(check_dtype(call, 1, is_number(call.in(1).dtype)));
  return infer_broadcast(call);
}

// The power wraps; a negative exponent gives the truncated quotient (0 for a base of 0).
template <class T>
T integer_power(T base, bool negative, uint64_t exponent) {
  if (negative) {
    if (base == T(1)) return T(1);
    if constexpr (std::is_signed_v<T>) {
      if (base == T(-1)) return (exponent & 1) != 0 ? T(-1) : T(1);
    }
    return T(0);
  }
  uint64_t result = 1, factor = static_cast<uint64_t>(base);
  for (; exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result *= factor;
    factor *= factor;
  }
  return static_cast<T>(result);
}

// If one of the two is a float, the power is computed in double, or in float if both are; an integer base
// then truncates and saturates.
template <class Base, class Exponent>
Base power(Base base, Exponent exponent) {
  if constexpr (std::is_floating_point_v<Base> && std::is_same_v<Base, Exponent>) {
    return std::pow(base, exponent);
  } else if constexpr (std::is_integral_v<Base> && std::is_integral_v<Exponent>) {
    const bool negative = exponent < Exponent(0);
    const uint64_t wide = static_cast<uint64_t>(exponent);
    return integer_power(base, negative, negative ? ~wide + 1 : wide);
  } else {
    const double result = std::pow(static_cast<double>(base), static_cast<double>(exponent));
    if constexpr (std::is_integral_v<Base>)
      return saturate_to<Base>(result);
    else
      return static_cast<Base>(result);
  }
}

Status run_pow(const OpCall& call, RunContext&) {
  return for_number(call.in(0).dtype, [&](auto base_tag) {
    using Base = typename decltype(base_tag)::type;
    return for_number(call.in(1).dtype, [&](auto exponent_tag) {
      using Exponent = typename decltype(exponent_tag)::type;
      // There are 100 pairs: each has one loop, without the fast paths of map_binary.
      for_each_element(
          make_nest(call.out(0).shape(), call.out(0), call.in(0), call.in(1)),
          [](std::byte* const(&p)[3]) { store<Base>(p[0], power(load<Base>(p[1]), load<Exponent>(p[2]))); });
      return ok_status();
    });
  });
}

}  // namespace

const Kernel kAddKernel =
    reference_kernel({Op::kAdd, infer_arithmetic<AddAttrs>, nullptr, run_arithmetic<AddAttrs, AddOf>});
const Kernel kSubKernel =
    reference_kernel({Op::kSub, infer_arithmetic<SubAttrs>, nullptr, run_arithmetic<SubAttrs, SubOf>});
const Kernel kMulKernel =
    reference_kernel({Op::kMul, infer_arithmetic<MulAttrs>, nullptr, run_arithmetic<MulAttrs, MulOf>});
const Kernel kDivKernel =
    reference_kernel({Op::kDiv, infer_arithmetic<DivAttrs>, nullptr, run_arithmetic<DivAttrs, DivOf>});
const Kernel kPowKernel = reference_kernel({Op::kPow, infer_pow, nullptr, run_pow});
const Kernel kModKernel = reference_kernel({Op::kMod, infer_mod, nullptr, run_mod});
const Kernel kMinKernel = reference_kernel({Op::kMin, infer_numbers, nullptr, run_numbers<MinOf>});
const Kernel kMaxKernel = reference_kernel({Op::kMax, infer_numbers, nullptr, run_numbers<MaxOf>});

}  // namespace sinter
