// The template's device side: computes Neg, and has nothing to prepare.
#pragma once

#include "runtime/backend/backend.h"

namespace sinter {

// The backend has no state: any number of sessions may share one.
class TemplateBackend final : public Backend {
 public:
  constexpr TemplateBackend() = default;
  const char* name() const override { return "template"; }
  Status open(BumpArena&) override { return ok_status(); }
  void close() override {}
  Status measure(const OpCall& call, int threads, StepNeeds* needs) override;
  Status prepare(const OpCall& call, const Preparation& with, PreparedStep* step) override;
  void release(PreparedStep&) override {}
};

}  // namespace sinter
