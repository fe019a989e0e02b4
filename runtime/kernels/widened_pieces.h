// What the reference kernels of products with few-bit weights share: reading numbers of any type as doubles,
// and how many are widened at a time.
#pragma once

#include "runtime/kernels/convert.h"

namespace sinter {

// Weights are widened a piece at a time: kPiece weights of four columns, for kRows rows.
inline constexpr int64_t kPiece = 128, kRows = 64;

inline bool is_unsigned_weight(DType t) {
  return t == DType::kUint2 || t == DType::kUint4 || t == DType::kUint8;
}

inline double number(const Run& run, DType t, int64_t i) {
  switch (wide_kind(t)) {
    case Wide::kFloat:
      return run.f[i];
    case Wide::kSigned:
      return static_cast<double>(run.i[i]);
    default:
      return static_cast<double>(run.u[i]);
  }
}
// Element `at` of a dense value.
inline double element(const TensorView& v, int64_t at) {
  Run run;
  read_run(v.dtype, v.data + at * static_cast<int64_t>(byte_width(v.dtype)), 0, at, 1, run);
  return number(run, v.dtype, 0);
}

}  // namespace sinter
