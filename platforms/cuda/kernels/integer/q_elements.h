// Arguments of kernels/integer/q_elements.cu: integer operations, element by element.
#pragma once

#include "platforms/cuda/kernels/elements/vector_box.h"
#include "platforms/cuda/kernels/integer/integer_result.h"

namespace sinter::cuda {

enum class PairFn : int32_t { kAdd, kMul, kPRelu };

// Computes y = fn(a, b) of int8 or int16; b is float32 for kPRelu.
struct QPairArguments {
  std::byte* y = nullptr;
  const std::byte *a = nullptr, *b = nullptr;
  VectorBox all;
  VectorSteps y_steps, a_steps, b_steps;
  PairFn fn = PairFn::kAdd;
  int32_t width = 1;  // bytes of an element
  int32_t a_zero = 0, b_zero = 0;
  int32_t a_multiplier = 0, b_multiplier = 0, shift = 0;  // kAdd, int8
  float a_scale = 0, b_scale = 0;                         // kAdd, int16
  float multiplier = 0;                                   // kMul, kPRelu
  IntegerResult result;
};

// Computes y = (x - x_zero) * multiplier, between int8 and int16.
struct QRequantizeArguments {
  std::byte* y = nullptr;
  const std::byte* x = nullptr;
  VectorBox all;
  VectorSteps y_steps, x_steps;
  int32_t x_width = 1, x_zero = 0;
  float multiplier = 0;
  IntegerResult result;
};

// Computes y = table[x - the smallest x] for x of int8 or uint8 and y of 1, 2 or 4 bytes.
struct LutArguments {
  std::byte* y = nullptr;
  const std::byte *x = nullptr, *table = nullptr;
  VectorBox all;
  VectorSteps y_steps, x_steps;
  int64_t table_step = 0;
  int32_t is_signed = 0, width = 1;
};

// Computes y of int16, between the entries of a table of 2^k intervals.
struct QTableArguments {
  std::byte* y = nullptr;
  const std::byte *x = nullptr, *table = nullptr;
  VectorBox all;
  VectorSteps y_steps, x_steps;
  int64_t table_step = 0;
  int32_t k = 8, low = 0, high = 0;
};

}  // namespace sinter::cuda
