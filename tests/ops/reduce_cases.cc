// Reduce: every function, every kind of axis set, empty sets, integers, NaN.

#include <cmath>

#include "runtime/core/op_enums.h"
#include "tests/op_harness/op_test.h"

namespace sinter::test {
namespace {

ReduceAttrs attrs(ReduceFn fn, IntList axes, bool keepdims = true) {
  ReduceAttrs a;
  a.fn = static_cast<int64_t>(fn);
  a.axes = axes;
  a.keepdims = keepdims ? 1 : 0;
  return a;
}
Tensor reduce(ReduceFn fn, const Tensor& x, IntList axes, bool keepdims = true) {
  return run_op(attrs(fn, axes, keepdims), {x})[0];
}

TEST(Reduce, AxesAndKeepdims) {
  const Tensor x = iota<float>({2, 3, 4});
  expect_equal(reduce(ReduceFn::kSum, x, {2}), tensor<float>({2, 3, 1}, {6, 22, 38, 54, 70, 86}));
  expect_equal(reduce(ReduceFn::kSum, x, {0}), iota<float>({1, 3, 4}, 12, 2));
  expect_equal(reduce(ReduceFn::kSum, x, {1}, false),
               tensor<float>({2, 4}, {12, 15, 18, 21, 48, 51, 54, 57}));
  expect_equal(reduce(ReduceFn::kSum, x, {2, 0}, false), tensor<float>({3}, {60, 92, 124}));
  expect_equal(reduce(ReduceFn::kSum, x, {0, 1, 2}, false), tensor<float>({}, {276}));
  expect_equal(reduce(ReduceFn::kSum, x, {}), x);
  expect_equal(reduce(ReduceFn::kSum, tensor<float>({}, {7}), {}, false), tensor<float>({}, {7}));
}

TEST(Reduce, InterleavedSetsBeyondOneBlock) {
  const Tensor x = iota<int32_t>({2, 5, 150});
  std::vector<int32_t> want;
  for (int n = 0; n < 2; ++n)
    for (int c = 0; c < 150; ++c) {
      int32_t sum = 0;
      for (int s = 0; s < 5; ++s) sum += (n * 5 + s) * 150 + c;
      want.push_back(sum);
    }
  expect_equal(reduce(ReduceFn::kSum, x, {1}, false), tensor<int32_t>({2, 150}, want));
}

TEST(Reduce, Functions) {
  const Tensor x = tensor<float>({2, 3}, {1, -2, 4, 0.5f, -1, 3});
  expect_equal(reduce(ReduceFn::kMean, x, {1}), tensor<float>({2, 1}, {1, 2.5f / 3}));
  expect_equal(reduce(ReduceFn::kMax, x, {1}), tensor<float>({2, 1}, {4, 3}));
  expect_equal(reduce(ReduceFn::kMin, x, {0}), tensor<float>({1, 3}, {0.5f, -2, 3}));
  expect_equal(reduce(ReduceFn::kProd, x, {1}), tensor<float>({2, 1}, {-8, -1.5f}));
  expect_equal(reduce(ReduceFn::kSumSquare, x, {1}), tensor<float>({2, 1}, {21, 10.25f}));
  expect_equal(reduce(ReduceFn::kL1, x, {1}), tensor<float>({2, 1}, {7, 4.5f}));
  const double want = std::log(std::exp(1.0) + std::exp(-2.0) + std::exp(4.0));
  expect_near(reduce(ReduceFn::kLogSumExp, tensor<double>({3}, {1, -2, 4}), {0}), tensor<double>({1}, {want}),
              1e-15);
}

TEST(Reduce, FloatSumsAreMadeInDouble) {
  expect_equal(reduce(ReduceFn::kSum, tensor<float>({3}, {1e8f, 1, -1e8f}), {0}), tensor<float>({1}, {1}));
  std::vector<float> tenths(100000, 0.1f);
  expect_equal(reduce(ReduceFn::kMean, tensor<float>({100000}, tenths), {0}), tensor<float>({1}, {0.1f}));
}

TEST(Reduce, LogSumExpDoesNotOverflow) {
  expect_near(reduce(ReduceFn::kLogSumExp, tensor<float>({2}, {1000, 1000}), {0}),
              tensor<float>({1}, {static_cast<float>(1000 + std::log(2.0))}));
  expect_equal(reduce(ReduceFn::kLogSumExp, tensor<float>({2}, {-kInf, -kInf}), {0}),
               tensor<float>({1}, {-kInf}));
  expect_equal(reduce(ReduceFn::kLogSumExp, tensor<float>({2}, {kInf, 0}), {0}), tensor<float>({1}, {kInf}));
  expect_equal(reduce(ReduceFn::kLogSumExp, tensor<float>({2}, {kNan, kInf}), {0}),
               tensor<float>({1}, {kNan}));
}

TEST(Reduce, NanWins) {
  const Tensor x = tensor<float>({2, 2}, {1, kNan, kNan, 5});
  expect_equal(reduce(ReduceFn::kMax, x, {1}), tensor<float>({2, 1}, {kNan, kNan}));
  expect_equal(reduce(ReduceFn::kMin, x, {1}), tensor<float>({2, 1}, {kNan, kNan}));
  expect_equal(reduce(ReduceFn::kMax, tensor<float>({2}, {-kInf, -kInf}), {0}), tensor<float>({1}, {-kInf}));
}

TEST(Reduce, IntegersWrap) {
  expect_equal(reduce(ReduceFn::kSum, tensor<int8_t>({3}, {100, 100, 100}), {0}), tensor<int8_t>({1}, {44}));
  expect_equal(reduce(ReduceFn::kMean, tensor<int32_t>({2}, {-3, 0}), {0}), tensor<int32_t>({1}, {-1}));
  expect_equal(reduce(ReduceFn::kMean, tensor<uint8_t>({2}, {255, 254}), {0}), tensor<uint8_t>({1}, {254}));
  expect_equal(reduce(ReduceFn::kProd, tensor<int64_t>({2}, {INT64_MIN, -1}), {0}),
               tensor<int64_t>({1}, {INT64_MIN}));
  expect_equal(reduce(ReduceFn::kL1, tensor<int32_t>({2}, {-5, 3}), {0}), tensor<int32_t>({1}, {8}));
  expect_equal(reduce(ReduceFn::kSumSquare, tensor<int32_t>({2}, {-5, 3}), {0}), tensor<int32_t>({1}, {34}));
  expect_equal(reduce(ReduceFn::kMax, tensor<uint64_t>({2}, {UINT64_MAX, 1}), {0}),
               tensor<uint64_t>({1}, {UINT64_MAX}));
}

TEST(Reduce, EmptySetsGiveTheIdentity) {
  const Tensor x = tensor<float>({2, 0, 3}, {});
  expect_equal(reduce(ReduceFn::kSum, x, {1}), full<float>({2, 1, 3}, 0));
  expect_equal(reduce(ReduceFn::kProd, x, {1}), full<float>({2, 1, 3}, 1));
  expect_equal(reduce(ReduceFn::kMax, x, {1}), full<float>({2, 1, 3}, -kInf));
  expect_equal(reduce(ReduceFn::kMin, x, {1}), full<float>({2, 1, 3}, kInf));
  expect_equal(reduce(ReduceFn::kMean, x, {1}), full<float>({2, 1, 3}, kNan));
  expect_equal(reduce(ReduceFn::kLogSumExp, x, {1}), full<float>({2, 1, 3}, -kInf));
  expect_equal(reduce(ReduceFn::kMax, tensor<int32_t>({0}, {}), {0}), tensor<int32_t>({1}, {INT32_MIN}));
  expect_equal(reduce(ReduceFn::kMean, tensor<int32_t>({0}, {}), {0}), tensor<int32_t>({1}, {0}));
  expect_equal(reduce(ReduceFn::kMin, tensor<bool>({0}, {}), {0}), tensor<bool>({1}, {true}));
  expect_equal(reduce(ReduceFn::kSum, x, {0}), tensor<float>({1, 0, 3}, {}));
}

TEST(Reduce, BoolsHaveMaxAndMin) {
  const Tensor x = tensor<bool>({2, 2}, {true, false, false, false});
  expect_equal(reduce(ReduceFn::kMax, x, {1}, false), tensor<bool>({2}, {true, false}));
  expect_equal(reduce(ReduceFn::kMin, x, {1}, false), tensor<bool>({2}, {false, false}));
  expect_refused(attrs(ReduceFn::kSum, {0}), {x});
}

TEST(Reduce, Refuses) {
  const Tensor x = iota<float>({2, 3});
  expect_refused(attrs(ReduceFn::kSum, {2}), {x});
  expect_refused(attrs(ReduceFn::kSum, {-1}), {x});
  expect_refused(attrs(ReduceFn::kSum, {1, 1}), {x});
  expect_refused(attrs(ReduceFn::kSum, {INT64_MAX}), {x});
  expect_refused(attrs(static_cast<ReduceFn>(8), {0}), {x});
}

}  // namespace
}  // namespace sinter::test
