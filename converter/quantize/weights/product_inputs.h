// Statistics of the inputs of products: for each weight of an output channel the numbers that it is
// multiplied by, and their covariances.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "converter/quantize/ranges/observe.h"
#include "converter/quantize/weights/product_weights.h"
#include "runtime/backend/window.h"

namespace sinter::convert {

// Inputs of a product whose covariances are taken together: for one group of output channels, (a part of) a
// row.
struct InputBlock {
  std::vector<int64_t> weights;  // in a row of the block's first output channel; see element()
  int64_t first_row = 0, rows = 0;
  std::vector<double> mean;        // of each input
  std::vector<double> covariance;  // [n, n], symmetric
  int64_t size() const { return static_cast<int64_t>(weights.size()); }
};

// Index of the weight that joins output channel `row` and place `i` of its row.
inline int64_t element(const ProductWeights& p, int64_t row, int64_t i) {
  return p.depthwise ? i * p.rows + row : row * p.row_size + i;
}
inline int64_t row_length(const ProductWeights& p) {
  return p.depthwise ? p.weights->size() / p.rows : p.row_size;
}

// The number of patches that suffices for this many inputs.
inline int64_t enough_patches(int64_t together) { return std::clamp<int64_t>(4 * together, 512, 4096); }

// Collects patches of a product's input, evenly spread over what it reads, sample after sample.
class ProductInputs {
 public:
  // Rows longer than `most` are cut into equal parts. About `patches` in all, over all samples.
  ProductInputs(const Graph& graph, const Node& node, int64_t most, int64_t samples);
  void add(const float* x);
  int64_t bytes() const;  // that it keeps
  // Its blocks, once.
  std::vector<InputBlock> take();

 private:
  void patch(const float* x, int64_t position, float* to) const;
  void flush();

  ProductWeights product_;
  Dims in_, out_;  // spatial
  std::vector<WindowAxis> window_;
  bool transposed_ = false;
  int64_t batches_ = 1, taps_ = 1, per_sample_ = 1, offset_ = 0, count_ = 0, held_ = 0;
  struct Sums {
    std::vector<int64_t> places;  // in a patch
    int64_t width = 0;            // padded size
    std::vector<float> rows;      // gathered patches
    std::vector<double> mean;
    std::vector<float> squares;
  };
  std::vector<InputBlock> blocks_;
  std::vector<Sums> sums_;
  std::vector<float> patches_;
};

}  // namespace sinter::convert
