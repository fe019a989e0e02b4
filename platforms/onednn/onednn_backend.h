// Steps run by oneDNN: convolutions and products with constant weights in float32, on x86-64 processors with
// AVX2 or more.
//
// Primitives are created with the session, on the heap of the library. Their scratch memory is the step's
// workspace; runs allocate nothing. Results do not depend on the number of threads, but on the instruction
// set in their last bits. NaN, infinities and subnormal numbers are those of the reference.
#pragma once

#include "runtime/backend/backend.h"

namespace sinter {

// The backend has no state: any number of sessions may share one, on any threads.
class OnednnBackend final : public Backend {
 public:
  const char* name() const override { return "onednn"; }
  // Fails with kUnsupported if the processor has no AVX2.
  Status open(BumpArena& prepared) override;
  void close() override {}
  Status measure(const OpCall& call, int threads, StepNeeds* needs) override;
  Status pack(const OpCall& call, std::span<std::byte> packed, ThreadPool* threads) override;
  Status prepare(const OpCall& call, const Preparation& with, PreparedStep* step) override;
  void release(PreparedStep& step) override;
};

}  // namespace sinter
