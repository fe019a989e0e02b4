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
  // Of the main list.
  ElidedValues(const Model& model, uint32_t entry);

  using Use = std::function<void(uint32_t step, Op op, const TensorView& value)>;
  // Those that are whole before the first step, with the session's inputs set.
  void before(const Session& session, const Use& use);
  // Those that become whole with this step.
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
  std::vector<std::vector<Elided>> whole_;  // by step, from 1; 0: before the first
  std::map<uint32_t, std::byte*> regions_;  // where they begin, as far as operands have shown
};

}  // namespace sinter::convert
