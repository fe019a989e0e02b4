// The device side of the platform with packed weights: FullyConnected of constant weights, eight columns at a
// time.
#pragma once

#include "runtime/backend/backend.h"

namespace sinter {

// Has no state: any number of sessions may share one.
class TemplatePackedBackend final : public Backend {
 public:
  constexpr TemplatePackedBackend() = default;
  const char* name() const override { return "template_packed"; }
  Status open(BumpArena&) override { return ok_status(); }
  void close() override {}
  Status measure(const OpCall& call, int threads, StepNeeds* needs) override;
  Status pack(const OpCall& call, std::span<std::byte> packed, ThreadPool* threads) override;
  Status prepare(const OpCall& call, const Preparation& with, PreparedStep* step) override;
  void release(PreparedStep&) override {}
  const char* kernel_name(const PreparedStep&) const override { return "f32_gemm_1x8"; }
};

}  // namespace sinter
