// The rows of a float32 constant: those of weights are its filters.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>

#include "converter/ir/graph.h"

namespace sinter::convert {

// Returns the number of rows, which are along the first axis or along the last.
inline size_t row_count(const Constant& c, bool rows_first) {
  return c.dims().empty() ? 1 : static_cast<size_t>(rows_first ? c.dims().front() : c.dims().back());
}

// Calls f(element, row) for each element.
template <class F>
void for_each_float(const Constant& c, bool rows_first, F f) {
  const LoadedBytes loaded = c.load();
  const auto n = static_cast<size_t>(c.size()), rows = row_count(c, rows_first);
  const size_t length = std::max<size_t>(n / std::max<size_t>(rows, 1), 1);
  for (size_t i = 0; i < n; ++i) {
    float v;
    std::memcpy(&v, loaded.bytes.data() + i * sizeof v, sizeof v);
    f(v, rows_first ? i / length : i % rows);
  }
}

// Returns the largest magnitude; NaN where one element is.
inline double largest_magnitude(const Constant& c) {
  double most = 0;
  for_each_float(c, true, [&](float v, size_t) {
    if (!(std::fabs(v) <= most)) most = std::fabs(v);
  });
  return most;
}

// Returns whether the filters of a product are along the first axis of its weights.
inline bool filters_first(const Node& node) {
  const auto* product = node.as<MatMulAttrs>();
  return node.op() != Op::kDepthwiseConv && (product == nullptr || product->transpose_b != 0);
}

}  // namespace sinter::convert
