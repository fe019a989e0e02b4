// Softmax and its logarithm over the last axis: the largest value, the exponentials and their sum, the
// quotient.
#include "platforms/simd/table.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/float/softmax.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/isa/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// Computes rows of up to half a vector, a row in each lane.
void softmax_short_rows(const float* x, float* y, size_t rows, size_t n, bool logarithm) {
  const F d;
  const size_t lanes = hn::Lanes(d);
  const VI starts = hn::Mul(hn::Iota(I(), 0), hn::Set(I(), static_cast<int32_t>(n)));
  for (size_t r = 0; r < rows; r += lanes, x += lanes * n, y += lanes * n) {
    const size_t count = rows - r < lanes ? rows - r : lanes;
    V top = set(-HUGE_VALF), sum = hn::Zero(d);
    for (size_t j = 0; j < n; ++j) top = hn::Max(hn::GatherIndexN(d, x + j, starts, count), top);
    for (size_t j = 0; j < n; ++j) {
      const V e = exp(hn::Sub(hn::GatherIndexN(d, x + j, starts, count), top));
      if (!logarithm) hn::ScatterIndexN(e, d, y + j, starts, count);
      sum = hn::Add(sum, e);
    }
    const V factor = hn::Div(set(1.0f), sum), offset = logarithm ? log(sum) : sum;
    for (size_t j = 0; j < n; ++j) {
      const V v = logarithm ? hn::Sub(hn::Sub(hn::GatherIndexN(d, x + j, starts, count), top), offset)
                            : hn::Mul(hn::GatherIndexN(d, y + j, starts, count), factor);
      hn::ScatterIndexN(v, d, y + j, starts, count);
    }
  }
}

void softmax_rows(const float* x, float* y, size_t rows, size_t n, bool logarithm) {
  const F d;
  const size_t lanes = hn::Lanes(d);
  if (2 * n <= lanes) return softmax_short_rows(x, y, rows, n, logarithm);
  for (size_t r = 0; r < rows; ++r, x += n, y += n) {
    // A NaN may be missed here, but it comes back through the exponentials.
    V most = set(-HUGE_VALF);
    size_t i = 0;
    for (; i + lanes <= n; i += lanes) most = hn::Max(hn::LoadU(d, x + i), most);
    float top = hn::ReduceMax(d, most);
    for (; i < n; ++i) top = x[i] > top ? x[i] : top;
    const V shift = set(top);
    V sum0 = hn::Zero(d), sum1 = hn::Zero(d);
    i = 0;
    for (; i + 2 * lanes <= n; i += 2 * lanes) {
      const V e0 = exp(hn::Sub(hn::LoadU(d, x + i), shift)),
              e1 = exp(hn::Sub(hn::LoadU(d, x + i + lanes), shift));
      if (!logarithm) hn::StoreU(e0, d, y + i), hn::StoreU(e1, d, y + i + lanes);
      sum0 = hn::Add(sum0, e0), sum1 = hn::Add(sum1, e1);
    }
    for (; i < n; i += lanes) {
      const size_t count = n - i < lanes ? n - i : lanes;
      const V e = exp(hn::Sub(hn::LoadN(d, x + i, count), shift));
      if (!logarithm) hn::StoreN(e, d, y + i, count);
      sum0 = hn::Add(sum0, hn::IfThenElseZero(hn::FirstN(d, count), e));
    }
    const float total = hn::ReduceSum(d, hn::Add(sum0, sum1));
    const V factor = set(1.0f / total), offset = set(logarithm ? std::log(total) : 0);
    for (i = 0; i < n; i += lanes) {
      const size_t count = n - i < lanes ? n - i : lanes;
      const V v = logarithm ? hn::Sub(hn::Sub(hn::LoadN(d, x + i, count), shift), offset)
                            : hn::Mul(hn::LoadN(d, y + i, count), factor);
      hn::StoreN(v, d, y + i, count);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {
namespace {

HWY_EXPORT(softmax_rows);

Status accept_softmax(const OpCall& call) {
  const TensorView& x = call.in(0);
  for (int64_t i = call.attrs<SoftmaxAttrs>().axis + 1; i < x.rank; ++i)
    SINTER_RETURN_UNLESS(x.dims[i] == 1,
                         unsupported("the axis is not the last one with more than one element"));
  return accept_float_dense(call);
}

Status run_softmax(const OpCall& call, RunContext& context) {
  const auto& a = call.attrs<SoftmaxAttrs>();
  const TensorView& x = call.in(0);
  const int64_t n = x.rank == 0 ? 1 : x.dims[a.axis];
  if (x.size() == 0) return ok_status();
  const auto* from = x.as<const float>();
  auto* to = call.out(0).as<float>();
  parallel_for(context.threads, x.size() / n, std::max<int64_t>(4096 / n, 1),
               [&](int64_t begin, int64_t end) {
                 HWY_DYNAMIC_DISPATCH(softmax_rows)
                 (from + begin * n, to + begin * n, static_cast<size_t>(end - begin), static_cast<size_t>(n),
                  a.log != 0);
               });
  return ok_status();
}

}  // namespace

const Kernel kSoftmaxKernel = {Op::kSoftmax, nullptr, nullptr, run_softmax, accept_softmax};

}  // namespace sinter::simd
#endif  // HWY_ONCE
