// Functions of one operand, dense float32 (Clamp: int8 too): memory in, one function, memory out.
#include <cmath>

#include "platforms/simd/float/fused.h"
#include "platforms/simd/int8/int8.h"
#include "runtime/core/float_formats.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/float/unary.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/isa/math-inl.h"

#ifndef SINTER_SIMD_UNARY_ONCE
#define SINTER_SIMD_UNARY_ONCE
namespace sinter::simd {

enum class Unary {
  kNone,
  kAbs,
  kNeg,
  kRoundEven,
  kFloor,
  kCeil,
  kSqrt,
  kRsqrt,
  kExp,
  kLog,
  kSin,
  kCos,
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
  Unary fn = Unary::kNone;
  float a = 0, b = 0, c = 0;
};

}  // namespace sinter::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// Angles further than this from 0, and NaN, are left to the library; the other lanes are y.
constexpr float kFarAngle = 8192.0f;
HWY_NOINLINE V with_far_sines(V x, V y, bool cosine) {
  HWY_ALIGN float angles[hn::MaxLanes(F())], results[hn::MaxLanes(F())];
  hn::Store(x, F(), angles), hn::Store(y, F(), results);
  for (size_t i = 0; i < hn::Lanes(F()); ++i)
    if (!(std::abs(angles[i]) <= kFarAngle)) results[i] = cosine ? std::cos(angles[i]) : std::sin(angles[i]);
  return hn::Load(F(), results);
}

// Returns the sine of x, or its cosine. Absolute error 1.2e-7. x = k pi / 2 + r, with pi / 2 in three parts:
// products of k with the first two are exact.
template <bool kCosine>
HWY_INLINE V sine(V x) {
  const V magic = set(12582912.0f), sum = hn::MulAdd(x, set(0.636619772f), magic), k = hn::Sub(sum, magic);
  V r = hn::NegMulAdd(k, set(1.5703125f), x);
  r = hn::NegMulAdd(k, set(0.000483512878f), r);
  r = hn::NegMulAdd(k, set(3.1391647e-07f), r);
  const V u = hn::Mul(r, r);
  V s = hn::MulAdd(u, set(-0.00019514949f), set(0.008332158f));
  s = hn::MulAdd(hn::Mul(u, r), hn::MulAdd(s, u, set(-0.16666655f)), r);
  V c = hn::MulAdd(u, set(2.4432778e-05f), set(-0.0013887313f));
  c = hn::MulAdd(c, u, set(0.041666646f));
  c = hn::MulAdd(hn::Mul(u, u), c, hn::NegMulAdd(u, set(0.5f), set(1.0f)));
  // The quarters of a turn: every other one takes the cosine of r, and those of the lower half are negative.
  VI quarter = hn::Sub(hn::BitCast(I(), sum), hn::BitCast(I(), magic));
  if constexpr (kCosine) quarter = hn::Add(quarter, hn::Set(I(), 1));
  const auto odd = hn::Eq(hn::And(quarter, hn::Set(I(), 1)), hn::Set(I(), 1));
  const V y = hn::IfThenElse(hn::RebindMask(F(), odd), c, s);
  const VI sign = hn::ShiftLeft<30>(hn::And(quarter, hn::Set(I(), 2)));
  const V signed_y = hn::BitCast(F(), hn::Xor(hn::BitCast(I(), y), sign));
  const bool near = hn::AllTrue(F(), hn::Le(hn::Abs(x), set(kFarAngle)));
  return HWY_LIKELY(near) ? signed_y : with_far_sines(x, signed_y, kCosine);
}

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
    case Unary::kNone:
      return;
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
    case Unary::kSin:
      return map(x, y, n, [](V v) SINTER_SIMD_LAMBDA { return sine<false>(v); });
    case Unary::kCos:
      return map(x, y, n, [](V v) SINTER_SIMD_LAMBDA { return sine<true>(v); });
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

// The elements that outweigh handing a piece to a thread.
constexpr int64_t kUnaryPiece = 8192;

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
    parallel_for(context.threads, out.size() / length, std::max<int64_t>(kUnaryPiece / length, 1),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t row = begin; row < end; ++row)
                     run(s, x + row * x_step, y + row * y_step, static_cast<size_t>(length));
                 });
    return ok_status();
  }
  parallel_for(context.threads, call.out(0).size(), kUnaryPiece, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(run_unary)(s, x + begin, y + begin, static_cast<size_t>(end - begin));
  });
  return ok_status();
}

float narrow(double v) { return static_cast<float>(v); }

UnarySettings settings_of(const OpCall& call) {
  switch (call.op) {
    case Op::kAbs:
      return {Unary::kAbs};
    case Op::kNeg:
      return {Unary::kNeg};
    case Op::kRound: {
      const auto fn = static_cast<RoundFn>(call.attrs<RoundAttrs>().fn);
      return {fn == RoundFn::kFloor  ? Unary::kFloor
              : fn == RoundFn::kCeil ? Unary::kCeil
                                     : Unary::kRoundEven};
    }
    case Op::kSqrt:
      return {Unary::kSqrt};
    case Op::kRsqrt:
      return {Unary::kRsqrt};
    case Op::kExp:
      return {Unary::kExp};
    case Op::kLog:
      return {Unary::kLog};
    case Op::kTrig: {
      const auto fn = static_cast<TrigFn>(call.attrs<TrigAttrs>().fn);
      return {fn == TrigFn::kSin ? Unary::kSin : fn == TrigFn::kCos ? Unary::kCos : Unary::kNone};
    }
    case Op::kErf:
      return {Unary::kErf};
    case Op::kClamp:
      return {Unary::kClamp, narrow(call.attrs<ClampAttrs>().min), narrow(call.attrs<ClampAttrs>().max)};
    case Op::kSigmoid:
      return {Unary::kSigmoid};
    case Op::kTanh:
      return {Unary::kTanh};
    case Op::kHardSigmoid: {
      const auto& a = call.attrs<HardSigmoidAttrs>();
      return {Unary::kHardSigmoid, narrow(a.alpha), narrow(a.beta)};
    }
    case Op::kHardSwish:
      return {Unary::kHardSwish};
    case Op::kGelu:
      return {call.attrs<GeluAttrs>().tanh_approximation != 0 ? Unary::kGeluTanh : Unary::kGelu};
    case Op::kSilu:
      return {Unary::kSilu, narrow(call.attrs<SiluAttrs>().alpha)};
    case Op::kElu: {
      const auto& a = call.attrs<EluAttrs>();
      return {Unary::kElu, narrow(a.gamma * a.alpha), narrow(a.beta), narrow(a.gamma)};
    }
    case Op::kLeakyRelu:
      return {Unary::kLeakyRelu, narrow(call.attrs<LeakyReluAttrs>().alpha)};
    case Op::kSoftplus:
      return {Unary::kSoftplus};
    default:
      return {Unary::kNone};
  }
}

Status run_function(const OpCall& call, RunContext& context) {
  return run_settings(call, context, settings_of(call));
}

Status accept_clamp(const OpCall& call) {
  return call.in(0).dtype == DType::kInt8 ? accept_dense(call) : accept_unary(call);
}
Status run_clamp(const OpCall& call, RunContext& context) {
  if (call.in(0).dtype != DType::kInt8) return run_function(call, context);
  const auto& a = call.attrs<ClampAttrs>();
  const auto* x = call.in(0).as<const int8_t>();
  auto* y = call.out(0).as<int8_t>();
  const auto min = saturate_to<int8_t>(std::ceil(a.min)), max = saturate_to<int8_t>(std::floor(a.max));
  parallel_for(context.threads, call.out(0).size(), 4 * kUnaryPiece, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(clamp_int8)(x + begin, y + begin, static_cast<size_t>(end - begin), min, max);
  });
  return ok_status();
}
Status accept_trig(const OpCall& call) {
  SINTER_RETURN_UNLESS(settings_of(call).fn != Unary::kNone, unsupported("it is not a sine or a cosine"));
  return accept_unary(call);
}
// The negative branch is exact only where its exponent is negative too.
Status accept_elu(const OpCall& call) {
  SINTER_RETURN_UNLESS(call.attrs<EluAttrs>().beta >= 0, unsupported("Elu has a negative beta"));
  return accept_unary(call);
}

void compute_piece(const Piece& p, int64_t first, int64_t count) {
  const UnarySettings s{static_cast<Unary>(p.function), p.settings[0], p.settings[1], p.settings[2]};
  HWY_DYNAMIC_DISPATCH(run_unary)(s, p.a + first, p.y + first, static_cast<size_t>(count));
}

}  // namespace

bool unary_piece(const OpCall& call, Piece* piece) {
  const UnarySettings s = settings_of(call);
  if (s.fn == Unary::kNone || !accept_float_dense(call).ok()) return false;
  const TensorView& y = call.out(0);
  *piece = {.compute = compute_piece,
            .a = call.in(0).as<const float>(),
            .y = y.as<float>(),
            .size = y.size(),
            .row = y.size(),
            .a_size = y.size(),
            .function = static_cast<int>(s.fn),
            .settings = {s.a, s.b, s.c}};
  return y.size() > 0;
}

#define SINTER_UNARY(name) \
  const Kernel k##name##Kernel = {Op::k##name, nullptr, nullptr, run_function, accept_unary}
SINTER_UNARY(Abs);
SINTER_UNARY(Neg);
SINTER_UNARY(Round);
SINTER_UNARY(Sqrt);
SINTER_UNARY(Rsqrt);
SINTER_UNARY(Exp);
SINTER_UNARY(Log);
SINTER_UNARY(Erf);
const Kernel kTrigKernel = {Op::kTrig, nullptr, nullptr, run_function, accept_trig};
const Kernel kClampKernel = {Op::kClamp, nullptr, nullptr, run_clamp, accept_clamp};
SINTER_UNARY(Sigmoid);
SINTER_UNARY(Tanh);
SINTER_UNARY(HardSigmoid);
SINTER_UNARY(HardSwish);
SINTER_UNARY(Gelu);
SINTER_UNARY(Silu);
const Kernel kEluKernel = {Op::kElu, nullptr, nullptr, run_function, accept_elu};
SINTER_UNARY(LeakyRelu);
SINTER_UNARY(Softplus);
#undef SINTER_UNARY

}  // namespace sinter::simd
#endif  // HWY_ONCE
