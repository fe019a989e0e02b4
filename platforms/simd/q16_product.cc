// Rows of x (windows, copied with zeros for padding) times rows of weights: products of pairs in int32, which
// are added up in int64 before they can overflow. Depthwise: channels side by side.
#include "platforms/simd/q16_product.h"

#include <cstring>

#include "platforms/simd/int8.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/q16_product.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

#ifndef SINTER_SIMD_Q16_PRODUCT_ONCE
#define SINTER_SIMD_Q16_PRODUCT_ONCE
namespace sinter::simd {

inline constexpr int64_t kRows16 = 16;     // that are copied and multiplied at a time
inline constexpr int64_t kDepth16 = 32;    // their length is a multiple of this: a widest vector
inline constexpr int64_t kColumns16 = 64;  // of sums that are held

struct Product16 {
  const int16_t* x;  // [rows, stride], zeros from `depth` on
  int64_t rows, stride, depth;
  const int8_t* w;  // [columns, depth]
  int64_t columns;  // up to kColumns16
  int64_t* sums;    // [rows, kColumns16]
};

// The end of a product.
struct End16 {
  const int64_t* bias;
  const float* multipliers;
  int64_t multiplier_step;
  DType to;
  float low, high;  // bounds less the zero point
  int32_t zero;

  void store(int64_t sum, int64_t column, std::byte* y, int64_t at) const {
    const float v = static_cast<float>(sum) * multipliers[column * multiplier_step];
    if (to == DType::kFloat32) {
      reinterpret_cast<float*>(y)[at] = v;
      return;
    }
    const float bounded = !(v > low) ? low : v < high ? v : high;
    constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23: rounds what is added to it
    const int32_t q = static_cast<int32_t>((bounded + kMagic) - kMagic) + zero;
    if (to == DType::kInt8)
      reinterpret_cast<int8_t*>(y)[at] = static_cast<int8_t>(q);
    else
      reinterpret_cast<int16_t*>(y)[at] = static_cast<int16_t>(q);
  }
};

// One output pixel of a depthwise convolution.
struct Depthwise16 {
  const int16_t* x;  // the first tap inside
  const int8_t* w;   // that tap's weights
  int64_t n[3], x_step[3], w_step[3];
  int64_t channels;
};

}  // namespace sinter::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D16 = hn::ScalableTag<int16_t>;
using D32 = hn::ScalableTag<int32_t>;
using D64 = hn::ScalableTag<int64_t>;
using DF = hn::ScalableTag<float>;
using V16 = hn::Vec<D16>;
using V32 = hn::Vec<D32>;
using H8 = hn::Rebind<int8_t, D16>;

// Vectors of pairs that an int32 holds the sum of: 2 * 2^15 * 2^7 each.
constexpr int64_t kHeld = 255;

HWY_INLINE int64_t total(V32 v) {
  const D64 d;
  return hn::ReduceSum(d, hn::Add(hn::PromoteLowerTo(d, v), hn::PromoteUpperTo(d, v)));
}

template <int kCount>
HWY_INLINE void columns16(const Product16& p, int64_t row, int64_t column, int64_t other) {
  const D16 d;
  const D32 d32;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int16_t* x = p.x + row * p.stride;
  const int8_t *w = p.w + column * p.depth, *u = p.w + other * p.depth;
  int64_t s[8] = {};
  for (int64_t k = 0; k < p.depth;) {
    V32 a0 = hn::Zero(d32), a1 = a0, a2 = a0, a3 = a0, b0 = a0, b1 = a0, b2 = a0, b3 = a0;
    const int64_t end = std::min(p.depth, k + kHeld * lanes);
    for (; k < end; k += lanes) {
      const auto left = static_cast<size_t>(p.depth - k);
      const bool all = static_cast<int64_t>(left) >= lanes;
      const V16 wv = hn::PromoteTo(d, all ? hn::LoadU(H8(), w + k) : hn::LoadN(H8(), w + k, left)),
                uv = hn::PromoteTo(d, all ? hn::LoadU(H8(), u + k) : hn::LoadN(H8(), u + k, left));
#define SINTER_ROW(r)                                           \
  if constexpr (kCount > r) {                                   \
    const V16 xv = hn::LoadU(d, x + r * p.stride + k);          \
    a##r = hn::Add(a##r, hn::WidenMulPairwiseAdd(d32, xv, wv)); \
    b##r = hn::Add(b##r, hn::WidenMulPairwiseAdd(d32, xv, uv)); \
  }
      SINTER_ROW(0) SINTER_ROW(1) SINTER_ROW(2) SINTER_ROW(3)
#undef SINTER_ROW
    }
    s[0] += total(a0), s[1] += total(b0);
    if constexpr (kCount > 1) s[2] += total(a1), s[3] += total(b1);
    if constexpr (kCount > 2) s[4] += total(a2), s[5] += total(b2);
    if constexpr (kCount > 3) s[6] += total(a3), s[7] += total(b3);
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

// Calls value(c, count, sums) for vectors of channels.
template <class Value>
HWY_INLINE void depthwise_sums(const Depthwise16& p, Value value) {
  const D32 d;
  const hn::Rebind<int16_t, D32> x16;
  const hn::Rebind<int8_t, D32> w8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V32 lower = hn::Set(d, 0xffff);
  for (int64_t c = 0; c < p.channels; c += lanes) {
    const auto count = static_cast<size_t>(std::min(lanes, p.channels - c));
    const bool whole = static_cast<int64_t>(count) == lanes;
    V32 sum = hn::Zero(d);
    for (int64_t i = 0; i < p.n[0]; ++i)
      for (int64_t j = 0; j < p.n[1]; ++j) {
        const int16_t* x = p.x + i * p.x_step[0] + j * p.x_step[1] + c;
        const int8_t* w = p.w + i * p.w_step[0] + j * p.w_step[1] + c;
        for (int64_t k = 0; k < p.n[2]; ++k, x += p.x_step[2], w += p.w_step[2]) {
          const V32 xv = hn::PromoteTo(d, whole ? hn::LoadU(x16, x) : hn::LoadN(x16, x, count)),
                    wv = hn::PromoteTo(d, whole ? hn::LoadU(w8, w) : hn::LoadN(w8, w, count));
          // As pairs of int16 with nothing in the upper one.
          sum = hn::Add(sum, hn::WidenMulPairwiseAdd(d, hn::BitCast(D16(), xv),
                                                     hn::BitCast(D16(), hn::And(wv, lower))));
        }
      }
    value(c, count, sum);
  }
}

// Biases that an int32 holds together with any sum, int16 results and a multiplier for each channel.
void q16_depthwise(const Depthwise16& p, const int32_t* bias, const float* multipliers, float low, float high,
                   int32_t zero, int16_t* y) {
  const D32 d;
  const DF df;
  const hn::Rebind<int16_t, D32> y16;
  const auto least = hn::Set(df, low), most = hn::Set(df, high);
  const V32 zeros = hn::Set(d, zero);
  depthwise_sums(p, [&](int64_t c, size_t count, V32 sum) SINTER_SIMD_LAMBDA {
    const V32 b = hn::LoadN(d, bias + c, count);
    auto v = hn::Mul(hn::ConvertTo(df, hn::Add(sum, b)), hn::LoadN(df, multipliers + c, count));
    // NaN gives the lower bound.
    v = hn::Min(hn::IfThenElse(hn::Gt(v, least), v, least), most);
    hn::StoreN(hn::DemoteTo(y16, hn::Add(hn::NearestInt(v), zeros)), y16, y + c, count);
  });
}

void q16_depthwise_sums(const Depthwise16& p, int32_t* sums) {
  depthwise_sums(p, [&](int64_t c, size_t count, V32 sum)
                        SINTER_SIMD_LAMBDA { hn::StoreN(sum, D32(), sums + c, count); });
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {

HWY_EXPORT(q16_products);
HWY_EXPORT(q16_depthwise);
HWY_EXPORT(q16_depthwise_sums);

namespace {

template <class A>
End16 end_of(const OpCall& call, const A& a) {
  return {call.in(2).as<const int64_t>(),         call.in(3).as<const float>(),
          call.in(3).size() == 1 ? 0 : 1,         call.out(0).dtype,
          static_cast<float>(a.q_min - a.y_zero), static_cast<float>(a.q_max - a.y_zero),
          static_cast<int32_t>(a.y_zero)};
}

struct Plan16 {
  Geometry g;
  int64_t columns = 0, depth = 0, stride = 0;  // of one group
  int64_t x_zero = 0;
  End16 end;
};

Plan16 plan_of(const OpCall& call) {
  Plan16 p;
  if (call.op == Op::kQFullyConnected) {
    const auto& a = call.attrs<QFullyConnectedAttrs>();
    const TensorView& x = call.in(0);
    p.end = end_of(call, a), p.x_zero = a.x_zero;
    p.g.batch = 1, p.g.in_channels = x.dims[x.rank - 1], p.g.out_channels = call.in(1).dims[0];
    for (int i = 0; i + 1 < x.rank; ++i) p.g.in[2] *= x.dims[i];
    p.g.out[2] = p.g.in[2];
  } else {
    const auto& a = call.attrs<QConvAttrs>();
    p.end = end_of(call, a), p.x_zero = a.x_zero;
    p.g = window_geometry<QConvAttrs>(call);
  }
  p.columns = p.g.out_channels / p.g.group;
  p.depth = p.g.taps() * (p.g.in_channels / p.g.group);
  p.stride = divide_up(p.depth, kDepth16) * kDepth16;
  return p;
}

// The window of output pixel `row`, one group's channels, as [depth].
void copy_window(const Plan16& p, const int16_t* x, int64_t row, int64_t group, int16_t* to) {
  const Geometry& g = p.g;
  const int64_t channels = g.in_channels / g.group;
  const WindowOf<int16_t> w = window_at(g, x, row);
  std::memset(to, 0, static_cast<size_t>(p.stride) * sizeof(int16_t));
  if (w.empty()) return;
  const int64_t step2 = g.dilation[2] * g.in_channels, step1 = g.dilation[1] * g.in[2] * g.in_channels,
                step0 = g.dilation[0] * g.in[1] * g.in[2] * g.in_channels;
  for (int64_t i = w.first[0]; i < w.end[0]; ++i)
    for (int64_t j = w.first[1]; j < w.end[1]; ++j)
      for (int64_t k = w.first[2]; k < w.end[2]; ++k)
        std::memcpy(to + ((i * g.kernel[1] + j) * g.kernel[2] + k) * channels,
                    w.x + (i - w.first[0]) * step0 + (j - w.first[1]) * step1 + (k - w.first[2]) * step2 +
                        group * channels,
                    static_cast<size_t>(channels) * sizeof(int16_t));
}

// Of one thread: rows, and their sums.
bool scratch_bytes(const Plan16& p, int64_t* bytes) {
  return checked_mul<int64_t>(p.stride, kRows16 * static_cast<int64_t>(sizeof(int16_t)), bytes) &&
         checked_add<int64_t>(*bytes, kRows16 * kColumns16 * 8 + static_cast<int64_t>(kBufferAlignment),
                              bytes) &&
         (*bytes = *bytes / static_cast<int64_t>(kBufferAlignment) * static_cast<int64_t>(kBufferAlignment),
          true);
}

}  // namespace

Status accept_q16_product(const OpCall& call) {
  const Plan16 p = plan_of(call);
  SINTER_RETURN_UNLESS(p.x_zero == 0 && !call.has_input(4),
                       unsupported("the simd kernel takes int16 without zero points"));
  SINTER_RETURN_UNLESS(call.in(0).rank <= 5 || call.op == Op::kQFullyConnected,
                       unsupported("the simd kernel has at most three spatial axes"));
  return accept_dense(call);
}

Status q16_product_workspace(const OpCall& call, int threads, size_t* bytes) {
  int64_t each = 0;
  SINTER_RETURN_UNLESS(
      scratch_bytes(plan_of(call), &each) && checked_mul<int64_t>(each, std::max(threads, 1), &each),
      invalid("the operation needs more workspace than the step has"));
  *bytes = static_cast<size_t>(each);
  return ok_status();
}

Status run_q16_product(const OpCall& call, RunContext& context) {
  const Plan16 p = plan_of(call);
  int64_t each = 0;
  if (call.out(0).size() == 0 || !scratch_bytes(p, &each)) return ok_status();
  const Geometry& g = p.g;
  const auto run = HWY_DYNAMIC_POINTER(q16_products);
  const auto* x = call.in(0).as<const int16_t>();
  const auto* weights = call.in(1).as<const int8_t>();
  std::byte* y = call.out(0).data;
  const int64_t rows = g.batch * g.out_pixels(), blocks = divide_up(rows, kRows16),
                threads = threads_of(context.threads);
  // Where there are few rows, columns are shared out.
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
        for (int64_t r = 0; r < count; ++r) copy_window(p, x, first + r, group, window + r * p.stride);
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

namespace {

constexpr int64_t kMostTaps = 255;  // whose sum an int32 holds, and half as much again
constexpr int64_t kSmallBias = int64_t{1} << 30;

}  // namespace

Status accept_q16_depthwise(const OpCall& call) {
  SINTER_RETURN_UNLESS(call.attrs<QDepthwiseConvAttrs>().x_zero == 0 && !call.has_input(4),
                       unsupported("the simd kernel takes int16 without zero points"));
  SINTER_RETURN_UNLESS(call.in(0).rank <= 5, unsupported("the simd kernel has at most three spatial axes"));
  const Geometry g = window_geometry<QDepthwiseConvAttrs>(call);
  int64_t taps = 0;
  SINTER_RETURN_UNLESS(
      g.in_channels == g.out_channels && checked_mul(g.kernel[0], g.kernel[1], &taps) &&
          checked_mul(taps, g.kernel[2], &taps) && taps <= kMostTaps,
      unsupported("the simd kernel takes one output channel for each input channel and 255 taps"));
  return accept_dense(call);
}

// Biases as int32 and a multiplier for each channel, or, where biases are too large, sums by thread.
Status q16_depthwise_workspace(const OpCall& call, int threads, size_t* bytes) {
  int64_t n = 0;
  SINTER_RETURN_UNLESS(checked_mul<int64_t>(call.in(2).size(), 4 * std::max(threads, 2), &n),
                       invalid("the operation needs more workspace than the step has"));
  *bytes = static_cast<size_t>(n);
  return ok_status();
}

Status run_q16_depthwise(const OpCall& call, RunContext& context) {
  const auto& a = call.attrs<QDepthwiseConvAttrs>();
  if (call.out(0).size() == 0) return ok_status();
  const Geometry g = window_geometry<QDepthwiseConvAttrs>(call);
  const End16 end = end_of(call, a);
  const auto* x = call.in(0).as<const int16_t>();
  const auto* weights = call.in(1).as<const int8_t>();
  std::byte* y = call.out(0).data;
  const int64_t channels = g.in_channels, rows = g.batch * g.out_pixels();
  bool small = end.to == DType::kInt16;
  for (int64_t c = 0; small && c < channels; ++c)
    small = end.bias[c] <= kSmallBias && end.bias[c] >= -kSmallBias;
  auto* biases = reinterpret_cast<int32_t*>(context.workspace.data());
  auto* multipliers = reinterpret_cast<float*>(biases + channels);
  for (int64_t c = 0; small && c < channels; ++c) {
    biases[c] = static_cast<int32_t>(end.bias[c]);
    multipliers[c] = end.multipliers[c * end.multiplier_step];
  }
  const auto whole = HWY_DYNAMIC_POINTER(q16_depthwise);
  const auto sum = HWY_DYNAMIC_POINTER(q16_depthwise_sums);
  const int64_t x2 = g.in_channels, x1 = g.in[2] * x2, x0 = g.in[1] * x1;
  const int64_t threads = threads_of(context.threads), slots = std::min(rows, threads);
  parallel_slots(context.threads, slots, rows, [&](int64_t slot, int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
      const WindowOf<int16_t> w = window_at(g, x, row);
      const int64_t tap = (w.first[0] * g.kernel[1] + w.first[1]) * g.kernel[2] + w.first[2];
      const Depthwise16 p{w.x,
                          w.empty() ? weights : weights + tap * channels,
                          {w.end[0] - w.first[0], w.end[1] - w.first[1], w.end[2] - w.first[2]},
                          {g.dilation[0] * x0, g.dilation[1] * x1, g.dilation[2] * x2},
                          {g.kernel[1] * g.kernel[2] * channels, g.kernel[2] * channels, channels},
                          channels};
      if (small) {
        whole(p, biases, multipliers, end.low, end.high, end.zero,
              reinterpret_cast<int16_t*>(y) + row * channels);
        continue;
      }
      int32_t* sums = biases + slot * channels;
      sum(p, sums);
      for (int64_t c = 0; c < channels; ++c)
        end.store(static_cast<int64_t>(static_cast<uint64_t>(end.bias[c]) +
                                       static_cast<uint64_t>(int64_t{sums[c]})),
                  c, y, row * channels + c);
    }
  });
  return ok_status();
}

}  // namespace sinter::simd
#endif  // HWY_ONCE
