// QDepthwiseConv with one output channel per input channel: 16 channels at a time, whose input is copied box
// by box, with neighbouring pixels of a line interleaved, so that one instruction sums the taps of several
// pixels.
//
// A group is kTaps neighbouring pixels of 16 channels, channel by channel; groups begin at every kSpacing-th
// pixel. A window's line is the sum of a few groups; its weights are packed once for every place that it may
// begin at in a group, with zeros beside them.
#define SINTER_SIMD_BYTE_TABLES
#include <cstring>

#include "platforms/simd/int8.h"
#include "platforms/simd/packed.h"
#include "platforms/simd/q16_product.h"
#include "platforms/simd/q_box.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/q_depthwise.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/int8-inl.h"

#ifndef SINTER_SIMD_Q_DEPTHWISE_ONCE
#define SINTER_SIMD_Q_DEPTHWISE_ONCE
namespace sinter::simd {

constexpr int64_t kQChannels = 16;  // of a block

struct QDepthwise {
  Geometry g;
  const int8_t* x = nullptr;
  int32_t x_zero = 0;
  ProductResult result;
  // Packed: weights block by block, then for all channels of whole blocks:
  std::byte* weights = nullptr;
  int32_t* bias = nullptr;
  float* multipliers = nullptr;
};
struct QDepthwiseWeights {
  const int8_t* weights;  // [taps, channels]
  const int32_t* bias;
  const float* multipliers;  // per channel, or one
  int64_t multiplier_step;
};

}  // namespace sinter::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
// Four unsigned by four signed bytes: x + 128, which the bias makes up for.
using Element = uint8_t;
using Weight = int8_t;
constexpr int64_t kTaps = 4, kSpacing = 2;
constexpr int32_t kShift = 128;
HWY_INLINE V32 load_group(const Element* p) {
  return hn::BitCast(D32(), hn::LoadU(hn::ScalableTag<uint8_t>(), p));
}
HWY_INLINE V32 product(V32 x, const Weight* w, V32 sum) {
  return hn::SumOfMulQuadAccumulate(D32(), hn::BitCast(hn::ScalableTag<uint8_t>(), x), hn::LoadU(D8(), w),
                                    sum);
}
#else
using Element = int16_t;
using Weight = int16_t;
constexpr int32_t kShift = 0;
#if HWY_TARGET_IS_NEON
constexpr int64_t kTaps = 1, kSpacing = 1;
HWY_INLINE V32 load_group(const Element* p) {
  return hn::PromoteTo(D32(), hn::LoadU(hn::Rebind<int16_t, D32>(), p));
}
HWY_INLINE V32 product(V32 x, const Weight* w, V32 sum) { return hn::MulAdd(x, load_group(w), sum); }
#else
constexpr int64_t kTaps = 2, kSpacing = 2;
HWY_INLINE V32 load_group(const Element* p) { return hn::BitCast(D32(), hn::LoadU(D16(), p)); }
HWY_INLINE V32 product(V32 x, const Weight* w, V32 sum) {
  return hn::Add(sum, hn::WidenMulPairwiseAdd(D32(), hn::BitCast(D16(), x), hn::LoadU(D16(), w)));
}
#endif
#endif

constexpr int64_t kGroup = kQChannels * kTaps;  // elements
constexpr int64_t kPixels = 4;                  // that are summed side by side

// Groups of a window's line, wherever it begins.
HWY_INLINE int64_t groups_of(const Geometry& g) { return divide_up(g.kernel[2] + kSpacing - 1, kTaps); }
// Groups that `pixels` windows of a line read, in whole kPixels.
HWY_INLINE int64_t line_groups(const Geometry& g, int64_t pixels) {
  const int64_t last = (divide_up(pixels, kPixels) * kPixels - 1) * g.stride[2];
  return last / kSpacing + (groups_of(g) - 1) * (kTaps / kSpacing) + 1;
}
HWY_INLINE int64_t phase_weights(const Geometry& g) {
  return g.kernel[0] * g.kernel[1] * groups_of(g) * kGroup;
}

void pack_q_depthwise(const QDepthwise& q, const QDepthwiseWeights& w) {
  const Geometry& g = q.g;
  const int64_t channels = g.in_channels, wide = divide_up(channels, kQChannels) * kQChannels;
  const int64_t groups = groups_of(g), phase_size = phase_weights(g);
  auto* weights = reinterpret_cast<Weight*>(q.weights);
  for (int64_t i = 0; i < wide * kSpacing * phase_size / kQChannels; ++i) weights[i] = 0;
  for (int64_t c = 0; c < wide; ++c) {
    uint32_t sum = 0;
    for (int64_t line = 0; c < channels && line < g.kernel[0] * g.kernel[1]; ++line)
      for (int64_t t = 0; t < g.kernel[2]; ++t) {
        const int8_t v = w.weights[(line * g.kernel[2] + t) * channels + c];
        sum += static_cast<uint32_t>(v);
        for (int64_t phase = 0; phase < kSpacing; ++phase) {
          const int64_t at = t + phase;
          weights[(c / kQChannels * kSpacing + phase) * phase_size + (line * groups + at / kTaps) * kGroup +
                  c % kQChannels * kTaps + at % kTaps] = v;
        }
      }
    const uint32_t shift = kShift == 0 ? 0 : sum * static_cast<uint32_t>(kShift + q.x_zero);
    q.bias[c] = c < channels ? static_cast<int32_t>(static_cast<uint32_t>(w.bias[c]) - shift) : 0;
    q.multipliers[c] = c < channels ? w.multipliers[c * w.multiplier_step] : 0.0f;
  }
}

// ---- input

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
using Pixel = hn::Vec<hn::FixedTag<uint8_t, 16>>;
HWY_INLINE Pixel load_pixel(const int8_t* p, size_t count, int16_t) {
  const hn::FixedTag<int8_t, 16> d;
  const auto v = count >= 16 ? hn::LoadU(d, p) : hn::LoadN(d, p, count);
  return hn::BitCast(hn::FixedTag<uint8_t, 16>(), v);
}
HWY_INLINE Pixel no_pixel(int32_t x_zero) {
  return hn::Set(hn::FixedTag<uint8_t, 16>(), static_cast<uint8_t>(x_zero));
}
HWY_INLINE void store_group(const Pixel* p, Element* to) {
  const hn::FixedTag<uint8_t, 64> d;
  const hn::FixedTag<uint8_t, 32> half;
  alignas(64) static constexpr uint8_t kOrder[64] = {
      0,  16, 32, 48, 1,  17, 33, 49, 2,  18, 34, 50, 3,  19, 35, 51, 4,  20, 36, 52, 5,  21,
      37, 53, 6,  22, 38, 54, 7,  23, 39, 55, 8,  24, 40, 56, 9,  25, 41, 57, 10, 26, 42, 58,
      11, 27, 43, 59, 12, 28, 44, 60, 13, 29, 45, 61, 14, 30, 46, 62, 15, 31, 47, 63};
  const auto v = hn::Combine(d, hn::Combine(half, p[3], p[2]), hn::Combine(half, p[1], p[0]));
  const auto quads = hn::TableLookupLanes(v, hn::SetTableIndices(d, kOrder));
  hn::StoreU(hn::Xor(quads, hn::Set(d, uint8_t{128})), d, to);
}
#else
using D8x16 = hn::FixedTag<int16_t, 8>;
struct Pixel {
  hn::Vec<D8x16> low, high;
};
HWY_INLINE Pixel load_pixel(const int8_t* p, size_t count, int16_t x_zero) {
  const hn::FixedTag<int8_t, 8> d;
  HWY_ALIGN int8_t part[16] = {};
  if (count < 16) {
    std::memcpy(part, p, count);
    p = part;
  }
  const auto zero = hn::Set(D8x16(), x_zero);
  return {hn::Sub(hn::PromoteTo(D8x16(), hn::LoadU(d, p)), zero),
          hn::Sub(hn::PromoteTo(D8x16(), hn::LoadU(d, p + 8)), zero)};
}
HWY_INLINE Pixel no_pixel(int32_t) { return {hn::Zero(D8x16()), hn::Zero(D8x16())}; }
HWY_INLINE void store_group(const Pixel* p, Element* to) {
  const D8x16 d;
  if constexpr (kTaps == 1) {
    hn::StoreU(p[0].low, d, to);
    hn::StoreU(p[0].high, d, to + 8);
  } else {
    hn::StoreU(hn::InterleaveLower(d, p[0].low, p[1].low), d, to);
    hn::StoreU(hn::InterleaveUpper(d, p[0].low, p[1].low), d, to + 8);
    hn::StoreU(hn::InterleaveLower(d, p[0].high, p[1].high), d, to + 16);
    hn::StoreU(hn::InterleaveUpper(d, p[0].high, p[1].high), d, to + 24);
  }
}
#endif

// `groups` groups of an input line of g.in[2] pixels (null: outside), the first of which begins at pixel
// `from`.
HWY_INLINE void load_line(const Geometry& g, const int8_t* line, int64_t from, int64_t groups,
                          size_t channels, int32_t x_zero, Element* to) {
  Pixel p[kTaps];
  const auto zero = static_cast<int16_t>(x_zero);
  const auto pixel = [&](int64_t i) SINTER_SIMD_LAMBDA {
    return line != nullptr && i >= 0 && i < g.in[2] ? load_pixel(line + i * g.in_channels, channels, zero)
                                                    : no_pixel(x_zero);
  };
  // Groups first .. end - 1 are inside the line.
  const int64_t first = std::min(from >= 0 ? 0 : divide_up(-from, kSpacing), groups);
  const int64_t room = g.in[2] - kTaps - from;  // less than 0: none of them
  const bool plain = line != nullptr && channels >= kQChannels && room >= 0;
  const int64_t end = plain ? std::clamp(room / kSpacing + 1, first, groups) : first;
  const auto edge = [&](int64_t i) SINTER_SIMD_LAMBDA {
    for (int64_t t = 0; t < kTaps; ++t) p[t] = pixel(from + i * kSpacing + t);
    store_group(p, to + i * kGroup);
  };
  for (int64_t i = 0; i < first; ++i) edge(i);
  for (int64_t i = first; i < end; ++i) {
    const int8_t* at = line + (from + i * kSpacing) * g.in_channels;
    for (int64_t t = 0; t < kTaps; ++t, at += g.in_channels) p[t] = load_pixel(at, kQChannels, zero);
    store_group(p, to + i * kGroup);
  }
  for (int64_t i = end; i < groups; ++i) edge(i);
}

// ---- products

// One vector of channels. kNear: stride 1, where pixels share groups by twos; kLines: 3 if a
// window is three lines of one group, else 0. The first kCount of four neighbouring pixels.
template <class T, bool kNear, int kLines, int kCount>
HWY_INLINE void run_pixels(const QDepthwise& q, const Element* x, int64_t plane_step, int64_t line_step,
                           const Weight* weights, int64_t rest, V32 bias, const Finish<T>& value,
                           size_t channels, T* at) {
  const D32 d;
  const hn::Rebind<T, D32> to;
  const Geometry& g = q.g;
  [[maybe_unused]] const int64_t groups = groups_of(g);
  const int64_t stride = kNear ? 1 : g.stride[2];
  [[maybe_unused]] const int64_t step = kTaps / kSpacing * kGroup;  // to a window's next group
  // Where the pixels' windows begin: every second one in the same place of a group.
  const int64_t x1 = stride / kSpacing * kGroup, x2 = 2 * stride / kSpacing * kGroup,
                x3 = 3 * stride / kSpacing * kGroup;
  V32 s0 = bias, s1 = bias, s2 = bias, s3 = bias;
  const Weight *w0 = weights, *w1 = weights + stride % kSpacing * phase_weights(g);
#define SINTER_GROUP(p, u0, u1)                               \
  {                                                           \
    const V32 a = load_group(p);                              \
    s0 = product(a, u0, s0);                                  \
    s1 = product(kNear ? a : load_group((p) + x1), u1, s1);   \
    if constexpr (kCount == 4) {                              \
      const V32 c = load_group((p) + x2);                     \
      s2 = product(c, u0, s2);                                \
      s3 = product(kNear ? c : load_group((p) + x3), u1, s3); \
    }                                                         \
  }
  // Loops copy the sums about.
  if constexpr (kLines == 3) {
    SINTER_GROUP(x, w0, w1)
    SINTER_GROUP(x + line_step, w0 + kGroup, w1 + kGroup)
    SINTER_GROUP(x + 2 * line_step, w0 + 2 * kGroup, w1 + 2 * kGroup)
  } else {
    const Element* plane = x;
    for (int64_t t0 = 0; t0 < g.kernel[0]; ++t0, plane += plane_step) {
      const Element* line = plane;
      for (int64_t t1 = 0; t1 < g.kernel[1]; ++t1, line += line_step) {
        const Element* p = line;
        for (int64_t j = 0; j < groups; ++j, p += step, w0 += kGroup, w1 += kGroup) SINTER_GROUP(p, w0, w1)
      }
    }
  }
#undef SINTER_GROUP
  const int64_t next = g.out_channels;
#define SINTER_STORE(i)                                     \
  if (kCount > i && i < rest) {                             \
    if (channels >= hn::Lanes(d))                           \
      hn::StoreU(value(s##i), to, at + i * next);           \
    else                                                    \
      hn::StoreN(value(s##i), to, at + i * next, channels); \
  }
  SINTER_STORE(0)
  SINTER_STORE(1)
  SINTER_STORE(2)
  SINTER_STORE(3)
#undef SINTER_STORE
}

template <class T, bool kNear, int kLines>
HWY_NOINLINE void run_line(const QDepthwise& q, const Element* x, int64_t plane_step, int64_t line_step,
                           const Weight* weights, int64_t pixels, V32 bias, const Finish<T>& value,
                           size_t channels, T* y) {
  const int64_t stride = kNear ? 1 : q.g.stride[2], next = q.g.out_channels;
  int64_t o = 0;
  for (; pixels - o > 2; o += kPixels, x += kPixels * stride / kSpacing * kGroup)
    run_pixels<T, kNear, kLines, 4>(q, x, plane_step, line_step, weights, pixels - o, bias, value, channels,
                                    y + o * next);
  if (o < pixels)
    run_pixels<T, kNear, kLines, 2>(q, x, plane_step, line_step, weights, pixels - o, bias, value, channels,
                                    y + o * next);
}

template <class T>
HWY_NOINLINE void run_block(const QDepthwise& q, const QBox& box, int64_t c0, const Element* buffer) {
  const D32 d;
  const Geometry& g = q.g;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t pixels = box.end[2] - box.begin[2];
  const int64_t line_size = line_groups(g, pixels) * kGroup;
  const auto* weights =
      reinterpret_cast<const Weight*>(q.weights) + c0 / kQChannels * kSpacing * phase_weights(g);
  Finish<T> value(q.result);
  const bool near = kSpacing == 2 && g.stride[2] == 1;
  const bool three = groups_of(g) == 1 && g.kernel[0] == 1 && g.kernel[1] == 3;
  const auto run = three ? (near ? run_line<T, true, 3> : run_line<T, false, 3>)
                         : (near ? run_line<T, true, 0> : run_line<T, false, 0>);
  for (int64_t i = box.begin[1]; i < box.end[1]; ++i) {
    const Element* x = buffer + (i - box.begin[1]) * g.stride[1] * line_size;
    for (int64_t c = 0; c < kQChannels && c0 + c < g.in_channels; c += lanes) {
      value.multiplier = hn::LoadU(DF(), q.multipliers + c0 + c);
      const V32 bias = hn::LoadU(d, q.bias + c0 + c);
      T* y = static_cast<T*>(q.result.y) + box.pixel(g, i, box.begin[2]) * g.out_channels + c0 + c;
      run(q, x + c * kTaps, box.lines * line_size, g.dilation[1] * line_size, weights + c * kTaps, pixels,
          bias, value, static_cast<size_t>(g.in_channels - c0 - c), y);
    }
  }
}

// Channels c0 .. c0 + kQChannels - 1 of a box.
void q_depthwise_box(const QDepthwise& q, const QBox& box, int64_t c0, std::byte* memory) {
  const Geometry& g = q.g;
  auto* buffer = reinterpret_cast<Element*>(memory);
  const int64_t groups = line_groups(g, box.end[2] - box.begin[2]);
  const int64_t reach = (g.kernel[1] - 1) * g.dilation[1],
                channels = std::min(kQChannels, g.in_channels - c0);
  Element* to = buffer;
  for (int64_t t0 = 0; t0 < g.kernel[0]; ++t0) {
    const int64_t i0 = box.begin[0] * g.stride[0] - g.pad[0] + t0 * g.dilation[0];
    for (int64_t l = 0; l < box.lines; ++l, to += groups * kGroup) {
      const int64_t i1 = box.begin[1] * g.stride[1] - g.pad[1] + l;
      if (l % g.stride[1] > reach) continue;  // between the windows
      const bool inside = i0 >= 0 && i0 < g.in[0] && i1 >= 0 && i1 < g.in[1];
      const int8_t* line =
          inside ? q.x + ((box.batch * g.in[0] + i0) * g.in[1] + i1) * g.in[2] * g.in_channels + c0 : nullptr;
      load_line(g, line, box.begin[2] * g.stride[2] - g.pad[2], groups, static_cast<size_t>(channels),
                q.x_zero, to);
    }
  }
  if (q.result.type == DType::kInt8)
    run_block<int8_t>(q, box, c0, buffer);
  else if (q.result.type == DType::kFloat32)
    run_block<float>(q, box, c0, buffer);
  else
    run_block<int16_t>(q, box, c0, buffer);
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {
namespace {

HWY_EXPORT(pack_q_depthwise);
HWY_EXPORT(q_depthwise_box);

constexpr int64_t kBoxElements = 24576;  // of the input, 16 channels
constexpr int64_t kBoxPixels = 4096;

struct Plan {
  QDepthwise q;
  QBoxes boxes;
  int64_t blocks() const { return divide_up(q.g.in_channels, kQChannels); }
};

// False where the memory cannot be counted.
bool plan_of(const OpCall& call, Plan* p) {
  const auto& a = call.attrs<QDepthwiseConvAttrs>();
  p->q.g = window_geometry<QDepthwiseConvAttrs>(call);
  p->q.x = call.in(0).as<const int8_t>(), p->q.x_zero = static_cast<int32_t>(a.x_zero);
  p->q.result = product_result(call, a);
  return call.out(0).size() == 0 || p->boxes.choose(p->q.g, kQChannels, kBoxElements, kBoxPixels);
}

// Bounds over the instruction sets: two places to begin at, int16, kTaps up to 4.
bool packed_bytes(const Plan& p, int64_t* weights, int64_t* bytes) {
  const Geometry& g = p.q.g;
  int64_t lines = 0;
  return checked_mul(g.kernel[0], g.kernel[1], &lines) &&
         checked_mul(lines, 4 * (g.kernel[2] + 4), weights) &&
         checked_mul(*weights, p.blocks() * kQChannels, weights) &&
         checked_add(*weights, p.blocks() * kQChannels * 8, bytes);
}

// Of one thread: lines of groups, at most 4 bytes for a pixel and channel; up to 3 pixels more are computed.
bool scratch_bytes(const Plan& p, int64_t* bytes) {
  const Geometry& g = p.q.g;
  int64_t line = 0;
  if (!checked_mul<int64_t>(g.stride[2], 4, &line) || !checked_add(line, p.boxes.line + 16, &line) ||
      !checked_mul(line, p.boxes.lines, bytes) || !checked_mul(*bytes, g.kernel[0], bytes) ||
      !checked_mul<int64_t>(*bytes, kQChannels * 2, bytes) ||
      !checked_add<int64_t>(*bytes, 2 * static_cast<int64_t>(kBufferAlignment), bytes))
    return false;
  *bytes = *bytes / static_cast<int64_t>(kBufferAlignment) * static_cast<int64_t>(kBufferAlignment);
  return true;
}

// Of one thread, where `threads` share the boxes.
bool shared_scratch(Plan* p, int64_t threads, int64_t* bytes) {
  p->boxes.share(p->q.g, threads);
  return p->boxes.measure(p->q.g, kQChannels) && scratch_bytes(*p, bytes);
}

bool place(Plan* p, std::byte* packed) {
  int64_t weights = 0, bytes = 0;
  if (!packed_bytes(*p, &weights, &bytes)) return false;
  p->q.weights = packed;
  p->q.bias = reinterpret_cast<int32_t*>(packed + weights);
  p->q.multipliers = reinterpret_cast<float*>(p->q.bias + p->blocks() * kQChannels);
  return true;
}

Status needs_of(const OpCall& call, int threads, size_t* packed, size_t* scratch) {
  Plan p;
  int64_t weights = 0, a = 0, b = 0;
  const auto scratch_of = [&p](int64_t n, int64_t* bytes) {
    Plan shared = p;
    return shared_scratch(&shared, n, bytes);
  };
  SINTER_RETURN_UNLESS(plan_of(call, &p) && packed_bytes(p, &weights, &a) &&
                           scratch_of_threads(threads, scratch_of, &b) && a < INT64_MAX / 2 &&
                           b < INT64_MAX / 4,
                       invalid("the operation needs more workspace than the step has"));
  *packed = align_up(static_cast<size_t>(a), kBufferAlignment);
  *scratch = static_cast<size_t>(b);
  return ok_status();
}

Status run_with(const OpCall& call, RunContext& context, std::byte* packed, std::byte* scratch) {
  Plan p;
  int64_t each = 0;
  const int64_t threads = threads_of(context.threads);
  if (call.out(0).size() == 0 || !plan_of(call, &p) || !shared_scratch(&p, threads, &each) ||
      !place(&p, packed))
    return ok_status();
  const int64_t units = p.boxes.count(p.q.g) * p.blocks(), slots = std::min(units, threads);
  parallel_slots(context.threads, slots, units, [&](int64_t slot, int64_t begin, int64_t end) {
    const auto run = HWY_DYNAMIC_POINTER(q_depthwise_box);
    for (int64_t unit = begin; unit < end; ++unit)
      run(p.q, p.boxes.at(p.q.g, unit / p.blocks()), unit % p.blocks() * kQChannels, scratch + slot * each);
  });
  return ok_status();
}

bool wide_input(const OpCall& call) { return call.in(0).dtype == DType::kInt16; }

Status workspace(const OpCall& call, int threads, size_t* bytes) {
  if (wide_input(call)) return q16_depthwise_workspace(call, threads, bytes);
  size_t packed = 0, scratch = 0;
  SINTER_RETURN_IF_ERROR(needs_of(call, threads, &packed, &scratch));
  *bytes = packed + scratch;
  return ok_status();
}

Status run(const OpCall& call, RunContext& context) {
  if (wide_input(call)) return run_q16_depthwise(call, context);
  size_t packed = 0, scratch = 0;
  SINTER_RETURN_IF_ERROR(needs_of(call, 1, &packed, &scratch));
  pack_q_depthwise(call, context.workspace.data(), nullptr);
  return run_with(call, context, context.workspace.data(), context.workspace.data() + packed);
}

Status accept(const OpCall& call) {
  const TensorView &x = call.in(0), &y = call.out(0);
  if (wide_input(call)) return accept_q16_depthwise(call);
  SINTER_RETURN_UNLESS(x.dims[x.rank - 1] == y.dims[y.rank - 1],
                       unsupported("the simd kernel has one output channel per input channel"));
  SINTER_RETURN_UNLESS(!call.has_input(4), unsupported("the weights have zero points"));
  Plan p;
  SINTER_RETURN_UNLESS(plan_of(call, &p), unsupported("a window is too large for the simd kernel"));
  SINTER_RETURN_UNLESS(p.q.g.dilation[2] == 1, unsupported("the simd kernel takes taps side by side"));
  return accept_dense(call);
}

}  // namespace

bool q_depthwise_packing(const OpCall& call, int threads, Packing* packing, size_t* workspace) {
  Plan p;
  size_t bytes = 0;
  if (wide_input(call) || !call.in(2).constant || !call.in(3).constant ||
      !needs_of(call, threads, &bytes, workspace).ok() || !plan_of(call, &p))
    return false;
  const Geometry& g = p.q.g;
  *packing = {bytes,
              0b1110,
              {kIntegerDepthwise, g.in_channels, g.kernel[0], g.kernel[1], g.kernel[2], p.q.x_zero,
               call.in(3).size()}};
  return true;
}

void pack_q_depthwise(const OpCall& call, std::byte* packed, ThreadPool*) {
  Plan p;
  if (!plan_of(call, &p) || !place(&p, packed)) return;
  HWY_DYNAMIC_DISPATCH(pack_q_depthwise)
  (p.q, {call.in(1).as<const int8_t>(), call.in(2).as<const int32_t>(), call.in(3).as<const float>(),
         call.in(3).size() == 1 ? 0 : 1});
}

Status run_packed_q_depthwise(void* packed, const OpCall& call, RunContext& context) {
  return run_with(call, context, static_cast<std::byte*>(packed), context.workspace.data());
}

const Kernel kQDepthwiseConvKernel = {Op::kQDepthwiseConv, nullptr, workspace, run, accept};

}  // namespace sinter::simd
#endif  // HWY_ONCE
