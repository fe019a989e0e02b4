// Steps run by XNNPACK: convolutions, products, pooling, resizing and arithmetic in float32; on 64-bit ARM
// also in float16, with the functions between them, where the processor computes in it. Sums are then float16
// as well.
//
// Operators, packed weights and indirection buffers live in the session's prepared memory; runs allocate
// nothing. Results do not depend on the number of threads (no operator splits a sum), but on the instruction
// set in their last bits. NaN, infinities and subnormal numbers are those of the reference
// (third_party/patches; 32-bit ARM has no subnormal numbers), but PRelu takes -0.0 for negative.
#pragma once

#include "runtime/backend/backend.h"

namespace sinter {

// The backend has no state: any number of sessions may share one, on any threads.
class XnnpackBackend final : public Backend {
 public:
  const char* name() const override { return "xnnpack"; }
  Status open(BumpArena& prepared) override;
  void close() override {}
  Status measure(const OpCall& call, int threads, StepNeeds* needs) override;
  Status pack(const OpCall& call, std::span<std::byte> packed, ThreadPool* threads) override;
  // Returns a number of these sources, the library's version and the properties of this processor that decide
  // between its kernels.
  uint64_t packed_layouts() const override;
  Status prepare(const OpCall& call, const Preparation& with, PreparedStep* step) override;
  void release(PreparedStep&) override {}
};

}  // namespace sinter
