// Functions of the four elements that a thread of an element-wise kernel has.
#pragma once

#include "platforms/cuda/grid/grid.h"

namespace sinter::cuda {

template <class T, class F>
SINTER_DEVICE void each(T (&x)[4], F f) {
  for (int i = 0; i < 4; ++i) x[i] = f(x[i]);
}
template <class T, class F>
SINTER_DEVICE void each(T (&x)[4], const T (&y)[4], F f) {
  for (int i = 0; i < 4; ++i) x[i] = f(x[i], y[i]);
}
// For long functions there is one copy of the code, through which the elements go by turns.
template <class T, class F>
SINTER_DEVICE void by_turns(T (&x)[4], F f) {
  SINTER_ROLLED for (int i = 0; i < 4; ++i) {
    const T v = f(x[0]);
    x[0] = x[1], x[1] = x[2], x[2] = x[3], x[3] = v;
  }
}
template <class T, class F>
SINTER_DEVICE void by_turns(T (&x)[4], T (&y)[4], F f) {
  SINTER_ROLLED for (int i = 0; i < 4; ++i) {
    const T v = f(x[0], y[0]);
    x[0] = x[1], x[1] = x[2], x[2] = x[3], x[3] = v;
    y[0] = y[1], y[1] = y[2], y[2] = y[3];
  }
}

}  // namespace sinter::cuda
