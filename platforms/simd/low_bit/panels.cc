// Weights of few bits as pieces of panels of floats, for products of many rows (float/gemm.h).
#include <cstring>
#include <type_traits>

#include "platforms/simd/low_bit/low_bit.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/low_bit/panels.cc"
#include "hwy/foreach_target.h"
// These come after it:
#include "platforms/simd/isa/float_formats-inl.h"
#include "platforms/simd/low_bit/table-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

using B = hn::Rebind<uint8_t, F>;

// Returns the numbers of codes, one in each lane of `v`; of two that are 4 bits wide the lower one is first.
template <int kWidth>
struct Integers {
  static constexpr bool kNarrow = kWidth == 4;
  HWY_INLINE explicit Integers(const LowBit&) {}
  HWY_INLINE V first(VI v) const { return hn::ConvertTo(F(), kNarrow ? hn::And(v, hn::Set(I(), 15)) : v); }
  HWY_INLINE V second(VI v) const { return hn::ConvertTo(F(), hn::ShiftRight<4>(v)); }
};
template <class Format, int kWidth>
struct Floats {
  static constexpr bool kNarrow = kWidth == 4;
  HWY_INLINE explicit Floats(const LowBit&) {}
  HWY_INLINE V first(VI v) const { return Format::of_words(hn::BitCast(U(), v)); }
  HWY_INLINE V second(VI v) const { return first(hn::ShiftRight<4>(v)); }
};
struct TableNumbers {
  static constexpr bool kNarrow = true;
  HWY_INLINE explicit TableNumbers(const LowBit& g) : numbers_(g.numbers) {}
  HWY_INLINE V first(VI v) const { return numbers_.look_up(v); }
  HWY_INLINE V second(VI v) const { return numbers_.look_up(hn::ShiftRight<4>(v)); }

 private:
  TableLanes numbers_;
};

constexpr int64_t kSquare = 16;  // bytes of as many columns are transposed at a time

// Transposes bytes of kSquare columns to columns of bytes: four perfect shuffles. `from` is overwritten.
HWY_INLINE void transpose_bytes(uint8_t* from, uint8_t* to) {
  const hn::FixedTag<uint8_t, kSquare> d;
  constexpr int64_t kHalf = kSquare / 2;
  for (int stage = 0; stage < 4; ++stage) {
    for (int64_t i = 0; i < kHalf; ++i) {
      const auto a = hn::Load(d, from + i * kSquare), b = hn::Load(d, from + (i + kHalf) * kSquare);
      hn::Store(hn::InterleaveLower(d, a, b), d, to + 2 * i * kSquare);
      hn::Store(hn::InterleaveUpper(d, a, b), d, to + (2 * i + 1) * kSquare);
    }
    uint8_t* swap = from;
    from = to, to = swap;
  }
}

// Returns eight integers of a plane, from k on, a multiple of 8, as bytes.
HWY_INLINE uint64_t eight_items(const uint8_t* plane, const uint8_t* end, int bits, int64_t k) {
  const uint8_t* p = plane + k / 8 * bits;
  uint64_t v = 0;
  for (int i = 0; i < bits && p + i < end; ++i) v |= static_cast<uint64_t>(p[i]) << (8 * i);
  if (bits == 4) {
    v = (v | v << 16) & 0x0000ffff0000ffffu;
    v = (v | v << 8) & 0x00ff00ff00ff00ffu;
    return (v | v << 4) & 0x0f0f0f0f0f0f0f0fu;
  }
  if (bits == 2) {
    v = (v | v << 24) & 0x000000ff000000ffu;
    v = (v | v << 12) & 0x000f000f000f000fu;
    return (v | v << 6) & 0x0303030303030303u;
  }
  v = (v | v << 28) & 0x0000000f0000000fu;
  v = (v | v << 14) & 0x0003000300030003u;
  return (v | v << 7) & 0x0101010101010101u;
}

// Unpacks sixteen weights of a row as unsigned bytes, from k on, a multiple of 8; later bytes are undefined.
HWY_INLINE void unpack_sixteen(const LowBit& g, int64_t row, int64_t k, uint8_t* to) {
  const BitPlanes planes = bit_planes(g.format.bits);
  const uint8_t* low = g.weights + row * g.row_bytes();
  const uint8_t* two = low + plane_bytes(planes.bits, g.depth);
  const uint8_t* single = two + (planes.two ? plane_bytes(2, g.depth) : 0);
  const uint64_t flip = g.format.is_signed() ? 0x0202020202020202u : 0;  // for 2 bits: others have no sign
  for (int half = 0; half < 2; ++half, k += 8, to += 8) {
    uint64_t v = eight_items(low, g.end, planes.bits, k) ^ flip;
    if (planes.two) v |= eight_items(two, g.end, 2, k) << planes.bits;
    if (planes.single) v |= eight_items(single, g.end, 1, k) << (g.format.bits - 1);
    for (int i = 0; i < 8; ++i) to[i] = static_cast<uint8_t>(v >> (8 * i));
  }
}

template <class Codes>
HWY_NOINLINE void widen_square(const LowBit& g, int64_t column, int64_t count, int64_t k0, int64_t k1,
                               float* to, int64_t width) {
  const F d;
  const B bytes;
  const Codes codes(g);
  constexpr bool kNarrow = Codes::kNarrow;
  const hn::FixedTag<uint8_t, kSquare> q;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr int64_t kEach = kNarrow ? 2 : 1;
  const int64_t row_bytes = g.row_bytes();
  const bool unpacks = g.format.bits != 4 && g.format.bits != 8;
  const int64_t valid = g.columns - column < count ? g.columns - column : count;
  const auto flip = hn::Set(bytes, static_cast<uint8_t>(!g.format.is_signed() || unpacks ? 0
                                                        : kNarrow                        ? 0x88
                                                                                         : 0x80));
  HWY_ALIGN float zeros[kSquare] = {}, scales[kSquare] = {};  // beyond the last column: weights of 0
  HWY_ALIGN uint8_t square[kSquare * kSquare] = {}, turned[kSquare * kSquare];
  for (int64_t k = k0; k < k1;) {
    const int64_t block = k / g.block;
    const int64_t end = (block + 1) * g.block < k1 ? (block + 1) * g.block : k1;
    for (int64_t i = 0; i < valid; ++i) {
      const int64_t at = (column + i) * g.blocks + block;
      zeros[i] = low_bit_zero(g, at), scales[i] = low_bit_scale(g, at);
    }
    for (; k < end; k += kSquare * kEach) {
      for (int64_t i = 0; i < kSquare; ++i) {
        if (unpacks) {
          if (i < valid) unpack_sixteen(g, column + i, k, square + i * kSquare);
          continue;
        }
        const uint8_t* p = g.weights + (column + i) * row_bytes + k / kEach;
        const int64_t left = i < valid ? g.end - p : 0;
        hn::Store(left >= kSquare ? hn::LoadU(q, p)
                  : left > 0      ? hn::LoadN(q, p, static_cast<size_t>(left))
                                  : hn::Zero(q),
                  q, square + i * kSquare);
      }
      transpose_bytes(square, turned);
      const int64_t n = end - k < kSquare * kEach ? end - k : kSquare * kEach;
      for (int64_t i = 0; i < n; i += kEach) {
        float* row = to + (k - k0 + i) * width;
        for (int64_t l = 0; l < count; l += lanes) {
          const VI v = hn::PromoteTo(I(), hn::Xor(hn::LoadU(bytes, square + i / kEach * kSquare + l), flip));
          const V s = hn::Load(d, scales + l), zero = hn::Load(d, zeros + l);
          hn::StoreU(hn::Mul(hn::Sub(codes.first(v), zero), s), d, row + l);
          if constexpr (kNarrow) hn::StoreU(hn::Mul(hn::Sub(codes.second(v), zero), s), d, row + width + l);
        }
      }
    }
    k = end;
  }
}

template <class Codes>
HWY_INLINE void widen_columns(const LowBit& g, int64_t column, int64_t k0, int64_t k1, float* to) {
  const auto width = static_cast<int64_t>(2 * hn::Lanes(F()));
  for (int64_t i = 0; i < width; i += kSquare)
    widen_square<Codes>(g, column + i, width - i < kSquare ? width - i : kSquare, k0, k1, to + i, width);
}

void widen_panel(const LowBit& g, int64_t column, int64_t k0, int64_t k1, float* to) {
  using Float4 =
      std::conditional_t<TableLanes::kFast, TableNumbers, Floats<SmallFloat<kFloat4E2M1Format>, 4>>;
  if (g.format.has_table()) return widen_columns<TableNumbers>(g, column, k0, k1, to);
  if (g.format.type == DType::kFloat4E2M1) return widen_columns<Float4>(g, column, k0, k1, to);
  if (!g.format.is_integer())
    return for_float8(g.format.type, [&](auto format) {
      widen_columns<Floats<decltype(format), 8>>(g, column, k0, k1, to);
    });
  if (g.format.bits == 4) return widen_columns<Integers<4>>(g, column, k0, k1, to);
  widen_columns<Integers<8>>(g, column, k0, k1, to);
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {

HWY_EXPORT(widen_panel);

void widen_panel(const LowBit& g, int64_t column, int64_t k0, int64_t k1, float* to) {
  HWY_DYNAMIC_DISPATCH(widen_panel)(g, column, k0, k1, to);
}

}  // namespace sinter::simd
#endif  // HWY_ONCE
