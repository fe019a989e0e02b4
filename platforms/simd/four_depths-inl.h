// Sums of products over four depths of one or two rows, on 64-bit ARM: the factors of a row are the lanes of
// one register. In assembly, for compilers copy sums between registers, and load the rows so early that there
// are not enough.
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_FOUR_DEPTHS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_FOUR_DEPTHS_INL_H_
#undef SINTER_PLATFORMS_SIMD_FOUR_DEPTHS_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_FOUR_DEPTHS_INL_H_
#endif

#include "platforms/simd/math-inl.h"

#if HWY_ARCH_ARM_A64
HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// sums += x[lane] b, for one vector or two.
#define SINTER_LANE1(x, sums, lane) "fmla %[" #sums "0].4s, %[b" #lane "0].4s, %[" #x "].s[" #lane "]\n\t"
#define SINTER_LANE2(x, sums, lane) \
  SINTER_LANE1(x, sums, lane) "fmla %[" #sums "1].4s, %[b" #lane "1].4s, %[" #x "].s[" #lane "]\n\t"
#define SINTER_ROW_LOAD(x, p) "ldr %q[" #x "], [%[" #p "]], #16\n\t"
#define SINTER_ONE_ROW(lane) lane(x, s, 0) lane(x, s, 1) lane(x, s, 2) lane(x, s, 3)
#define SINTER_TWO_ROWS(lane)                                                                       \
  lane(x, s, 0) lane(y, t, 0) lane(x, s, 1) lane(y, t, 1) lane(x, s, 2) lane(y, t, 2) lane(x, s, 3) \
      lane(y, t, 3)
#define SINTER_FACTORS1 [b00] "w"(b00.raw), [b10] "w"(b10.raw), [b20] "w"(b20.raw), [b30] "w"(b30.raw)
#define SINTER_FACTORS2                                                                                    \
  [b00] "w"(r0), [b01] "w"(r1), [b10] "w"(r2), [b11] "w"(r3), [b20] "w"(r4), [b21] "w"(r5), [b30] "w"(r6), \
      [b31] "w"(r7)
// The registers of the factors of two vectors, and of the rows. Without these compilers move them about.
#define SINTER_FACTOR_REGISTERS                                                                      \
  register float32x4_t r0 asm("v24") = b00.raw, r1 asm("v25") = b01.raw, r2 asm("v26") = b10.raw,    \
                          r3 asm("v27") = b11.raw, r4 asm("v28") = b20.raw, r5 asm("v29") = b21.raw, \
                          r6 asm("v30") = b30.raw, r7 asm("v31") = b31.raw;

// Factors of four depths: bK0 and bK1 are the vectors of depth K. With one vector, bK1 is not used.
struct FourDepths {
  V b00, b01, b10, b11, b20, b21, b30, b31;

  // Of a packed panel at b, which moves on to the next depth.
  HWY_INLINE void load_panel(const float*& b) {
    // The instruction takes four registers in a row.
    register float32x4_t r0 asm("v24"), r1 asm("v25"), r2 asm("v26"), r3 asm("v27");
    register float32x4_t r4 asm("v28"), r5 asm("v29"), r6 asm("v30"), r7 asm("v31");
    asm("ld1 {v24.4s, v25.4s, v26.4s, v27.4s}, [%[b]], #64\n\t"
        "ld1 {v28.4s, v29.4s, v30.4s, v31.4s}, [%[b]], #64"
        : "=w"(r0), "=w"(r1), "=w"(r2), "=w"(r3), "=w"(r4), "=w"(r5), "=w"(r6), "=w"(r7), [b] "+r"(b)
        :
        : "memory");
    b00 = V(r0), b01 = V(r1), b10 = V(r2), b11 = V(r3);
    b20 = V(r4), b21 = V(r5), b30 = V(r6), b31 = V(r7);
  }
  // Of a matrix at b, its depths `step` floats apart.
  template <int kVectors>
  HWY_INLINE void load(const float*& b, int64_t step) {
    const F d;
    b00 = hn::LoadU(d, b), b01 = kVectors == 2 ? hn::LoadU(d, b + 4) : b00, b += step;
    b10 = hn::LoadU(d, b), b11 = kVectors == 2 ? hn::LoadU(d, b + 4) : b10, b += step;
    b20 = hn::LoadU(d, b), b21 = kVectors == 2 ? hn::LoadU(d, b + 4) : b20, b += step;
    b30 = hn::LoadU(d, b), b31 = kVectors == 2 ? hn::LoadU(d, b + 4) : b30, b += step;
  }

  // Of the row at p, which moves on by four floats.
  template <int kVectors>
  HWY_INLINE void add(const float*& p, V& s0, [[maybe_unused]] V& s1) const {
    if constexpr (kVectors == 2) {
      SINTER_FACTOR_REGISTERS
      register float32x4_t x asm("v22");
      asm(SINTER_ROW_LOAD(x, p) SINTER_ONE_ROW(SINTER_LANE2)
          : [s0] "+w"(s0.raw), [s1] "+w"(s1.raw), [x] "=&w"(x), [p] "+r"(p)
          : SINTER_FACTORS2
          : "memory");
    } else {
      float32x4_t x;
      asm(SINTER_ROW_LOAD(x, p) SINTER_ONE_ROW(SINTER_LANE1)
          : [s0] "+w"(s0.raw), [x] "=&w"(x), [p] "+r"(p)
          : SINTER_FACTORS1
          : "memory");
    }
  }

  // Of the rows at p and q: their products alternate, for one sum after another would be waited for.
  template <int kVectors>
  HWY_INLINE void add(const float*& p, const float*& q, V& s0, [[maybe_unused]] V& s1, V& t0,
                      [[maybe_unused]] V& t1) const {
    if constexpr (kVectors == 2) {
      SINTER_FACTOR_REGISTERS
      register float32x4_t x asm("v22"), y asm("v23");
      asm(SINTER_ROW_LOAD(x, p) SINTER_ROW_LOAD(y, q) SINTER_TWO_ROWS(SINTER_LANE2)
          : [s0] "+w"(s0.raw), [s1] "+w"(s1.raw), [t0] "+w"(t0.raw), [t1] "+w"(t1.raw), [x] "=&w"(x),
            [y] "=&w"(y), [p] "+r"(p), [q] "+r"(q)
          : SINTER_FACTORS2
          : "memory");
    } else {
      float32x4_t x, y;
      asm(SINTER_ROW_LOAD(x, p) SINTER_ROW_LOAD(y, q) SINTER_TWO_ROWS(SINTER_LANE1)
          : [s0] "+w"(s0.raw), [t0] "+w"(t0.raw), [x] "=&w"(x), [y] "=&w"(y), [p] "+r"(p), [q] "+r"(q)
          : SINTER_FACTORS1
          : "memory");
    }
  }
};

#undef SINTER_FACTOR_REGISTERS
#undef SINTER_FACTORS2
#undef SINTER_FACTORS1
#undef SINTER_TWO_ROWS
#undef SINTER_ONE_ROW
#undef SINTER_ROW_LOAD
#undef SINTER_LANE2
#undef SINTER_LANE1

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();
#endif  // HWY_ARCH_ARM_A64

#endif  // per-target include guard
