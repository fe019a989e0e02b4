// Products of rows of x (windows, copied with zeros for padding) and rows of weights: pairs are multiplied in
// int32, which are added up in int64 before they can overflow.
#include "platforms/simd/int16/gemm.h"

#include "platforms/simd/int16/windows.h"
#include "platforms/simd/int8/int8.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/int16/gemm.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/int8/int8-inl.h"

#ifndef SINTER_SIMD_Q16_PRODUCT_ONCE
#define SINTER_SIMD_Q16_PRODUCT_ONCE
namespace sinter::simd {

struct Product16 {
  const int16_t* x;  // [rows, stride], zeros from `depth` on
  int64_t rows, stride, depth;
  const int8_t* w;  // [columns, depth]
  int64_t columns;  // up to kColumns16
  int64_t* sums;    // [rows, kColumns16]
};

}  // namespace sinter::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

using D64 = hn::ScalableTag<int64_t>;
using H8 = hn::Rebind<int8_t, D16>;

// The vectors of pairs that an int32 holds the sum of: 2 * 2^15 * 2^7 each.
constexpr int64_t kHeld = 255;

HWY_INLINE int64_t total(V32 v) {
  const D64 d;
  return hn::ReduceSum(d, hn::Add(hn::PromoteLowerTo(d, v), hn::PromoteUpperTo(d, v)));
}

// The sums of products by lanes. ARM adds each half of the products to a register of its own.
struct Sums16 {
  V32 sum;
#if HWY_TARGET_IS_NEON
  V32 high;
  HWY_INLINE Sums16() : sum(hn::Zero(D32())), high(sum) {}
  HWY_INLINE void add(V16 x, V16 w) { sum = hn::WidenMulAccumulate(D32(), x, w, sum, high); }
  HWY_INLINE int64_t all() const { return total(hn::Add(sum, high)); }
#else
  HWY_INLINE Sums16() : sum(hn::Zero(D32())) {}
  HWY_INLINE void add(V16 x, V16 w) { sum = add_pairs(x, w, sum); }
  HWY_INLINE int64_t all() const { return total(sum); }
#endif
};

template <int kCount>
HWY_INLINE void columns16(const Product16& p, int64_t row, int64_t column, int64_t other) {
  const D16 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int16_t* x = p.x + row * p.stride;
  const int8_t *w = p.w + column * p.depth, *u = p.w + other * p.depth;
  int64_t s[8] = {};
  for (int64_t k = 0; k < p.depth;) {
    Sums16 a0, a1, a2, a3, b0, b1, b2, b3;
    const int64_t end = std::min(p.depth, k + kHeld * lanes);
    for (; k < end; k += lanes) {
      const auto left = static_cast<size_t>(p.depth - k);
      const bool all = static_cast<int64_t>(left) >= lanes;
      const V16 wv = hn::PromoteTo(d, all ? hn::LoadU(H8(), w + k) : hn::LoadN(H8(), w + k, left)),
                uv = hn::PromoteTo(d, all ? hn::LoadU(H8(), u + k) : hn::LoadN(H8(), u + k, left));
#define SINTER_ROW(r)                                  \
  if constexpr (kCount > r) {                          \
    const V16 xv = hn::LoadU(d, x + r * p.stride + k); \
    a##r.add(xv, wv), b##r.add(xv, uv);                \
  }
      SINTER_ROW(0) SINTER_ROW(1) SINTER_ROW(2) SINTER_ROW(3)
#undef SINTER_ROW
    }
    s[0] += a0.all(), s[1] += b0.all();
    if constexpr (kCount > 1) s[2] += a1.all(), s[3] += b1.all();
    if constexpr (kCount > 2) s[4] += a2.all(), s[5] += b2.all();
    if constexpr (kCount > 3) s[6] += a3.all(), s[7] += b3.all();
  }
  for (int64_t r = 0; r < kCount; ++r) {
    p.sums[(row + r) * kColumns16 + column] = s[2 * r];
    p.sums[(row + r) * kColumns16 + other] = s[2 * r + 1];
  }
}

void q16_products(const Product16& p) {
  for (int64_t row = 0; row < p.rows; row += 4) {
    for (int64_t n = 0; n < p.columns; n += 2) {
      const int64_t other = std::min(n + 1, p.columns - 1);
      switch (std::min<int64_t>(p.rows - row, 4)) {
        case 1:
          columns16<1>(p, row, n, other);
          break;
        case 2:
          columns16<2>(p, row, n, other);
          break;
        case 3:
          columns16<3>(p, row, n, other);
          break;
        default:
          columns16<4>(p, row, n, other);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {

HWY_EXPORT(q16_products);

Status accept_q16_product(const OpCall& call) {
  const Plan16 p = plan_q16(call);
  SINTER_RETURN_UNLESS(p.x_zero == 0 && !call.has_input(4),
                       unsupported("the simd kernel takes int16 without zero points"));
  SINTER_RETURN_UNLESS(call.in(0).rank <= 5 || call.op == Op::kQFullyConnected,
                       unsupported("the simd kernel has at most three spatial axes"));
  return accept_dense(call);
}

Status q16_product_workspace(const OpCall& call, int threads, size_t* bytes) {
  int64_t each = 0;
  SINTER_RETURN_UNLESS(
      q16_scratch_bytes(plan_q16(call), &each) && checked_mul<int64_t>(each, std::max(threads, 1), &each),
      too_much_workspace());
  *bytes = static_cast<size_t>(each);
  return ok_status();
}

Status run_q16_product(const OpCall& call, RunContext& context) {
  Plan16 p = plan_q16(call);
  int64_t each = 0;
  if (call.out(0).size() == 0 || !q16_scratch_bytes(p, &each)) return ok_status();
  p.room = p.line;  // like the weights
  const Geometry& g = p.g;
  const auto run = HWY_DYNAMIC_POINTER(q16_products);
  const auto* x = call.in(0).as<const int16_t>();
  const auto* weights = call.in(1).as<const int8_t>();
  std::byte* y = call.out(0).data;
  const int64_t rows = g.batch * g.out_pixels(), blocks = divide_up(rows, kRows16),
                threads = threads_of(context.threads);
  // If there are few rows, columns are shared out.
  const int64_t pieces = divide_up(p.columns, kColumns16);
  const int64_t parts = blocks >= threads ? 1 : std::min(pieces, divide_up(threads, blocks));
  const int64_t units = blocks * parts, slots = std::min(units, threads);
  parallel_slots(context.threads, slots, units, [&](int64_t slot, int64_t begin, int64_t end) {
    std::byte* scratch = context.workspace.data() + slot * each;
    auto* sums = reinterpret_cast<int64_t*>(scratch);
    auto* window = reinterpret_cast<int16_t*>(sums + kRows16 * kColumns16);
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t first = unit / parts * kRows16, count = std::min(kRows16, rows - first),
                    part = unit % parts;
      for (int64_t group = 0; group < g.group; ++group) {
        copy_q16_windows(p, x, first, count, group, window);
        for (int64_t piece = pieces * part / parts; piece < pieces * (part + 1) / parts; ++piece) {
          const int64_t at = piece * kColumns16, columns = std::min(kColumns16, p.columns - at),
                        column = group * p.columns + at;
          run({window, count, p.stride, p.depth, weights + column * p.depth, columns, sums});
          for (int64_t r = 0; r < count; ++r)
            for (int64_t n = 0; n < columns; ++n)
              p.end.store(static_cast<int64_t>(static_cast<uint64_t>(sums[r * kColumns16 + n]) +
                                               static_cast<uint64_t>(p.end.bias[column + n])),
                          column + n, y, (first + r) * g.out_channels + column + n);
        }
      }
    }
  });
  return ok_status();
}

}  // namespace sinter::simd
#endif  // HWY_ONCE
