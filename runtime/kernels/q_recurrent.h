// QLstm and QGru: the numbers that every kernel of them uses (docs/numerics.md).
//
// Hidden values are int16 in units of 2^-13, cells int32 in units of 2^-15, gates int16 in units of 2^-12
// before their activation and of 2^-15 after it.
#pragma once

#include "runtime/core/q_recurrent_operands.h"
#include "runtime/kernels/recurrent.h"
#include "runtime/kernels/requantize.h"

namespace sinter::recurrent {

inline constexpr int64_t kTableIntervals = 512;  // of an activation, from -8 to 8
inline constexpr float kHiddenOne = 8192, kCellOne = 32768, kMostCell = 1 << 22;

// Returns the inflow of a gate, or a part of it: a sum times its multiplier, plus the bias.
inline float inflow(int32_t sum, float multiplier, float bias) {
  return static_cast<float>(sum) * multiplier + bias;
}
inline int32_t gate_of(float v) { return round_clamped(v, -32768, 32767); }

// Returns an activation at `gate`, by interpolation in its table; at most 2^15 in magnitude.
inline int32_t activation(const int16_t* table, int32_t gate) {
  const int32_t at = gate + 32768, i = at >> 7, f = at & 127;
  return (table[i] * (128 - f) + table[i + 1] * f + 64) >> 7;
}

// Returns the next cell from forget, cell, in and candidate.
inline int32_t next_cell(int32_t forget, int32_t cell, int32_t in, int32_t candidate) {
  const float kept = static_cast<float>(forget) * static_cast<float>(cell),
              added = static_cast<float>(in * candidate);
  return round_clamped((kept + added) * 0x1p-15f, -kMostCell, kMostCell);
}
// Returns the gate at which a cell's activation is evaluated.
inline int32_t cell_gate(int32_t cell) { return std::clamp<int32_t>((cell + 4) >> 3, -32768, 32767); }
inline int32_t lstm_hidden(int32_t out, int32_t cell) { return (out * cell + (1 << 16)) >> 17; }

// Return the hidden value of a Gru behind the reset gate, and the next one.
inline int32_t reset_hidden(int32_t reset, int32_t hidden) { return (reset * hidden + (1 << 14)) >> 15; }
inline int32_t gru_hidden(int32_t update, int32_t candidate, int32_t hidden) {
  const int32_t mixed = update * hidden + (((32768 - update) * candidate + 2) >> 2);
  return std::clamp<int32_t>((mixed + (1 << 14)) >> 15, -8192, 8192);
}

// Hidden values and cells that are given as float32.
inline int32_t hidden_of(float v) { return round_clamped(v * kHiddenOne, -kHiddenOne, kHiddenOne); }
inline int32_t cell_of(float v) { return round_clamped(v * kCellOne, -kMostCell, kMostCell); }

// The conversion of hidden values to Y.
struct QRecurrentResult {
  DType to;
  float multiplier, low, high;
  int32_t zero;

  // Stores element `at` of y.
  void store(std::byte* y, int64_t at, int32_t hidden) const {
    const float value = static_cast<float>(hidden) * multiplier;
    if (to == DType::kFloat32)
      reinterpret_cast<float*>(y)[at] = value;
    else if (to == DType::kInt8)
      reinterpret_cast<int8_t*>(y)[at] = static_cast<int8_t>(round_clamped(value, low, high) + zero);
    else
      reinterpret_cast<int16_t*>(y)[at] = static_cast<int16_t>(round_clamped(value, low, high) + zero);
  }
};

// The settings that the two rows have in common.
struct QSettings : LayerSettings {
  int64_t x_zero, y_zero, q_min, q_max, to;
  double multiplier;
  int tables;
  bool cell;

  QRecurrentResult result() const {
    return {static_cast<DType>(to), static_cast<float>(multiplier), static_cast<float>(q_min - y_zero),
            static_cast<float>(q_max - y_zero), static_cast<int32_t>(y_zero)};
  }
};
template <class A>
QSettings q_settings(const A& a) {
  constexpr bool kLstm = A::kOp == Op::kQLstm;
  return {{a.hidden_size, a.direction, a.layout, kLstm ? 4 : 3},
          a.x_zero,
          a.y_zero,
          a.q_min,
          a.q_max,
          a.to,
          a.multiplier,
          kLstm ? 3 : 2,
          kLstm};
}

// Checks all operands and attributes; `layout` has no activations.
Status resolve(const OpCall& call, const QSettings& settings, Layout* layout);

}  // namespace sinter::recurrent
