// Functions of two operands, float32, broadcasting.
#include "platforms/simd/broadcast.h"
#include "platforms/simd/float/fused.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/float/binary.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/isa/math-inl.h"

#ifndef SINTER_SIMD_BINARY_ONCE
#define SINTER_SIMD_BINARY_ONCE
namespace sinter::simd {

enum class Binary { kNone, kAdd, kSub, kMul, kDiv, kMin, kMax, kPRelu, kSquare, kCube };

// The operands of a row. Steps are 1, or 0 for an operand that is one number.
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
#if HWY_ARCH_ARM_A64  // loads and stores pairs of vectors
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

// Rows of a few vectors are computed vector by vector, so that b's is read once.
constexpr size_t kLongestRow = 512;
template <class Fn>
HWY_INLINE void zip_columns(const float* a, const float* b, float* y, size_t rows, size_t length, Fn fn) {
  const F d;
  const size_t lanes = hn::Lanes(d);
  size_t c = 0;
  for (; c + lanes <= length; c += lanes) {
    const V v = hn::LoadU(d, b + c);
    for (size_t at = c, r = 0; r < rows; ++r, at += length)
      hn::StoreU(fn(hn::LoadU(d, a + at), v), d, y + at);
  }
  if (c == length) return;
  const size_t rest = length - c;
  const V v = hn::LoadN(d, b + c, rest);
  for (size_t at = c, r = 0; r < rows; ++r, at += length)
    hn::StoreN(fn(hn::LoadN(d, a + at, rest), v), d, y + at, rest);
}

// Calls apply(f) with the function and its clamp.
template <class Apply>
HWY_INLINE void with_function(Binary fn, float min, float max, Apply apply) {
  const V low = set(min), high = set(max);
  const bool bounded = min != -HUGE_VALF || max != HUGE_VALF;
#define SINTER_CLAMPED(op)                                                                            \
  return bounded ? apply([=](V a, V b) SINTER_SIMD_LAMBDA { return clamp(hn::op(a, b), low, high); }) \
                 : apply([](V a, V b) SINTER_SIMD_LAMBDA { return hn::op(a, b); })
  switch (fn) {
    case Binary::kNone:
      return;
    case Binary::kAdd:
      SINTER_CLAMPED(Add);
    case Binary::kSub:
      SINTER_CLAMPED(Sub);
    case Binary::kMul:
      SINTER_CLAMPED(Mul);
    case Binary::kDiv:
      SINTER_CLAMPED(Div);
    case Binary::kMin:
      return apply([](V a, V b) SINTER_SIMD_LAMBDA { return keep_nan(a, keep_nan(b, hn::Min(a, b))); });
    case Binary::kMax:
      return apply([](V a, V b) SINTER_SIMD_LAMBDA { return keep_nan(a, keep_nan(b, hn::Max(a, b))); });
    case Binary::kPRelu:
      return apply([](V a, V b) SINTER_SIMD_LAMBDA {
        return hn::IfThenElse(hn::Lt(a, hn::Zero(F())), hn::Mul(a, b), a);
      });
    case Binary::kSquare:
      return apply([](V a, V) SINTER_SIMD_LAMBDA { return hn::Mul(a, a); });
    case Binary::kCube:
      return apply([](V a, V) SINTER_SIMD_LAMBDA { return hn::Mul(hn::Mul(a, a), a); });
  }
#undef SINTER_CLAMPED
}

void run_row(Binary fn, const BinaryRow& row, size_t n, float min, float max) {
  with_function(fn, min, max, [&](auto f) SINTER_SIMD_LAMBDA { zip(row, n, f); });
}

// Computes `n` elements, the first of them at `column` of a row of `length`: every row has the same b.
void run_rows(Binary fn, const BinaryRow& row, size_t column, size_t length, size_t n, float min, float max) {
  with_function(fn, min, max, [&](auto f) SINTER_SIMD_LAMBDA {
    size_t i = 0;
    const auto part = [&](size_t end) SINTER_SIMD_LAMBDA {
      zip({row.a + i, row.b + column, row.y + i, 1, 1}, end - i, f);
      i = end;
    };
    if (column > 0) part(std::min(n, length - column)), column = 0;
    const size_t rows = (n - i) / length;
    if (rows > 1 && length <= kLongestRow) {
      zip_columns(row.a + i, row.b, row.y + i, rows, length, f);
      i += rows * length;
    }
    while (i < n) part(std::min(n, i + length));
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {
namespace {

HWY_EXPORT(run_row);
HWY_EXPORT(run_rows);

struct BinarySettings {
  Binary fn = Binary::kNone;
  float low = -HUGE_VALF, high = HUGE_VALF;
};

template <class Attrs>
BinarySettings clamped(const OpCall& call, Binary fn) {
  const auto& a = call.attrs<Attrs>();
  return {fn, static_cast<float>(a.act_min), static_cast<float>(a.act_max)};
}

// Returns the function for a Pow with a constant exponent: a product.
Binary power(const OpCall& call) {
  return call.in(1).as<const float>()[0] == 2.0f ? Binary::kSquare : Binary::kCube;
}

BinarySettings settings_of(const OpCall& call) {
  switch (call.op) {
    case Op::kAdd:
      return clamped<AddAttrs>(call, Binary::kAdd);
    case Op::kSub:
      return clamped<SubAttrs>(call, Binary::kSub);
    case Op::kMul:
      return clamped<MulAttrs>(call, Binary::kMul);
    case Op::kDiv:
      return clamped<DivAttrs>(call, Binary::kDiv);
    case Op::kMin:
      return {Binary::kMin};
    case Op::kMax:
      return {Binary::kMax};
    case Op::kPRelu:
      return {Binary::kPRelu};
    case Op::kPow:
      return {power(call)};
    default:
      return {};
  }
}

Status run_binary(const OpCall& call, RunContext& context) {
  const auto run = HWY_DYNAMIC_POINTER(run_row);
  const BinarySettings s = settings_of(call);
  for_each_pair_row<float, float, float>(
      call, context.threads,
      [=](const float* a, const float* b, float* y, int64_t a_step, int64_t b_step, size_t n) {
        run(s.fn, {a, b, y, a_step, b_step}, n, s.low, s.high);
      });
  return ok_status();
}

Status accept_pair(const OpCall& call) {
  for (const TensorView* t : {&call.in(0), &call.in(1), &call.out(0)})
    SINTER_RETURN_UNLESS(t->dtype == DType::kFloat32, unsupported("the simd kernels compute in float32"));
  return accept_pair_rows(call);
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
void compute_piece(const Piece& p, int64_t first, int64_t count) {
  const auto fn = static_cast<Binary>(p.function);
  const float low = p.settings[0], high = p.settings[1];
  const int64_t a_step = p.a_size == p.size ? 1 : 0, b_step = p.b_size == p.size ? 1 : 0;
  const float* a = p.a + first * a_step;
  float* y = p.y + first;
  if (p.b_size == p.size || p.b_size == 1) {
    HWY_DYNAMIC_DISPATCH(run_row)
    (fn, {a, p.b + first * b_step, y, a_step, b_step}, static_cast<size_t>(count), low, high);
    return;
  }
  HWY_DYNAMIC_DISPATCH(run_rows)
  (fn, {a, p.b, y, 1, 1}, first % p.row, static_cast<size_t>(p.row), static_cast<size_t>(count), low, high);
}

}  // namespace

bool binary_piece(const OpCall& call, Piece* piece) {
  if (call.inputs.size() != 2 || !accept_float_dense(call).ok()) return false;
  const TensorView &a = call.in(0), &b = call.in(1), &y = call.out(0);
  if (y.size() == 0 || (call.op == Op::kPow && b.data == nullptr)) return false;
  const BinarySettings s = settings_of(call);
  const int64_t a_size = repeated_elements(a, y), b_size = repeated_elements(b, y);
  if (s.fn == Binary::kNone || b_size == 0 || (a_size != y.size() && (a_size != 1 || b_size != y.size())))
    return false;
  *piece = {.compute = compute_piece,
            .a = a.as<const float>(),
            .b = b.as<const float>(),
            .y = y.as<float>(),
            .size = y.size(),
            .row = y.rank > 0 ? y.dims[y.rank - 1] : 1,
            .a_size = a_size,
            .b_size = b_size,
            .function = static_cast<int>(s.fn),
            .settings = {s.low, s.high}};
  return true;
}

#define SINTER_BINARY(name) \
  const Kernel k##name##Kernel = {Op::k##name, nullptr, nullptr, run_binary, accept_pair}
SINTER_BINARY(Add);
SINTER_BINARY(Sub);
SINTER_BINARY(Mul);
SINTER_BINARY(Div);
SINTER_BINARY(Min);
SINTER_BINARY(Max);
SINTER_BINARY(PRelu);
#undef SINTER_BINARY
const Kernel kPowKernel = {Op::kPow, nullptr, nullptr, run_binary, accept_pow};

}  // namespace sinter::simd
#endif  // HWY_ONCE
