// The loop of the element-wise kernels.
#pragma once

#include "platforms/cuda/kernels/elements/element_access.h"

namespace sinter::cuda {

// Carries out the program for every group of the box. `Numbers` has
//   load(box, operand, place, x)                 kLoad, and the operands of functions
//   store(instruction, box, operand, place, x)   kStore
//   compute(instruction, x, y, z)                a function, into x
template <class Numbers, class T>
SINTER_DEVICE void run_program(const ElementArguments<T>& a) {
  for (int64_t n = global_thread(); n < a.box.groups; n += global_threads()) {
    const ElementPlace place = place_of(a.box, static_cast<uint32_t>(n));
    T x[4] = {};
    SINTER_ROLLED for (int i = 0; i < a.instruction_count; ++i) {
      const ElementInstruction<T>& c = a.instructions[i];
      if (c.function == kElementLoad) {
        Numbers::load(a.box, a.operands[c.from[0]], place, x);
        continue;
      }
      if (c.function == kElementStore) {
        Numbers::store(c, a.box, a.operands[c.from[0]], place, x);
        continue;
      }
      T others[2][4] = {};
      for (int k = 0; k < 2; ++k) {
        if (k >= c.operands) break;
        if (c.from[k] == kValueItself)
          for (int j = 0; j < 4; ++j) others[k][j] = x[j];
        else
          Numbers::load(a.box, a.operands[c.from[k]], place, others[k]);
      }
      if (c.value_place != 0)
        for (int j = 0; j < 4; ++j) {
          const T value = x[j];
          x[j] = others[0][j];
          others[0][j] = c.value_place == 1 ? value : others[1][j];
          if (c.value_place == 2) others[1][j] = value;
        }
      Numbers::compute(c, x, others[0], others[1]);
    }
  }
}

}  // namespace sinter::cuda
