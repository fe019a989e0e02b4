// Weights of few bits as pieces of panels of bytes, for products of many rounded rows (many.cc).
#define SINTER_SIMD_BYTE_TABLES
#define SINTER_SIMD_BYTE_DOTS

#include "platforms/simd/int8/int8.h"
#include "platforms/simd/low_bit/segments.h"
#include "platforms/simd/simd_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/low_bit/pieces.cc"
#include "hwy/foreach_target.h"
// These come after it:
#include "platforms/simd/low_bit/dots-inl.h"
#include "platforms/simd/low_bit/numbers-inl.h"
#include "platforms/simd/low_bit/words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// Returns the columns of a panel.
HWY_INLINE int64_t panel_columns() { return static_cast<int64_t>(2 * hn::Lanes(F())); }

// A block of 128 bits of a vector.
using Block = hn::FixedTag<int32_t, 4>;

// Returns a vector of of(first), of(first + 4) and so on.
template <class D, class Of>
HWY_INLINE hn::Vec<D> of_blocks(D d, const Of& of, int first) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    return of(first);
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, of_blocks(half, of, first + static_cast<int>(hn::MaxLanes(half))),
                       of_blocks(half, of, first));
  }
}

struct FourVectors {
  VI v0, v1, v2, v3;
};
// Returns a vector for each of four words of as many columns as a vector has lanes, which `of` loads.
template <class Of>
HWY_INLINE FourVectors four_words(const Of& of) {
  const I d;
  const hn::Repartition<int64_t, I> pairs;
  const VI v0 = of_blocks(d, of, 0), v1 = of_blocks(d, of, 1), v2 = of_blocks(d, of, 2),
           v3 = of_blocks(d, of, 3);
  const auto a = hn::BitCast(pairs, hn::InterleaveLower(d, v0, v1)),
             b = hn::BitCast(pairs, hn::InterleaveLower(d, v2, v3)),
             e = hn::BitCast(pairs, hn::InterleaveUpper(d, v0, v1)),
             f = hn::BitCast(pairs, hn::InterleaveUpper(d, v2, v3));
  return {hn::BitCast(d, hn::InterleaveLower(pairs, a, b)), hn::BitCast(d, hn::InterleaveUpper(pairs, a, b)),
          hn::BitCast(d, hn::InterleaveLower(pairs, e, f)), hn::BitCast(d, hn::InterleaveUpper(pairs, e, f))};
}

// The places of the bytes of one word after the other, behind the numbers of each segment.
struct PieceBytes {
  float* to;
  int64_t fours, step, skip, at;

  HWY_INLINE PieceBytes(const LowBitSegments& segments, int64_t width, float* piece)
      : to(piece + 2 * width), fours(segments.fours), step(width), skip(2 * width), at(0) {}
  template <int kBits>
  HWY_INLINE void store(VI low, VI twos, VI singles, VI mask) {
    constexpr int kVectors = PlaneWords<kBits>::kVectors;
    PlaneWords<kBits> w;
    w.low = low, w.twos = twos, w.singles = singles;
    put<kBits>(w.template bytes<0>(), mask);
    if constexpr (kVectors > 1) put<kBits>(w.template bytes<1>(), mask);
    if constexpr (kVectors > 2)
      put<kBits>(w.template bytes<2>(), mask), put<kBits>(w.template bytes<3>(), mask);
    if (at == fours) at = 0, to += skip;
  }

 private:
  template <int kBits>
  HWY_INLINE void put(VI bytes, VI mask) {
    hn::StoreU(hn::BitCast(F(), kBits == 8 ? bytes : hn::And(bytes, mask)), F(), to);
    to += step, ++at;
  }
};

// Unpacks `words` words of each of the columns of one vector, from weight k on.
template <int kBits>
HWY_INLINE void unpack_words(const WeightWords<kBits, Block>* columns, int64_t k, int64_t words,
                             hn::Vec<Block> flip, PieceBytes bytes) {
  using Planes = PlaneWords<kBits>;
  constexpr int64_t kFourWords = 4 * 32 / Planes::kPlanes.bits;
  const VI mask = Planes::each_byte((1 << kBits) - 1);
  for (; words > 0; words -= 4, k += kFourWords) {
    const FourVectors low =
        four_words([&](int c) SINTER_SIMD_LAMBDA { return hn::Xor(columns[c].load_low(k), flip); });
    FourVectors twos = low, singles = low;
    if constexpr (Planes::kPlanes.two)
      twos = four_words([&](int c) SINTER_SIMD_LAMBDA { return columns[c].load_twos(k); });
    if constexpr (Planes::kPlanes.single)
      singles = four_words([&](int c) SINTER_SIMD_LAMBDA { return columns[c].load_singles(k); });
    bytes.template store<kBits>(low.v0, twos.v0, singles.v0, mask);
    if (words > 1) bytes.template store<kBits>(low.v1, twos.v1, singles.v1, mask);
    if (words > 2) bytes.template store<kBits>(low.v2, twos.v2, singles.v2, mask);
    if (words > 3) bytes.template store<kBits>(low.v3, twos.v3, singles.v3, mask);
  }
}

template <int kBits>
HWY_NOINLINE void unpack_bytes(const LowBit& g, const LowBitSegments& segments, int64_t column, int64_t first,
                               int64_t last, float* piece) {
  constexpr int64_t kWord = 32 / bit_planes(kBits).bits;
  const auto lanes = static_cast<int64_t>(hn::Lanes(F())), width = panel_columns();
  const auto flip = flip_of<Block>(g, has_signed_bytes(kBits));
  // Columns beyond the last repeat the last one.
  const auto words_of = [&](int64_t c) { return WeightWords<kBits, Block>(g, std::min(c, g.columns - 1)); };
  for (int64_t i = 0; i < width; i += lanes) {
    WeightWords<kBits, Block> columns[kMostLanes] = {
        words_of(column + i),      words_of(column + i + 1),  words_of(column + i + 2),
        words_of(column + i + 3),  words_of(column + i + 4),  words_of(column + i + 5),
        words_of(column + i + 6),  words_of(column + i + 7),  words_of(column + i + 8),
        words_of(column + i + 9),  words_of(column + i + 10), words_of(column + i + 11),
        words_of(column + i + 12), words_of(column + i + 13), words_of(column + i + 14),
        words_of(column + i + 15)};
    PieceBytes bytes(segments, width, piece + i);
    // There is one run of words, or one for each segment.
    const int64_t segment = segments.fours * 4 / kWord, runs = segments.dense ? 1 : last - first;
    for (int64_t r = 0; r < runs; ++r, bytes.to += segments.piece_record(width))
      unpack_words(columns, segments.first(first + r), segment * (last - first) / runs, flip, bytes);
  }
}

// Writes one number for each segment and column, from `to` on in the first segment; `read` gives those for
// blocks of one row.
template <class Read>
HWY_INLINE void spread_numbers(const LowBit& g, const LowBitSegments& segments, int64_t column, int64_t first,
                               int64_t last, float* to, const Read& read) {
  constexpr int64_t kOnce = 16;
  HWY_ALIGN float numbers[kMostLanes * kOnce] = {};
  const auto lanes = static_cast<int64_t>(hn::Lanes(F())), width = panel_columns();
  const int64_t record = segments.piece_record(width);
  for (int64_t i = 0; i < width; i += lanes)
    for (int64_t s = first; s < last; s += kOnce) {
      const int64_t count = std::min(kOnce, last - s);
      for (int64_t c = 0; c < lanes; ++c) {
        const int64_t row = std::min(column + i + c, g.columns - 1) * g.blocks;
        if (segments.parts == 1) {
          read(row + s, count, numbers + c * kOnce);
          continue;
        }
        for (int64_t j = 0; j < count; ++j) read(row + (s + j) / segments.parts, 1, numbers + c * kOnce + j);
      }
      float* p = to + (s - first) * record + i;
      for (int64_t j = 0; j < count; j += 4, p += 4 * record) {
        const FourVectors v = four_words([&](int c) SINTER_SIMD_LAMBDA {
          return hn::BitCast(Block(), hn::LoadU(hn::RebindToFloat<Block>(), numbers + c * kOnce + j));
        });
        const auto store = [&](int64_t t, VI of) SINTER_SIMD_LAMBDA {
          if (j + t < count) hn::StoreU(hn::BitCast(F(), of), F(), p + t * record);
        };
        store(0, v.v0), store(1, v.v1), store(2, v.v2), store(3, v.v3);
      }
    }
}

// Unpacks scales and zero points.
HWY_NOINLINE void unpack_numbers(const LowBit& g, const LowBitSegments& segments, int64_t column,
                                 int64_t first, int64_t last, float* piece) {
  spread_numbers(g, segments, column, first, last, piece,
                 [&](int64_t at, int64_t count, float* to) { read_scales(g, at, count, to); });
  if (g.zeros == nullptr) return;
  spread_numbers(g, segments, column, first, last, piece + panel_columns(),
                 [&](int64_t at, int64_t count, float* to) { read_zeros(g, at, count, to); });
}

#if HWY_TARGET == HWY_NEON
// Joins, for products of matrices, eight bytes of each column instead of twice four.
HWY_INLINE void join_fours(const LowBitSegments& segments, int64_t count, float* piece) {
  const F d;
  const int64_t width = panel_columns();
  for (int64_t s = 0; s < count; ++s, piece += segments.piece_record(width)) {
    float* p = piece + 2 * width;
    for (int64_t four = 0; four < segments.fours; four += 2, p += 2 * width) {
      const V a0 = hn::LoadU(d, p), a1 = hn::LoadU(d, p + 4), b0 = hn::LoadU(d, p + 8),
              b1 = hn::LoadU(d, p + 12);
      hn::StoreU(hn::InterleaveLower(d, a0, b0), d, p);
      hn::StoreU(hn::InterleaveUpper(d, a0, b0), d, p + 4);
      hn::StoreU(hn::InterleaveLower(d, a1, b1), d, p + 8);
      hn::StoreU(hn::InterleaveUpper(d, a1, b1), d, p + 12);
    }
  }
}
#endif

void unpack_piece(const LowBit& g, const LowBitSegments& segments, int64_t column, int64_t first,
                  int64_t last, float* piece) {
  if (first == last) return;
  unpack_numbers(g, segments, column, first, last, piece);
  switch (g.format.bits) {
#define SINTER_WIDTH(bits)                                       \
  case bits:                                                     \
    unpack_bytes<bits>(g, segments, column, first, last, piece); \
    break;
    SINTER_WIDTH(2)
    SINTER_WIDTH(3) SINTER_WIDTH(4) SINTER_WIDTH(5) SINTER_WIDTH(6) SINTER_WIDTH(7) default : SINTER_WIDTH(8)
#undef SINTER_WIDTH
  }
#if HWY_TARGET == HWY_NEON
  if (simd_has_i8mm()) join_fours(segments, last - first, piece);
#endif
}

int64_t byte_panel_width() { return panel_columns(); }

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {

HWY_EXPORT(byte_panel_width);
HWY_EXPORT(unpack_piece);

int64_t byte_panel_width() { return HWY_DYNAMIC_DISPATCH(byte_panel_width)(); }
void unpack_piece(const LowBit& g, const LowBitSegments& segments, int64_t column, int64_t first,
                  int64_t last, float* piece) {
  HWY_DYNAMIC_DISPATCH(unpack_piece)(g, segments, column, first, last, piece);
}

}  // namespace sinter::simd
#endif  // HWY_ONCE
