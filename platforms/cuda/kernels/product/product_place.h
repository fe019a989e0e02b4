// The common parts of products' kernels: the tile of a block, and the places of results.
#pragma once

#include "platforms/cuda/kernels/index/expert_of_row.h"
#include "platforms/cuda/kernels/product/epilogue.h"

namespace sinter::cuda {

// The tile of a block: blocks are [product, row tile, column tile], [split], [part].
struct ProductTile {
  uint32_t product, row, column;  // the first ones
  uint32_t begin, end;            // of the depth
};
template <int kRows, int kColumns>
SINTER_DEVICE ProductTile tile_of_block(const ProductArguments& a, const ProductPart& part) {
  ProductTile t;
  uint32_t row_tile, column_tile;
  const uint32_t n = a.column_tiles.divide(block_x(), &column_tile);
  t.product = a.row_tiles.divide(n, &row_tile);
  t.row = row_tile * kRows, t.column = column_tile * kColumns;
  t.begin = block_y() * a.split_depth;
  t.end = t.begin + a.split_depth < part.depth ? t.begin + a.split_depth : part.depth;
  return t;
}

// The operands of a tile: the beginnings of its product's, and the way in which they are read.
template <class T>
struct TileOperands {
  const T *a, *b;
  bool a_across, b_across;    // elements of one depth are adjacent
  bool a_vectors, b_vectors;  // sixteen bytes at a time
};
template <class T>
SINTER_DEVICE TileOperands<T> operands_of(const ProductArguments& a, uint32_t product) {
  return {reinterpret_cast<const T*>(a.a) + offset_of(a.products, a.a_steps, product),
          reinterpret_cast<const T*>(a.b) + offset_of(a.products, a.b_steps, product),
          a.a_across != 0,
          a.b_across != 0,
          a.a_vectors != 0 && begins_sixteen(a.a),
          a.b_vectors != 0 && begins_sixteen(a.b)};
}

// The matrix of a product: its place in b, and its number among biases.
struct ProductMatrix {
  int64_t first;
  int64_t bias;
};
SINTER_DEVICE ProductMatrix matrix_of(const ProductArguments& a, uint32_t product) {
  if (a.experts.of_row == nullptr) return {offset_of(a.products, a.b_steps, product), int64_t{product}};
  const int64_t expert = expert_of_row(a.experts, product);
  return {expert * a.expert_step, expert};
}

// The windows of the rows that a thread reads, of which line(i) is the i-th, from the tile's first; beyond
// the last row of the part a window has no image.
template <int kCount, class Line>
SINTER_DEVICE void find_windows(const ProductPart& part, uint32_t first, Line line,
                                WindowStart (&starts)[kCount]) {
  SINTER_UNROLL
  for (int i = 0; i < kCount; ++i) {
    const uint32_t row = first + static_cast<uint32_t>(line(i));
    if (row < part.rows)
      starts[i] = window_start(part.window, row);
    else
      starts[i].image = -1;
  }
}

// Returns the place at which a block that computes a part of the depth leaves the sums of a row.
SINTER_DEVICE float* sums_of_row(const ProductArguments& a, const ProductPart& part, uint32_t product,
                                 uint32_t row) {
  return a.sums + ((int64_t{block_y()} * a.products.size + product) * part.rows + row) * a.columns;
}

// Returns the element of the result at which a row begins.
SINTER_DEVICE int64_t row_of_result(const ProductArguments& a, const ProductPart& part, uint32_t row) {
  if (a.phases == 0) return row * a.y_step;
  uint32_t pixel, p1, p2;
  const uint32_t image = part.window.pixels.divide(row, &pixel);
  const uint32_t line = part.window.out2.divide(pixel, &p2);
  const uint32_t p0 = part.window.out1.divide(line, &p1);
  const int64_t q0 = part.y_first[0] + int64_t{p0} * part.y_stride[0];
  const int64_t q1 = part.y_first[1] + int64_t{p1} * part.y_stride[1];
  const int64_t q2 = part.y_first[2] + int64_t{p2} * part.y_stride[2];
  return (((image * int64_t{a.y_dims[0]} + q0) * a.y_dims[1] + q1) * a.y_dims[2] + q2) * a.y_step;
}

// Returns the filter's element that corresponds to an element of windows under a tap.
SINTER_DEVICE int64_t filter_element(const ProductPart& part, const WindowRows& w, uint32_t k) {
  uint32_t channel, t1, t2;
  const uint32_t tap = w.channels.divide(k, &channel);
  const uint32_t line = w.kernel2.divide(tap, &t2);
  const uint32_t t0 = w.kernel1.divide(line, &t1);
  return part.b_first + t0 * part.b_tap[0] + t1 * part.b_tap[1] + t2 * part.b_tap[2] + channel;
}

// Applies the bias of a matrix, and the bounds.
template <class T>
SINTER_DEVICE float finish_sum(const ProductArguments& a, float sum, int64_t matrix, uint32_t column) {
  return finish_float<T>(a, sum, matrix * a.bias_product + column);
}

}  // namespace sinter::cuda
