// Boxes of elements that kernels go through by one number, which is the element's in row-major order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platforms/cuda/grid/divider.h"

namespace sinter::cuda {

inline constexpr int kBoxRank = 8;  // TensorView's

// The dims of a box of fewer than 2^31 elements.
struct Box {
  int32_t rank = 0;
  uint32_t size = 1;
  Divider dims[kBoxRank];
};

// The bytes from an element to the next one along each axis of a box.
struct Steps {
  int64_t of[kBoxRank] = {};
};

// Returns the bytes from the first element of a box to element n.
SINTER_BOTH int64_t offset_of(const Box& box, const Steps& steps, uint32_t n) {
  int64_t offset = 0;
  for (int i = box.rank - 1; i > 0; --i) {
    uint32_t at;
    n = box.dims[i].divide(n, &at);
    offset += at * steps.of[i];
  }
  return box.rank > 0 ? offset + n * steps.of[0] : 0;
}

// Computes the same for several operands in one go.
template <int N>
SINTER_BOTH void offsets_of(const Box& box, const Steps (&steps)[N], uint32_t n, int64_t (&offsets)[N]) {
  for (int k = 0; k < N; ++k) offsets[k] = 0;
  if (box.rank == 0) return;
  for (int i = box.rank - 1; i > 0; --i) {
    uint32_t at;
    n = box.dims[i].divide(n, &at);
    for (int k = 0; k < N; ++k) offsets[k] += at * steps[k].of[i];
  }
  for (int k = 0; k < N; ++k) offsets[k] += n * steps[k].of[0];
}

}  // namespace sinter::cuda
