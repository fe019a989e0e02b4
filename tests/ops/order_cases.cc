// ArgReduce, Cumulate, TopK.

#include <algorithm>

#include "runtime/core/op_enums.h"
#include "tests/op_harness/op_test.h"

namespace sinter::test {
namespace {

ArgReduceAttrs arg(ArgReduceFn fn, int64_t axis, bool keepdims = true, bool last = false) {
  ArgReduceAttrs a;
  a.fn = static_cast<int64_t>(fn), a.axis = axis, a.keepdims = keepdims ? 1 : 0, a.select_last = last ? 1 : 0;
  return a;
}
CumulateAttrs cumulate(CumulateFn fn, int64_t axis, bool exclusive = false, bool reverse = false) {
  CumulateAttrs a;
  a.fn = static_cast<int64_t>(fn), a.axis = axis, a.exclusive = exclusive ? 1 : 0,
  a.reverse = reverse ? 1 : 0;
  return a;
}

TEST(ArgReduce, AxesTiesAndKeepdims) {
  const Tensor x = tensor<float>({2, 3}, {2, 5, 5, 1, -7, 1});
  expect_equal(run_op(arg(ArgReduceFn::kMax, 1), {x})[0], tensor<int64_t>({2, 1}, {1, 0}));
  expect_equal(run_op(arg(ArgReduceFn::kMax, 1, false, true), {x})[0], tensor<int64_t>({2}, {2, 2}));
  expect_equal(run_op(arg(ArgReduceFn::kMin, 0, false), {x})[0], tensor<int64_t>({3}, {1, 1, 1}));
  expect_equal(run_op(arg(ArgReduceFn::kMin, 1, false), {iota<int8_t>({2, 2, 2})})[0],
               tensor<int64_t>({2, 2}, {0, 0, 0, 0}));
  expect_equal(run_op(arg(ArgReduceFn::kMax, 0, false), {tensor<uint64_t>({2}, {1, UINT64_MAX})})[0],
               tensor<int64_t>({}, {1}));
}

TEST(ArgReduce, NanIsTheExtreme) {
  const Tensor x = tensor<float>({5}, {1, kNan, kInf, kNan, -kInf});
  expect_equal(run_op(arg(ArgReduceFn::kMax, 0), {x})[0], tensor<int64_t>({1}, {1}));
  expect_equal(run_op(arg(ArgReduceFn::kMin, 0), {x})[0], tensor<int64_t>({1}, {1}));
  expect_equal(run_op(arg(ArgReduceFn::kMin, 0, true, true), {x})[0], tensor<int64_t>({1}, {3}));
}

TEST(ArgReduce, EmptyValues) {
  expect_refused(arg(ArgReduceFn::kMax, 1), {tensor<float>({2, 0}, {})});
  expect_equal(run_op(arg(ArgReduceFn::kMax, 1), {tensor<float>({0, 2}, {})})[0],
               tensor<int64_t>({0, 1}, {}));
  expect_equal(run_op(arg(ArgReduceFn::kMax, 1), {tensor<float>({0, 0}, {})})[0],
               tensor<int64_t>({0, 1}, {}));
  expect_refused(arg(ArgReduceFn::kMax, 2), {iota<float>({2, 2})});
  expect_refused(arg(ArgReduceFn::kMax, -1), {iota<float>({2, 2})});
  expect_refused(arg(static_cast<ArgReduceFn>(2), 0), {iota<float>({2, 2})});
}

TEST(Cumulate, SumInAllDirections) {
  const Tensor x = tensor<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_equal(run_op(cumulate(CumulateFn::kSum, 1), {x})[0], tensor<float>({2, 3}, {1, 3, 6, 4, 9, 15}));
  expect_equal(run_op(cumulate(CumulateFn::kSum, 0), {x})[0], tensor<float>({2, 3}, {1, 2, 3, 5, 7, 9}));
  expect_equal(run_op(cumulate(CumulateFn::kSum, 1, true), {x})[0],
               tensor<float>({2, 3}, {0, 1, 3, 0, 4, 9}));
  expect_equal(run_op(cumulate(CumulateFn::kSum, 1, false, true), {x})[0],
               tensor<float>({2, 3}, {6, 5, 3, 15, 11, 6}));
  expect_equal(run_op(cumulate(CumulateFn::kSum, 1, true, true), {x})[0],
               tensor<float>({2, 3}, {5, 3, 0, 11, 6, 0}));
}

TEST(Cumulate, ProductsWrap) {
  expect_equal(run_op(cumulate(CumulateFn::kProd, 0), {tensor<int8_t>({3}, {2, 100, 3})})[0],
               tensor<int8_t>({3}, {2, -56, 88}));
  expect_equal(run_op(cumulate(CumulateFn::kProd, 0, true), {tensor<double>({3}, {2, 3, 4})})[0],
               tensor<double>({3}, {1, 2, 6}));
  expect_equal(run_op(cumulate(CumulateFn::kSum, 0), {tensor<float>({0, 2}, {})})[0],
               tensor<float>({0, 2}, {}));
  expect_equal(run_op(cumulate(CumulateFn::kSum, 1), {tensor<float>({0, 2}, {})})[0],
               tensor<float>({0, 2}, {}));
  expect_refused(cumulate(CumulateFn::kSum, 1), {iota<float>({2})});
  expect_refused(cumulate(static_cast<CumulateFn>(2), 0), {iota<float>({2})});
}

std::vector<Tensor> top_k(const Tensor& x, int64_t k, int64_t axis, bool largest = true) {
  TopKAttrs a;
  a.k = k, a.axis = axis, a.largest = largest ? 1 : 0;
  return run_op(a, {x});
}

TEST(TopK, TiesGoToTheLowerIndex) {
  const Tensor x = tensor<float>({2, 4}, {3, 1, 3, 2, 0, 0, 0, 0});
  auto y = top_k(x, 3, 1);
  expect_equal(y[0], tensor<float>({2, 3}, {3, 3, 2, 0, 0, 0}));
  expect_equal(y[1], tensor<int64_t>({2, 3}, {0, 2, 3, 0, 1, 2}));
  y = top_k(x, 1, 0, false);
  expect_equal(y[0], tensor<float>({1, 4}, {0, 0, 0, 0}));
  expect_equal(y[1], tensor<int64_t>({1, 4}, {1, 1, 1, 1}));
  y = top_k(tensor<int64_t>({3}, {INT64_MAX, INT64_MIN, INT64_MAX - 1}), 3, 0, false);
  expect_equal(y[1], tensor<int64_t>({3}, {1, 2, 0}));
}

TEST(TopK, NanIsLargest) {
  const Tensor x = tensor<float>({4}, {1, kNan, kInf, kNan});
  expect_equal(top_k(x, 4, 0)[1], tensor<int64_t>({4}, {1, 3, 2, 0}));
  expect_equal(top_k(x, 4, 0, false)[1], tensor<int64_t>({4}, {0, 2, 1, 3}));
}

TEST(TopK, AgainstSorting) {
  const Tensor x = noise<double>({5, 40, 3}, -1, 1);
  const auto v = x.values<double>();
  const auto got = top_k(x, 7, 1)[0].values<double>();
  for (size_t o = 0; o < 5; ++o)
    for (size_t i = 0; i < 3; ++i) {
      std::vector<double> line;
      for (size_t k = 0; k < 40; ++k) line.push_back(v[(o * 40 + k) * 3 + i]);
      std::sort(line.rbegin(), line.rend());
      for (size_t k = 0; k < 7; ++k) EXPECT_EQ(got[(o * 7 + k) * 3 + i], line[k]);
    }
}

TEST(TopK, EmptyAndRefused) {
  EXPECT_EQ(top_k(iota<float>({3, 2}), 0, 0)[1].dims, (Shape{0, 2}));
  EXPECT_EQ(top_k(tensor<float>({0, 2}, {}), 1, 1)[0].dims, (Shape{0, 1}));
  TopKAttrs a;
  a.k = 4;
  expect_refused(a, {iota<float>({3})});
  a.k = -1;
  expect_refused(a, {iota<float>({3})});
  a.k = 1, a.axis = 1;
  expect_refused(a, {iota<float>({3})});
}

}  // namespace
}  // namespace sinter::test
