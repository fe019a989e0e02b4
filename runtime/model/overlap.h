// The proof that no two values use the same memory at the same time.
//
// Every value and workspace of a plan is a box: a byte range, a range of steps, and a block (values that
// aliases connect share one). A sweep over the steps keeps the block that occupies each byte in a segment
// tree over the byte ranges' ends; a box that finds bytes of another block is a clash. O(n log n) in time,
// O(n) in scratch.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/core/bump_arena.h"
#include "runtime/core/status.h"

namespace sinter::detail {

struct Box {
  uint64_t begin = 0, end = 0;  // bytes; empty boxes never clash
  int32_t first = 0, last = 0;  // steps, inclusive
  int32_t block = 0;
  int32_t value = -1;  // for messages; -1: a workspace
};

// Fails with kCorrupt, and the names of two values, if there is a clash. With a measuring arena only the
// scratch is counted.
Status prove_disjoint(std::span<const Box> boxes, BumpArena& scratch);
// Counts the scratch that prove_disjoint takes for n boxes.
void measure_disjoint(size_t n, BumpArena& scratch);

}  // namespace sinter::detail
