// Limits of the integer operations (QAdd, QConv, ...), which the converter keeps, inference verifies
// and every kernel may rely on. docs/numerics.md gives the formulas.
#pragma once

#include <cstdint>

namespace sinter {

// The largest float32 multiplier of QMul, QPRelu, QMean, QAvgPool, QRequantize and the recurrent layers: sums
// and products of int8 differences, which are below 2^17 per divisor, stay below 2^31.
inline constexpr double kMaxIntegerMultiplier = 1 << 14;
// QAdd's largest integer multiplier: two differences of 255 at most times 2^21 stay below 2^30.
inline constexpr int64_t kMaxAddMultiplier = 1 << 21;
inline constexpr int64_t kMaxAddShift = 30;

// The multipliers of QConv, QFullyConnected, QMatMul and the like that every backend computes with where the
// result is an integer: at least the first, below the second.
inline constexpr float kMinProductMultiplier = 0x1p-32f;
inline constexpr float kProductMultiplierEnd = 256;
constexpr bool is_product_multiplier(double m) {
  return m >= static_cast<double>(kMinProductMultiplier) && m < static_cast<double>(kProductMultiplierEnd);
}

// Elements of the largest sum: their differences to a zero point, 255 at most, add up to an int32.
inline constexpr int64_t kMaxInt8Sum = 1 << 23;
inline constexpr int64_t kMaxInt16Sum = 1 << 16;  // likewise of int16

// Returns the largest magnitude of an entry of a QTable with 2^k intervals, almost 65536 steps in units of
// 2^(1 - k) of a step. The sum of two neighbours times their shares and half a step is an int32.
constexpr int32_t max_table_entry(int k) { return (INT32_C(2) << (14 + k)) - (INT32_C(1) << k); }

// The limit of QSoftmax: a sum of the table's entries stays below 2^48, divisors and dividends below 2^64.
inline constexpr int64_t kMaxSoftmaxLength = 1 << 16;
inline constexpr int64_t kMaxSoftmaxMultiplier = 1 << 24;
inline constexpr int64_t kMaxSoftmaxShift = 16;

}  // namespace sinter
