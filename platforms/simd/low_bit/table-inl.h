// The numbers of a table of 16 (LowBit::table), by their indices.
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_LOW_BIT_TABLE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_LOW_BIT_TABLE_INL_H_
#undef SINTER_PLATFORMS_SIMD_LOW_BIT_TABLE_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_LOW_BIT_TABLE_INL_H_
#endif

#include "platforms/simd/isa/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

class TableLanes {
 public:
  // True if a look-up takes an instruction or a few, instead of a load for each lane.
  static constexpr bool kFast = HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2;

  HWY_INLINE explicit TableLanes(const float* table);
  // Returns a number for the low four bits of each lane, whatever the others are.
  HWY_INLINE V look_up(VI places) const;

 private:
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  V numbers_;
#elif HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  V lower_, upper_;
#else
  const float* numbers_;
#endif
};

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3

HWY_INLINE TableLanes::TableLanes(const float* table) : numbers_(hn::LoadU(F(), table)) {}
HWY_INLINE V TableLanes::look_up(VI places) const {
  return V{_mm512_permutexvar_ps(places.raw, numbers_.raw)};
}

#elif HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2

HWY_INLINE TableLanes::TableLanes(const float* table)
    : lower_(hn::LoadU(F(), table)), upper_(hn::LoadU(F(), table + 8)) {}
// Each permutation takes the low three bits of a lane; the fourth one, as the sign, chooses between them.
HWY_INLINE V TableLanes::look_up(VI places) const {
  return V{_mm256_blendv_ps(_mm256_permutevar8x32_ps(lower_.raw, places.raw),
                            _mm256_permutevar8x32_ps(upper_.raw, places.raw),
                            hn::BitCast(F(), hn::ShiftLeft<28>(places)).raw)};
}

#else

HWY_INLINE TableLanes::TableLanes(const float* table) : numbers_(table) {}
HWY_INLINE V TableLanes::look_up(VI places) const {
  return hn::GatherIndex(F(), numbers_, hn::And(places, hn::Set(I(), 15)));
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
