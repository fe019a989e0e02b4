// The Highway kernels as a backend.
#pragma once

#include "runtime/backend/backend.h"

namespace sinter {

// The backend of simd_kernels.h. Steps with constant weights run variants (variant.h), which pack these once,
// instead of in every run.
class SimdBackend final : public Backend {
 public:
  constexpr SimdBackend() = default;
  const char* name() const override { return "simd"; }
  // Chooses the instruction set if that has not happened, so that the first run takes no longer than others.
  Status open(BumpArena&) override;
  void close() override {}
  Status measure(const OpCall& call, int threads, StepNeeds* needs) override;
  // Does the work of measure(), and finds the workspace that suffices on any instruction set.
  static Status measure_and_plan(const OpCall& call, int threads, StepNeeds* needs, size_t* planned);
  Status pack(const OpCall& call, std::span<std::byte> packed, ThreadPool* threads) override;
  // Returns the number of these sources; the instruction set is a parameter of each packing.
  uint64_t packed_layouts() const override;
  Status prepare(const OpCall& call, const Preparation& with, PreparedStep* step) override;
  // Returns whether they are element-wise steps of float32 that may be fused where their places permit it.
  static bool fuses(const OpCall& first, const OpCall& next);
  bool fuse(const PreparedStep& first, const PreparedStep& next) override;
  const char* kernel_name(const PreparedStep& step) const override;
  void release(PreparedStep&) override {}
  const char* instruction_set() const override;
  bool limit_instruction_set(const char* name) override;
};

}  // namespace sinter
