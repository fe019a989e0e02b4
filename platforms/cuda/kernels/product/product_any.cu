// Products that tiles do not suit: of float64 and integer matrices, and of groups of few columns. A thread
// computes one sum.
#include "platforms/cuda/kernels/product/narrow_weight.h"
#include "platforms/cuda/kernels/product/product_place.h"

namespace sinter::cuda {
namespace {

// The type in which elements are summed, and the way in which a sum becomes a result.
template <class T>
struct Sums {
  using Type = typename SumOf<T>::Type;
  SINTER_DEVICE static Type read(T v) { return static_cast<Type>(v); }
  SINTER_DEVICE static Type read_weight(const ProductArguments& a, int64_t i) {
    if constexpr (sizeof(T) == 8 && static_cast<T>(0.5) != T(0))
      if (a.narrow != DType::kNone) return static_cast<Type>(narrow_weight(a.b, a.narrow, i));
    return read(reinterpret_cast<const T*>(a.b)[i]);
  }
  SINTER_DEVICE static Type add(Type x, Type y, Type sum) { return add_product(x, y, sum); }
  SINTER_DEVICE static void store(const ProductArguments& a, Type sum, int64_t column, T* to) {
    *to = finish_any<T>(a, sum, column);
  }
};
template <class T>
struct FloatSums {
  using Type = float;
  SINTER_DEVICE static float read(T v) { return widen(v); }
  SINTER_DEVICE static float read_weight(const ProductArguments& a, int64_t i) {
    if (a.narrow != DType::kNone) return narrow_weight(a.b, a.narrow, i);
    return widen(reinterpret_cast<const T*>(a.b)[i]);
  }
  SINTER_DEVICE static float add(float x, float y, float sum) { return m_fma(x, y, sum); }
  SINTER_DEVICE static void store(const ProductArguments& a, float sum, int64_t column, T* to) {
    narrow(finish_float<T>(a, sum, column), to);
  }
};
template <>
struct Sums<float> : FloatSums<float> {};
template <>
struct Sums<Float16> : FloatSums<Float16> {};
template <>
struct Sums<BFloat16> : FloatSums<BFloat16> {};

template <class T>
SINTER_DEVICE void multiply_one(const ProductArguments& a, const ProductPart& part, uint32_t product,
                                uint32_t row, uint32_t column) {
  using S = Sums<T>;
  const T* from_a = reinterpret_cast<const T*>(a.a) + offset_of(a.products, a.a_steps, product);
  const ProductMatrix matrix = matrix_of(a, product);
  const WindowStart start = a.a_across != 0 ? WindowStart{} : window_start(part.window, row);
  typename S::Type sum = 0;
  SINTER_ROLLED
  for (uint32_t k = 0; k < part.depth; ++k) {
    const int64_t at =
        a.a_across != 0 ? k * a.a_step + row : window_element(part.window, start, window_tap(part.window, k));
    const int64_t filter = a.phases != 0 ? filter_element(part, part.window, k) : k;
    const int64_t place =
        matrix.first + (a.b_across != 0 ? k * a.b_step + column : column * a.b_step + filter);
    const auto x = at < 0 ? typename S::Type(0) : S::read(from_a[at]);
    sum = S::add(x, S::read_weight(a, place), sum);
  }
  S::store(a, sum, matrix.bias * a.bias_product + column,
           reinterpret_cast<T*>(a.y) + product * a.y_product + row_of_result(a, part, row) + column);
}

// Neighbouring threads compute neighbours in the result: the groups of a pixel, or the rows of a matrix.
template <class T>
SINTER_DEVICE void multiply_any(const ProductArguments& a) {
  const ProductPart& part = a.parts[block_z()];
  const int64_t all = int64_t{part.rows} * a.columns * a.products.size;
  for (int64_t n = global_thread(); n < all; n += global_threads()) {
    if (a.groups_inside != 0) {
      uint32_t column, group;
      const uint32_t rest = a.column_tiles.divide(static_cast<uint32_t>(n), &column);
      const uint32_t row = a.row_tiles.divide(rest, &group);
      multiply_one<T>(a, part, group, row, column);
    } else {
      const auto column = static_cast<uint32_t>(n % a.columns);
      const auto row = static_cast<uint32_t>(n / a.columns % part.rows);
      multiply_one<T>(a, part, static_cast<uint32_t>(n / a.columns / part.rows), row, column);
    }
  }
}

}  // namespace

SINTER_KERNEL(product_any, ProductArguments) {
  switch (a.element) {
    case Element::kFloat32:
      return multiply_any<float>(a);
    case Element::kFloat16:
      return multiply_any<Float16>(a);
    case Element::kBFloat16:
      return multiply_any<BFloat16>(a);
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
  }
}

}  // namespace sinter::cuda
