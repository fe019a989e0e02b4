// Functions of two operands, float32, broadcasting: axes are merged, then every row has an operand that is
// contiguous or one number.
#include "platforms/simd/table.h"

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
#define SINTER_CLAMPED(op)                                                                        \
  return bounded ? zip(row, n, [=](V a, V b) HWY_ATTR { return clamp(hn::op(a, b), low, high); }) \
                 : zip(row, n, [](V a, V b) HWY_ATTR { return hn::op(a, b); })
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
      return zip(row, n, [](V a, V b) HWY_ATTR { return keep_nan(a, keep_nan(b, hn::Min(a, b))); });
    case Binary::kMax:
      return zip(row, n, [](V a, V b) HWY_ATTR { return keep_nan(a, keep_nan(b, hn::Max(a, b))); });
    case Binary::kPRelu:
      return zip(row, n, [](V a, V b) HWY_ATTR {
        return hn::IfThenElse(hn::Lt(a, hn::Zero(F())), hn::Mul(a, b), a);
      });
    case Binary::kSquare:
      return zip(row, n, [](V a, V) HWY_ATTR { return hn::Mul(a, a); });
    case Binary::kCube:
      return zip(row, n, [](V a, V) HWY_ATTR { return hn::Mul(hn::Mul(a, a), a); });
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

// Merged axes, outermost first; strides in elements.
struct Axes {
  int rank = 0;
  int64_t dims[kMaxRank] = {}, a[kMaxRank] = {}, b[kMaxRank] = {};

  void push(int64_t dim, int64_t a_stride, int64_t b_stride) {
    if (dim == 1) return;
    if (rank > 0 && a[rank - 1] == a_stride * dim && b[rank - 1] == b_stride * dim) {
      dims[rank - 1] *= dim, a[rank - 1] = a_stride, b[rank - 1] = b_stride;
      return;
    }
    dims[rank] = dim, a[rank] = a_stride, b[rank] = b_stride;
    ++rank;
  }
};

int64_t stride_of(const TensorView& v, int rank, int axis) {
  const int own = axis - (rank - v.rank);
  return own < 0 || v.dims[own] == 1 ? 0 : v.strides[own] / static_cast<int64_t>(sizeof(float));
}

constexpr int64_t kPiece = 16384;
constexpr int64_t kRepeated = 1024;

// One operand (a or b) is a row of `length` numbers, the other has as many rows as the result.
Status run_repeated(const OpCall& call, RunContext& context, Binary fn, bool repeats_a, int64_t length,
                    float min, float max) {
  const auto *a = call.in(0).as<const float>(), *b = call.in(1).as<const float>();
  auto* y = call.out(0).as<float>();
  const int64_t copies = kRepeated / length, size = call.out(0).size(), step = copies * length;
  parallel_for(context.threads, divide_up(size, step), kPiece / kRepeated, [&](int64_t begin, int64_t end) {
    const auto run = HWY_DYNAMIC_POINTER(run_row);
    const float* row = repeats_a ? a : b;  // apart: g++ 12 with -fsanitize=undefined loses i in a merged form
    float rows[kRepeated];
    for (int64_t i = 0; i < step; ++i) rows[i] = row[i % length];
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t at = piece * step;
      run(fn, {repeats_a ? rows : a + at, repeats_a ? b + at : rows, y + at, 1, 1},
          static_cast<size_t>(std::min(step, size - at)), min, max);
    }
  });
  return ok_status();
}

Status run_binary(const OpCall& call, RunContext& context, Binary fn, double min = -kInfinity,
                  double max = kInfinity) {
  const TensorView& out = call.out(0);
  if (out.size() == 0) return ok_status();
  Axes axes;
  for (int i = 0; i < out.rank; ++i)
    axes.push(out.dims[i], stride_of(call.in(0), out.rank, i), stride_of(call.in(1), out.rank, i));
  const int inner = std::max(axes.rank - 1, 0);
  const int64_t length = axes.rank > 0 ? axes.dims[inner] : 1;
  const int64_t a_step = axes.a[inner], b_step = axes.b[inner];
  // A short row that meets every row (a bias per channel) is repeated until it is worth a call.
  const bool repeats_a =
      axes.rank == 2 && axes.a[0] == 0 && a_step == 1 && axes.b[0] == length && b_step == 1;
  const bool repeats_b =
      axes.rank == 2 && axes.b[0] == 0 && b_step == 1 && axes.a[0] == length && a_step == 1;
  if ((repeats_a || repeats_b) && length <= kRepeated / 4)
    return run_repeated(call, context, fn, repeats_a, length, static_cast<float>(min),
                        static_cast<float>(max));
  // Long rows are cut into pieces, short ones gathered.
  const int64_t piece = std::min(length, kPiece), pieces = divide_up(length, piece);
  const int64_t rows = out.size() / length;
  const auto *a = call.in(0).as<const float>(), *b = call.in(1).as<const float>();
  auto* y = out.as<float>();
  parallel_for(context.threads, rows * pieces, std::max<int64_t>(kPiece / piece, 1),
               [&](int64_t begin, int64_t end) {
                 const auto run = HWY_DYNAMIC_POINTER(run_row);
                 for (int64_t unit = begin; unit < end; ++unit) {
                   const int64_t row = unit / pieces, first = unit % pieces * piece;
                   int64_t a_at = first * a_step, b_at = first * b_step, rest = row;
                   for (int i = inner - 1; i >= 0; --i) {
                     const int64_t at = rest % axes.dims[i];
                     rest /= axes.dims[i];
                     a_at += at * axes.a[i], b_at += at * axes.b[i];
                   }
                   run(fn, {a + a_at, b + b_at, y + row * length + first, a_step, b_step},
                       static_cast<size_t>(std::min(piece, length - first)), static_cast<float>(min),
                       static_cast<float>(max));
                 }
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

// Powers that are products.
Binary power(const OpCall& call) {
  return call.in(1).as<const float>()[0] == 2.0f ? Binary::kSquare : Binary::kCube;
}
Status accept_pow(const OpCall& call) {
  SINTER_RETURN_IF_ERROR(accept_float_dense(call));
  const TensorView& e = call.in(1);
  SINTER_CHECK(e.constant && e.data != nullptr && e.size() == 1,
               unsupported("only powers with one constant exponent are products"));
  const float exponent = e.as<const float>()[0];
  SINTER_CHECK(exponent == 2.0f || exponent == 3.0f, unsupported("the exponent is neither 2 nor 3"));
  return ok_status();
}
Status run_pow(const OpCall& call, RunContext& context) { return run_binary(call, context, power(call)); }

}  // namespace

#define SINTER_BINARY(name, run) \
  const Kernel k##name##Kernel = {Op::k##name, nullptr, nullptr, run, accept_float_dense}
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
