// Sums over the threads before a thread, in a warp and in a block.
#pragma once

#include "platforms/cuda/grid/grid.h"

namespace sinter::cuda {

// Returns the sum of v of this lane and those before it.
SINTER_DEVICE uint32_t scan_warp(uint32_t v) {
  for (int by = 1; by < kWarp; by *= 2) {
    const uint32_t before = shuffle_up(v, by);
    if (lane() >= by) v += before;
  }
  return v;
}

// Returns the sum of v of the threads before this one; *total is the sum of all. `room` has one element for
// each warp. Two barriers follow, so that it is free for the next sum.
SINTER_DEVICE uint32_t scan_block(uint32_t v, const Shared<uint32_t>& room, uint32_t* total) {
  const uint32_t to_here = scan_warp(v);
  if (lane() == kWarp - 1) room[warp_index()] = to_here;
  barrier();
  uint32_t before = 0;
  *total = 0;
  for (int w = 0; w < block_threads() / kWarp; ++w) {
    const uint32_t sum = room[w];
    if (w < warp_index()) before += sum;
    *total += sum;
  }
  barrier();
  return before + to_here - v;
}

}  // namespace sinter::cuda
