// Arguments of kernels/integer/q_recurrent.cu.
#pragma once

#include <cstddef>

#include "platforms/cuda/grid/fault.h"
#include "platforms/cuda/kernels/integer/integer_result.h"

namespace sinter::cuda {

// A layer of QLstm or QGru (docs/numerics.md). Numbers are int16 in units of 2^-13 for hidden values, int32
// in units of 2^-15 for cells.
struct QRecurrentArguments {
  // The inflow from x without the bias: float [rows of x, directions, gates, hidden].
  const float* inflow = nullptr;
  const std::byte* r = nullptr;  // int8 [directions, gates, hidden, pitch], 0 from `hidden` on
  const float *h_multipliers = nullptr, *bias = nullptr;
  const int16_t* tables = nullptr;
  const int32_t* lengths = nullptr;          // null: all steps
  const float *h0 = nullptr, *c0 = nullptr;  // null: 0
  std::byte* y = nullptr;
  float *y_h = nullptr, *y_c = nullptr;
  int32_t steps = 0, batch = 0, hidden = 0, directions = 1, pitch = 16;
  int32_t batch_first = 0, first_is_reverse = 0, linear_before_reset = 0;
  int32_t table_step = 0;  // entries from a direction's tables to the next
  int32_t lanes = 32;      // lanes of a warp that share a row of weights: a power of 2
  float multiplier = 1;
  IntegerResult result;
  FaultPlace fault;
};

// Returns the bytes of shared memory, which has, in this order: gates and state (and cell) of int32, hidden
// values as high and low bytes, and for Gru those behind the reset gate.
constexpr int64_t q_recurrent_shared(bool lstm, int64_t hidden, int64_t pitch) {
  const int64_t numbers = ((lstm ? 6 : 4) * hidden + 3) / 4 * 4;
  return numbers * 4 + (lstm ? 2 : 4) * pitch;
}

}  // namespace sinter::cuda
