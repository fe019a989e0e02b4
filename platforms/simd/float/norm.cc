// LayerNorm and RmsNorm: mean, then the mean of squared distances from it, then the result.
//
// Sums run in float32 over short pieces; the pieces are added in double, in a fixed order.
#include "platforms/simd/table.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/float/norm.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/isa/math-inl.h"

#ifndef SINTER_SIMD_NORM_ONCE
#define SINTER_SIMD_NORM_ONCE
namespace sinter::simd {

// The rows of n numbers. mean and inverse (1 / deviation) are per row and may be null; bias too.
struct NormRows {
  const float *x, *scale, *bias;
  float *y, *mean, *inverse;
  size_t rows, n;
  double epsilon;
  bool centered;
};

}  // namespace sinter::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

constexpr size_t kPieceLength = 1024;

// Sums (x - center)^2, or x if `squares` is false.
template <bool kSquares>
HWY_INLINE double sum_of(const float* x, size_t n, float center) {
  const F d;
  const size_t lanes = hn::Lanes(d);
  const V c = set(center);
  const auto term = [&](V v) SINTER_SIMD_LAMBDA {
    if constexpr (!kSquares) return v;
    v = hn::Sub(v, c);
    return hn::Mul(v, v);
  };
  double total = 0;
  for (size_t first = 0; first < n; first += kPieceLength) {
    const size_t end = first + kPieceLength < n ? first + kPieceLength : n;
    V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    size_t i = first;
    for (; i + 4 * lanes <= end; i += 4 * lanes) {
      s0 = hn::Add(s0, term(hn::LoadU(d, x + i)));
      s1 = hn::Add(s1, term(hn::LoadU(d, x + i + lanes)));
      s2 = hn::Add(s2, term(hn::LoadU(d, x + i + 2 * lanes)));
      s3 = hn::Add(s3, term(hn::LoadU(d, x + i + 3 * lanes)));
    }
    for (; i < end; i += lanes) {
      const size_t count = end - i < lanes ? end - i : lanes;
      s0 = hn::Add(s0, hn::IfThenElseZero(hn::FirstN(d, count), term(hn::LoadN(d, x + i, count))));
    }
    total += static_cast<double>(sum4(s0, s1, s2, s3));
  }
  return total;
}

void norm_rows(const NormRows& p) {
  const F d;
  const size_t lanes = hn::Lanes(d);
  for (size_t r = 0; r < p.rows; ++r) {
    const float* x = p.x + r * p.n;
    float* y = p.y + r * p.n;
    const double n = static_cast<double>(p.n);
    const float mean = p.centered ? static_cast<float>(sum_of<false>(x, p.n, 0) / n) : 0.0f;
    const float inverse = static_cast<float>(1 / std::sqrt(sum_of<true>(x, p.n, mean) / n + p.epsilon));
    if (p.mean != nullptr) p.mean[r] = mean;
    if (p.inverse != nullptr) p.inverse[r] = inverse;
    const V m = set(mean), k = set(inverse);
    for (size_t i = 0; i < p.n; i += lanes) {
      const size_t count = p.n - i < lanes ? p.n - i : lanes;
      const V v = hn::Mul(hn::Sub(hn::LoadN(d, x + i, count), m), k);
      const V scale = hn::LoadN(d, p.scale + i, count);
      const V result =
          p.bias != nullptr ? hn::MulAdd(v, scale, hn::LoadN(d, p.bias + i, count)) : hn::Mul(v, scale);
      hn::StoreN(result, d, y + i, count);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {
namespace {

HWY_EXPORT(norm_rows);

// Checks that `v` has exactly one value for each element of x's dims axis .. rank - 1.
Status check_covers(const TensorView& v, const TensorView& x, int64_t axis) {
  for (int i = 0; i < std::max(x.rank, v.rank); ++i) {
    const int64_t own = i < v.rank ? v.dims[v.rank - 1 - i] : 1;
    const int64_t needed = i < x.rank - axis ? x.dims[x.rank - 1 - i] : 1;
    SINTER_RETURN_UNLESS(own == needed, unsupported("scale or bias is broadcast"));
  }
  return ok_status();
}

Status accept_rows(const OpCall& call, int64_t axis) {
  SINTER_RETURN_IF_ERROR(accept_float_dense(call));
  for (int64_t i = axis; i < call.in(0).rank; ++i)
    SINTER_RETURN_UNLESS(call.in(0).dims[i] > 0, unsupported("the rows have no elements"));
  for (size_t i = 1; i < 3; ++i)
    if (call.has_input(i)) SINTER_RETURN_IF_ERROR(check_covers(call.in(i), call.in(0), axis));
  return ok_status();
}

Status run_rows(const OpCall& call, RunContext& context, int64_t axis, double epsilon, bool centered) {
  const TensorView& x = call.in(0);
  int64_t n = 1;
  for (int64_t i = axis; i < x.rank; ++i) n *= x.dims[i];
  if (x.size() == 0) return ok_status();
  const auto at = [&](size_t i) { return call.has_output(i) ? call.out(i).as<float>() : nullptr; };
  parallel_for(
      context.threads, x.size() / n, std::max<int64_t>(8192 / n, 1), [&](int64_t begin, int64_t end) {
        HWY_DYNAMIC_DISPATCH(norm_rows)
        ({x.as<const float>() + begin * n, call.in(1).as<const float>(),
          call.has_input(2) ? call.in(2).as<const float>() : nullptr, call.out(0).as<float>() + begin * n,
          at(1) != nullptr ? at(1) + begin : nullptr, at(2) != nullptr ? at(2) + begin : nullptr,
          static_cast<size_t>(end - begin), static_cast<size_t>(n), epsilon, centered});
      });
  return ok_status();
}

Status accept_layer(const OpCall& call) {
  SINTER_RETURN_UNLESS(call.has_output(0), unsupported("the simd kernel does not compute statistics alone"));
  return accept_rows(call, call.attrs<LayerNormAttrs>().axis);
}
Status run_layer(const OpCall& call, RunContext& context) {
  const auto& a = call.attrs<LayerNormAttrs>();
  return run_rows(call, context, a.axis, a.epsilon, true);
}
Status accept_rms(const OpCall& call) { return accept_rows(call, call.attrs<RmsNormAttrs>().axis); }
Status run_rms(const OpCall& call, RunContext& context) {
  const auto& a = call.attrs<RmsNormAttrs>();
  return run_rows(call, context, a.axis, a.epsilon, false);
}

}  // namespace

const Kernel kLayerNormKernel = {Op::kLayerNorm, nullptr, nullptr, run_layer, accept_layer};
const Kernel kRmsNormKernel = {Op::kRmsNorm, nullptr, nullptr, run_rms, accept_rms};

}  // namespace sinter::simd
#endif  // HWY_ONCE
