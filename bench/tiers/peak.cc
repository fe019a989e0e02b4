// Assembly, so that no compiler stands between an instruction and its rate: twelve independent accumulators,
// which is more than the latency of any of these instructions times the number of units that execute it.
#include "bench/tiers/peak.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "runtime/core/tensor_view.h"

namespace sinter::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

#if defined(__x86_64__)

constexpr int kAccumulators = 12;
constexpr int kTries = 25;
constexpr int64_t kIterations = 20000;  // about 0.1 ms

// Registers 0 to 11 are accumulators, 12 and 13 operands; `w` is x, y or z. The registers are stated to the
// compiler by the names of their lowest part.
#define SINTER_EACH_ACCUMULATOR(M, w) \
  M(w, "0")                           \
  M(w, "1")                           \
  M(w, "2") M(w, "3") M(w, "4") M(w, "5") M(w, "6") M(w, "7") M(w, "8") M(w, "9") M(w, "10") M(w, "11")
#define SINTER_PEAK_LOOP(name, clear, body, end)                                                         \
  void name(int64_t n) {                                                                                 \
    asm volatile(clear "\n1:\n" body "dec %0\njnz 1b\n" end                                              \
                 : "+r"(n)                                                                               \
                 :                                                                                       \
                 : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", \
                   "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");                                \
  }

#define SINTER_CLEAR(w, i) "vpxord %%" w "mm" i ", %%" w "mm" i ", %%" w "mm" i "\n"
#define SINTER_CLEAR_AVX(w, i) "vpxor %%" w "mm" i ", %%" w "mm" i ", %%" w "mm" i "\n"
#define SINTER_CLEAR_SSE(w, i) "pxor %%xmm" i ", %%xmm" i "\n"
#define SINTER_FMA(w, i) "vfmadd231ps %%" w "mm12, %%" w "mm13, %%" w "mm" i "\n"
#define SINTER_VPDPBUSD(w, i) "vpdpbusd %%" w "mm12, %%" w "mm13, %%" w "mm" i "\n"
// Products of 16 bits: one instruction and an addition.
#define SINTER_VPMADDWD(w, i) \
  "vpmaddwd %%" w "mm12, %%" w "mm13, %%" w "mm14\nvpaddd %%" w "mm14, %%" w "mm" i ", %%" w "mm" i "\n"
// Of 8 bits: pairs of 16 bits, widened by a product with ones, and an addition.
#define SINTER_VPMADDUBSW(w, i)                                                               \
  "vpmaddubsw %%" w "mm12, %%" w "mm13, %%" w "mm14\nvpmaddwd %%" w "mm15, %%" w "mm14, %%" w \
  "mm14\n"                                                                                    \
  "vpaddd %%" w "mm14, %%" w "mm" i ", %%" w "mm" i "\n"
#define SINTER_MULPS_ADDPS(w, i) \
  "movaps %%xmm13, %%xmm14\nmulps %%xmm12, %%xmm14\naddps %%xmm14, %%xmm" i "\n"
#define SINTER_PMADDWD(w, i) "movdqa %%xmm13, %%xmm14\npmaddwd %%xmm12, %%xmm14\npaddd %%xmm14, %%xmm" i "\n"
#define SINTER_PMADDUBSW(w, i) \
  "movdqa %%xmm13, %%xmm14\npmaddubsw %%xmm12, %%xmm14\npmaddwd %%xmm15, %%xmm14\npaddd %%xmm14, %%xmm" i "\n"

#define SINTER_AVX_LOOP(name, w, M)                                                       \
  SINTER_PEAK_LOOP(name,                                                                  \
                   SINTER_EACH_ACCUMULATOR(SINTER_CLEAR_AVX, w) SINTER_CLEAR_AVX(w, "12") \
                       SINTER_CLEAR_AVX(w, "13") SINTER_CLEAR_AVX(w, "15"),               \
                   SINTER_EACH_ACCUMULATOR(M, w), "vzeroupper\n")
#define SINTER_AVX512_LOOP(name, M)                                                   \
  SINTER_PEAK_LOOP(name,                                                              \
                   SINTER_EACH_ACCUMULATOR(SINTER_CLEAR, "z") SINTER_CLEAR("z", "12") \
                       SINTER_CLEAR("z", "13") SINTER_CLEAR("z", "15"),               \
                   SINTER_EACH_ACCUMULATOR(M, "z"), "vzeroupper\n")
#define SINTER_SSE_LOOP(name, M)                                                              \
  SINTER_PEAK_LOOP(name,                                                                      \
                   SINTER_EACH_ACCUMULATOR(SINTER_CLEAR_SSE, "x") SINTER_CLEAR_SSE("x", "12") \
                       SINTER_CLEAR_SSE("x", "13") SINTER_CLEAR_SSE("x", "15"),               \
                   SINTER_EACH_ACCUMULATOR(M, "x"), "")

SINTER_SSE_LOOP(mulps_addps, SINTER_MULPS_ADDPS)
SINTER_SSE_LOOP(pmaddwd, SINTER_PMADDWD)
SINTER_SSE_LOOP(pmaddubsw, SINTER_PMADDUBSW)
SINTER_AVX_LOOP(fma_256, "y", SINTER_FMA)
SINTER_AVX_LOOP(vpmaddwd_256, "y", SINTER_VPMADDWD)
SINTER_AVX_LOOP(vpmaddubsw_256, "y", SINTER_VPMADDUBSW)
SINTER_AVX512_LOOP(fma_512, SINTER_FMA)
SINTER_AVX512_LOOP(vpmaddwd_512, SINTER_VPMADDWD)
SINTER_AVX512_LOOP(vpmaddubsw_512, SINTER_VPMADDUBSW)
SINTER_AVX512_LOOP(vpdpbusd_512, SINTER_VPDPBUSD)

double rate(void (*loop)(int64_t), int operations_each) {
  double lowest = 1e9;
  for (int i = 0; i < kTries; ++i) {
    const auto start = Clock::now();
    loop(kIterations);
    lowest = std::min(lowest, seconds_since(start));
  }
  return 1e-9 * static_cast<double>(kIterations * kAccumulators * operations_each) / lowest;
}

#endif

}  // namespace

std::vector<Peak> measure_peaks(const char* tier) {
  std::vector<Peak> peaks;
#if defined(__x86_64__)
  // Two operations for each product: 4 lanes of 32 bits, 8 of 16, 16 of 8 in 128 bits.
  const std::string_view cap = tier;
  if (cap == "sse41") {
    peaks = {{"mulps + addps", false, rate(mulps_addps, 8)},
             {"pmaddwd + paddd", true, rate(pmaddwd, 16)},
             {"pmaddubsw + pmaddwd + paddd", true, rate(pmaddubsw, 32)}};
  } else if (cap == "avx2" || !__builtin_cpu_supports("avx512bw")) {
    peaks = {{"vfmadd231ps, 256 bits", false, rate(fma_256, 16)},
             {"vpmaddwd + vpaddd, 256 bits", true, rate(vpmaddwd_256, 32)},
             {"vpmaddubsw + vpmaddwd + vpaddd, 256 bits", true, rate(vpmaddubsw_256, 64)}};
  } else {
    peaks = {{"vfmadd231ps, 512 bits", false, rate(fma_512, 32)},
             {"vpmaddwd + vpaddd, 512 bits", true, rate(vpmaddwd_512, 64)},
             {"vpmaddubsw + vpmaddwd + vpaddd, 512 bits", true, rate(vpmaddubsw_512, 128)}};
    if (cap != "avx512" && __builtin_cpu_supports("avx512vnni"))
      peaks.push_back({"vpdpbusd, 512 bits", true, rate(vpdpbusd_512, 128)});
  }
#else
  (void)tier;
#endif
  return peaks;
}

double seconds_of_copy(size_t bytes) {
  std::vector<std::byte> from(bytes + kBufferAlignment), to(bytes + kBufferAlignment);
  double lowest = 1e9;
  for (int i = 0; i < 20; ++i) {
    const auto start = Clock::now();
    std::memcpy(to.data(), from.data(), bytes);
    asm volatile("" : : "r"(to.data()) : "memory");
    lowest = std::min(lowest, seconds_since(start));
  }
  return lowest;
}

}  // namespace sinter::bench
