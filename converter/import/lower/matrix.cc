// Matrices: Det, and com.microsoft's Inverse and CDist. Constant matrices may have any size; of computed ones
// the cofactors are written out, which pays for small ones.
#include <cmath>

#include "converter/import/lower/common.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

constexpr int64_t kMostComputed = 4;
constexpr int64_t kMostMultiplied = int64_t{1} << 31;

bool square(NodeLowering& n, ValueId x) {
  const Dims d = n.dims(x);
  if (x < 0 || d.size() < 2 || d.back() != d[d.size() - 2] || d.back() < 1)
    return n.refuse_shapes("X is {}, not one or more square matrices", to_string(d));
  if (n.constant(x) && n.size(x) > kMostMultiplied / d.back())
    return n.refuse_advising("compute this one before or after the model", "X is {}, too large to be folded",
                             to_string(d));
  if (n.constant(x) || d.back() <= kMostComputed) return true;
  return n.refuse_advising("give it a constant, or compute this one before or after the model",
                           "X is {} and computed at run time, where matrices of up to {} x {} are supported",
                           to_string(d), kMostComputed, kMostComputed);
}

// Gauss's elimination with row exchanges, in place, of one matrix [size, columns] with columns >= size: the
// left part becomes the identity. Gives the left part's determinant; 0: there is no inverse, and the rest is
// junk.
double eliminate(std::span<double> m, size_t size, size_t columns) {
  double determinant = 1;
  for (size_t i = 0; i < size; ++i) {
    size_t best = i;
    for (size_t r = i + 1; r < size; ++r)
      if (std::fabs(m[r * columns + i]) > std::fabs(m[best * columns + i])) best = r;
    const double pivot = m[best * columns + i];
    determinant *= best == i ? pivot : -pivot;
    if (pivot == 0) return 0;
    for (size_t c = 0; c < columns; ++c) {
      std::swap(m[best * columns + c], m[i * columns + c]);
      m[i * columns + c] /= pivot;
    }
    for (size_t r = 0; r < size; ++r) {
      const double factor = r == i ? 0 : m[r * columns + i];
      for (size_t c = i; c < columns && factor != 0; ++c) m[r * columns + c] -= factor * m[i * columns + c];
    }
  }
  return determinant;
}

ValueId in_type(NodeLowering& n, const Dims& dims, const std::vector<double>& items, DType t) {
  return n.cast(n.add_constant(Constant::of<double>(DType::kFloat64, dims, std::span<const double>(items))),
                t);
}

// Expansion along the first row; x is [..., n, n].
ValueId determinant(NodeLowering& n, ValueId x) {
  const int64_t rank = n.rank(x), size = n.dims(x).back();
  const auto element = [&](int64_t row, int64_t column) {
    return n.slice(n.slice(x, rank - 2, row, 1), rank - 1, column, 1);
  };
  if (size == 1) return x;
  if (size == 2) {
    const ValueId lower = element(1, 0), rising = n.mul(element(0, 1), lower);
    const ValueId last = element(1, 1), falling = n.mul(element(0, 0), last);
    return n.sub(falling, rising);
  }
  ValueId sum = kAbsent;
  for (int64_t column = 0; column < size; ++column) {
    const ValueId rows = n.slice(x, rank - 2, 1, size - 1);
    std::vector<ValueId> parts;
    if (column > 0) parts.push_back(n.slice(rows, rank - 1, 0, column));
    if (column + 1 < size) parts.push_back(n.slice(rows, rank - 1, column + 1, size - column - 1));
    const ValueId minor = parts.size() == 1 ? parts[0] : n.emit(ConcatAttrs{rank - 1}, parts);
    const ValueId term = n.mul(element(0, column), determinant(n, minor));
    sum = sum == kAbsent ? term : column % 2 == 1 ? n.sub(sum, term) : n.add(sum, term);
  }
  return sum;
}

// Det-11.
bool lower_det(NodeLowering& n) {
  const ValueId x = n.input(0);
  if (!square(n, x)) return false;
  const Dims d = n.dims(x), batch(d.begin(), d.end() - 2);
  const ConstantPtr c = n.constant(x);
  if (!c) return n.output(0, n.reshape(determinant(n, x), batch));
  std::vector<double> items = c->as_doubles(), results;
  const auto size = static_cast<size_t>(d.back());
  for (size_t at = 0; at < items.size(); at += size * size)
    results.push_back(eliminate(std::span(items).subspan(at, size * size), size, size));
  return n.output(0, in_type(n, batch, results, n.dtype(x)));
}

// com.microsoft. The inverse is the transposed cofactors over the determinant.
bool lower_inverse(NodeLowering& n) {
  const ValueId x = n.input(0);
  if (!square(n, x)) return false;
  const Dims d = n.dims(x);
  const int64_t size = d.back(), cells = size * size;
  const DType t = n.dtype(x);
  if (const ConstantPtr c = n.constant(x)) {
    const std::vector<double> items = c->as_doubles();
    std::vector<double> results, m;
    const auto rows = static_cast<size_t>(size);
    for (size_t at = 0; at < items.size(); at += rows * rows) {
      m.assign(2 * rows * rows, 0);
      for (size_t r = 0; r < rows; ++r) {
        for (size_t k = 0; k < rows; ++k) m[r * 2 * rows + k] = items[at + r * rows + k];
        m[r * 2 * rows + rows + r] = 1;
      }
      if (eliminate(m, rows, 2 * rows) == 0) return n.refuse("X holds a matrix that has no inverse");
      for (size_t r = 0; r < rows; ++r)
        for (size_t k = 0; k < rows; ++k) results.push_back(m[r * 2 * rows + rows + k]);
    }
    return n.output(0, in_type(n, d, results, t));
  }
  const DType inner = t == DType::kFloat64 ? t : DType::kFloat32;
  const int64_t batch = n.size(x) / cells;
  const ValueId flat = n.reshape(n.cast(x, inner), {batch, cells});
  if (size == 1) {
    const ValueId x_again = n.reshape(flat, d);
    return n.output(0, n.cast(n.div(n.scalar(inner, 1), x_again), t));
  }
  // Cofactor (i, j) is the determinant of what is left without row i and column j. They are laid out
  // transposed.
  std::vector<int64_t> minors;
  std::vector<double> signs;
  for (int64_t j = 0; j < size; ++j)
    for (int64_t i = 0; i < size; ++i) {
      signs.push_back((i + j) % 2 == 0 ? 1 : -1);
      for (int64_t cell = 0; cell < cells; ++cell)
        if (cell / size != i && cell % size != j) minors.push_back(cell);
    }
  const ValueId index = n.add_constant(
      Constant::of<int64_t>(DType::kInt64, {cells, size - 1, size - 1}, std::span<const int64_t>(minors)));
  const ValueId left = determinant(n, n.emit(GatherAttrs{1}, {flat, index}));
  const ValueId sign = in_type(n, {size, size}, signs, inner);
  const ValueId adjugate = n.mul(n.reshape(left, {batch, size, size}), sign);
  // Row 0 of x times column 0 of its adjugate.
  const ValueId column = n.transpose(n.slice(adjugate, 2, 0, 1), {0, 2, 1});
  const ValueId terms = n.mul(n.slice(n.reshape(flat, {batch, size, size}), 1, 0, 1), column);
  const ValueId whole = n.reduce(ReduceFn::kSum, IntList{2}, 1, {terms});
  return n.output(0, n.cast(n.reshape(n.div(adjugate, whole), d), t));
}

// com.microsoft: distances of the rows of A [M, N] and B [K, N] -> [M, K].
bool lower_cdist(NodeLowering& n) {
  const std::string metric = n.attr_string("metric", "sqeuclidean");
  if (metric != "sqeuclidean" && metric != "euclidean")
    return n.refuse("metric '{}' is not supported", metric);
  const ValueId a = n.input(0), b = n.input(1);
  if (n.rank(a) != 2 || n.rank(b) != 2 || n.dims(a)[1] != n.dims(b)[1])
    return n.refuse_shapes("A {} and B {} must be matrices of rows of one length", to_string(n.dims(a)),
                           to_string(n.dims(b)));
  const auto squares = [&](ValueId v, int64_t axis) {
    return n.reduce(ReduceFn::kSumSquare, IntList{axis}, 0, {v});
  };
  // The differences themselves, up to a size: the expanded square cancels where rows are near each other.
  constexpr int64_t kMostDifferences = int64_t{1} << 20;
  const int64_t rows = n.dims(a)[0], columns = n.dims(b)[0], length = n.dims(a)[1];
  ValueId y;
  if (rows == 0 || columns == 0 || length <= kMostDifferences / rows / columns) {
    const ValueId others = n.unsqueeze(b, 0);
    y = squares(n.sub(n.unsqueeze(a, 1), others), 2);
  } else {
    const ValueId product = n.emit(MatMulAttrs{0, 1}, {a, b});
    const ValueId of_b = n.reshape(squares(b, 1), {1, columns});
    const ValueId sum = n.add(n.reshape(squares(a, 1), {rows, 1}), of_b);
    y = n.emit(ClampAttrs{0, kInfinity}, {n.sub(sum, n.add(product, product))});
  }
  return n.output(0, metric == "euclidean" ? n.emit(SqrtAttrs{}, {y}) : y);
}

}  // namespace

std::span<const OnnxOperator> matrix_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"Det", 11, lower_det, "F", kNoTraits},
      {"Inverse", 1, lower_inverse, "F", kNoTraits, kMicrosoft},
      {"CDist", 1, lower_cdist, "F F", kTwoInputs, kMicrosoft},
  };
  return kRules;
}

}  // namespace sinter::convert
