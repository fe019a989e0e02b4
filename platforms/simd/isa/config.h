// The instruction sets that are compiled: one per step that pays. This comes before any header of Highway.
//
// SINTER_SIMD_BYTE_TABLES adds AVX-512 with VBMI and VNNI, for kernels that use table look-ups of bytes, or
// dot products of bytes or of int16 on x86. SINTER_SIMD_BYTE_DOTS adds 64-bit ARM with dot products of bytes,
// for kernels that use these. Highway has no target for that; HWY_NEON stands for it, which simd_kernels.cc
// takes only where the processor has them. HWY_NEON_BF16 is the number of a processor that has products of
// matrices of bytes (i8mm) in addition: it runs the code for HWY_NEON, which asks simd_has_i8mm().
//
// On x86 the sets are those of CMake's SINTER_X86_SETS: SINTER_X86_LOWEST, and those not in
// SINTER_X86_LEFT_OUT. The lowest is SSE4.2, without the instructions for AES that Highway would ask for
// besides: Atoms of 2013 and Nehalem do not have these. A processor without the lowest set is refused when
// the backend is opened.
#pragma once

#ifndef SINTER_X86_LEFT_OUT
#define SINTER_X86_LOWEST HWY_SSE4
#define SINTER_X86_LEFT_OUT 0
#endif
#ifdef __x86_64__
#define HWY_DISABLE_PCLMUL_AES
#ifndef __SSE4_2__
#define HWY_BASELINE_TARGETS SINTER_X86_LOWEST
#endif
#endif

#ifdef SINTER_SIMD_BYTE_TABLES
#define SINTER_SIMD_UNUSED_AVX512 0
#else
#define SINTER_SIMD_UNUSED_AVX512 HWY_AVX3_DL
#endif
#if defined(SINTER_SIMD_BYTE_DOTS) && defined(__aarch64__)
#define SINTER_SIMD_UNUSED_NEON 0
#else
#define SINTER_SIMD_UNUSED_NEON HWY_NEON
#endif
#define HWY_DISABLED_TARGETS                                                                                 \
  (HWY_SSE2 | HWY_SSSE3 | (SINTER_X86_LEFT_OUT) | SINTER_SIMD_UNUSED_AVX512 | HWY_AVX3_ZEN4 | HWY_AVX3_SPR | \
   HWY_AVX10_2 | SINTER_SIMD_UNUSED_NEON | HWY_NEON_BF16 | HWY_ALL_SVE)

// The attributes of every lambda that takes or returns vectors. g++ at -O2 leaves large lambdas, and those
// with several callers, out of line; a call then passes the vectors through memory.
#define SINTER_SIMD_LAMBDA HWY_ATTR __attribute__((always_inline))
