// Adds up the sums of products whose depth was cut into pieces, in the order of the pieces, and stores the
// results.
#include "platforms/cuda/kernels/product/product_place.h"

namespace sinter::cuda {
namespace {

template <class T>
SINTER_DEVICE void add_pieces(const ProductArguments& a) {
  const int64_t rows = a.parts[0].rows, each = rows * a.columns, all = each * a.products.size;
  const Divider columns = a.column_tiles;  // of one column
  for (int64_t n = global_thread(); n < all; n += global_threads()) {
    float sum = a.sums[n];
    for (uint32_t s = 1; s < a.splits; ++s) sum += a.sums[s * all + n];
    uint32_t column, row;
    const uint32_t line = columns.divide(static_cast<uint32_t>(n), &column);
    const uint32_t product = a.row_tiles.divide(line, &row);
    T v;
    narrow(finish_sum<T>(a, sum, product, column), &v);
    reinterpret_cast<T*>(a.y)[product * a.y_product + row * a.y_step + column] = v;
  }
}

}  // namespace

// row_tiles and column_tiles are those of one row and one column.
SINTER_KERNEL(product_sums, ProductArguments) {
  switch (a.element) {
    case Element::kFloat16:
      return add_pieces<Float16>(a);
    case Element::kBFloat16:
      return add_pieces<BFloat16>(a);
    default:
      return add_pieces<float>(a);
  }
}

}  // namespace sinter::cuda
