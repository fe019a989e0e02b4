// Vectors of float32 from weights of float32, float16, bfloat16 and float8 in memory: every number is exact,
// NaN and infinities included.
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_ISA_FLOAT_FORMATS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_ISA_FLOAT_FORMATS_INL_H_
#undef SINTER_PLATFORMS_SIMD_ISA_FLOAT_FORMATS_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_ISA_FLOAT_FORMATS_INL_H_
#endif

#include "platforms/simd/isa/math-inl.h"
#include "runtime/core/dtype.h"
#include "runtime/core/float_formats.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

using U = hn::RebindToUnsigned<F>;
using VU = hn::Vec<U>;

// Each format has
//   Bits       the type of an element in memory
//   load       a vector of elements
//   load_some  the first n of them, fewer than a vector has, and zeros
//   of_words   the elements in the low bits of 32-bit lanes; the bits above them are ignored

struct Float32 {
  using Bits = float;
  static HWY_INLINE V load(const float* p) { return hn::LoadU(F(), p); }
  static HWY_INLINE V load_some(const float* p, size_t n) { return hn::LoadN(F(), p, n); }
  static HWY_INLINE V of_words(VU words) { return hn::BitCast(F(), words); }
};

struct BFloat16 {
  using Bits = uint16_t;
  using D = hn::Rebind<uint16_t, F>;
  static HWY_INLINE V of_words(VU words) { return hn::BitCast(F(), hn::ShiftLeft<16>(words)); }
  static HWY_INLINE V load(const uint16_t* p) { return of_words(hn::PromoteTo(U(), hn::LoadU(D(), p))); }
  static HWY_INLINE V load_some(const uint16_t* p, size_t n) {
    return of_words(hn::PromoteTo(U(), hn::LoadN(D(), p, n)));
  }
};

// The processor converts where it has an instruction. Highway's replacement treats infinities and NaN as
// numbers.
struct Float16 {
  using Bits = uint16_t;
  using D = hn::Rebind<uint16_t, F>;
  static HWY_INLINE V of_bits(hn::Vec<D> bits) {
#if (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2) || HWY_ARCH_ARM_A64
    return hn::PromoteTo(F(), hn::BitCast(hn::Rebind<hwy::float16_t, F>(), bits));
#else
    const U u;
    const F d;
    constexpr uint32_t kBias = (127 - 15) << 23;
    const VU words = hn::PromoteTo(u, bits), magnitude = hn::And(words, hn::Set(u, 0x7fff));
    const VU moved = hn::Add(hn::ShiftLeft<13>(magnitude), hn::Set(u, kBias));
    const auto is_small =
        hn::RebindMask(d, hn::Lt(magnitude, hn::Set(u, 1u << kFloat16Format.mantissa_bits)));
    const auto is_infinite = hn::Gt(magnitude, hn::Set(u, kFloat16Format.max_code));
    const V small = hn::Mul(hn::ConvertTo(d, hn::BitCast(I(), magnitude)), set(0x1p-24f));
    const V normal = hn::BitCast(d, hn::Add(moved, hn::IfThenElseZero(is_infinite, hn::Set(u, kBias))));
    const VU sign = hn::ShiftLeft<16>(hn::And(words, hn::Set(u, 0x8000)));
    return hn::Or(hn::IfThenElse(is_small, small, normal), hn::BitCast(d, sign));
#endif
  }
  static HWY_INLINE V of_words(VU words) { return of_bits(hn::TruncateTo(D(), words)); }
  static HWY_INLINE V load(const uint16_t* p) { return of_bits(hn::LoadU(D(), p)); }
  static HWY_INLINE V load_some(const uint16_t* p, size_t n) { return of_bits(hn::LoadN(D(), p, n)); }
};

// float8 and float4 without infinities, by their fields. For normal numbers, the fields are moved and the
// exponent gets float32's bias. Other numbers are the mantissa times the smallest number.
template <const FloatFormat& kFormat>
struct SmallFloat {
  static_assert(kFormat.inf_code == 0 && kFormat.bits() <= 8);
  using Bits = uint8_t;
  using D = hn::Rebind<uint8_t, F>;
  static HWY_INLINE V of_words(VU words) {
    const U u;
    const F d;
    constexpr int kMantissa = kFormat.mantissa_bits, kBits = kFormat.bits();
    constexpr uint32_t kSign = kFormat.sign_bit();
    const VU code = hn::And(words, hn::Set(u, kSign - 1));
    const VU sign = hn::ShiftLeft<32 - kBits>(hn::And(words, hn::Set(u, kSign)));
    const VU moved = hn::Add(hn::ShiftLeft<23 - kMantissa>(code),
                             hn::Set(u, static_cast<uint32_t>(127 - kFormat.bias) << 23));
    const V small = hn::Mul(hn::ConvertTo(d, hn::BitCast(I(), code)),
                            set(static_cast<float>(sinter::power_of_two(1 - kFormat.bias - kMantissa))));
    const V normal = hn::BitCast(d, moved);
    const auto is_small = hn::RebindMask(d, hn::Lt(code, hn::Set(u, 1u << kMantissa)));
    V value = hn::IfThenElse(is_small, small, normal);
    if constexpr (kFormat.nan_code != 0) {
      const VU of_nan = kFormat.unsigned_zero() ? hn::And(words, hn::Set(u, 2 * kSign - 1)) : code;
      const auto is_nan = hn::Eq(of_nan, hn::Set(u, kFormat.nan_code));
      value = hn::IfThenElse(hn::RebindMask(d, is_nan), hn::BitCast(d, hn::Set(u, 0x7fc00000u)), value);
    }
    return hn::Or(value, hn::BitCast(d, sign));
  }
  static HWY_INLINE V load(const uint8_t* p) { return of_words(hn::PromoteTo(U(), hn::LoadU(D(), p))); }
  static HWY_INLINE V load_some(const uint8_t* p, size_t n) {
    return of_words(hn::PromoteTo(U(), hn::LoadN(D(), p, n)));
  }
};

// float8e8m0, 2^(code - 127): the exponent of a float32, which has the lowest power as a subnormal number.
struct Float8E8M0 {
  static HWY_INLINE V of_words(VU words) {
    const U u;
    const VU code = hn::And(words, hn::Set(u, 0xff));
    const VU power = hn::Max(hn::ShiftLeft<23>(code), hn::Set(u, 1u << 22));
    return hn::BitCast(
        F(), hn::Or(power, hn::IfThenElseZero(hn::Eq(code, hn::Set(u, 0xff)), hn::Set(u, 1u << 22))));
  }
};

// float8e5m2 is the upper half of a float16.
struct Float8E5M2 {
  using Bits = uint8_t;
  using D8 = hn::Rebind<uint8_t, F>;
  using D16 = hn::Rebind<uint16_t, F>;
  static HWY_INLINE V of_bits(hn::Vec<D16> code) { return Float16::of_bits(hn::ShiftLeft<8>(code)); }
  static HWY_INLINE V of_words(VU words) { return of_bits(hn::TruncateTo(D16(), words)); }
  static HWY_INLINE V load(const uint8_t* p) { return of_bits(hn::PromoteTo(D16(), hn::LoadU(D8(), p))); }
  static HWY_INLINE V load_some(const uint8_t* p, size_t n) {
    return of_bits(hn::PromoteTo(D16(), hn::LoadN(D8(), p, n)));
  }
};

// float8e4m3fn: its fields, placed in those of a float16, give 2^-8 times the number, also for subnormal
// ones. Its NaN gets the exponent of float16's.
struct Float8E4M3FN {
  using Bits = uint8_t;
  using D8 = hn::Rebind<uint8_t, F>;
  using D16 = hn::Rebind<uint16_t, F>;
  static HWY_INLINE V of_bits(hn::Vec<D16> code) {
    const D16 d;
    const auto top = hn::Set(d, 0x80), magnitude = hn::AndNot(top, hn::And(code, hn::Set(d, 0xff)));
    const auto nan = hn::And(hn::Add(magnitude, hn::Set(d, 1)), top);  // 0x80, or 0
    const auto sign = hn::ShiftLeft<8>(hn::And(code, top));
    const V moved = Float16::of_bits(hn::Or(hn::ShiftLeft<7>(hn::Or(magnitude, nan)), sign));
    return hn::Mul(moved, set(0x1p8f));
  }
  static HWY_INLINE V of_words(VU words) { return of_bits(hn::TruncateTo(D16(), words)); }
  static HWY_INLINE V load(const uint8_t* p) { return of_bits(hn::PromoteTo(D16(), hn::LoadU(D8(), p))); }
  static HWY_INLINE V load_some(const uint8_t* p, size_t n) {
    return of_bits(hn::PromoteTo(D16(), hn::LoadN(D8(), p, n)));
  }
};

// Calls f with a value of the format, one of the float8 kinds with a mantissa.
template <class Function>
HWY_INLINE void for_float8(DType type, Function&& f) {
  switch (type) {
    case DType::kFloat8E4M3FN:
      return f(Float8E4M3FN());
    case DType::kFloat8E4M3FNUZ:
      return f(SmallFloat<kFloat8E4M3FNUZFormat>());
    case DType::kFloat8E5M2:
      return f(Float8E5M2());
    default:
      return f(SmallFloat<kFloat8E5M2FNUZFormat>());
  }
}

// Does the same for any format that is a narrow weight, or float32.
template <class Function>
HWY_INLINE void for_format(DType type, Function&& f) {
  switch (type) {
    case DType::kFloat16:
      return f(Float16());
    case DType::kBFloat16:
      return f(BFloat16());
    case DType::kFloat32:
      return f(Float32());
    default:
      return for_float8(type, f);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
