// Two to four rows that become one in which they alternate, and back (interleave.h).
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_MOVE_INTERLEAVE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_MOVE_INTERLEAVE_INL_H_
#undef SINTER_PLATFORMS_SIMD_MOVE_INTERLEAVE_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_MOVE_INTERLEAVE_INL_H_
#endif

#include "hwy/highway.h"
#include "platforms/simd/move/interleave.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Joins K rows of numbers that alternate, and the reverse, in `length` places. Last vectors overlap others.
template <size_t K, class D, class T>
HWY_INLINE void interleave_vectors(D d, const T* from, size_t from_stride, T* to, size_t length) {
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  if constexpr (K == 2) {
    const T *x = from, *y = from + from_stride;
    T* at = to;
    for (; i + 2 * lanes <= length; i += 2 * lanes, x += 2 * lanes, y += 2 * lanes, at += 4 * lanes) {
      const auto a = hn::LoadU(d, x), b = hn::LoadU(d, x + lanes), c = hn::LoadU(d, y),
                 e = hn::LoadU(d, y + lanes);
      hn::StoreInterleaved2(a, c, d, at), hn::StoreInterleaved2(b, e, d, at + 2 * lanes);
    }
  }
  for (; i < length; i += lanes) {
    if (i + lanes > length) i = length - lanes;
    const auto a = hn::LoadU(d, from + i), b = hn::LoadU(d, from + from_stride + i);
    if constexpr (K == 2) {
      hn::StoreInterleaved2(a, b, d, to + K * i);
    } else {
      const auto c = hn::LoadU(d, from + 2 * from_stride + i);
      if constexpr (K == 3)
        hn::StoreInterleaved3(a, b, c, d, to + K * i);
      else
        hn::StoreInterleaved4(a, b, c, hn::LoadU(d, from + 3 * from_stride + i), d, to + K * i);
    }
  }
}
template <size_t K, class D, class T>
HWY_INLINE void deinterleave_vectors(D d, const T* from, T* to, size_t to_stride, size_t length) {
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i < length; i += lanes) {
    if (i + lanes > length) i = length - lanes;
    auto a = hn::Zero(d), b = a, c = a, e = a;
    if constexpr (K == 2) hn::LoadInterleaved2(d, from + K * i, a, b);
    if constexpr (K == 3) hn::LoadInterleaved3(d, from + K * i, a, b, c);
    if constexpr (K == 4) hn::LoadInterleaved4(d, from + K * i, a, b, c, e);
    hn::StoreU(a, d, to + i);
    hn::StoreU(b, d, to + to_stride + i);
    if constexpr (K > 2) hn::StoreU(c, d, to + 2 * to_stride + i);
    if constexpr (K > 3) hn::StoreU(e, d, to + 3 * to_stride + i);
  }
}

template <size_t K, class T>
HWY_INLINE void alternate_as(const Alternation& w, const T* from, T* to) {
  const hn::ScalableTag<T> wide;
  const hn::FixedTag<T, 16 / sizeof(T)> narrow;
  for (size_t u = 0; u < w.count; ++u, from += w.from_step, to += w.to_step) {
    if (w.joins) {
      if (w.length >= hn::Lanes(wide))
        interleave_vectors<K>(wide, from, w.stride, to, w.length);
      else if (w.length >= hn::Lanes(narrow))
        interleave_vectors<K>(narrow, from, w.stride, to, w.length);
      else
        for (size_t i = 0; i < w.length; ++i)
          for (size_t k = 0; k < K; ++k) to[K * i + k] = from[k * w.stride + i];
    } else {
      if (w.length >= hn::Lanes(wide))
        deinterleave_vectors<K>(wide, from, to, w.stride, w.length);
      else if (w.length >= hn::Lanes(narrow))
        deinterleave_vectors<K>(narrow, from, to, w.stride, w.length);
      else
        for (size_t i = 0; i < w.length; ++i)
          for (size_t k = 0; k < K; ++k) to[k * w.stride + i] = from[K * i + k];
    }
  }
}
}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
