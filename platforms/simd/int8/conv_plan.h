// How QFullyConnected and QConv are divided into boxes and packed panels of weights, and the memory of both.
#pragma once

#include "platforms/simd/int8/gemm.h"

namespace sinter::simd {

struct QPlan {
  Geometry g;
  QRuns runs;
  int64_t columns = 0;  // of one group
  bool bounded = true;  // products (maddubs-inl.h): what that needs is packed with the weights
  int64_t x_zero = 0;
  ProductResult result;
  QBoxes boxes;
  int64_t scratch = 0;  // bytes of a thread

  // In packed memory, columns are whole panels.
  int64_t wide() const { return divide_up(columns, kQPanel) * kQPanel; }
};

// Plans a call, for rows of its weights' panels in the form of any instruction set. False where the memory
// cannot be counted.
[[nodiscard]] bool q_plan_of(const OpCall& call, QPlan* p);

// Of one group: panels, and the numbers of their columns. False on overflow.
[[nodiscard]] bool q_packed_bytes(const QPlan& p, int64_t* bytes);
// Where those of a group are in packed memory.
QPacked q_packed_at(const QPlan& p, int64_t group, bool zeros, std::byte* memory);
// The operands of one group.
QWeights q_weights_of(const OpCall& call, const QPlan& p, int64_t group);

// The scratch of one thread: the box's input, where its rows are stored, begin and sum up to, where runs
// begin.
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
  // Instruction sets differ in the bytes of an element. Runs are read up to a multiple of kQDepth.
  static int64_t box_bytes(const QPlan& p) {
    return p.boxes.elements * static_cast<int64_t>(sizeof(int16_t)) + static_cast<int64_t>(kBufferAlignment);
  }
  static bool bytes(const QPlan& p, int64_t* bytes) {
    return checked_add<int64_t>(box_bytes(p), buffer_offset(p) + static_cast<int64_t>(kBufferAlignment),
                                bytes) &&
           (*bytes = *bytes / kBufferAlignment * kBufferAlignment, true);
  }
  // Lowers a box of one run, or finds it lowered.
  void lower(int64_t length, bool other_box, QRows* rows) const {
    if (other_box) lower_q_rows(buffer, rows->count, length, rows->spare);
    rows->minima = rows->spare;
    rows->spare += minima_bytes(length), rows->spare_bytes -= minima_bytes(length);
  }
};

// Divides the boxes among threads, and sets their scratch. Where there are too few boxes, panels are divided
// instead, so that each thread reads its own weights only, unless the threads would write to the same lines
// of the cache. Each of them has a copy of a box, which is a small one then. False where the memory cannot be
// counted.
[[nodiscard]] bool q_share(QPlan* p, int64_t threads);

}  // namespace sinter::simd
