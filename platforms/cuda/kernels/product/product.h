// Arguments of the kernels that multiply matrices: product_*.cu.
//
// A call is some products y = clamp(a * b + bias) of the same sizes: the matrices of a batch, or the groups
// of a convolution. a's rows are a matrix's or windows (window.h), b's columns a matrix's or the filters of a
// convolution. A transposed convolution has several parts, one a phase, whose windows and filters differ.
#pragma once

#include "platforms/cuda/grid/box.h"
#include "platforms/cuda/kernels/product/experts.h"
#include "platforms/cuda/kernels/window/window.h"
#include "runtime/core/dtype.h"

namespace sinter::cuda {

enum class Element : int32_t { kFloat32, kFloat64, kFloat16, kBFloat16, kInt32, kUint32, kInt64, kUint64 };

inline constexpr int kMostParts = 4;

// Return the shared memory of the kernels of tiles.
constexpr uint32_t float_tile_bytes(uint32_t rows, uint32_t columns) {
  return 2 * 16 * 4 * (rows + 4 + columns + 4);
}
constexpr uint32_t half_tile_bytes(uint32_t rows, uint32_t columns) { return 3 * 40 * 2 * (rows + columns); }
// The rows up to which products are computed by warps that stream the weights, narrow ones as well
// (low_bit.h).
inline constexpr int kMostFewRows = 8;
inline constexpr int kRowsColumns = 2;  // columns of a warp of product_rows

struct ProductPart {
  WindowRows window;
  uint32_t rows = 0, depth = 0;
  // For a phase: element (tap t0, t1, t2, channel c) of a filter is at b_first + t0 * b_tap[0] + ... + c, and
  // row r of the result is the pixel y_first + p * y_stride of its image.
  int64_t b_first = 0, b_tap[3] = {0, 0, 0};
  int32_t y_first[3] = {0, 0, 0}, y_stride[3] = {1, 1, 1};
};

struct ProductArguments {
  const std::byte* a = nullptr;
  const std::byte* b = nullptr;
  const std::byte* bias = nullptr;  // one for each column, or null
  std::byte* y = nullptr;
  float* sums = nullptr;  // with splits > 1: [split][product][row][column]

  // The products, and elements from the operands of one to those of the next.
  Box products;
  Steps a_steps, b_steps;
  int64_t y_product = 0;
  int32_t bias_product = 0;

  // With experts, each product is of one row; its matrix and bias are its expert's, `expert_step` elements
  // of b from one to the next.
  Experts experts;
  int64_t expert_step = 0;

  uint32_t columns = 0;
  int32_t a_across = 0;  // 1: element (r, k) of a is at k * a_step + r; its rows are not a window's
  int64_t a_step = 0;
  int32_t b_across = 0;  // 1: element (k, c) of b is at k * b_step + c; 0: at c * b_step + k
  int64_t b_step = 0;
  int32_t a_vectors = 0,
          b_vectors = 0;  // 1: 16 aligned bytes at a time, if the operand begins at a multiple of 16

  int64_t y_step = 0;      // elements from a row of the result to the next
  int32_t phases = 0;      // 1: rows of the result are pixels of a phase
  int32_t y_dims[3] = {};  // pixels of the whole result, then

  // Sums are cut into `splits` pieces of `split_depth` elements.
  uint32_t splits = 1, split_depth = 0;
  Divider row_tiles, column_tiles;  // those of the part with most rows

  Element element = Element::kFloat32;
  DType narrow = DType::kNone;        // b's type, where it is a narrower float than a's (narrow_weight.h)
  double low = 0, high = 0;           // float bounds
  int64_t low_int = 0, high_int = 0;  // of integers, in the bits of their type

  int32_t warps_per_column = 1;  // product_rows
  int32_t groups_inside = 0;  // product_any: threads are [row, product, column], not [product, row, column];
                              // row_tiles and column_tiles are of one product and one column
  ProductPart parts[kMostParts];
};
static_assert(sizeof(ProductArguments) <= 4096);

}  // namespace sinter::cuda
