// One step on the XNNPACK backend: exactly the memory that was measured, one thread and three, against the
// reference kernel in float64.
#pragma once

#include <random>
#include <vector>

#include "tests/op_harness/op_test.h"

namespace sinter::test::xnn {

// In float64; absent operands stay.
Tensor widened(const Tensor& t);

template <class A>
constexpr bool kSums = A::kOp == Op::kConv || A::kOp == Op::kDepthwiseConv || A::kOp == Op::kConvTranspose ||
                       A::kOp == Op::kFullyConnected || A::kOp == Op::kMatMul;
constexpr double kSumBound = 1e-6;

struct Case {
  std::vector<Tensor> inputs;
  bool weights_constant = true;
  int outputs = -1;
  bool apart = false;  // operands 0 have their pixels apart
};

// One life of a step; false if the backend refuses it.
bool run_step(Op op, const void* attrs, const Case& c, ThreadPool* pool, Tensor* result);
// `unclamped`: of ops that sum, the attributes without limits of the result, by whose sums of magnitudes the
// error is judged; of others null.
bool check(Op op, const void* attrs, const void* unclamped, const Case& c, double bound);

template <class A>
bool run_step(const A& attrs, const Case& c, ThreadPool* pool, Tensor* result) {
  return run_step(A::kOp, &attrs, c, pool, result);
}
template <class A>
bool check(const A& attrs, const Case& c, double bound) {
  A unclamped = attrs;
  if constexpr (requires { unclamped.act_min; })
    unclamped.act_min = -kInfinity, unclamped.act_max = kInfinity;
  return check(A::kOp, &attrs, kSums<A> ? &unclamped : nullptr, c, bound);
}

struct Random {
  std::mt19937_64 engine;
  explicit Random(uint64_t seed) : engine(seed) {}
  int64_t from(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine() % static_cast<uint64_t>(high - low + 1));
  }
  bool half() { return from(0, 1) != 0; }
  Tensor values(Shape dims) { return noise<float>(std::move(dims), -1, 1, engine()); }
};

// strides, dilations, pads and a kernel for one or two axes.
struct Geometry {
  IntList kernel, strides, dilations, pads;
  Shape in;
  Geometry(Random& r, int axes, int64_t most_kernel, int64_t most_dilation) {
    for (int i = 0; i < axes; ++i) {
      kernel.push(r.from(1, most_kernel));
      strides.push(r.from(1, 3));
      dilations.push(r.from(1, most_dilation));
      in.push_back((kernel[i] - 1) * dilations[i] + 1 + r.from(0, 12));
    }
    for (int i = 0; i < 2 * axes; ++i)
      pads.push(r.half() ? 0 : r.from(0, (kernel[i % axes] - 1) * dilations[i % axes]));
  }
  Shape with(int64_t batch, int64_t channels) const {
    Shape s = {batch};
    s.insert(s.end(), in.begin(), in.end());
    s.push_back(channels);
    return s;
  }
  Shape weights(int64_t first, int64_t last) const {
    Shape s;
    if (first > 0) s.push_back(first);
    s.insert(s.end(), kernel.begin(), kernel.end());
    s.push_back(last);
    return s;
  }
};

template <class A>
void clamp(Random& r, A& a) {
  if (r.half()) a.act_min = 0;
  if (a.act_min == 0 && r.half()) a.act_max = 0.75;
}
}  // namespace sinter::test::xnn
