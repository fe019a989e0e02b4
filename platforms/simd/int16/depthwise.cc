// QDepthwiseConv of int16, with channels side by side. On x86, whole windows are summed by pairs of taps,
// which are interleaved within 128 bits, like their packed weights.
#define SINTER_SIMD_BYTE_TABLES
#include "platforms/simd/int16/gemm.h"
#include "platforms/simd/int16/store.h"
#include "platforms/simd/int8/int8.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/int16/depthwise.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/int8/int8-inl.h"

#ifndef SINTER_SIMD_Q16_DEPTHWISE_ONCE
#define SINTER_SIMD_Q16_DEPTHWISE_ONCE
namespace sinter::simd {

// The operands of one output pixel of a depthwise convolution.
struct Depthwise16 {
  const int16_t* x;  // the first tap inside
  const int8_t* w;   // that tap's weights
  int64_t n[3], x_step[3], w_step[3];
  int64_t first;  // channel
  int64_t channels;
};

// The packed form for whole windows: the numbers of blocks of channels, in the order of the sums.
struct Pairs16 {
  const int64_t* offsets;  // of each tap from the first one; if they are odd, then the first again
  int64_t pairs;
  int16_t* weights;  // [block, pair, two vectors]
  int32_t* bias;
  float* multipliers;
};

}  // namespace sinter::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// Calls value(c, count, sums) for vectors of channels.
template <class Value>
HWY_INLINE void depthwise_sums(const Depthwise16& p, Value value) {
  const D32 d;
  const hn::Rebind<int16_t, D32> x16;
  const hn::Rebind<int8_t, D32> w8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V32 lower = hn::Set(d, 0xffff);
  for (int64_t c = p.first; c < p.channels; c += lanes) {
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
          // These are pairs of int16 with nothing in the upper one.
          sum = add_pairs(hn::BitCast(D16(), xv), hn::BitCast(D16(), hn::And(wv, lower)), sum);
        }
      }
    value(c, count, sum);
  }
}

// Takes biases that an int32 holds together with any sum, int16 results and a multiplier for each channel.
void q16_depthwise(const Depthwise16& p, const int32_t* bias, const float* multipliers, float low, float high,
                   int32_t zero, int16_t* y) {
  const D32 d;
  const DF df;
  const hn::Rebind<int16_t, D32> y16;
  const auto least = hn::Set(df, low), most = hn::Set(df, high);
  const V32 zeros = hn::Set(d, zero);
  // NaN gives the lower bound.
  const auto end = [=](V32 sum, VF multiplier) SINTER_SIMD_LAMBDA {
    const VF v = hn::Min(number_at_least(hn::Mul(hn::ConvertTo(df, sum), multiplier), least), most);
    return hn::DemoteTo(y16, hn::Add(nearest(v), zeros));
  };
  depthwise_sums(p, [&](int64_t c, size_t count, V32 sum) SINTER_SIMD_LAMBDA {
    if (HWY_LIKELY(count == hn::Lanes(d)))
      hn::StoreU(end(hn::Add(sum, hn::LoadU(d, bias + c)), hn::LoadU(df, multipliers + c)), y16, y + c);
    else
      hn::StoreN(end(hn::Add(sum, hn::LoadN(d, bias + c, count)), hn::LoadN(df, multipliers + c, count)), y16,
                 y + c, count);
  });
}

#if HWY_ARCH_X86
// Vectors have at most 256 bits, because many networks have 16 channels.
using DPairs = hn::CappedTag<int16_t, 16>;

// Packs the blocks of whole vectors; returns their channels.
int64_t pack_q16_pairs(const Pairs16& p, const int8_t* w, int64_t taps, int64_t channels, const int32_t* bias,
                       const float* multipliers) {
  const auto block = static_cast<int64_t>(hn::Lanes(DPairs()));
  const int64_t packed = channels / block * block;
  for (int64_t c = 0; c < packed; ++c) {
    const int64_t in_block = c % block, first = c - in_block;
    const int64_t at = in_block % 8 / 4 * (block / 2) + in_block / 8 * 4 + in_block % 4;  // of the sums
    p.bias[first + at] = bias[c];
    p.multipliers[first + at] = multipliers[c];
    int16_t* to = p.weights + first * 2 * p.pairs + 2 * at;
    for (int64_t t = 0; t < 2 * p.pairs; ++t)
      to[t / 2 * 2 * block + t % 2] = t < taps ? w[t * channels + c] : int16_t{0};
  }
  return packed;
}

// Computes channels 0 .. channels - 1 of a pixel whose window is inside the input.
void q16_depthwise_pairs(const Pairs16& p, const int16_t* x, int64_t channels, float low, float high,
                         int32_t zero, int16_t* y) {
  const DPairs d;
  const hn::RepartitionToWide<DPairs> d32;
  const hn::RebindToFloat<decltype(d32)> df;
  const auto least = hn::Set(df, low), most = hn::Set(df, high);
  const auto zeros = hn::Set(d32, zero);
  const auto block = static_cast<int64_t>(hn::Lanes(d)), half = block / 2;
  // NaN gives the lower bound, the second operand.
  const auto end = [&](auto sum, const float* multipliers) SINTER_SIMD_LAMBDA {
    const auto v = hn::Mul(hn::ConvertTo(df, sum), hn::LoadU(df, multipliers));
    return hn::Add(hn::NearestIntInRange(d32, hn::Min(hn::Max(v, least), most)), zeros);
  };
  const int16_t* w = p.weights;
  for (int64_t c = 0; c < channels; c += block) {
    auto a = hn::LoadU(d32, p.bias + c), b = hn::LoadU(d32, p.bias + c + half);
    for (int64_t i = 0; i < p.pairs; ++i, w += 2 * block) {
      const auto x0 = hn::LoadU(d, x + p.offsets[2 * i] + c), x1 = hn::LoadU(d, x + p.offsets[2 * i + 1] + c);
      a = add_pairs(hn::InterleaveLower(d, x0, x1), hn::LoadU(d, w), a);
      b = add_pairs(hn::InterleaveUpper(d, x0, x1), hn::LoadU(d, w + block), b);
    }
    hn::StoreU(hn::ReorderDemote2To(d, end(a, p.multipliers + c), end(b, p.multipliers + c + half)), d,
               y + c);
  }
}
#else
int64_t pack_q16_pairs(const Pairs16&, const int8_t*, int64_t, int64_t, const int32_t*, const float*) {
  return 0;
}
void q16_depthwise_pairs(const Pairs16&, const int16_t*, int64_t, float, float, int32_t, int16_t*) {}
#endif

// Narrows numbers that int8 holds.
void narrow_q16(const int16_t* x, int64_t n, int8_t* y) {
  const D16 d;
  const hn::Rebind<int8_t, D16> to;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::DemoteTo(to, hn::LoadU(d, x + i)), to, y + i);
  for (; i < n; ++i) y[i] = static_cast<int8_t>(x[i]);
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

HWY_EXPORT(q16_depthwise);
HWY_EXPORT(q16_depthwise_sums);
HWY_EXPORT(pack_q16_pairs);
HWY_EXPORT(q16_depthwise_pairs);
HWY_EXPORT(narrow_q16);

namespace {

constexpr int64_t kMostTaps = 255;  // an int32 holds the sum of as many, and half as much again
constexpr int64_t kSmallBias = int64_t{1} << 30;

bool is_small(int64_t bias) { return bias <= kSmallBias && bias >= -kSmallBias; }

// Returns the sum of one channel.
int32_t one_sum(const Depthwise16& p, int64_t c) {
  int32_t sum = 0;
  for (int64_t i = 0; i < p.n[0]; ++i)
    for (int64_t j = 0; j < p.n[1]; ++j)
      for (int64_t k = 0; k < p.n[2]; ++k)
        sum += p.x[i * p.x_step[0] + j * p.x_step[1] + k * p.x_step[2] + c] *
               p.w[i * p.w_step[0] + j * p.w_step[1] + k * p.w_step[2] + c];
  return sum;
}

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

// The workspace has biases as int32 and a multiplier for each channel, twice, pairs of weights, and by thread
// a pixel of int16 that becomes int8; or, where biases are too large, sums by thread.
Status q16_depthwise_workspace(const OpCall& call, int threads, size_t* bytes) {
  int64_t n = 0;
  int64_t weights = 0;
  SINTER_RETURN_UNLESS(
      checked_mul<int64_t>(call.in(2).size(), 4 * std::max(threads, 2), &n) &&
          checked_mul<int64_t>(call.in(1).size(), 2, &weights) && checked_add(n, weights, &n) &&
          // The counts are those of an odd tap's neighbour of 0, and of the second copies.
          checked_mul<int64_t>(call.in(2).size(), 2 + 8 + 2 * std::max(threads, 1), &weights) &&
          checked_add(n, weights, &n),
      too_much_workspace());
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
  // Channels first_large .. end_large - 1 include all whose biases are too large. If these are few, they are
  // summed again, one by one.
  int64_t first_large = 0, end_large = 0;
  for (int64_t c = channels - 1; c >= 0; --c)
    if (!is_small(end.bias[c])) first_large = c, end_large = std::max(end_large, c + 1);
  const bool bytes = end.to == DType::kInt8;
  const bool small = (bytes || end.to == DType::kInt16) && 4 * (end_large - first_large) <= channels;
  auto* biases = reinterpret_cast<int32_t*>(context.workspace.data());
  auto* multipliers = reinterpret_cast<float*>(biases + channels);
  for (int64_t c = 0; small && c < channels; ++c) {
    biases[c] = is_small(end.bias[c]) ? static_cast<int32_t>(end.bias[c]) : 0;
    multipliers[c] = end.multipliers[c * end.multiplier_step];
  }
  const int64_t taps = g.kernel[0] * g.kernel[1] * g.kernel[2];
  int64_t offsets[kMostTaps + 1], first_channel = 0;
  Pairs16 pairs{offsets, divide_up(taps, int64_t{2}), nullptr, biases + 2 * channels,
                multipliers + 2 * channels};
  pairs.weights = reinterpret_cast<int16_t*>(pairs.multipliers + channels);
  int16_t* const pixels = pairs.weights + (2 * pairs.pairs) * channels;
  if (small) {
    const auto pack = HWY_DYNAMIC_POINTER(pack_q16_pairs);
    first_channel = pack(pairs, weights, taps, channels, biases, multipliers);
  }
  const auto whole = HWY_DYNAMIC_POINTER(q16_depthwise);
  const auto by_pairs = HWY_DYNAMIC_POINTER(q16_depthwise_pairs);
  const auto sum = HWY_DYNAMIC_POINTER(q16_depthwise_sums);
  const auto narrow = HWY_DYNAMIC_POINTER(narrow_q16);
  const int64_t x2 = g.in_channels, x1 = g.in[2] * x2, x0 = g.in[1] * x1;
  for (int64_t t = 0; t < 2 * pairs.pairs; ++t) {
    const int64_t k = t < taps ? t : 0;
    offsets[t] = k / (g.kernel[1] * g.kernel[2]) * g.dilation[0] * x0 +
                 k / g.kernel[2] % g.kernel[1] * g.dilation[1] * x1 + k % g.kernel[2] * g.dilation[2] * x2;
  }
  const auto with_bias = [&](int64_t c, int32_t sum) {
    return static_cast<int64_t>(static_cast<uint64_t>(end.bias[c]) + static_cast<uint64_t>(int64_t{sum}));
  };
  const InsideRange inside = inside_range(g);
  const int64_t threads = threads_of(context.threads), slots = std::min(rows, threads);
  parallel_slots(context.threads, slots, rows, [&](int64_t slot, int64_t first, int64_t last) {
    for (int64_t row = first, count = 1; row < last; row += count) {
      const WindowOf<int16_t> w = window_at(g, x, row);
      const int64_t tap = (w.first[0] * g.kernel[1] + w.first[1]) * g.kernel[2] + w.first[2];
      // Neighbouring pixels whose windows are whole as well.
      const bool paired = first_channel > 0 && w.taps() == taps;
      count = paired ? std::min(inside.end - w.at[2], last - row) : 1;
      Depthwise16 p{w.x,
                    w.empty() ? weights : weights + tap * channels,
                    {w.end[0] - w.first[0], w.end[1] - w.first[1], w.end[2] - w.first[2]},
                    {g.dilation[0] * x0, g.dilation[1] * x1, g.dilation[2] * x2},
                    {g.kernel[1] * g.kernel[2] * channels, g.kernel[2] * channels, channels},
                    paired ? first_channel : 0,
                    channels};
      for (int64_t i = 0; small && i < count; ++i, p.x += g.stride[2] * x2) {
        const int64_t at = (row + i) * channels;
        int16_t* to = bytes ? pixels + slot * channels : reinterpret_cast<int16_t*>(y) + at;
        if (paired) by_pairs(pairs, p.x, first_channel, end.low, end.high, end.zero, to);
        if (p.first < channels) whole(p, biases, multipliers, end.low, end.high, end.zero, to);
        if (bytes) narrow(to, channels, reinterpret_cast<int8_t*>(y) + at);
        for (int64_t c = first_large; c < end_large; ++c)
          if (!is_small(end.bias[c])) end.store(with_bias(c, one_sum(p, c)), c, y, at + c);
      }
      if (small) continue;
      int32_t* sums = biases + slot * channels;
      sum(p, sums);
      for (int64_t c = 0; c < channels; ++c) end.store(with_bias(c, sums[c]), c, y, row * channels + c);
    }
  });
  return ok_status();
}

}  // namespace sinter::simd
#endif  // HWY_ONCE
