// Products with weights [columns, depth] that are read where they are, in the type that they have: float32,
// float16, bfloat16 or float8. Nothing is packed beforehand.
//
// For few rows of x, weights are converted in registers. For more, pieces of panels are converted into
// scratch and go through the product of gemm.h.
#pragma once

#include "platforms/simd/float/gemm.h"

namespace sinter::simd {

struct UnpackedWeights {
  const std::byte* data = nullptr;
  DType type = DType::kFloat32;
  int64_t columns = 0, depth = 0;
};

// The rows of x up to which weights are converted in registers, again for every four rows.
inline constexpr int64_t kFewRows = 12;
// The floats of a thread's scratch for more rows.
inline constexpr int64_t kPanelPieceFloats = kMaxPanel * kDepthPiece;

// Larger float32 weights are not packed either, because a session would take as much memory again.
inline constexpr int64_t kMostPackedBytes = 16 << 20;

// Returns whether operand 1 is read where it is.
bool reads_unpacked(const OpCall& call);

// Computes y[r, n] = bias[n] + x row r . weights row n, clamped, for columns first .. last - 1. The order of
// a sum depends on the depth alone.
void unpacked_products(const UnpackedWeights& w, const float* x, int64_t x_step, int64_t rows, int64_t first,
                       int64_t last, const float* bias, float min, float max, float* y, int64_t y_step);
// Widens weights k0 .. k1 - 1 of the columns of a panel of gemm.h from `column` on, in its order.
void widen_panel_piece(const UnpackedWeights& w, int64_t column, int64_t k0, int64_t k1, float* to);

// Counts the workspace for `threads` threads; false on overflow.
[[nodiscard]] bool unpacked_workspace(int64_t rows, int threads, size_t* bytes);
// Computes the whole product, on as many threads as the workspace has room for. `g` has everything but b.
void run_unpacked(const UnpackedWeights& w, const Gemm& g, RunContext& context);

}  // namespace sinter::simd
