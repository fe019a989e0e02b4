// Products of float64 and integer matrices: one sum a thread.
#include "platforms/cuda/kernels/product_place.h"

namespace sinter::cuda {
namespace {

template <class T>
SINTER_DEVICE void multiply_any(const ProductArguments& a) {
  using U = typename SumOf<T>::Type;
  const ProductPart& part = a.parts[block_z()];
  const int64_t all = int64_t{part.rows} * a.columns * a.products.size;
  for (int64_t n = global_thread(); n < all; n += global_threads()) {
    const auto column = static_cast<uint32_t>(n % a.columns);
    const auto row = static_cast<uint32_t>(n / a.columns % part.rows);
    const auto product = static_cast<uint32_t>(n / a.columns / part.rows);
    const T* from_a = reinterpret_cast<const T*>(a.a) + offset_of(a.products, a.a_steps, product);
    const T* from_b = reinterpret_cast<const T*>(a.b) + offset_of(a.products, a.b_steps, product);
    const WindowStart start = a.a_across != 0 ? WindowStart{} : window_start(part.window, row);
    U sum = 0;
    for (uint32_t k = 0; k < part.depth; ++k) {
      const int64_t at = a.a_across != 0 ? k * a.a_step + row
                                         : window_element(part.window, start, window_tap(part.window, k));
      const int64_t filter = a.phases != 0 ? filter_element(part, part.window, k) : k;
      const T y = from_b[a.b_across != 0 ? k * a.b_step + column : column * a.b_step + filter];
      sum = add_product(at < 0 ? U(0) : static_cast<U>(from_a[at]), static_cast<U>(y), sum);
    }
    reinterpret_cast<T*>(a.y)[product * a.y_product + row_of_result(a, part, row) + column] =
        finish_any<T>(a, sum, int64_t{product} * a.bias_product + column);
  }
}

}  // namespace

SINTER_KERNEL(product_any, ProductArguments) {
  switch (a.element) {
    case Element::kFloat64:
      return multiply_any<double>(a);
    case Element::kInt32:
      return multiply_any<int32_t>(a);
    case Element::kUint32:
      return multiply_any<uint32_t>(a);
    case Element::kInt64:
      return multiply_any<int64_t>(a);
    case Element::kUint64:
      return multiply_any<uint64_t>(a);
    default:
      return;
  }
}

}  // namespace sinter::cuda
