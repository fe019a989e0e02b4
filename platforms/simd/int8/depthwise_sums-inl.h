// The sums of QDepthwiseConv over a box's groups (depthwise_input-inl.h), and its results.
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_INT8_DEPTHWISE_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_INT8_DEPTHWISE_SUMS_INL_H_
#undef SINTER_PLATFORMS_SIMD_INT8_DEPTHWISE_SUMS_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_INT8_DEPTHWISE_SUMS_INL_H_
#endif

#include <cstring>
#include <type_traits>

#include "platforms/simd/int8/depthwise_input-inl.h"
#include "platforms/simd/int8/depthwise_store-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// Keeps a sum in its register: compilers that change the order of additions would keep all products in
// memory, and load an operand again for each product.
template <class V>
HWY_INLINE V in_register(V v) {
#if HWY_ARCH_X86
  asm("" : "+x"(v.raw));
#endif
  return v;
}

// Elements or weights of one group, in kVectors vectors of channels.
#if HWY_TARGET_IS_NEON && !SINTER_Q_QUADS
using Inputs = V16;
using GroupWeights = V16;
HWY_INLINE Inputs load_inputs(const Element* p) { return hn::LoadU(D16(), p); }
HWY_INLINE GroupWeights load_group(const Weight* p) { return hn::LoadU(D16(), p); }
HWY_INLINE void add_products(Inputs x, GroupWeights w, V32& a, V32& b) {
  a = hn::WidenMulAccumulate(D32(), x, w, a, b);
}
#else
template <class X, class W>
HWY_INLINE V32 product(X x, W w, V32 sum) {
  sum = add_products(hn::BitCast(D32(), x), hn::BitCast(D32(), w), sum);
  return SINTER_Q_QUADS ? sum : in_register(sum);
}
using DWeight = hn::ScalableTag<Weight>;
struct Inputs {
  hn::Vec<hn::ScalableTag<Element>> a, b;
};
struct GroupWeights {
  hn::Vec<DWeight> a, b;
};
HWY_INLINE Inputs load_inputs(const Element* p) {
  const hn::ScalableTag<Element> d;
  const auto a = in_register(hn::LoadU(d, p));
  return {a, kVectors == 2 ? in_register(hn::LoadU(d, p + hn::Lanes(d))) : a};
}
HWY_INLINE GroupWeights load_group(const Weight* p) {
  const DWeight d;
  const auto a = in_register(hn::LoadU(d, p));
  return {a, kVectors == 2 ? in_register(hn::LoadU(d, p + hn::Lanes(d))) : a};
}
HWY_INLINE void add_products(const Inputs& x, const GroupWeights& w, V32& a, V32& b) {
  a = product(x.a, w.a, a);
  if constexpr (kVectors == 2) b = product(x.b, w.b, b);
}
#endif

// The lines of results, kVectors vectors of channels.
struct QLines {
  const Element* x;
  int64_t plane_step, line_step;  // of the input, from tap to tap
  const Weight *even, *odd;       // for windows that begin at a group, and between
  V32 bias0, bias1;
  int64_t pixels, next;           // of a line; from a pixel of the result to the next
  int64_t count, x_next, y_next;  // from line to line
};

// The weights of a window of three groups, for windows that begin at a group and between.
struct ThreeGroups {
  GroupWeights even0, even1, even2, odd0, odd1, odd2;
};

// kStride is 1, 2, or 0 for others; kGroups are those of a window's line, or 0 for others; kLines is 3 or 0
// for others. With kHeld, weights stay in registers.
template <int kStride, int kGroups, int kLines>
struct QWindow {
  static constexpr bool kHeld = kGroups == 1 && kLines == 3;
  // True if pixels share groups in twos, or begin at the same place of a group.
  static constexpr bool kNear = kSpacing == 2 && kStride == 1;
  static constexpr bool kSame = kSpacing == 1 || kStride == 2;
  // True if taps are loaded one by one, each for all pixels whose windows contain it.
  static constexpr bool kRolling = kSpacing == 1 && kStride == 1;
};

// Computes the first kCount of four neighbouring pixels.
template <class W, int kGroups, int kLines, int kCount, class End>
HWY_INLINE void run_pixels(const Geometry& g, const QLines& line, const Element* x, int64_t stride,
                           const ThreeGroups& held, const End& end, int64_t rest, typename End::Type* at) {
  [[maybe_unused]] const int64_t step = kTaps / kSpacing * kGroup;  // to a window's next group
  // The begins of the pixels' windows: every second one is at the same place of a group.
  const int64_t x1 = stride / kSpacing * kGroup, x2 = 2 * stride / kSpacing * kGroup,
                x3 = 3 * stride / kSpacing * kGroup;
  V32 s00 = line.bias0, s10 = s00, s20 = s00, s30 = s00;
  V32 s01 = line.bias1, s11 = s01, s21 = s01, s31 = s01;
#define SINTER_GROUP(p, even, odd)                                                              \
  {                                                                                             \
    const GroupWeights w = even;                                                                \
    const Inputs a = load_inputs(p);                                                            \
    add_products(a, w, s00, s01);                                                               \
    Inputs c = a;                                                                               \
    if constexpr (kCount == 4) {                                                                \
      c = load_inputs((p) + x2);                                                                \
      add_products(c, w, s20, s21);                                                             \
    }                                                                                           \
    const GroupWeights v = W::kSame ? w : odd;                                                  \
    add_products(W::kNear ? a : load_inputs((p) + x1), v, s10, s11);                            \
    if constexpr (kCount == 4) add_products(W::kNear ? c : load_inputs((p) + x3), v, s30, s31); \
  }
  if constexpr (W::kHeld) {
    SINTER_GROUP(x, held.even0, held.odd0)
    SINTER_GROUP(x + line.line_step, held.even1, held.odd1)
    SINTER_GROUP(x + 2 * line.line_step, held.even2, held.odd2)
  } else {
    const Weight *w0 = line.even, *w1 = line.odd;
#define SINTER_TAP(t, x0, x1, x2, x3)                   \
  if constexpr (kGroups > t) {                          \
    const GroupWeights w = load_group(w0 + t * kGroup); \
    add_products(x0, w, s00, s01);                      \
    add_products(x1, w, s10, s11);                      \
    if constexpr (kCount == 4) {                        \
      add_products(x2, w, s20, s21);                    \
      add_products(x3, w, s30, s31);                    \
    }                                                   \
  }
#define SINTER_NEXT(p, j)    \
  if constexpr (kGroups > j) \
  SINTER_GROUP((p) + j * step, load_group(w0 + j * kGroup), load_group(w1 + j * kGroup))
#define SINTER_LINE(p)                                                                \
  if constexpr (kGroups > 0 && W::kRolling) {                                         \
    const auto at = [&](int64_t i) SINTER_SIMD_LAMBDA {                               \
      return load_inputs((p) + std::min<int64_t>(i, kGroups + kCount - 2) * kGroup);  \
    };                                                                                \
    const Inputs i0 = at(0), i1 = at(1), i2 = at(2), i3 = at(3);                      \
    const Inputs i4 = at(4), i5 = at(5), i6 = at(6), i7 = at(7);                      \
    SINTER_TAP(0, i0, i1, i2, i3);                                                    \
    SINTER_TAP(1, i1, i2, i3, i4);                                                    \
    SINTER_TAP(2, i2, i3, i4, i5);                                                    \
    SINTER_TAP(3, i3, i4, i5, i6);                                                    \
    SINTER_TAP(4, i4, i5, i6, i7);                                                    \
    w0 += kGroups * kGroup;                                                           \
  } else if constexpr (kGroups > 0) {                                                 \
    SINTER_NEXT(p, 0);                                                                \
    SINTER_NEXT(p, 1);                                                                \
    SINTER_NEXT(p, 2);                                                                \
    SINTER_NEXT(p, 3);                                                                \
    SINTER_NEXT(p, 4);                                                                \
    w0 += kGroups * kGroup, w1 += kGroups * kGroup;                                   \
  } else {                                                                            \
    const Element* q = p;                                                             \
    for (int64_t j = groups_of(g); j > 0; --j, q += step, w0 += kGroup, w1 += kGroup) \
      SINTER_GROUP(q, load_group(w0), load_group(w1));                                \
  }
    if constexpr (kLines == 3) {
      SINTER_LINE(x)
      SINTER_LINE(x + line.line_step)
      SINTER_LINE(x + 2 * line.line_step)
    } else {
      const Element* plane = x;
      for (int64_t t0 = 0; t0 < g.kernel[0]; ++t0, plane += line.plane_step) {
        const Element* l = plane;
        for (int64_t t1 = 0; t1 < g.kernel[1]; ++t1, l += line.line_step) {
          SINTER_LINE(l)
        }
      }
    }
#undef SINTER_LINE
#undef SINTER_NEXT
#undef SINTER_TAP
  }
#undef SINTER_GROUP
  end.template pixels<kCount>(s00, s01, s10, s11, s20, s21, s30, s31, rest, line.next, at);
}

template <int kStride, int kGroups, int kLines, class End>
HWY_NOINLINE void run_lines(const Geometry& g, const QLines& line, const End& end, typename End::Type* y) {
  using W = QWindow<kStride, kGroups, kLines>;
  const int64_t stride = kStride != 0 ? kStride : g.stride[2];
  ThreeGroups held{};
  if constexpr (W::kHeld) {
    held = {load_group(line.even), load_group(line.even + kGroup), load_group(line.even + 2 * kGroup),
            load_group(line.odd),  load_group(line.odd + kGroup),  load_group(line.odd + 2 * kGroup)};
  }
  const QLines l = line;
  const End e = end;
  for (int64_t i = 0; i < l.count; ++i) {
    const Element* x = l.x + i * l.x_next;
    auto* to = y + i * l.y_next;
    int64_t rest = l.pixels;
    for (; rest > 2; rest -= kPixels, x += kPixels * stride / kSpacing * kGroup, to += kPixels * l.next)
      run_pixels<W, kGroups, kLines, 4>(g, l, x, stride, held, e, rest, to);
    if (rest > 0) run_pixels<W, kGroups, kLines, 2>(g, l, x, stride, held, e, rest, to);
  }
}

template <class End>
using RunLines = void (*)(const Geometry&, const QLines&, const End&, typename End::Type*);

template <class End, int kStride>
RunLines<End> lines_of_stride(const Geometry& g) {
  const int64_t groups = groups_of(g), lines = g.kernel[0] * g.kernel[1];
  constexpr int kThree = kTaps == 4 ? 1 : kTaps == 2 ? 2 : 3;  // groups of three taps
  constexpr int kFive = kTaps == 4 ? 2 : kTaps == 2 ? 3 : 5;   // and of five
  if (g.kernel[0] == 1 && lines == 3 && groups == kThree) return run_lines<kStride, kThree, 3, End>;
  if (groups == kFive) return run_lines<kStride, kFive, 0, End>;
  return run_lines<kStride, 0, 0, End>;
}

// The usual results have a function for each usual window.
template <class End>
RunLines<End> lines_of(const Geometry& g) {
  if constexpr (std::is_same_v<End, EndBytes<true>>) {
    if (g.stride[2] == 1) return lines_of_stride<End, 1>(g);
    if (g.stride[2] == 2) return lines_of_stride<End, 2>(g);
  }
  return run_lines<0, 0, 0, End>;
}

template <class End>
HWY_NOINLINE void run_block(const QDepthwise& q, const QBox& box, int64_t c0, const Element* buffer) {
  const D32 d;
  const Geometry& g = q.g;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t pixels = box.end[2] - box.begin[2];
  const int64_t line_size = line_groups(g, pixels) * kGroup;
  const auto* weights =
      reinterpret_cast<const Weight*>(q.weights) + c0 / kQChannels * kSpacing * phase_weights(g);
  End end(q.result);
  const auto run = lines_of<End>(g);
  for (int64_t c = 0; c < kQChannels && c0 + c < g.out_channels; c += kVectors * lanes) {
    end.begin(q.multipliers + c0 + c, g.out_channels - c0 - c);
    const QLines line{buffer + c * kTaps,
                      box.lines * line_size,
                      g.dilation[1] * line_size,
                      weights + c * kTaps,
                      weights + c * kTaps + g.stride[2] % kSpacing * phase_weights(g),
                      hn::LoadU(d, q.bias + c0 + c),
                      hn::LoadU(d, q.bias + c0 + c + (kVectors - 1) * lanes),
                      pixels,
                      g.out_channels,
                      box.end[1] - box.begin[1],
                      g.stride[1] * line_size,
                      g.out[2] * g.out_channels};
    run(g, line, end,
        static_cast<typename End::Type*>(q.result.y) +
            box.pixel(g, box.begin[1], box.begin[2]) * g.out_channels + c0 + c);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#endif  // SINTER_PLATFORMS_SIMD_INT8_DEPTHWISE_SUMS_INL_H_
