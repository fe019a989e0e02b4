// Sums of products over four depths of one or two rows, on 64-bit ARM: the factors of a row are the lanes of
// one register. A depth is a float32 number, or four of int8, whose products are summed as int32. It is in
// assembly, because compilers copy sums between registers, and load rows so early that there are not enough.
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_FLOAT_GEMM_FOUR_DEPTHS_NEON_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_FLOAT_GEMM_FOUR_DEPTHS_NEON_INL_H_
#undef SINTER_PLATFORMS_SIMD_FLOAT_GEMM_FOUR_DEPTHS_NEON_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_FLOAT_GEMM_FOUR_DEPTHS_NEON_INL_H_
#endif

#include "hwy/highway.h"

#if HWY_ARCH_ARM_A64
HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// The registers of factors and rows, which compilers would move about. An instruction loads four registers in
// a row.
#define SINTER_FACTORS(R)                                                                                    \
  ;                                                                                                          \
  register R b00 asm("v24"), b01 asm("v25"), b10 asm("v26"), b11 asm("v27"), b20 asm("v28"), b21 asm("v29"), \
      b30 asm("v30"), b31 asm("v31")
#define SINTER_ROW_REGISTERS(R) [[maybe_unused]] register R x asm("v22"), y asm("v23")
#define SINTER_TAKE_FACTORS \
  b00 = v[0], b01 = v[1], b10 = v[2], b11 = v[3], b20 = v[4], b21 = v[5], b30 = v[6], b31 = v[7]
#define SINTER_INPUTS1 "w"(b00), "w"(b10), "w"(b20), "w"(b30)
#define SINTER_INPUTS2 SINTER_INPUTS1, "w"(b01), "w"(b11), "w"(b21), "w"(b31)

// The instructions: depth `lane` of the row in register `row`, times vector 0 of the factors, or both.
#define SINTER_FMLA(sum, factor, row, lane) "fmla %[" #sum "].4s, v" #factor ".4s, v" #row ".s[" #lane "]\n\t"
#define SINTER_SDOT(sum, factor, row, lane) \
  "sdot %[" #sum "].4s, v" #factor ".16b, v" #row ".4b[" #lane "]\n\t"
#define SINTER_ONE_ROW1(op) op(s0, 24, 22, 0) op(s0, 26, 22, 1) op(s0, 28, 22, 2) op(s0, 30, 22, 3)
#define SINTER_ONE_ROW2(op)                                                                 \
  op(s0, 24, 22, 0) op(s1, 25, 22, 0) op(s0, 26, 22, 1) op(s1, 27, 22, 1) op(s0, 28, 22, 2) \
      op(s1, 29, 22, 2) op(s0, 30, 22, 3) op(s1, 31, 22, 3)
// The rows' products alternate, so that no sum waits for the one before it.
#define SINTER_TWO_ROWS1(op)                                                                \
  op(s0, 24, 22, 0) op(t0, 24, 23, 0) op(s0, 26, 22, 1) op(t0, 26, 23, 1) op(s0, 28, 22, 2) \
      op(t0, 28, 23, 2) op(s0, 30, 22, 3) op(t0, 30, 23, 3)
#define SINTER_TWO_ROWS2_OF(op, first, second, lane) \
  op(s0, first, 22, lane) op(s1, second, 22, lane) op(t0, first, 23, lane) op(t1, second, 23, lane)
#define SINTER_TWO_ROWS2(op)         \
  SINTER_TWO_ROWS2_OF(op, 24, 25, 0) \
  SINTER_TWO_ROWS2_OF(op, 26, 27, 1) SINTER_TWO_ROWS2_OF(op, 28, 29, 2) SINTER_TWO_ROWS2_OF(op, 30, 31, 3)

// R is four float32, or int32 and sixteen int8; D is the type of a row's numbers. Factors are two vectors for
// each depth, or one, beside which the other is not used.
#define SINTER_FOUR_DEPTHS(Name, R, S, D, op, extension)                                              \
  struct Name {                                                                                       \
    R v[8];                                                                                           \
    /* Of a packed panel at b, which moves on to the next depth. */                                   \
    HWY_INLINE void load_panel(const D*& b) {                                                         \
      SINTER_FACTORS(R);                                                                              \
      asm("ld1 {v24.4s, v25.4s, v26.4s, v27.4s}, [%[b]], #64\n\t"                                     \
          "ld1 {v28.4s, v29.4s, v30.4s, v31.4s}, [%[b]], #64"                                         \
          : "=w"(b00), "=w"(b01), "=w"(b10), "=w"(b11), "=w"(b20), "=w"(b21), "=w"(b30),              \
            "=w"(b31), [b] "+r"(b)                                                                    \
          :                                                                                           \
          : "memory");                                                                                \
      v[0] = b00, v[1] = b01, v[2] = b10, v[3] = b11, v[4] = b20, v[5] = b21, v[6] = b30, v[7] = b31; \
    }                                                                                                 \
    /* Of the row at p, which moves on to the next depth. */                                          \
    template <int kVectors>                                                                           \
    HWY_INLINE void add(const D*& p, S& s0, [[maybe_unused]] S& s1) const {                           \
      SINTER_FACTORS(R);                                                                              \
      SINTER_ROW_REGISTERS(R);                                                                        \
      SINTER_TAKE_FACTORS;                                                                            \
      if constexpr (kVectors == 2)                                                                    \
        asm(extension "ldr q22, [%[p]], #16\n\t" SINTER_ONE_ROW2(op)                                  \
            : [s0] "+w"(s0), [s1] "+w"(s1), "=&w"(x), [p] "+r"(p)                                     \
            : SINTER_INPUTS2                                                                          \
            : "memory");                                                                              \
      else                                                                                            \
        asm(extension "ldr q22, [%[p]], #16\n\t" SINTER_ONE_ROW1(op)                                  \
            : [s0] "+w"(s0), "=&w"(x), [p] "+r"(p)                                                    \
            : SINTER_INPUTS1                                                                          \
            : "memory");                                                                              \
    }                                                                                                 \
    /* Of the rows at p and q. */                                                                     \
    template <int kVectors>                                                                           \
    HWY_INLINE void add(const D*& p, const D*& q, S& s0, [[maybe_unused]] S& s1, S& t0,               \
                        [[maybe_unused]] S& t1) const {                                               \
      SINTER_FACTORS(R);                                                                              \
      SINTER_ROW_REGISTERS(R);                                                                        \
      SINTER_TAKE_FACTORS;                                                                            \
      if constexpr (kVectors == 2)                                                                    \
        asm(extension "ldr q22, [%[p]], #16\n\tldr q23, [%[q]], #16\n\t" SINTER_TWO_ROWS2(op)         \
            : [s0] "+w"(s0), [s1] "+w"(s1), [t0] "+w"(t0), [t1] "+w"(t1), "=&w"(x),                   \
              "=&w"(y), [p] "+r"(p), [q] "+r"(q)                                                      \
            : SINTER_INPUTS2                                                                          \
            : "memory");                                                                              \
      else                                                                                            \
        asm(extension "ldr q22, [%[p]], #16\n\tldr q23, [%[q]], #16\n\t" SINTER_TWO_ROWS1(op)         \
            : [s0] "+w"(s0), [t0] "+w"(t0), "=&w"(x), "=&w"(y), [p] "+r"(p), [q] "+r"(q)              \
            : SINTER_INPUTS1                                                                          \
            : "memory");                                                                              \
    }                                                                                                 \
  };

SINTER_FOUR_DEPTHS(FourFloats, float32x4_t, float32x4_t, float, SINTER_FMLA, "")
SINTER_FOUR_DEPTHS(FourDots, int8x16_t, int32x4_t, int8_t, SINTER_SDOT, ".arch armv8.2-a+crypto+dotprod\n\t")

#include "platforms/simd/isa/undef_assembly.h"

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();
#endif  // HWY_ARCH_ARM_A64

#endif  // per-target include guard
