// Kernels written once with Highway: x86 from SSE2 to AVX-512 and NEON, chosen when they run.
//
// A table with entries where these are faster than the reference kernels. They compute in float32: within a
// few units in the last place of the exact result for one-input functions (see math-inl.h), 1e-6 of the
// largest summand per element for sums. Results do not depend on the number of threads; they may differ in
// the last bits between instruction sets. Quantize, Dequantize, Compare, Where and
// what computes in integers give the bits of the reference kernels.
#pragma once

#include "runtime/backend/backend.h"

namespace sinter {

KernelTable simd_kernels();

// The same kernels as a backend that packs the constant weights of Conv and FullyConnected once, when a step
// is prepared, instead of in every run.
class SimdBackend final : public Backend {
 public:
  constexpr SimdBackend() = default;
  const char* name() const override { return "simd"; }
  // Chooses the instruction set if that has not happened: the first run takes no longer than the others.
  Status open(BumpArena&, BumpArena&) override;
  void close() override {}
  Status measure(const OpCall& call, int threads, StepNeeds* needs) override;
  Status prepare(const OpCall& call, const Preparation& with, PreparedStep* step) override;
  void release(PreparedStep&) override {}
};

// Limits the instruction sets: "sse2", "sse4", "avx2", "avx512", "avx512_vbmi", "neon", or null for all that
// there are. Returns false, and changes nothing, if this machine or build has none of that name. Before
// sessions are created.
bool set_simd_cap(const char* name);
// The best one in use.
const char* simd_target();

}  // namespace sinter
