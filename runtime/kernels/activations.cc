// Activation functions, in forms that neither overflow nor cancel.
#include <cmath>

#include "runtime/core/float_formats.h"
#include "runtime/kernels/reference.h"
#include "runtime/kernels/support.h"

namespace sinter {
namespace {

// make(attrs, Tag<T>) gives the function T -> T for each T.
template <class Attrs, class Make>
Status run_with(const OpCall& call, Make make) {
  return for_float_or_half(call.in(0).dtype, [&](auto tag) {
    using E = typename decltype(tag)::type;
    map_unary<E, E>(call.out(0), call.in(0), make(call.attrs<Attrs>(), Tag<Computed<E>>{}));
    return ok_status();
  });
}

template <class T>
T sigmoid(T x) {
  if (x >= T(0)) return T(1) / (T(1) + std::exp(-x));
  const T e = std::exp(x);
  return e / (T(1) + e);
}

Status run_sigmoid(const OpCall& call, RunContext&) {
  return run_with<SigmoidAttrs>(call, [](const auto&, auto tag) {
    using T = typename decltype(tag)::type;
    return [](T x) { return sigmoid(x); };
  });
}
Status run_tanh(const OpCall& call, RunContext&) {
  return run_with<TanhAttrs>(call, [](const auto&, auto tag) {
    using T = typename decltype(tag)::type;
    return [](T x) { return std::tanh(x); };
  });
}
// Comparisons below are written so that NaN passes.
Status run_hard_sigmoid(const OpCall& call, RunContext&) {
  return run_with<HardSigmoidAttrs>(call, [](const auto& a, auto tag) {
    using T = typename decltype(tag)::type;
    const T alpha = static_cast<T>(a.alpha), beta = static_cast<T>(a.beta);
    return [=](T x) {
      const T v = alpha * x + beta;
      return v < T(0) ? T(0) : v > T(1) ? T(1) : v;
    };
  });
}
Status run_hard_swish(const OpCall& call, RunContext&) {
  return run_with<HardSwishAttrs>(call, [](const auto&, auto tag) {
    using T = typename decltype(tag)::type;
    return [](T x) {
      const T v = x + T(3);
      return x * (v < T(0) ? T(0) : v > T(6) ? T(6) : v) / T(6);
    };
  });
}
Status run_gelu(const OpCall& call, RunContext&) {
  const bool approximate = call.attrs<GeluAttrs>().tanh_approximation != 0;
  return for_float_or_half(call.in(0).dtype, [&](auto tag) {
    using E = typename decltype(tag)::type;
    using T = Computed<E>;
    // (1 + erf(z)) / 2 = erfc(-z) / 2 and (1 + tanh(u)) / 2 = sigmoid(2 u) keep the left tail exact.
    if (approximate) {
      const T scale = static_cast<T>(1.5957691216057307118);  // 2 sqrt(2 / pi)
      const T cubic = static_cast<T>(0.044715);
      map_unary<E, E>(call.out(0), call.in(0),
                      [=](T x) { return x * sigmoid(scale * (x + cubic * x * x * x)); });
    } else {
      const T root_half = static_cast<T>(0.70710678118654752440);
      map_unary<E, E>(call.out(0), call.in(0), [=](T x) { return T(0.5) * x * std::erfc(-x * root_half); });
    }
    return ok_status();
  });
}
Status run_silu(const OpCall& call, RunContext&) {
  return run_with<SiluAttrs>(call, [](const auto& a, auto tag) {
    using T = typename decltype(tag)::type;
    const T alpha = static_cast<T>(a.alpha);
    return [=](T x) { return x * sigmoid(alpha * x); };
  });
}
Status run_elu(const OpCall& call, RunContext&) {
  return run_with<EluAttrs>(call, [](const auto& a, auto tag) {
    using T = typename decltype(tag)::type;
    const T left = static_cast<T>(a.gamma * a.alpha), beta = static_cast<T>(a.beta),
            gamma = static_cast<T>(a.gamma);
    return [=](T x) { return x > T(0) ? gamma * x : left * std::expm1(beta * x); };
  });
}
Status run_leaky_relu(const OpCall& call, RunContext&) {
  return run_with<LeakyReluAttrs>(call, [](const auto& a, auto tag) {
    using T = typename decltype(tag)::type;
    const T alpha = static_cast<T>(a.alpha);
    return [=](T x) { return x < T(0) ? alpha * x : x; };
  });
}
Status run_softplus(const OpCall& call, RunContext&) {
  return run_with<SoftplusAttrs>(call, [](const auto&, auto tag) {
    using T = typename decltype(tag)::type;
    return [](T x) { return x > T(0) ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); };
  });
}

Status infer_clamp(OpCall& call) {
  const auto& a = call.attrs<ClampAttrs>();
  SINTER_RETURN_UNLESS(a.min == a.min && a.max == a.max, invalid("a bound is not a number"));
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, is_number(call.in(0).dtype)));
  return infer_like_input(call);
}
// Bounds of integers are saturated into the type. The result is min(max(x, lower), upper) where bounds cross.
Status run_clamp(const OpCall& call, RunContext&) {
  const auto& a = call.attrs<ClampAttrs>();
  return for_number_or_half(call.in(0).dtype, [&](auto tag) {
    using E = typename decltype(tag)::type;
    using T = Computed<E>;
    T lower, upper;
    if constexpr (std::is_integral_v<T>) {
      lower = saturate_to<T>(std::ceil(a.min)), upper = saturate_to<T>(std::floor(a.max));
    } else {
      lower = static_cast<T>(a.min), upper = static_cast<T>(a.max);
    }
    map_unary<E, E>(call.out(0), call.in(0), [=](T x) {
      const T raised = x < lower ? lower : x;
      return raised > upper ? upper : raised;
    });
    return ok_status();
  });
}

// The slope broadcasts to x.
Status infer_prelu(OpCall& call) {
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, is_number(call.in(0).dtype)));
  SINTER_RETURN_IF_ERROR(check_same_dtype(call, 1, 0));
  SINTER_RETURN_IF_ERROR(check_broadcasts_to(call.in(1).shape(), call.in(0).shape()));
  return infer_like_input(call);
}
Status run_prelu(const OpCall& call, RunContext&) {
  return for_number_or_half(call.in(0).dtype, [&](auto tag) {
    using E = typename decltype(tag)::type;
    using T = Computed<E>;
    map_binary<E, E, E>(call.out(0), call.in(0), call.in(1),
                        [](T x, T slope) -> T { return x < T(0) ? wrap_mul<T>(slope, x) : x; });
    return ok_status();
  });
}

}  // namespace

const Kernel kClampKernel = reference_kernel({Op::kClamp, infer_clamp, nullptr, run_clamp});
const Kernel kSigmoidKernel = reference_kernel({Op::kSigmoid, infer_float, nullptr, run_sigmoid});
const Kernel kTanhKernel = reference_kernel({Op::kTanh, infer_float, nullptr, run_tanh});
const Kernel kHardSigmoidKernel =
    reference_kernel({Op::kHardSigmoid, infer_float, nullptr, run_hard_sigmoid});
const Kernel kHardSwishKernel = reference_kernel({Op::kHardSwish, infer_float, nullptr, run_hard_swish});
const Kernel kGeluKernel = reference_kernel({Op::kGelu, infer_float, nullptr, run_gelu});
const Kernel kSiluKernel = reference_kernel({Op::kSilu, infer_float, nullptr, run_silu});
const Kernel kEluKernel = reference_kernel({Op::kElu, infer_float, nullptr, run_elu});
const Kernel kLeakyReluKernel = reference_kernel({Op::kLeakyRelu, infer_float, nullptr, run_leaky_relu});
const Kernel kPReluKernel = reference_kernel({Op::kPRelu, infer_prelu, nullptr, run_prelu});
const Kernel kSoftplusKernel = reference_kernel({Op::kSoftplus, infer_float, nullptr, run_softplus});

}  // namespace sinter
