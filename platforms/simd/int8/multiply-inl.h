// The multiplication of int8 by each instruction set: numbers of the input in the form that it takes, and the
// sum of as many products as a lane of 32 bits holds.
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_INT8_MULTIPLY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_INT8_MULTIPLY_INL_H_
#undef SINTER_PLATFORMS_SIMD_INT8_MULTIPLY_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_INT8_MULTIPLY_INL_H_
#endif

#include <cstring>
#include <type_traits>

#include "platforms/simd/int8/int8-inl.h"
#include "platforms/simd/window.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// A number is held as x + kShift, or with kCentred as x - x_zero; kCell of them fill a lane.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
// Bytes are unsigned by signed: x + 128, which the bias makes up for.
using Element = uint8_t;
using WeightElement = int8_t;
constexpr int32_t kShift = 128;
constexpr bool kCentred = false;
HWY_INLINE V32 add_products(V32 x, V32 weights, V32 sum) {
  return hn::SumOfMulQuadAccumulate(D32(), hn::BitCast(hn::ScalableTag<uint8_t>(), x),
                                    hn::BitCast(D8(), weights), sum);
}
#elif HWY_TARGET == HWY_NEON  // with dot products of bytes (isa/config.h)
using Element = int8_t;
using WeightElement = int8_t;
constexpr int32_t kShift = 0;
constexpr bool kCentred = false;
HWY_INLINE V32 add_products(V32 x, V32 weights, V32 sum) {
  return add_dots(hn::BitCast(D8(), x), hn::BitCast(D8(), weights), sum);
}
#else
using Element = int16_t;
using WeightElement = int16_t;
constexpr int32_t kShift = 0;
constexpr bool kCentred = true;
HWY_INLINE V32 add_products(V32 x, V32 weights, V32 sum) {
  return add_pairs(hn::BitCast(D16(), x), hn::BitCast(D16(), weights), sum);
}
#endif
constexpr int64_t kCell = 4 / static_cast<int64_t>(sizeof(Element));

// Rows of products (gemm.h) are bytes on x86, whatever the instruction set.
#if HWY_ARCH_X86
using RowElement = uint8_t;
#else
using RowElement = Element;
#endif
// Elements of 16 bits are centred; unsigned bytes are shifted.
template <class E>
constexpr bool is_centred() {
  return sizeof(E) == sizeof(int16_t);
}
template <class E>
constexpr int32_t shift_of() {
  return std::is_same_v<E, uint8_t> ? 128 : 0;
}
static_assert(kCentred == is_centred<Element>() && kShift == shift_of<Element>());

// Converts n numbers of the input. Reads no further, writes no further.
HWY_INLINE void convert(const int8_t* x, int64_t n, [[maybe_unused]] int16_t x_zero, int8_t* to) {
  const D8 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (n < lanes) return void(std::memcpy(to, x, static_cast<size_t>(n)));
  int64_t i = 0;
  for (; i + lanes < n; i += lanes) hn::StoreU(hn::LoadU(d, x + i), d, to + i);
  hn::StoreU(hn::LoadU(d, x + n - lanes), d, to + n - lanes);  // may copy some again
}
HWY_INLINE void convert(const int8_t* x, int64_t n, [[maybe_unused]] int16_t x_zero, uint8_t* to) {
  const D8 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V8 flip = hn::Set(d, int8_t{-128});
  auto* y = reinterpret_cast<int8_t*>(to);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::Xor(hn::LoadU(d, x + i), flip), d, y + i);
  if (i < n) {
    const auto rest = static_cast<size_t>(n - i);
    hn::StoreN(hn::Xor(hn::LoadN(d, x + i, rest), flip), d, y + i, rest);
  }
}
HWY_INLINE void convert(const int8_t* x, int64_t n, int16_t x_zero, int16_t* to) {
  const D16 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V16 zero = hn::Set(d, x_zero);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::Sub(load16(x + i), zero), d, to + i);
  for (; i < n; ++i) to[i] = static_cast<int16_t>(x[i] - x_zero);
}

template <class E>
HWY_INLINE void fill(int64_t n, E value, E* to) {
  if constexpr (sizeof(E) == 1)
    std::memset(to, value, static_cast<size_t>(n));
  else
    for (int64_t i = 0; i < n; ++i) to[i] = value;
}

// Converts a line of `pixels` pixels that begins at pixel `from` of an input line of g.in[2] (null: outside).
template <class E>
HWY_INLINE void convert_line(const Geometry& g, const int8_t* line, int64_t from, int64_t pixels,
                             int32_t x_zero, E* to) {
  const auto outside = static_cast<E>(is_centred<E>() ? 0 : x_zero + shift_of<E>());
  const int64_t c = g.in_channels, left = std::clamp<int64_t>(-from, 0, pixels);
  const int64_t right = line == nullptr ? left : std::clamp(g.in[2] - from, left, pixels);
  fill(left * c, outside, to);
  if (left < right)
    convert(line + (from + left) * c, (right - left) * c, static_cast<int16_t>(x_zero), to + left * c);
  fill((pixels - right) * c, outside, to + right * c);
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
