// The division of QFullyConnected and QConv into boxes and packed panels of weights, and the memory of both.
#pragma once

#include "platforms/simd/int8/gemm.h"

namespace sinter::simd {

struct QPlan {
  Geometry g;
  QRuns runs;
  int64_t columns = 0;  // of one group
  bool bounded = true;  // products are bounded (maddubs-inl.h); the numbers for it are packed as well
  int64_t x_zero = 0;
  ProductResult result;
  QBoxes boxes;
  int64_t scratch = 0;  // bytes of a thread

  // Returns the columns in packed memory, which are whole panels.
  int64_t wide() const { return divide_up(columns, kQPanel) * kQPanel; }
};

// Plans a call, for rows of its weights' panels in the form of any instruction set. False if memory
// overflows.
[[nodiscard]] bool q_plan_of(const OpCall& call, QPlan* p);

// Counts the bytes of one group: panels, and the numbers of their columns. False on overflow.
[[nodiscard]] bool q_packed_bytes(const QPlan& p, int64_t* bytes);
// Returns the places of a group's panels and numbers in packed memory.
QPacked q_packed_at(const QPlan& p, int64_t group, bool zeros, std::byte* memory);
// Returns the operands of one group.
QWeights q_weights_of(const OpCall& call, const QPlan& p, int64_t group);

// The scratch of one thread: the box's input, the places and sums of its rows, and the begins of runs.
struct QScratch {
  int64_t* y_rows = nullptr;
  int32_t *rows = nullptr, *sums = nullptr, *runs = nullptr;
  std::byte* buffer = nullptr;

  QScratch(const QPlan& p, std::byte* at) {
    y_rows = reinterpret_cast<int64_t*>(at);
    rows = reinterpret_cast<int32_t*>(y_rows + p.boxes.pixels());
    sums = rows + p.boxes.pixels();
    runs = sums + p.boxes.pixels();
    buffer = at + buffer_offset(p);
  }
  static int64_t buffer_offset(const QPlan& p) {
    return static_cast<int64_t>(
        align_up(static_cast<size_t>(p.boxes.pixels() * 16 + p.runs.count * 4), kBufferAlignment));
  }
  // Returns the bytes of a box, by the instruction set's element. Runs are read up to a multiple of kQDepth.
  static int64_t box_bytes(const QPlan& p) {
    return p.boxes.elements * static_cast<int64_t>(sizeof(int16_t)) + static_cast<int64_t>(kBufferAlignment);
  }
  static bool bytes(const QPlan& p, int64_t* bytes) {
    return checked_add<int64_t>(box_bytes(p), buffer_offset(p) + static_cast<int64_t>(kBufferAlignment),
                                bytes) &&
           (*bytes = *bytes / kBufferAlignment * kBufferAlignment, true);
  }
  // Lowers a box of one run, unless it is lowered.
  void lower(int64_t length, bool other_box, QRows* rows) const {
    if (other_box) lower_q_rows(buffer, rows->count, length, rows->spare);
    rows->minima = rows->spare;
    rows->spare += minima_bytes(length), rows->spare_bytes -= minima_bytes(length);
  }
};

// Divides the boxes among threads, and sets their scratch. Where there are too few boxes, panels are divided
// instead, so that each thread reads its own weights only, unless the threads would write to the same lines
// of the cache. Each thread has a copy of a box, which is then small. False if the memory overflows.
[[nodiscard]] bool q_share(QPlan* p, int64_t threads);

}  // namespace sinter::simd
