// Prepared values: constants that the file holds in another form (narrow, packed), widened by the model's
// kernels when a session is created.
//
// A value is computed when the first step that reads it is created. If that step's kernel packs it, it is in
// scratch memory only until it is packed; else it stays in prepared memory, as every step after it finds it.
// So no more than one packed weight exists in two forms at any time.
//
// Both passes come here in the same order, so that what is measured is what is taken.
#pragma once

#include "runtime/session/choose.h"
#include "runtime/session/creation_memory.h"

namespace sinter::detail {

// The preparation of a step's operands that are prepared values.
struct Bring {
  uint32_t packs = 0;   // those of these inputs into scratch memory
  uint32_t passes = 0;  // those of these inputs not at all
  size_t own = 0;       // bytes of prepared memory that the step takes next
  size_t scratch = 0;   // bytes that it needs besides while it is prepared
};
struct Brought {
  std::byte* inputs[kMaxOperands] = {};  // null: not brought
  std::byte* scratch = nullptr;          // for the step

  void give(const OpCall& call) const {
    for (size_t i = 0; i < call.inputs.size(); ++i)
      if (inputs[i] != nullptr) call.inputs[i].data = inputs[i];
  }
};

class PreparedValues {
 public:
  PreparedValues(const Entry& entry, CreationMemory& memory) : entry_(entry), memory_(memory) {}

  // Begins a program that has prepared values, before its steps.
  Status begin(Frame& frame, TrackedValues& tracked);
  // Gives a step's prepared operands, and scratch memory, before it is prepared itself.
  Status bring(Frame& frame, const fb::Step& step, const Bring& bring, Brought* brought);

 private:
  struct Chain;

  Status plan(const Frame& frame, uint32_t index, Chain* chain) const;
  Status measure(const Frame& frame, uint32_t index, size_t* workspace) const;
  Status run(const Frame& frame, const Chain& chain, std::byte* scratch, std::byte* target) const;
  Status keep(Frame& frame, uint32_t index, const Chain& chain, std::byte* scratch);
  std::byte* scratch(size_t bytes) const { return memory_.building() ? memory_.scratch(bytes) : nullptr; }

  const Entry& entry_;
  CreationMemory& memory_;
};

}  // namespace sinter::detail
