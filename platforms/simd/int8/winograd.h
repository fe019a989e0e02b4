// 3x3 convolutions of int8 with stride 1 by Winograd's F(2x2, 3x3): four outputs take 16 products instead
// of 36.
//
// In integers the algorithm is exact. With the filter transformed by twice the usual matrix, sums are four
// times the convolution's, which fits int32 where winograd_fits; the results are the bits of
// docs/numerics.md. It pays on x86 without dot products of bytes.
//
// Source: A. Lavin, S. Gray, "Fast Algorithms for Convolutional Neural Networks" (2016).
#pragma once

#include "platforms/simd/int8/gemm.h"

namespace sinter::simd {

// Operands and sizes of one call. Tiles are 2x2 outputs, numbered along lines over the whole batch.
struct QWinograd {
  Geometry g;
  int64_t depth = 0;             // input channels, padded to pairs
  int64_t down = 0, across = 0;  // tiles of an image
  int64_t tiles = 0, block = 0;  // of all images; of one piece of work
  int64_t x_zero = 0;
  const int8_t* x = nullptr;
  ProductResult result;
};

// The packed filters: 16 transforms of each panel, then per column int32 bias and float multiplier.
struct QWinogradPacked {
  int16_t* panels = nullptr;  // [panel][position][depth / kUnit][column][kUnit]
  int32_t* bias = nullptr;
  float* multipliers = nullptr;
};

// Whether the algorithm is faster for the window and channels of a QConv, and exact. The same on every
// machine.
bool winograd_fits(const Geometry& g, bool weight_zeros);
// Whether the instruction set in use gains by it.
bool winograd_gains();

// Blocks take about `scratch_bytes`, unless 8 tiles take more.
QWinograd q_winograd(const Geometry& g, int64_t x_zero, int64_t scratch_bytes);
// Of packed filters; false on overflow.
[[nodiscard]] bool q_winograd_packed_bytes(const QWinograd& w, int64_t* bytes);
QWinogradPacked q_winograd_packed(const QWinograd& w, std::byte* memory);
// Of one thread; false on overflow.
[[nodiscard]] bool q_winograd_scratch_bytes(const QWinograd& w, int64_t* bytes);

// Transforms the filters of panels first .. end - 1.
void pack_q_winograd(const QWinograd& w, const QWeights& from, const QWinogradPacked& to, int64_t first_panel,
                     int64_t end_panel);
// Tiles first .. end - 1, which are at most w.block, of panels first_panel .. end_panel - 1. `scratch` is one
// thread's.
void run_q_winograd(const QWinograd& w, const QWinogradPacked& packed, int64_t first, int64_t end,
                    int64_t first_panel, int64_t end_panel, std::byte* scratch);

}  // namespace sinter::simd
