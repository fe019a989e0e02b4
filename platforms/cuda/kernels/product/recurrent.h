// Arguments of kernels/product/recurrent.cu and recurrent_inflow.cu: Lstm, Gru and Rnn. All operands are
// dense.
#pragma once

#include <cstddef>

#include "platforms/cuda/grid/fault.h"
#include "runtime/core/dtype.h"

namespace sinter::cuda {

enum class Cell : int32_t { kLstm, kGru, kGruResetLast, kRnn };

struct RecurrentActivation {
  int32_t fn = 0;  // RnnActivation
  double alpha = 0, beta = 0;
};

struct RecurrentArguments {
  const std::byte *x = nullptr, *w = nullptr, *r = nullptr;
  // Each may be absent.
  const std::byte *bias = nullptr, *h0 = nullptr, *c0 = nullptr, *peephole = nullptr;
  const int32_t* lengths = nullptr;
  std::byte *y = nullptr, *y_h = nullptr, *y_c = nullptr;

  std::byte* inflow = nullptr;  // [directions, steps * batch in x's order, rows]: x times W, and biases
  // For a launch a step: [2, directions, batch, hidden] of h, and [directions, batch, hidden] each of c
  // (Lstm), of the update gate and of reset times h (Gru).
  std::byte *h = nullptr, *c = nullptr, *update = nullptr, *spare = nullptr;

  int32_t steps = 0, batch = 0, input = 0, hidden = 0, rows = 0,
          directions = 1;  // rows: of W and R in a direction
  int32_t batch_first = 0, first_is_reverse = 0;
  int32_t coupled = 0;         // Lstm: the forget gate is 1 - the input gate
  int32_t step = 0, half = 0;  // for a launch a step: its step, and for Gru the half of it
  double clip = 0;
  RecurrentActivation activations[6];  // `per_direction` of the first direction, then of the second
  int32_t per_direction = 0;
  Cell cell = Cell::kLstm;
  DType dtype = DType::kNone;
  FaultPlace fault;
};

}  // namespace sinter::cuda
