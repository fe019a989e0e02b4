// Functions of one operand, dense float32 (Clamp: int8 too): memory in, one function, memory out.
#include "platforms/simd/int8.h"
#include "runtime/core/float_formats.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/unary.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/math-inl.h"

#ifndef SINTER_SIMD_UNARY_ONCE
#define SINTER_SIMD_UNARY_ONCE
namespace sinter::simd {

enum class Unary {
  kAbs,
  kNeg,
  kRoundEven,
  kFloor,
  kCeil,
  kSqrt,
  kRsqrt,
  kExp,
  kLog,
  kErf,
  kClamp,
  kSigmoid,
  kTanh,
  kHardSigmoid,
  kHardSwish,
  kGelu,
  kGeluTanh,
  kSilu,
  kElu,
  kLeakyRelu,
  kSoftplus
};

struct UnarySettings {
  Unary fn;
  float a = 0, b = 0, c = 0;
};

}  // namespace sinter::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

template <class Fn>
HWY_INLINE void map(const float* x, float* y, size_t n, Fn fn) {
  const F d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
#if HWY_ARCH_ARM_A64
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const V a = fn(hn::LoadU(d, x + i)), b = fn(hn::LoadU(d, x + i + lanes)),
            c = fn(hn::LoadU(d, x + i + 2 * lanes)), e = fn(hn::LoadU(d, x + i + 3 * lanes));
    hn::StoreU(a, d, y + i), hn::StoreU(b, d, y + i + lanes);
    hn::StoreU(c, d, y + i + 2 * lanes), hn::StoreU(e, d, y + i + 3 * lanes);
  }
#endif
  for (; i + lanes <= n; i += lanes) hn::StoreU(fn(hn::LoadU(d, x + i)), d, y + i);
  if (i < n) hn::StoreN(fn(hn::LoadN(d, x + i, n - i)), d, y + i, n - i);
}

void run_unary(const UnarySettings& s, const float* x, float* y, size_t n) {
  const V a = set(s.a), b = set(s.b), c = set(s.c), zero = hn::Zero(F()), one = set(1.0f);
  switch (s.fn) {
    case Unary::kAbs:
      return map(x, y, n, [](V v) SINTER_SIMD_LAMBDA { return hn::Abs(v); });
    case Unary::kNeg:
      return map(x, y, n, [](V v) SINTER_SIMD_LAMBDA { return hn::Neg(v); });
    case Unary::kRoundEven:
      return map(x, y, n, [](V v) SINTER_SIMD_LAMBDA { return hn::Round(v); });
    case Unary::kFloor:
      return map(x, y, n, [](V v) SINTER_SIMD_LAMBDA { return hn::Floor(v); });
    case Unary::kCeil:
      return map(x, y, n, [](V v) SINTER_SIMD_LAMBDA { return hn::Ceil(v); });
    case Unary::kSqrt:
      return map(x, y, n, [](V v) SINTER_SIMD_LAMBDA { return hn::Sqrt(v); });
    case Unary::kRsqrt:
      return map(x, y, n, [=](V v) SINTER_SIMD_LAMBDA { return hn::Div(one, hn::Sqrt(v)); });
    case Unary::kExp:
      return map(x, y, n, [](V v) SINTER_SIMD_LAMBDA { return exp(v); });
    case Unary::kLog:
      return map(x, y, n, [](V v) SINTER_SIMD_LAMBDA { return log(v); });
    case Unary::kErf:
      return map(x, y, n, [](V v) SINTER_SIMD_LAMBDA { return erf(v); });
    case Unary::kClamp:
      return map(x, y, n, [=](V v) SINTER_SIMD_LAMBDA { return clamp(v, a, b); });
    case Unary::kSigmoid:
      return map(x, y, n, [](V v) SINTER_SIMD_LAMBDA { return sigmoid(v); });
    case Unary::kTanh:
      return map(x, y, n, [](V v) SINTER_SIMD_LAMBDA { return tanh(v); });
    case Unary::kHardSigmoid:
      return map(x, y, n,
                 [=](V v) SINTER_SIMD_LAMBDA { return clamp(hn::Add(hn::Mul(v, a), b), zero, one); });
    case Unary::kHardSwish:
      return map(x, y, n, [=](V v) SINTER_SIMD_LAMBDA {
        return hn::Mul(v, clamp(hn::MulAdd(v, set(1.0f / 6), set(0.5f)), zero, one));
      });
    case Unary::kGelu:
      return map(x, y, n, [](V v) SINTER_SIMD_LAMBDA { return gelu(v); });
    case Unary::kGeluTanh:
      return map(x, y, n, [](V v) SINTER_SIMD_LAMBDA { return gelu_tanh(v); });
    case Unary::kSilu:
      if (s.a == 1.0f) return map(x, y, n, [](V v) SINTER_SIMD_LAMBDA { return silu(v); });
      return map(x, y, n, [=](V v) SINTER_SIMD_LAMBDA { return hn::Mul(v, sigmoid(hn::Mul(v, a))); });
    case Unary::kElu:  // c * v above 0, a * (exp(b v) - 1) below
      return map(x, y, n, [=](V v) SINTER_SIMD_LAMBDA {
        return hn::IfThenElse(hn::Gt(v, zero), hn::Mul(v, c), hn::Mul(a, expm1_negative(hn::Mul(v, b))));
      });
    case Unary::kLeakyRelu:
      return map(x, y, n,
                 [=](V v) SINTER_SIMD_LAMBDA { return hn::IfThenElse(hn::Lt(v, zero), hn::Mul(v, a), v); });
    case Unary::kSoftplus:
      return map(x, y, n, [](V v) SINTER_SIMD_LAMBDA { return softplus(v); });
  }
}

void clamp_int8(const int8_t* x, int8_t* y, size_t n, int8_t min, int8_t max) {
  const hn::ScalableTag<int8_t> d;
  const size_t lanes = hn::Lanes(d);
  const auto low = hn::Set(d, min), high = hn::Set(d, max);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::Min(hn::Max(hn::LoadU(d, x + i), low), high), d, y + i);
  if (i < n) hn::StoreN(hn::Min(hn::Max(hn::LoadN(d, x + i, n - i), low), high), d, y + i, n - i);
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {
namespace {

HWY_EXPORT(run_unary);
HWY_EXPORT(clamp_int8);

Status accept_unary(const OpCall& call) {
  SINTER_RETURN_IF_ERROR(accept_float_pixels(call));
  const TensorView& x = call.in(0);
  SINTER_RETURN_UNLESS(
      (x.dense() && call.out(0).dense()) || (x.rank > 0 && x.dims[x.rank - 1] >= kStridedRow),
      unsupported("the rows of strided operands are too short"));
  return ok_status();
}

// Enough elements to outweigh handing a piece to a thread.
constexpr int64_t kPiece = 8192;

Status run_settings(const OpCall& call, RunContext& context, const UnarySettings& s) {
  const auto* x = call.in(0).as<const float>();
  auto* y = call.out(0).as<float>();
  if (!call.in(0).dense() || !call.out(0).dense()) {
    const TensorView& out = call.out(0);
    const int64_t length = out.rank > 0 ? out.dims[out.rank - 1] : 1;
    int64_t x_step = 0, y_step = 0;
    if (out.size() == 0 || !call.in(0).evenly_spaced(&x_step) || !out.evenly_spaced(&y_step))
      return ok_status();
    const auto run = HWY_DYNAMIC_POINTER(run_unary);
    parallel_for(context.threads, out.size() / length, std::max<int64_t>(kPiece / length, 1),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t row = begin; row < end; ++row)
                     run(s, x + row * x_step, y + row * y_step, static_cast<size_t>(length));
                 });
    return ok_status();
  }
  parallel_for(context.threads, call.out(0).size(), kPiece, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(run_unary)(s, x + begin, y + begin, static_cast<size_t>(end - begin));
  });
  return ok_status();
}

template <Unary kFn>
Status run_plain(const OpCall& call, RunContext& context) {
  return run_settings(call, context, {kFn});
}

float narrow(double v) { return static_cast<float>(v); }

Status run_round(const OpCall& call, RunContext& context) {
  const auto fn = static_cast<RoundFn>(call.attrs<RoundAttrs>().fn);
  return run_settings(call, context,
                      {fn == RoundFn::kFloor  ? Unary::kFloor
                       : fn == RoundFn::kCeil ? Unary::kCeil
                                              : Unary::kRoundEven});
}
Status accept_clamp(const OpCall& call) {
  return call.in(0).dtype == DType::kInt8 ? accept_dense(call) : accept_unary(call);
}
Status run_clamp(const OpCall& call, RunContext& context) {
  const auto& a = call.attrs<ClampAttrs>();
  if (call.in(0).dtype == DType::kInt8) {
    const auto* x = call.in(0).as<const int8_t>();
    auto* y = call.out(0).as<int8_t>();
    const auto min = saturate_to<int8_t>(std::ceil(a.min)), max = saturate_to<int8_t>(std::floor(a.max));
    parallel_for(context.threads, call.out(0).size(), 4 * kPiece, [&](int64_t begin, int64_t end) {
      HWY_DYNAMIC_DISPATCH(clamp_int8)(x + begin, y + begin, static_cast<size_t>(end - begin), min, max);
    });
    return ok_status();
  }
  return run_settings(call, context, {Unary::kClamp, narrow(a.min), narrow(a.max)});
}
Status run_hard_sigmoid(const OpCall& call, RunContext& context) {
  const auto& a = call.attrs<HardSigmoidAttrs>();
  return run_settings(call, context, {Unary::kHardSigmoid, narrow(a.alpha), narrow(a.beta)});
}
Status run_gelu(const OpCall& call, RunContext& context) {
  return run_settings(call, context,
                      {call.attrs<GeluAttrs>().tanh_approximation != 0 ? Unary::kGeluTanh : Unary::kGelu});
}
Status run_silu(const OpCall& call, RunContext& context) {
  return run_settings(call, context, {Unary::kSilu, narrow(call.attrs<SiluAttrs>().alpha)});
}
// The negative branch is exact only where its exponent is negative too.
Status accept_elu(const OpCall& call) {
  SINTER_RETURN_UNLESS(call.attrs<EluAttrs>().beta >= 0, unsupported("Elu has a negative beta"));
  return accept_unary(call);
}
Status run_elu(const OpCall& call, RunContext& context) {
  const auto& a = call.attrs<EluAttrs>();
  return run_settings(call, context,
                      {Unary::kElu, narrow(a.gamma * a.alpha), narrow(a.beta), narrow(a.gamma)});
}
Status run_leaky_relu(const OpCall& call, RunContext& context) {
  return run_settings(call, context, {Unary::kLeakyRelu, narrow(call.attrs<LeakyReluAttrs>().alpha)});
}

}  // namespace

#define SINTER_UNARY(name, run) \
  const Kernel k##name##Kernel = {Op::k##name, nullptr, nullptr, run, accept_unary}
SINTER_UNARY(Abs, run_plain<Unary::kAbs>);
SINTER_UNARY(Neg, run_plain<Unary::kNeg>);
SINTER_UNARY(Round, run_round);
SINTER_UNARY(Sqrt, run_plain<Unary::kSqrt>);
SINTER_UNARY(Rsqrt, run_plain<Unary::kRsqrt>);
SINTER_UNARY(Exp, run_plain<Unary::kExp>);
SINTER_UNARY(Log, run_plain<Unary::kLog>);
SINTER_UNARY(Erf, run_plain<Unary::kErf>);
const Kernel kClampKernel = {Op::kClamp, nullptr, nullptr, run_clamp, accept_clamp};
SINTER_UNARY(Sigmoid, run_plain<Unary::kSigmoid>);
SINTER_UNARY(Tanh, run_plain<Unary::kTanh>);
SINTER_UNARY(HardSigmoid, run_hard_sigmoid);
SINTER_UNARY(HardSwish, run_plain<Unary::kHardSwish>);
SINTER_UNARY(Gelu, run_gelu);
SINTER_UNARY(Silu, run_silu);
const Kernel kEluKernel = {Op::kElu, nullptr, nullptr, run_elu, accept_elu};
SINTER_UNARY(LeakyRelu, run_leaky_relu);
SINTER_UNARY(Softplus, run_plain<Unary::kSoftplus>);
#undef SINTER_UNARY

}  // namespace sinter::simd
#endif  // HWY_ONCE
