// Element-wise steps, one behind the other, as one launch: results in between stay in registers.
//
// A chain joins programs that were lowered for a step each, so that operands have their final addresses, and
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
  // Returns false if the action is not a program of elements.
  bool begin(const Action& first);
  // Adds the action of the next step. Returns false and changes nothing if it computes in another class of
  // numbers or over another number of elements; if it writes where another element is still to be read, or
  // reads another element's result; or if a program has no room for both. With `keep`, the last result of the
  // chain is stored even if only `next` reads it. Without it, the caller ensures that nothing else reads that
  // result.
  bool append(const Action& next, bool keep = true);
  int steps() const { return steps_; }
  // Returns the launch of all of them, whose arguments are part of this object.
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

// Returns, while a model is planned, whether `next`, which reads the result of `first`, is computed with it
// if their places permit it.
bool chains(const OpCall& first, const OpCall& next);

}  // namespace sinter::cuda
