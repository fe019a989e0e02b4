// Functions of two operands, float32, broadcasting.
#include "platforms/simd/broadcast.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/binary.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/math-inl.h"

#ifndef SINTER_SIMD_BINARY_ONCE
#define SINTER_SIMD_BINARY_ONCE
namespace sinter::simd {

enum class Binary { kAdd, kSub, kMul, kDiv, kMin, kMax, kPRelu, kSquare, kCube };

// One row: steps are 1, or 0 for an operand that is one number.
struct BinaryRow {
  const float *a, *b;
  float* y;
  int64_t a_step, b_step;
};

}  // namespace sinter::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

template <class Fn>
HWY_INLINE void zip(const BinaryRow& row, size_t n, Fn fn) {
  const F d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  if (row.a_step != 0 && row.b_step != 0) {
#if HWY_ARCH_ARM_A64  // which loads and stores pairs of vectors
    const float *a = row.a, *b = row.b;
    float* y = row.y;
    for (; i + 4 * lanes <= n; i += 4 * lanes, a += 4 * lanes, b += 4 * lanes, y += 4 * lanes) {
      const V v0 = fn(hn::LoadU(d, a), hn::LoadU(d, b)),
              v1 = fn(hn::LoadU(d, a + lanes), hn::LoadU(d, b + lanes)),
              v2 = fn(hn::LoadU(d, a + 2 * lanes), hn::LoadU(d, b + 2 * lanes)),
              v3 = fn(hn::LoadU(d, a + 3 * lanes), hn::LoadU(d, b + 3 * lanes));
      hn::StoreU(v0, d, y), hn::StoreU(v1, d, y + lanes);
      hn::StoreU(v2, d, y + 2 * lanes), hn::StoreU(v3, d, y + 3 * lanes);
    }
#endif
    for (; i + lanes <= n; i += lanes)
      hn::StoreU(fn(hn::LoadU(d, row.a + i), hn::LoadU(d, row.b + i)), d, row.y + i);
    if (i < n)
      hn::StoreN(fn(hn::LoadN(d, row.a + i, n - i), hn::LoadN(d, row.b + i, n - i)), d, row.y + i, n - i);
  } else if (row.a_step != 0) {
    const V b = hn::Set(d, *row.b);
    for (; i + lanes <= n; i += lanes) hn::StoreU(fn(hn::LoadU(d, row.a + i), b), d, row.y + i);
    if (i < n) hn::StoreN(fn(hn::LoadN(d, row.a + i, n - i), b), d, row.y + i, n - i);
  } else {
    const V a = hn::Set(d, *row.a);
    if (row.b_step == 0) {
      const V y = fn(a, hn::Set(d, *row.b));
      for (; i + lanes <= n; i += lanes) hn::StoreU(y, d, row.y + i);
      if (i < n) hn::StoreN(y, d, row.y + i, n - i);
      return;
    }
    for (; i + lanes <= n; i += lanes) hn::StoreU(fn(a, hn::LoadU(d, row.b + i)), d, row.y + i);
    if (i < n) hn::StoreN(fn(a, hn::LoadN(d, row.b + i, n - i)), d, row.y + i, n - i);
  }
}

void run_row(Binary fn, const BinaryRow& row, size_t n, float min, float max) {
  const V low = set(min), high = set(max);
  const bool bounded = min != -HUGE_VALF || max != HUGE_VALF;
#define SINTER_CLAMPED(op)                                                                                  \
  return bounded ? zip(row, n, [=](V a, V b) SINTER_SIMD_LAMBDA { return clamp(hn::op(a, b), low, high); }) \
                 : zip(row, n, [](V a, V b) SINTER_SIMD_LAMBDA { return hn::op(a, b); })
  switch (fn) {
    case Binary::kAdd:
      SINTER_CLAMPED(Add);
    case Binary::kSub:
      SINTER_CLAMPED(Sub);
    case Binary::kMul:
      SINTER_CLAMPED(Mul);
    case Binary::kDiv:
      SINTER_CLAMPED(Div);
    case Binary::kMin:
      return zip(row, n, [](V a, V b) SINTER_SIMD_LAMBDA { return keep_nan(a, keep_nan(b, hn::Min(a, b))); });
    case Binary::kMax:
      return zip(row, n, [](V a, V b) SINTER_SIMD_LAMBDA { return keep_nan(a, keep_nan(b, hn::Max(a, b))); });
    case Binary::kPRelu:
      return zip(row, n, [](V a, V b) SINTER_SIMD_LAMBDA {
        return hn::IfThenElse(hn::Lt(a, hn::Zero(F())), hn::Mul(a, b), a);
      });
    case Binary::kSquare:
      return zip(row, n, [](V a, V) SINTER_SIMD_LAMBDA { return hn::Mul(a, a); });
    case Binary::kCube:
      return zip(row, n, [](V a, V) SINTER_SIMD_LAMBDA { return hn::Mul(hn::Mul(a, a), a); });
  }
#undef SINTER_CLAMPED
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {
namespace {

HWY_EXPORT(run_row);

Status run_binary(const OpCall& call, RunContext& context, Binary fn, double min = -kInfinity,
                  double max = kInfinity) {
  const auto run = HWY_DYNAMIC_POINTER(run_row);
  const auto low = static_cast<float>(min), high = static_cast<float>(max);
  for_each_pair_row<float, float, float>(
      call, context.threads,
      [=](const float* a, const float* b, float* y, int64_t a_step, int64_t b_step, size_t n) {
        run(fn, {a, b, y, a_step, b_step}, n, low, high);
      });
  return ok_status();
}

template <class Attrs, Binary kFn>
Status run_clamped(const OpCall& call, RunContext& context) {
  const auto& a = call.attrs<Attrs>();
  return run_binary(call, context, kFn, a.act_min, a.act_max);
}
template <Binary kFn>
Status run_plain(const OpCall& call, RunContext& context) {
  return run_binary(call, context, kFn);
}

Status accept_pair(const OpCall& call) {
  for (const TensorView* t : {&call.in(0), &call.in(1), &call.out(0)})
    SINTER_RETURN_UNLESS(t->dtype == DType::kFloat32, unsupported("the simd kernels compute in float32"));
  return accept_pair_rows(call);
}

// Powers that are products.
Binary power(const OpCall& call) {
  return call.in(1).as<const float>()[0] == 2.0f ? Binary::kSquare : Binary::kCube;
}
Status accept_pow(const OpCall& call) {
  SINTER_RETURN_IF_ERROR(accept_float_dense(call));
  const TensorView& e = call.in(1);
  SINTER_RETURN_UNLESS(e.constant && e.data != nullptr && e.size() == 1,
                       unsupported("only powers with one constant exponent are products"));
  const float exponent = e.as<const float>()[0];
  SINTER_RETURN_UNLESS(exponent == 2.0f || exponent == 3.0f, unsupported("the exponent is neither 2 nor 3"));
  return ok_status();
}
Status run_pow(const OpCall& call, RunContext& context) { return run_binary(call, context, power(call)); }

}  // namespace

#define SINTER_BINARY(name, run) \
  const Kernel k##name##Kernel = {Op::k##name, nullptr, nullptr, run, accept_pair}
SINTER_BINARY(Add, (run_clamped<AddAttrs, Binary::kAdd>));
SINTER_BINARY(Sub, (run_clamped<SubAttrs, Binary::kSub>));
SINTER_BINARY(Mul, (run_clamped<MulAttrs, Binary::kMul>));
SINTER_BINARY(Div, (run_clamped<DivAttrs, Binary::kDiv>));
SINTER_BINARY(Min, run_plain<Binary::kMin>);
SINTER_BINARY(Max, run_plain<Binary::kMax>);
SINTER_BINARY(PRelu, run_plain<Binary::kPRelu>);
#undef SINTER_BINARY
const Kernel kPowKernel = {Op::kPow, nullptr, nullptr, run_pow, accept_pow};

}  // namespace sinter::simd
#endif  // HWY_ONCE
