// One token of LinearAttention's recurrence on some columns of one state.
#pragma once

#include <cstdint>

namespace sinter::simd {

// The step S = factor S + key add', result = scale S' query, where add is the value, or beta (value - (factor
// S)' key). Rows of a state and of results are value_size floats apart; pointers are to the first column.
struct StateToken {
  const float *query = nullptr, *key = nullptr;  // [key_size]; `queries` of the former
  const float* value = nullptr;
  const float* factor = nullptr;  // for each row, `factor_step` apart; null: 1
  const float* beta = nullptr;    // null: add is the value
  const float* from = nullptr;    // the state before; may be `to`
  float* to = nullptr;
  float* result = nullptr;  // one row for each query
  int64_t key_size = 0, value_size = 0, queries = 1, factor_step = 1;
  float scale = 1;
};

}  // namespace sinter::simd
