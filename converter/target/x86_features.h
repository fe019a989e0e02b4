// The vector instructions of this x86-64 processor for which the system saves the registers. Some compilers
// that build Sinter lack the library behind __builtin_cpu_supports.
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>

#include <cstdint>

namespace sinter::convert {

struct X86Features {
  bool avx2 = false;
  // Each with avx512f.
  bool avx512f = false, avx512bw = false, avx512cd = false, avx512dq = false, avx512vl = false,
       avx512vnni = false, avx512bf16 = false;
};

// Returns what CPUID and XGETBV say.
inline X86Features x86_features() {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  X86Features has;
  constexpr uint32_t kOsxsave = 1u << 27, kYmm = 0x6, kZmm = 0xe6;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kOsxsave) == 0) return has;
  uint32_t saved = 0, high = 0;
  __asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return has;
  const uint32_t subleaves = a;
  has.avx2 = (saved & kYmm) == kYmm && (b >> 5 & 1) != 0;
  has.avx512f = (saved & kZmm) == kZmm && (b >> 16 & 1) != 0;
  if (!has.avx512f) return has;
  has.avx512dq = (b >> 17 & 1) != 0;
  has.avx512cd = (b >> 28 & 1) != 0;
  has.avx512bw = (b >> 30 & 1) != 0;
  has.avx512vl = (b >> 31 & 1) != 0;
  has.avx512vnni = (c >> 11 & 1) != 0;
  if (subleaves >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0) has.avx512bf16 = (a >> 5 & 1) != 0;
  return has;
}

}  // namespace sinter::convert
#endif
