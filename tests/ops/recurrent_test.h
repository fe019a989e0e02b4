// Operands for Lstm, Gru and Rnn (3 steps, 2 samples, 3 inputs, 2 hidden units; element i of an operand is
// pattern(i)), and what every list of expected numbers must fit: layouts, types, choices of outputs.
#pragma once

#include <cstring>

#include "runtime/core/op_enums.h"
#include "tests/op_harness/op_test.h"

namespace sinter::test::recurrent {

constexpr int64_t kSteps = 3, kBatch = 2, kInput = 3, kHidden = 2;
enum Operands { kBias = 1, kH = 2, kC = 4, kPeep = 8 };

inline int64_t code(RnnActivation a) { return static_cast<int64_t>(a); }

template <class T = float>
Tensor pattern(const Shape& dims, int64_t seed) {
  Tensor count{DType::kFloat32, dims, {}};
  std::vector<T> v;
  for (int64_t i = 0; i < count.size(); ++i)
    v.push_back(static_cast<T>((i * 37 + seed * 11) % 64 - 32) / T(32));
  return tensor<T>(dims, v);
}

template <class T, class A>
std::vector<Tensor> operands(const A& a, int64_t gates, int flags, const std::vector<int32_t>& lengths) {
  const int64_t d = a.direction == 2 ? 2 : 1, rows = gates * kHidden;
  const Shape state{d, kBatch, kHidden};
  std::vector<Tensor> in{pattern<T>({kSteps, kBatch, kInput}, 1), pattern<T>({d, rows, kInput}, 2),
                         pattern<T>({d, rows, kHidden}, 3)};
  in.push_back((flags & kBias) != 0 ? pattern<T>({d, 2 * rows}, 4) : Tensor{});
  in.push_back(lengths.empty() ? Tensor{} : tensor<int32_t>({kBatch}, lengths));
  in.push_back((flags & kH) != 0 ? pattern<T>(state, 5) : Tensor{});
  if constexpr (A::kOp == Op::kLstm) {
    in.push_back((flags & kC) != 0 ? pattern<T>(state, 6) : Tensor{});
    in.push_back((flags & kPeep) != 0 ? pattern<T>({d, 3 * kHidden}, 7) : Tensor{});
  }
  return in;
}

// Swaps the two axes before the last one (and what is inside them stays).
inline Tensor swapped(const Tensor& t, size_t axis) {
  if (t.dtype == DType::kNone) return t;
  Tensor r = t;
  std::swap(r.dims[axis], r.dims[axis + 1]);
  size_t outer = 1, inner = byte_width(t.dtype);
  for (size_t i = 0; i < axis; ++i) outer *= static_cast<size_t>(t.dims[i]);
  for (size_t i = axis + 2; i < t.dims.size(); ++i) inner *= static_cast<size_t>(t.dims[i]);
  const auto a = static_cast<size_t>(t.dims[axis]), b = static_cast<size_t>(t.dims[axis + 1]);
  for (size_t o = 0; o < outer; ++o)
    for (size_t i = 0; i < a; ++i)
      for (size_t j = 0; j < b; ++j)
        std::memcpy(&r.bytes[((o * b + j) * a + i) * inner], &t.bytes[((o * a + i) * b + j) * inner], inner);
  return r;
}

// Every layout, type and choice of outputs must give these numbers.
template <class A>
void check(A a, int64_t gates, int flags, const std::vector<int32_t>& lengths,
           const std::vector<std::vector<float>>& want) {
  const auto count = static_cast<int>(want.size());
  const std::vector<Tensor> in = operands<float>(a, gates, flags, lengths);
  const std::vector<Tensor> got = run_op(a, in, {.outputs = count});
  for (size_t i = 0; i < want.size(); ++i)
    expect_near(got[i], tensor<float>(got[i].dims, want[i]), 1e-6, 1e-6);  // onnxruntime's own error
  EXPECT_EQ(got[0].dims, (Shape{kSteps, a.direction == 2 ? 2 : 1, kBatch, kHidden}));
  for (int i = 0; i < count; ++i) {
    std::vector<int> unwanted;
    for (int j = 0; j < count; ++j)
      if (j != i) unwanted.push_back(j);
    expect_equal(run_op(a, in, {.outputs = count, .unwanted = unwanted})[static_cast<size_t>(i)],
                 got[static_cast<size_t>(i)]);
  }
  const std::vector<Tensor> wide = run_op(a, operands<double>(a, gates, flags, lengths), {.outputs = count});
  for (size_t i = 0; i < want.size(); ++i)
    for (size_t j = 0; j < want[i].size(); ++j)
      EXPECT_NEAR(wide[i].values<double>()[j], static_cast<double>(want[i][j]), 1e-6);
  a.layout = 1;
  std::vector<Tensor> batch_first = in;
  batch_first[0] = swapped(in[0], 0);
  for (const size_t i : {5u, 6u})
    if (i < in.size()) batch_first[i] = swapped(in[i], 0);
  const std::vector<Tensor> other = run_op(a, batch_first, {.outputs = count});
  expect_equal(other[0], swapped(swapped(got[0], 1), 0));
  for (size_t i = 1; i < want.size(); ++i) expect_equal(other[i], swapped(got[i], 0));
}
}  // namespace sinter::test::recurrent
