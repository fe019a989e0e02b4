// The input of QDepthwiseConv: lines of 16 channels, with neighbouring pixels interleaved, so that one
// instruction sums the taps of several pixels.
//
// A group is kTaps neighbouring pixels of 16 channels, channel by channel; groups begin at every kSpacing-th
// pixel. A window's line is the sum of a few groups; its weights are packed once for every place in a group
// at which it may begin, with zeros beside them.
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_INT8_DEPTHWISE_INPUT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_INT8_DEPTHWISE_INPUT_INL_H_
#undef SINTER_PLATFORMS_SIMD_INT8_DEPTHWISE_INPUT_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_INT8_DEPTHWISE_INPUT_INL_H_
#endif

#include <cstring>

#include "platforms/simd/int8/depthwise.h"
#include "platforms/simd/int8/multiply-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

#undef SINTER_Q_QUADS
#undef SINTER_Q_HALVES
// Elements are x + kShift; the bias makes up for that and for the zero point.
using Weight = WeightElement;
// HWY_NEON has dot products of bytes here (isa/config.h).
#define SINTER_Q_QUADS ((HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL) || HWY_TARGET == HWY_NEON)
constexpr DepthwiseForm kForm = SINTER_Q_QUADS ? kQuads : HWY_TARGET_IS_NEON ? kSingles : kPairs;

// In 256 bits are 16 channels of int16, which are interleaved within halves: the channels of a group are 0 to
// 3, 8 to 11, 4 to 7 and 12 to 15.
#if HWY_TARGET == HWY_AVX2
#define SINTER_Q_HALVES 1
#else
#define SINTER_Q_HALVES 0
#endif

static_assert(kForm.element == sizeof(Element));
constexpr int64_t kTaps = kForm.taps, kSpacing = kForm.spacing, kPixels = kDepthwisePixels;
constexpr int64_t kGroup = kQChannels * kTaps;  // elements

// Returns the place of a channel in its group.
HWY_INLINE int64_t place_in_group(int64_t channel) {
  const int64_t four = channel / 4;
  return SINTER_Q_HALVES ? (four % 2 * 2 + four / 2) * 4 + channel % 4 : channel;
}

HWY_INLINE int64_t groups_of(const Geometry& g) { return kForm.groups_of(g); }
HWY_INLINE int64_t line_groups(const Geometry& g, int64_t pixels) { return kForm.line_groups(g, pixels); }
HWY_INLINE int64_t phase_weights(const Geometry& g) {
  return g.kernel[0] * g.kernel[1] * groups_of(g) * kGroup;
}

#if SINTER_Q_QUADS
using DPixel = hn::FixedTag<int8_t, 16>;
using Pixel = hn::Vec<DPixel>;
HWY_INLINE Pixel load_pixel(const int8_t* p) { return hn::LoadU(DPixel(), p); }
#if HWY_ARCH_X86
// Two pixels.
using Two = hn::Vec<hn::FixedTag<int8_t, 32>>;
HWY_INLINE Two two_pixels(Pixel a, Pixel b) {
  const hn::FixedTag<int8_t, 32> d;
  return hn::Xor(hn::Combine(d, b, a), hn::Set(d, int8_t{-128}));
}
HWY_INLINE void store_group(const Two& a, const Two& b, Element* to) {
  const hn::FixedTag<int8_t, 64> d;
  alignas(64) static constexpr int8_t kOrder[64] = {
      0,  16, 64, 80, 1,  17, 65, 81, 2,  18, 66, 82, 3,  19, 67, 83, 4,  20, 68, 84, 5,  21,
      69, 85, 6,  22, 70, 86, 7,  23, 71, 87, 8,  24, 72, 88, 9,  25, 73, 89, 10, 26, 74, 90,
      11, 27, 75, 91, 12, 28, 76, 92, 13, 29, 77, 93, 14, 30, 78, 94, 15, 31, 79, 95};
  const auto quads = hn::TwoTablesLookupLanes(d, hn::ZeroExtendVector(d, a), hn::ZeroExtendVector(d, b),
                                              hn::SetTableIndices(d, kOrder));
  hn::StoreU(hn::BitCast(hn::FixedTag<uint8_t, 64>(), quads), hn::FixedTag<uint8_t, 64>(), to);
}
#else
// Two pixels, byte by byte.
struct Two {
  hn::Vec<hn::FixedTag<int16_t, 8>> low, high;
};
HWY_INLINE Two two_pixels(Pixel a, Pixel b) {
  const hn::FixedTag<int16_t, 8> d;
  const DPixel bytes;
  return {hn::BitCast(d, hn::InterleaveLower(bytes, a, b)), hn::BitCast(d, hn::InterleaveUpper(bytes, a, b))};
}
HWY_INLINE void store_group(const Two& a, const Two& b, Element* to) {
  const hn::FixedTag<int16_t, 8> d;
  const DPixel bytes;
  hn::StoreU(hn::BitCast(bytes, hn::InterleaveLower(d, a.low, b.low)), bytes, to);
  hn::StoreU(hn::BitCast(bytes, hn::InterleaveUpper(d, a.low, b.low)), bytes, to + 16);
  hn::StoreU(hn::BitCast(bytes, hn::InterleaveLower(d, a.high, b.high)), bytes, to + 32);
  hn::StoreU(hn::BitCast(bytes, hn::InterleaveUpper(d, a.high, b.high)), bytes, to + 48);
}
#endif
#elif SINTER_Q_HALVES
using Pixel = V16;
HWY_INLINE Pixel load_pixel(const int8_t* p) { return load16(p); }
HWY_INLINE void store_group(const Pixel& p, const Pixel& q, Element* to) {
  const D16 d;
  hn::StoreU(hn::InterleaveLower(d, p, q), d, to);
  hn::StoreU(hn::InterleaveUpper(d, p, q), d, to + 16);
}
#else
using D8x16 = hn::FixedTag<int16_t, 8>;
struct Pixel {
  hn::Vec<D8x16> low, high;
};
HWY_INLINE Pixel load_pixel(const int8_t* p) {
  const hn::FixedTag<int8_t, 8> d;
  return {hn::PromoteTo(D8x16(), hn::LoadU(d, p)), hn::PromoteTo(D8x16(), hn::LoadU(d, p + 8))};
}
HWY_INLINE void store_group(const Pixel& p, [[maybe_unused]] const Pixel& q, Element* to) {
  const D8x16 d;
  if constexpr (kTaps == 1) {
    hn::StoreU(p.low, d, to);
    hn::StoreU(p.high, d, to + 8);
  } else {
    hn::StoreU(hn::InterleaveLower(d, p.low, q.low), d, to);
    hn::StoreU(hn::InterleaveUpper(d, p.low, q.low), d, to + 8);
    hn::StoreU(hn::InterleaveLower(d, p.high, q.high), d, to + 16);
    hn::StoreU(hn::InterleaveUpper(d, p.high, q.high), d, to + 24);
  }
}
#endif

// Stores `count` whole groups from pixel `at` on.
HWY_INLINE void store_groups(const int8_t* at, int64_t step, int64_t count, Element* to) {
#if SINTER_Q_QUADS
  if (count <= 0) return;
#if HWY_ARCH_ARM_A64
    // Stores two groups at a time, in assembly, because an instruction stores four registers in a row. v2 and
    // v3 are the interleaved pixels that a group shares with the one before, then v4 and v5.
#define SINTER_TWO_PIXELS(a, b)                                          \
  "ld1 {v0.16b}, [%[at]], %[step]\n\tld1 {v1.16b}, [%[at]], %[step]\n\t" \
  "zip1 v" #a ".16b, v0.16b, v1.16b\n\tzip2 v" #b ".16b, v0.16b, v1.16b\n\t"
#define SINTER_NEXT_GROUP(a, b, c, d)                                    \
  SINTER_TWO_PIXELS(c, d)                                                \
  "zip1 v16.8h, v" #a ".8h, v" #c ".8h\n\tzip2 v17.8h, v" #a ".8h, v" #c \
  ".8h\n\t"                                                              \
  "zip1 v18.8h, v" #b ".8h, v" #d ".8h\n\tzip2 v19.8h, v" #b ".8h, v" #d \
  ".8h\n\t"                                                              \
  "st1 {v16.16b, v17.16b, v18.16b, v19.16b}, [%[to]], #64\n\t"
  asm volatile(SINTER_TWO_PIXELS(2, 3) "1:\n\t" SINTER_NEXT_GROUP(2, 3, 4, 5)
               "subs %[count], %[count], #2\n\tb.lt 2f\n\t" SINTER_NEXT_GROUP(4, 5, 2, 3) "b.ne 1b\n\t"
               "2:"
               : [at] "+r"(at), [to] "+r"(to), [count] "+r"(count)
               : [step] "r"(step)
               : "memory", "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v16", "v17", "v18", "v19");
#undef SINTER_NEXT_GROUP
#undef SINTER_TWO_PIXELS
#else
  Two a = two_pixels(load_pixel(at), load_pixel(at + step));
  for (int64_t i = 0; i < count; ++i, to += kGroup) {
    at += 2 * step;
    const Two b = two_pixels(load_pixel(at), load_pixel(at + step));
    store_group(a, b, to);
    a = b;
  }
#endif
#else
  for (int64_t i = 0; i < count; ++i, at += kSpacing * step, to += kGroup) {
    const Pixel p = load_pixel(at);
    store_group(p, kTaps == 1 ? p : load_pixel(at + step), to);
  }
#endif
}

// A line of the input from a block's first channel on, or null in the padding. `readable` bytes can be read
// from its first pixel on. Where an input channel has several outputs, `places` are the input channels that
// 16 outputs read.
struct QLine {
  const int8_t* x;
  int64_t readable, channels;
  const int8_t* places;
};

// Loads `groups` groups of an input line of g.in[2] pixels, the first of which begins at pixel `from`.
HWY_INLINE void load_line(const Geometry& g, const QLine& line, int64_t from, int64_t groups, int32_t x_zero,
                          Element* to) {
  // The pixels of which 16 channels can be read; the last channels of a pixel are read with the next ones.
  int64_t easy = line.x == nullptr || line.places != nullptr ? 0 : g.in[2];
  while (easy > 0 && (easy - 1) * g.in_channels + kQChannels > line.readable) --easy;
  HWY_ALIGN int8_t none[kQChannels], part[kQChannels];
  hn::Store(hn::Set(hn::FixedTag<int8_t, 16>(), static_cast<int8_t>(x_zero)), hn::FixedTag<int8_t, 16>(),
            none);
  const auto pixel = [&](int64_t i) SINTER_SIMD_LAMBDA {
    const int8_t* at = none;
    if (i >= 0 && i < easy) {
      at = line.x + i * g.in_channels;
    } else if (HWY_UNLIKELY(i >= easy && i < g.in[2] && line.x != nullptr)) {
      at = line.x + i * g.in_channels;
      const bool readable = i * g.in_channels + kQChannels <= line.readable;
      if (line.places == nullptr)
        std::memcpy(part, at, static_cast<size_t>(line.channels));
      else if (const hn::FixedTag<int8_t, 16> d; HWY_LIKELY(readable))
        hn::Store(hn::TableLookupBytes(hn::LoadU(d, at), hn::Load(d, line.places)), d, part);
      else
        for (int64_t c = 0; c < line.channels; ++c) part[c] = at[line.places[c]];
      at = part;
    }
    return load_pixel(at);
  };
#if SINTER_Q_QUADS && HWY_ARCH_ARM_A64
  // Most groups of short lines are at an edge. Their pixels are placed beside each other first.
  constexpr int64_t kShortLine = 16;  // groups
  if (groups <= kShortLine) {
    HWY_ALIGN int8_t pixels[(kSpacing * kShortLine + kTaps - kSpacing) * kQChannels];
    const int64_t count = kSpacing * groups + kTaps - kSpacing;
    // The parts: padding, pixels that can be read, others that are in the line, and padding again.
    const int64_t inside = std::clamp<int64_t>(-from, 0, count),
                  rest = std::clamp(easy - from, inside, count);
    const int64_t outside = std::clamp(line.x == nullptr ? 0 : g.in[2] - from, rest, count);
    const auto place = [&](int64_t i, Pixel v)
                           SINTER_SIMD_LAMBDA { hn::StoreU(v, DPixel(), pixels + i * kQChannels); };
    const int8_t* at = line.x + (from + inside) * g.in_channels;
    for (int64_t i = 0; i < inside; ++i) place(i, load_pixel(none));
    for (int64_t i = inside; i < rest; ++i, at += g.in_channels) place(i, load_pixel(at));
    for (int64_t i = rest; i < outside; ++i) place(i, pixel(from + i));
    for (int64_t i = outside; i < count; ++i) place(i, load_pixel(none));
    return store_groups(pixels, kQChannels, groups, to);
  }
#endif
  // Groups first .. end - 1 are inside the line.
  const int64_t first = std::min(from >= 0 ? 0 : divide_up(-from, kSpacing), groups);
  const int64_t room = easy - kTaps - from;  // less than 0: none of them
  const int64_t end = room >= 0 ? std::clamp(room / kSpacing + 1, first, groups) : first;
  const auto edge = [&](int64_t i) SINTER_SIMD_LAMBDA {
    const int64_t at = from + i * kSpacing;
#if SINTER_Q_QUADS
    store_group(two_pixels(pixel(at), pixel(at + 1)), two_pixels(pixel(at + 2), pixel(at + 3)),
                to + i * kGroup);
#else
    store_group(pixel(at), pixel(kTaps == 1 ? at : at + 1), to + i * kGroup);
#endif
  };
  for (int64_t i = 0; i < first; ++i) edge(i);
  if (end > first)
    store_groups(line.x + (from + first * kSpacing) * g.in_channels, g.in_channels, end - first,
                 to + first * kGroup);
  for (int64_t i = end; i < groups; ++i) edge(i);
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#endif  // SINTER_PLATFORMS_SIMD_INT8_DEPTHWISE_INPUT_INL_H_
