// Which instruction sets are compiled: one per step that pays. Included before any header of Highway.
#pragma once

#define HWY_DISABLED_TARGETS                                                                         \
  (HWY_SSSE3 | HWY_AVX3_DL | HWY_AVX3_ZEN4 | HWY_AVX3_SPR | HWY_AVX10_2 | HWY_NEON | HWY_NEON_BF16 | \
   HWY_ALL_SVE)
