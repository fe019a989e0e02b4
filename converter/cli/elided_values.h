// Results of elided steps: no kernel runs for them and no observer is called, but they are in memory like any
// other value as soon as the last of their parts is written.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "runtime/core/op.h"
#include "sinter/model.h"
#include "sinter/session.h"

namespace sinter::convert {

class ElidedValues {
 public:
  // Takes the values of the entry's main list of steps.
  ElidedValues(const Model& model, uint32_t entry);

  using Use = std::function<void(uint32_t step, Op op, const TensorView& value)>;
  // Calls `use` for values that are complete before the first step. The session's inputs must be set.
  void before(const Session& session, const Use& use);
  // Calls `use` for values that this step completes.
  void after(const StepInfo& info, const OpCall& call, const Use& use);

 private:
  struct Place {
    uint32_t region = 0;
    uint64_t offset = 0;
    TensorView view;  // without data
  };
  struct Elided {
    uint32_t step = 0;
    Op op = Op::kView;
    int32_t value = -1;
  };
  void learn(int32_t value, const TensorView& view);
  void show(size_t slot, const Use& use) const;

  Model model_;
  uint32_t entry_ = 0;
  std::map<int32_t, Place> places_;
  std::vector<std::vector<Elided>> whole_;  // by step, from 1; 0: complete before the first
  std::map<uint32_t, std::byte*> regions_;  // the starts of the regions that operands have shown
};

}  // namespace sinter::convert
