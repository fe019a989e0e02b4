// The conversion of weights' codes to numbers: four vectors of floats from a vector of bytes, each of which
// has a code in its low bits. In lane l, the first vector has the lowest byte of word l, and the next ones
// the bytes above it.
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_LOW_BIT_CODES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_LOW_BIT_CODES_INL_H_
#undef SINTER_PLATFORMS_SIMD_LOW_BIT_CODES_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_LOW_BIT_CODES_INL_H_
#endif

#include <array>
#include <cstring>
#include <limits>
#include <type_traits>

#include "platforms/simd/isa/float_formats-inl.h"
#include "platforms/simd/low_bit/numbers-inl.h"
#include "platforms/simd/low_bit/table-inl.h"
#include "platforms/simd/low_bit/words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

struct FourFloats {
  V v0, v1, v2, v3;
};

// Each kind of codes has
//   kBits      of a code
//   kIntegers  whether they are integers, of which the second and the last vector are 256 times as large
//   ordered    words of weights in the form of which `floats` takes the bytes
//   floats     the four vectors
//   sum_of     a sum of products with a row of weights, from the sum of those with the numbers that `floats`
//              gives

// The parts that most kinds have.
template <int kWidth, bool kAreIntegers>
struct CommonCodes {
  static constexpr int kBits = kWidth;
  static constexpr bool kIntegers = kAreIntegers;

  static HWY_INLINE VI ordered(VI words) { return words; }
  static HWY_INLINE float sum_of(const LowBit&, int64_t, float sum) { return sum; }
};

template <int kWidth>
struct IntegerCodes : CommonCodes<kWidth, true> {
  HWY_INLINE explicit IntegerCodes(const LowBit& g)
      : flip_(flip_of(g, false)), mask_(hn::Set(I(), (1 << kWidth) - 1)) {}
  HWY_INLINE VI ordered(VI words) const { return hn::Xor(words, flip_); }
  HWY_INLINE FourFloats floats(VI bytes) const {
    const F d;
    const VI higher = hn::ShiftLeft<8>(mask_), upper = hn::ShiftRight<16>(bytes);
    return {hn::ConvertTo(d, hn::And(bytes, mask_)), hn::ConvertTo(d, hn::And(bytes, higher)),
            hn::ConvertTo(d, hn::And(upper, mask_)), hn::ConvertTo(d, hn::And(upper, higher))};
  }

 private:
  VI flip_, mask_;
};

// These are floats without a table, byte by byte.
template <class Format, int kWidth>
struct FormatCodes : CommonCodes<kWidth, false> {
  HWY_INLINE explicit FormatCodes(const LowBit&) {}
  HWY_INLINE FourFloats floats(VI bytes) const {
    const VU words = hn::BitCast(U(), bytes);
    return {Format::of_words(words), Format::of_words(hn::ShiftRight<8>(words)),
            Format::of_words(hn::ShiftRight<16>(words)), Format::of_words(hn::ShiftRight<24>(words))};
  }
};

using Bytes = hn::Repartition<uint8_t, I>;
using VB = hn::Vec<Bytes>;

// Returns, of every 16 bytes, the lower pairs of bytes of the words, and the upper pairs behind them.
HWY_INLINE VI pairs_apart(VI words) {
  alignas(16) static constexpr uint8_t kPairs[16] = {0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15};
  return hn::BitCast(I(), hn::TableLookupBytes(hn::BitCast(Bytes(), words), hn::LoadDup128(Bytes(), kPairs)));
}
// Returns floats that bfloat16 holds; 16 bits are two bytes that were ordered by pairs_apart.
HWY_INLINE FourFloats floats_of_halves(VB lower, VB upper) {
  const VU a = hn::BitCast(U(), hn::InterleaveLower(Bytes(), lower, upper)),
           b = hn::BitCast(U(), hn::InterleaveUpper(Bytes(), lower, upper)), top = hn::Set(U(), 0xffff0000u);
  return {BFloat16::of_words(a), hn::BitCast(F(), hn::And(a, top)), BFloat16::of_words(b),
          hn::BitCast(F(), hn::And(b, top))};
}

// Returns byte `byte` of the first numbers of a format as bfloat16.
template <const FloatFormat& kFormat, size_t kCodes>
constexpr auto bytes_of_numbers(int byte) {
  std::array<uint8_t, kCodes> bytes = {};
  for (uint32_t code = 0; code < bytes.size(); ++code)
    bytes[code] =
        static_cast<uint8_t>(encode_float<kBFloat16Format>(decode_float<kFormat>(code)) >> (8 * byte));
  return bytes;
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3

// The codes are places in a table of 16 numbers, one in each lane of words that are shifted.
struct TableCodes : CommonCodes<4, false> {
  HWY_INLINE explicit TableCodes(const LowBit& g) : numbers_(g.numbers) {}
  HWY_INLINE FourFloats floats(VI bytes) const {
    return {numbers_.look_up(bytes), numbers_.look_up(hn::ShiftRight<8>(bytes)),
            numbers_.look_up(hn::ShiftRight<16>(bytes)), numbers_.look_up(hn::ShiftRight<24>(bytes))};
  }

 private:
  TableLanes numbers_;
};
using E2M1Codes = TableCodes;

#else

#if HWY_ARCH_ARM && !HWY_ARCH_ARM_A64  // has too few registers, and a step's stack has a limit
#define SINTER_TABLE_CALL HWY_NOINLINE
#else
#define SINTER_TABLE_CALL HWY_INLINE
#endif

// The codes are places in a table of 16 numbers, each byte of which comes from a table of its own: the upper
// kBytes (2 or 4). The other bytes are zeros.
template <int kBytes>
struct ByteTableCodes : CommonCodes<4, false> {
  HWY_INLINE explicit ByteTableCodes(const LowBit& g) {
    alignas(16) uint8_t bytes[4][16];
    for (int code = 0; code < 16; ++code) {
      uint8_t number[4];
      std::memcpy(number, g.numbers + code, sizeof number);
      for (int b = 0; b < 4; ++b) bytes[b][code] = number[b];
    }
    b0_ = hn::LoadDup128(Bytes(), bytes[0]), b1_ = hn::LoadDup128(Bytes(), bytes[1]);
    b2_ = hn::LoadDup128(Bytes(), bytes[2]), b3_ = hn::LoadDup128(Bytes(), bytes[3]);
  }
  HWY_INLINE VI ordered(VI words) const {
    if constexpr (kBytes == 2) return pairs_apart(words);
    alignas(16) static constexpr uint8_t kApart[16] = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
    return hn::BitCast(I(),
                       hn::TableLookupBytes(hn::BitCast(Bytes(), words), hn::LoadDup128(Bytes(), kApart)));
  }
  SINTER_TABLE_CALL FourFloats floats(VI bytes) const {
    const Bytes d;
    const VB codes = hn::And(hn::BitCast(d, bytes), hn::Set(d, 15));
    const VB b2 = hn::TableLookupBytes(b2_, codes), b3 = hn::TableLookupBytes(b3_, codes);
    if constexpr (kBytes == 2) return floats_of_halves(b2, b3);
    const VB b0 = hn::TableLookupBytes(b0_, codes), b1 = hn::TableLookupBytes(b1_, codes);
    const hn::Repartition<uint16_t, I> halves;
    const auto first0 = hn::BitCast(halves, hn::InterleaveLower(d, b0, b1)),
               first2 = hn::BitCast(halves, hn::InterleaveLower(d, b2, b3)),
               last0 = hn::BitCast(halves, hn::InterleaveUpper(d, b0, b1)),
               last2 = hn::BitCast(halves, hn::InterleaveUpper(d, b2, b3));
    return {hn::BitCast(F(), hn::InterleaveLower(halves, first0, first2)),
            hn::BitCast(F(), hn::InterleaveUpper(halves, first0, first2)),
            hn::BitCast(F(), hn::InterleaveLower(halves, last0, last2)),
            hn::BitCast(F(), hn::InterleaveUpper(halves, last0, last2))};
  }

 private:
  VB b0_, b1_, b2_, b3_;
};
#undef SINTER_TABLE_CALL
using TableCodes = ByteTableCodes<4>;
using E2M1Codes = ByteTableCodes<2>;  // bfloat16 holds them

#endif

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL

// float8 as bfloat16, each byte of which comes from a table.
template <const FloatFormat& kFormat>
struct Float8Codes : CommonCodes<8, false> {
  HWY_INLINE explicit Float8Codes(const LowBit&) {
    // The codes without a sign.
    alignas(64) static constexpr auto kUpper = bytes_of_numbers<kFormat, 128>(1),
                                      kLower = bytes_of_numbers<kFormat, 128>(0);
    upper0_ = hn::Load(Bytes(), kUpper.data()), upper1_ = hn::Load(Bytes(), kUpper.data() + 64);
    lower0_ = hn::Load(Bytes(), kLower.data()), lower1_ = hn::Load(Bytes(), kLower.data() + 64);
  }
  HWY_INLINE VI ordered(VI words) const { return pairs_apart(words); }
  HWY_INLINE FourFloats floats(VI bytes) const {
    const Bytes d;
    const VB codes = hn::BitCast(d, bytes), sign = hn::Set(d, 0x80);
    VB upper = hn::Or(look_up(upper0_, upper1_, codes), hn::And(codes, sign)),
       lower = look_up(lower0_, lower1_, codes);
    if constexpr (kFormat.unsigned_zero()) {
      const auto is_nan = hn::Eq(codes, sign);
      upper = hn::IfThenElse(is_nan, hn::Set(d, 0x7f), upper),
      lower = hn::IfThenElse(is_nan, hn::Set(d, 0xc0), lower);
    }
    return floats_of_halves(lower, upper);
  }

 private:
  // The instruction takes the low seven bits of each byte.
  static HWY_INLINE VB look_up(VB table0, VB table1, VB codes) {
    return VB{_mm512_permutex2var_epi8(table0.raw, codes.raw, table1.raw)};
  }
  VB upper0_, upper1_, lower0_, lower1_;
};

using E4M3FNCodes = Float8Codes<kFloat8E4M3FNFormat>;
using E4M3FNUZCodes = Float8Codes<kFloat8E4M3FNUZFormat>;
using E5M2Codes = Float8Codes<kFloat8E5M2Format>;
using E5M2FNUZCodes = Float8Codes<kFloat8E5M2FNUZFormat>;

#elif (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2) || HWY_ARCH_ARM_A64

// float8 whose fields are moved into those of a float16, which the processor converts: float8e5m2 is its
// upper byte, and e4m3 gives a power of two as a common factor. A NaN of e4m3 makes the sum of its row NaN,
// whatever it is multiplied with.
template <const FloatFormat& kFormat>
struct HalfCodes : CommonCodes<8, false> {
  HWY_INLINE explicit HalfCodes(const LowBit&) : seen_(hn::MaskFalse(Bytes())) {}
  HWY_INLINE VI ordered(VI words) const {
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
    alignas(64) static constexpr uint16_t kApart[32] = {0,  2,  4,  6,  8,  10, 12, 14, 16, 18, 20,
                                                        22, 24, 26, 28, 30, 1,  3,  5,  7,  9,  11,
                                                        13, 15, 17, 19, 21, 23, 25, 27, 29, 31};
    const hn::RebindToUnsigned<Pairs> d;
    return hn::BitCast(I(), hn::TableLookupLanes(hn::BitCast(d, words), hn::SetTableIndices(d, kApart)));
#elif HWY_ARCH_X86
    alignas(32) static constexpr int32_t kApart[8] = {0, 1, 4, 5, 2, 3, 6, 7};
    return hn::TableLookupLanes(pairs_apart(words), hn::SetTableIndices(I(), kApart));
#else
    return pairs_apart(words);
#endif
  }
  HWY_INLINE FourFloats floats(VI bytes) {
    const Pairs d;
    const auto codes = hn::BitCast(d, bytes);
    auto even = hn::ShiftLeft<8>(codes), odd = codes;
    if constexpr (kE4M3) {
      const auto fields = hn::Set(d, static_cast<int16_t>(0xbf80));
      even = hn::And(hn::ShiftRight<1>(even), fields), odd = hn::And(hn::ShiftRight<1>(odd), fields);
      seen_ = hn::Or(seen_, hn::Eq(hn::And(hn::BitCast(Bytes(), bytes), hn::Set(Bytes(), kNanBits)),
                                   hn::Set(Bytes(), kFormat.nan_code)));
    } else {
      odd = hn::And(odd, hn::Set(d, static_cast<int16_t>(0xff00)));
    }
    const hn::Half<Pairs> half;
    return {float_of(hn::LowerHalf(even)), float_of(hn::LowerHalf(odd)), float_of(hn::UpperHalf(half, even)),
            float_of(hn::UpperHalf(half, odd))};
  }
  HWY_INLINE float sum_of(const LowBit& g, int64_t row, float sum) const {
    if constexpr (!kE4M3) return sum;
    if (HWY_UNLIKELY(!hn::AllFalse(Bytes(), seen_))) {
      const uint8_t* codes = g.weights + row * g.depth;
      for (int64_t k = 0; k < g.depth; ++k)
        if ((codes[k] & kNanBits) == kFormat.nan_code) return std::numeric_limits<float>::quiet_NaN();
    }
    return sum * static_cast<float>(sinter::power_of_two(kFloat16Format.bias - kFormat.bias));
  }

 private:
  using Pairs = hn::Repartition<int16_t, I>;
  static constexpr bool kE4M3 = kFormat.mantissa_bits == 3;
  static constexpr uint8_t kNanBits = kFormat.unsigned_zero() ? 0xff : 0x7f;

  static HWY_INLINE V float_of(hn::Vec<hn::Half<Pairs> > bits) {
    return hn::PromoteTo(F(), hn::BitCast(hn::Rebind<hwy::float16_t, F>(), bits));
  }

  hn::Mask<Bytes> seen_;
};

using E4M3FNCodes = HalfCodes<kFloat8E4M3FNFormat>;
using E4M3FNUZCodes = HalfCodes<kFloat8E4M3FNUZFormat>;
using E5M2Codes = HalfCodes<kFloat8E5M2Format>;
using E5M2FNUZCodes = FormatCodes<SmallFloat<kFloat8E5M2FNUZFormat>, 8>;

#else

using E4M3FNCodes = FormatCodes<SmallFloat<kFloat8E4M3FNFormat>, 8>;
using E4M3FNUZCodes = FormatCodes<SmallFloat<kFloat8E4M3FNUZFormat>, 8>;
using E5M2Codes = FormatCodes<Float8E5M2, 8>;
using E5M2FNUZCodes = FormatCodes<SmallFloat<kFloat8E5M2FNUZFormat>, 8>;

#endif

// Codes that few models have: several rows are computed one after another, without code of their own.
template <class Codes>
constexpr bool kIsRare = std::is_same_v<Codes, E4M3FNUZCodes> || std::is_same_v<Codes, E5M2FNUZCodes>;

// Calls f with the std::type_identity of a format's codes. Signed integers have those of the unsigned ones.
template <class Function>
HWY_INLINE void for_codes(WeightFormat format, Function&& f) {
  if (format.is_signed()) format = weight_format(format.bits, CodeKind::kUnsigned);
#define SINTER_CODES_Unsigned(name, bits) IntegerCodes<bits>
#define SINTER_CODES_Signed(name, bits) IntegerCodes<bits>
#define SINTER_CODES_Float(name, bits) name##Codes
#define SINTER_CODES_Table(name, bits) TableCodes
#define SINTER_WEIGHT_FORMAT(name, type, bits, kind)                     \
  if constexpr (CodeKind::k##kind != CodeKind::kSigned)                  \
    if (format == WeightFormat{DType::k##type, bits, CodeKind::k##kind}) \
      return f(std::type_identity<SINTER_CODES_##kind(name, bits)>());
#include "schemas/weight_formats.def"
#undef SINTER_WEIGHT_FORMAT
#undef SINTER_CODES_Table
#undef SINTER_CODES_Float
#undef SINTER_CODES_Signed
#undef SINTER_CODES_Unsigned
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
