// Operands of the integer products, and what the formula of docs/numerics.md makes of their sums.
#pragma once

#include <cmath>

#include "runtime/core/op.h"
#include "tests/op_harness/tensor.h"

namespace sinter::test::quantized {

struct Operands {
  Tensor x, weights, bias, multipliers, weight_zeros;
  std::vector<Tensor> tensors() const {
    std::vector<Tensor> t = {x, weights, bias, multipliers};
    if (weight_zeros.dtype != DType::kNone) t.push_back(weight_zeros);
    return t;
  }
};

// Multipliers are such that sums of about `sum` fill the result's range.
template <class X>
Operands operands(const Shape& x, const Shape& w, int64_t columns, double sum, uint64_t seed) {
  using Bias = std::conditional_t<sizeof(X) == 1, int32_t, int64_t>;
  const double most = sizeof(X) == 1 ? 128 : 32768;
  Operands o;
  o.x = noise<X>(x, -most, most, seed);
  o.weights = noise<int8_t>(w, -127.9, 127.9, seed + 1);
  o.bias = noise<Bias>({columns}, -sum * 20, sum * 20, seed + 2);
  o.multipliers = noise<float>({columns}, 0.2 / sum, 4 / sum, seed + 3);
  return o;
}

// The int64 values of t - zero.
template <class T>
Tensor shifted(const Tensor& t, int64_t zero) {
  std::vector<int64_t> v;
  for (const T item : t.values<T>()) v.push_back(static_cast<int64_t>(item) - zero);
  return tensor<int64_t>(t.dims, v);
}

// What the int64 twin of the op takes; its weights' zero points are along `axis`.
template <class X, class A>
std::vector<Tensor> widened(const A& attrs, const Operands& o, int64_t axis) {
  Tensor w = shifted<int8_t>(o.weights, 0);
  if (o.weight_zeros.dtype != DType::kNone) {
    auto v = w.values<int64_t>();
    const auto z = o.weight_zeros.values<int8_t>();
    int64_t inner = 1;
    for (size_t i = static_cast<size_t>(axis) + 1; i < w.dims.size(); ++i) inner *= w.dims[i];
    const auto n = static_cast<size_t>(w.dims[static_cast<size_t>(axis)]);
    for (size_t i = 0; i < v.size(); ++i) v[i] -= z[z.size() == 1 ? 0 : i / static_cast<size_t>(inner) % n];
    w = tensor<int64_t>(w.dims, v);
  }
  const Tensor bias = sizeof(X) == 1 ? shifted<int32_t>(o.bias, 0) : o.bias;
  return {shifted<X>(o.x, attrs.x_zero), w, bias};
}

template <class A>
int64_t requantized(const A& attrs, float value) {
  const float low = static_cast<float>(attrs.q_min - attrs.y_zero),
              high = static_cast<float>(attrs.q_max - attrs.y_zero);
  return std::lrint(std::fmin(std::fmax(value, low), high)) + attrs.y_zero;
}

// `sums` [..., columns], bias included.
template <class X, class A>
Tensor expected(const A& attrs, const Operands& o, const Tensor& sums) {
  const auto m = o.multipliers.values<float>();
  const auto columns = static_cast<size_t>(sums.dims.back());
  std::vector<float> values;
  size_t i = 0;
  for (const int64_t sum : sums.values<int64_t>())
    values.push_back(static_cast<float>(sum) * m[m.size() == 1 ? 0 : i++ % columns]);
  if (attrs.to == static_cast<int64_t>(DType::kFloat32)) return tensor<float>(sums.dims, values);
  const auto rounded = [&](auto tag) {
    using Y = decltype(tag);
    std::vector<Y> y;
    for (const float v : values) y.push_back(static_cast<Y>(requantized(attrs, v)));
    return tensor<Y>(sums.dims, y);
  };
  return attrs.to == static_cast<int64_t>(DType::kInt8) ? rounded(int8_t{}) : rounded(int16_t{});
}

}  // namespace sinter::test::quantized
