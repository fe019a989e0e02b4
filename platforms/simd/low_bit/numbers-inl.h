// Scales and zero points of a row of blocks, as float32.
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_LOW_BIT_NUMBERS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_LOW_BIT_NUMBERS_INL_H_
#undef SINTER_PLATFORMS_SIMD_LOW_BIT_NUMBERS_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_LOW_BIT_NUMBERS_INL_H_
#endif

#include <cstring>
#include <type_traits>

#include "platforms/simd/isa/float_formats-inl.h"
#include "platforms/simd/low_bit/groups.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// Reads `count` numbers of 8 or 16 bits; Load widens as many as there are lanes.
template <class T, class Load>
HWY_INLINE void widen_numbers(const T* from, int64_t count, float* to, const Load& load) {
  const F d;
  const hn::Rebind<T, F> narrow;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(load(hn::LoadU(narrow, from + i)), d, to + i);
  if (i < count)
    hn::StoreN(load(hn::LoadN(narrow, from + i, static_cast<size_t>(count - i))), d, to + i,
               static_cast<size_t>(count - i));
}

template <class Format, class T>
HWY_INLINE void widen_words(const T* from, int64_t count, float* to) {
  widen_numbers(from, count, to,
                [&](auto v) SINTER_SIMD_LAMBDA { return Format::of_words(hn::PromoteTo(U(), v)); });
}

// Reads scales at .. at + count - 1.
inline HWY_NOINLINE void read_scales(const LowBit& g, int64_t at, int64_t count, float* to) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(g.scales) + at;
  const auto* halves = reinterpret_cast<const uint16_t*>(g.scales) + at;
  switch (g.scale_type) {
    case DType::kFloat16:
      return widen_numbers(halves, count, to, [&](auto v) SINTER_SIMD_LAMBDA { return Float16::of_bits(v); });
    case DType::kBFloat16:
      return widen_words<BFloat16>(halves, count, to);
    case DType::kFloat8E8M0:
      return widen_words<Float8E8M0>(bytes, count, to);
    default:
      if (is_float8(g.scale_type))
        return for_float8(g.scale_type,
                          [&](auto format) { widen_words<decltype(format)>(bytes, count, to); });
      std::memcpy(to, reinterpret_cast<const float*>(g.scales) + at,
                  static_cast<size_t>(count) * sizeof(float));
  }
}

// Reads zero points in the terms of unsigned weights.
inline HWY_NOINLINE void read_zeros(const LowBit& g, int64_t at, int64_t count, float* to) {
  const F d;
  if (g.zero_type == DType::kFloat32) {
    std::memcpy(to, reinterpret_cast<const float*>(g.zeros) + at, static_cast<size_t>(count) * sizeof(float));
    return;
  }
  const auto* bytes = reinterpret_cast<const uint8_t*>(g.zeros);
  const int bits = bit_width(g.zero_type), flip = g.format.is_signed() ? 1 << (bits - 1) : 0;
  if (bits == 8) {
    const VI flips = hn::Set(I(), flip);
    return widen_numbers(bytes + at, count, to, [&](auto v) SINTER_SIMD_LAMBDA {
      return hn::ConvertTo(d, hn::Xor(hn::PromoteTo(I(), v), flips));
    });
  }
  const auto one = [&](int64_t i) {
    const int64_t bit = i * bits;
    return static_cast<float>((bytes[bit / 8] >> (bit % 8) & ((1 << bits) - 1)) ^ flip);
  };
  int64_t i = 0;
  // Nibbles are read by as many bytes as there are lanes.
  const auto pairs = [&](auto of) SINTER_SIMD_LAMBDA {
    const decltype(of) lane;
    const hn::Rebind<uint8_t, decltype(of)> narrow;
    const hn::Rebind<int32_t, decltype(of)> wide;
    const auto lanes = static_cast<int64_t>(hn::Lanes(lane));
    const auto low = hn::Set(wide, 15), flips = hn::Set(wide, flip | flip << 4);
    for (; i + 2 * lanes <= count; i += 2 * lanes) {
      const auto v = hn::Xor(hn::PromoteTo(wide, hn::LoadU(narrow, bytes + (at + i) / 2)), flips);
      hn::StoreInterleaved2(hn::ConvertTo(lane, hn::And(v, low)), hn::ConvertTo(lane, hn::ShiftRight<4>(v)),
                            lane, to + i);
    }
  };
  if (bits == 4) {
    if (at % 2 != 0 && count > 0) to[0] = one(at), i = 1;
    pairs(d), pairs(hn::FixedTag<float, 4>());
  }
  for (; i < count; ++i) to[i] = one(at + i);
}

// 1 if float16 scales take an instruction to widen.
#undef SINTER_WIDENS_SCALES
#if (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2) || HWY_ARCH_ARM_A64
#define SINTER_WIDENS_SCALES 1
#else
#define SINTER_WIDENS_SCALES 0
#endif

// Scales of a group of at most this many are widened at their use; others before, a row at a time.
constexpr int64_t kFewScales = 4;
HWY_INLINE bool reads_half_scales(const LowBit& g) {
  return SINTER_WIDENS_SCALES != 0 && g.scale_type == DType::kFloat16 &&
         LowBitGroups(g, static_cast<int64_t>(hn::Lanes(F()))).scales <= kFewScales;
}

// Loads the scales of a group.
HWY_INLINE V load_scales(const float* at) { return hn::LoadU(F(), at); }
#if SINTER_WIDENS_SCALES
HWY_INLINE V load_scales(const hwy::float16_t* at) {
  const hn::CappedTag<float, kFewScales> d;
  const hn::Rebind<hwy::float16_t, decltype(d)> half;
  return hn::ResizeBitCast(F(), hn::PromoteTo(d, hn::LoadU(half, at)));
}
#endif

// Loads those of `count` blocks, and zeros.
HWY_INLINE V load_scales_of_blocks(const float* at, int64_t count) {
  const F d;
  return HWY_LIKELY(count >= static_cast<int64_t>(hn::Lanes(d)))
             ? hn::LoadU(d, at)
             : hn::LoadN(d, at, static_cast<size_t>(count));
}
#if SINTER_WIDENS_SCALES
HWY_INLINE V load_scales_of_blocks(const hwy::float16_t* at, int64_t count) {
  const F d;
  const hn::Rebind<hwy::float16_t, F> half;
  return hn::PromoteTo(d, HWY_LIKELY(count >= static_cast<int64_t>(hn::Lanes(d)))
                              ? hn::LoadU(half, at)
                              : hn::LoadN(half, at, static_cast<size_t>(count)));
}
#endif

// The numbers of kColumns rows (1 or 4), of as many blocks at a time as there is room for. Scale is the type
// in which scales are read: float, or float16_t if reads_half_scales.
template <int kColumns, class Scale>
class RowNumbers {
 public:
  HWY_INLINE RowNumbers(const LowBit& g, const LowBitGroups& groups) : g_(g), groups_(groups) {
    // Numbers behind those of a row are read, and must not belong to another block whose x is 0.
    in_place_ = (g.scale_type == DType::kFloat32 || kHalf) && g.depth % groups.group == 0;
  }
  // Reads from `group` of these rows on. Returns the end of the groups whose numbers are there now.
  HWY_INLINE int64_t read(int64_t n, int64_t n1, int64_t n2, int64_t n3, int64_t group) {
    const int64_t rows[] = {n, n1, n2, n3};
    // The last of the rows has the highest address.
    const bool in_place =
        in_place_ && (rows[kColumns - 1] + 1) * g_.blocks + kMostLanes <= g_.columns * g_.blocks;
    if (in_place)
      for (int c = 0; c < kColumns; ++c)
        scale_[c] = reinterpret_cast<const Scale*>(g_.scales) + rows[c] * g_.blocks + group * groups_.scales;
    return in_place && g_.zeros == nullptr ? groups_.groups : copy(rows, group, !in_place);
  }
  // Returns those of the first of these groups; a whole vector can be read from each of them on.
  HWY_INLINE const Scale* scales(int c) const { return scale_[c < kColumns ? c : 0]; }
  HWY_INLINE const float* zeros(int c) const { return zeros_[c < kColumns ? c : 0]; }

 private:
#ifdef __clang__
  // The frames of the callers stay below 4,096 bytes, although clang keeps 32 vectors of 64 bytes there for
  // rows of 7 bits.
  static constexpr int64_t kRoom = 160 / kColumns;
#else
  static constexpr int64_t kRoom = 192 / kColumns;
#endif
  static constexpr bool kHalf = !std::is_same_v<Scale, float>;

  HWY_NOINLINE int64_t copy(const int64_t* rows, int64_t group, bool with_scales) {
    const int64_t room = kRoom / groups_.scales;
    const int64_t end = group + room < groups_.groups ? group + room : groups_.groups;
    const int64_t left = g_.blocks - group * groups_.scales, most = (end - group) * groups_.scales;
    const int64_t count = left < most ? left : most;
    for (int c = 0; c < kColumns; ++c) {
      const int64_t at = rows[c] * g_.blocks + group * groups_.scales;
      if (with_scales) {
        scale_[c] = scales_[c];
        if constexpr (kHalf)
          std::memcpy(scales_[c], reinterpret_cast<const Scale*>(g_.scales) + at,
                      static_cast<size_t>(count) * sizeof(Scale));
        else
          read_scales(g_, at, count, scales_[c]);
        std::memset(scales_[c] + count, 0, static_cast<size_t>(most + kMostLanes - count) * sizeof(Scale));
      }
      if (g_.zeros == nullptr) continue;
      read_zeros(g_, at, count, zeros_[c]);
      for (int64_t i = count; i < most + kMostLanes; ++i) zeros_[c][i] = 0;
    }
    return end;
  }

  const LowBit& g_;
  const LowBitGroups& groups_;
  bool in_place_ = false;
  const Scale* scale_[kColumns];
  Scale scales_[kColumns][kRoom + kMostLanes];
  float zeros_[kColumns][kRoom + kMostLanes];
};

// Returns the block that each lane of a group belongs to, where `first` is the group's first one.
HWY_INLINE auto lane_blocks(const LowBitGroups& groups, int64_t first) {
  const I d;
  HWY_ALIGN int32_t of[hn::MaxLanes(d)];
  for (int64_t l = 0; l < groups.lanes; ++l)
    of[l] = static_cast<int32_t>(first + l * groups.scales / groups.lanes);
  return hn::SetTableIndices(F(), of);
}

// Returns the bits that make signed weights unsigned, or, for signed bytes, the reverse.
template <class D = I>
HWY_INLINE hn::Vec<D> flip_of(const LowBit& g, bool signed_bytes) {
  const unsigned each = g.format.bits == 2 ? 0xaa : g.format.bits == 4 ? 0x88 : 0x80;
  return hn::Set(D(), g.format.is_signed() != signed_bytes ? static_cast<int32_t>(0x01010101u * each) : 0);
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
