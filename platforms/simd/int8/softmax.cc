// QSoftmax along the last axis, with the bits of the reference kernel.
//
// Quotients are made in float32, within 2^-13 of the exact ones; if a half is that near, integer arithmetic
// decides. For long lines, a table holds the quotient of every possible difference.
#include "platforms/simd/int8/int8.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/int8/softmax.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/int8/int8-inl.h"

#ifndef SINTER_SIMD_Q_SOFTMAX_ONCE
#define SINTER_SIMD_Q_SOFTMAX_ONCE
namespace sinter::simd {

struct SoftmaxSettings {
  const uint32_t* table;
  uint64_t multiplier;
  int shift;
  Int8Range range;
};

constexpr size_t kShortLine = 512;

// Returns rne(entry * multiplier / divisor), at most 1024.
inline int32_t exact_quotient(uint32_t entry, uint64_t multiplier, uint64_t divisor) {
  const uint64_t dividend = entry * multiplier;
  if (divisor == 0) return 0;
  const uint64_t quotient = dividend / divisor, rest = dividend % divisor;
  if (quotient >= 1024) return 1024;
  const bool up = rest > divisor - rest || (rest == divisor - rest && (quotient & 1) != 0);
  return static_cast<int32_t>(quotient) + (up ? 1 : 0);
}

}  // namespace sinter::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

using DU = hn::ScalableTag<uint32_t>;

// Divides `n` entries whose sum is `sum`; room for a whole vector behind them is written to y (and read).
HWY_INLINE void divide_entries(const SoftmaxSettings& s, const uint32_t* entries, size_t n, uint64_t sum,
                               int8_t* y) {
  const DF df;
  const DU du;
  const size_t lanes = hn::Lanes(df);
  const uint64_t divisor = sum << s.shift;
  const VF factor =
      hn::Set(df, divisor == 0
                      ? 0.0f
                      : static_cast<float>(static_cast<double>(s.multiplier) / static_cast<double>(divisor)));
  const VF beyond = hn::Set(df, 512.0f), near = hn::Set(df, 0.5f - 0x1p-12f);
  const Result result(s.range);
  for (size_t i = 0; i < n; i += 4 * lanes) {
    V32 q[4];
    VF farthest = hn::Zero(df);
    HWY_UNROLL(4)
    for (size_t k = 0; k < 4; ++k) {
      const VF v =
          hn::Min(hn::Mul(hn::ConvertTo(df, hn::LoadU(du, entries + i + k * lanes)), factor), beyond);
      q[k] = nearest(v);
      farthest = hn::Max(farthest, hn::Abs(hn::Sub(v, hn::ConvertTo(df, q[k]))));
    }
    if (HWY_UNLIKELY(!hn::AllTrue(df, hn::Lt(farthest, near)))) {
      HWY_ALIGN int32_t exact[4 * hn::MaxLanes(D32())];
      for (size_t k = 0; k < 4 * lanes; ++k) exact[k] = exact_quotient(entries[i + k], s.multiplier, divisor);
      for (size_t k = 0; k < 4; ++k) q[k] = hn::Load(D32(), exact + k * lanes);
    }
    hn::StoreU(result.bytes(q[0], q[1], q[2], q[3]), D8(), y + i);
  }
}

HWY_INLINE int8_t largest_of(const int8_t* x, size_t n) {
  const D8 d;
  const size_t lanes = hn::Lanes(d);
  int8_t largest = -128;
  size_t i = 0;
  if (n >= lanes) {
    V8 v = hn::LoadU(d, x);
    for (; i + lanes <= n; i += lanes) v = hn::Max(v, hn::LoadU(d, x + i));
    HWY_ALIGN int8_t last[hn::MaxLanes(d)];
    hn::Store(v, d, last);
    for (size_t k = 0; k < lanes; ++k) largest = last[k] > largest ? last[k] : largest;
  }
  for (; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
  return largest;
}

// Computes `lines` lines of n elements.
void softmax_lines(const SoftmaxSettings& s, const int8_t* x, int8_t* y, size_t lines, size_t n) {
  constexpr size_t kRoom = kShortLine + hn::MaxLanes(D8());
  alignas(64) uint32_t entries[kRoom] = {};
  alignas(64) int8_t results[kRoom];
  for (size_t line = 0; line < lines; ++line, x += n, y += n) {
    const int largest = largest_of(x, n);
    uint64_t sum = 0;
    if (n <= kShortLine) {
      for (size_t i = 0; i < n; ++i) {
        entries[i] = s.table[largest - x[i]];
        sum += entries[i];
      }
      divide_entries(s, entries, n, sum, results);
      std::memcpy(y, results, n);
      continue;
    }
    for (size_t i = 0; i < n; ++i) sum += s.table[largest - x[i]];
    divide_entries(s, s.table, 256, sum, results);
    for (size_t i = 0; i < n; ++i) y[i] = results[largest - x[i]];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {
namespace {

HWY_EXPORT(softmax_lines);

Status accept_softmax(const OpCall& call) {
  const TensorView& x = call.in(0);
  for (int64_t i = call.attrs<QSoftmaxAttrs>().axis + 1; i < x.rank; ++i)
    SINTER_RETURN_UNLESS(x.dims[i] == 1, unsupported("the simd kernel takes the last axis"));
  return accept_dense(call);
}

Status run_softmax(const OpCall& call, RunContext& context) {
  const auto& a = call.attrs<QSoftmaxAttrs>();
  const TensorView& x = call.in(0);
  if (x.size() == 0) return ok_status();
  const int64_t n = x.dims[a.axis];
  const SoftmaxSettings s{call.in(1).as<const uint32_t>(), static_cast<uint64_t>(a.multiplier),
                          static_cast<int>(a.shift), int8_range(a)};
  const auto run = HWY_DYNAMIC_POINTER(softmax_lines);
  parallel_for(context.threads, x.size() / n, std::max<int64_t>(4096 / n, 1),
               [&](int64_t begin, int64_t end) {
                 run(s, x.as<const int8_t>() + begin * n, call.out(0).as<int8_t>() + begin * n,
                     static_cast<size_t>(end - begin), static_cast<size_t>(n));
               });
  return ok_status();
}

}  // namespace

const Kernel kQSoftmaxKernel = {Op::kQSoftmax, nullptr, nullptr, run_softmax, accept_softmax};

}  // namespace sinter::simd
#endif  // HWY_ONCE
