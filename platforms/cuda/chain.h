// Element-wise steps, one behind the other, as one launch: what is computed in between stays in registers.
//
// A chain joins programs that were lowered for a step each, so operands have their final addresses, and
// constants are on the device. Backend::fuse builds one from the steps' actions:
//
//   ElementChain chain;
//   if (!chain.begin(*first.actions) || !chain.append(*next.actions)) ...   // the steps stay apart
//   ... launch chain.action() where first.actions would have been, and nothing for next
//
// All results are the same bits as those of the steps, and are where the plan has them.
#pragma once

#include "platforms/cuda/lowering.h"

namespace sinter::cuda {

// The kernels whose launches become chains.
constexpr bool is_element_kernel(Kernel k) {
  return k == Kernel::k_elements_float || k == Kernel::k_elements_double || k == Kernel::k_elements_integer;
}

class ElementChain {
 public:
  // False: the action is not a program of elements.
  bool begin(const Action& first);
  // Adds the action of the next step. False, and nothing is changed: it computes in another class of numbers
  // or over another number of elements; writes where another element is still to be read, or reads what
  // another element writes; or a program does not have room for both. `keep`: the last result of the chain is
  // stored also if only `next` reads it. Without it, the caller ensures that nothing else
  // reads that result.
  bool append(const Action& next, bool keep = true);
  int steps() const { return steps_; }
  // The launch of all. Its arguments are part of this.
  Action action() const;

 private:
  template <class T>
  bool append_program(const ElementArguments<T>& next, bool keep);

  Kernel kernel_{};
  int steps_ = 0;
  union {
    FloatElements floats_;
    DoubleElements doubles_;
    IntegerElements integers_;
  };

 public:
  ElementChain() : floats_() {}
};

// While a model is planned: whether `next`, which reads the result of `first`, is computed with it if their
// places permit it.
bool chains(const OpCall& first, const OpCall& next);

}  // namespace sinter::cuda
