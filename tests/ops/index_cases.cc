// Gather, GatherElements, GatherNd, ScatterElements, ScatterNd.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/core/op_enums.h"
#include "tests/ops/run_status.h"

namespace sinter::test {
namespace {

constexpr auto kAdd = static_cast<int64_t>(ScatterReduction::kAdd),
               kMul = static_cast<int64_t>(ScatterReduction::kMul),
               kMax = static_cast<int64_t>(ScatterReduction::kMax),
               kMin = static_cast<int64_t>(ScatterReduction::kMin);

TEST(Gather, ChoosesAlongAnAxis) {
  const Tensor x = iota<float>({3, 4});
  expect_equal(run_op(GatherAttrs{.axis = 0}, {x, tensor<int64_t>({2}, {2, -3})})[0],
               tensor<float>({2, 4}, {8, 9, 10, 11, 0, 1, 2, 3}));
  expect_equal(run_op(GatherAttrs{.axis = 1}, {x, tensor<int32_t>({2, 1}, {3, 0})})[0],
               tensor<float>({3, 2, 1}, {3, 0, 7, 4, 11, 8}));
  expect_equal(run_op(GatherAttrs{.axis = 1}, {x, tensor<int64_t>({}, {-1})})[0],
               tensor<float>({3}, {3, 7, 11}));
  expect_equal(run_op(GatherAttrs{.axis = 1}, {iota<int64_t>({2, 3}), tensor<int32_t>({2}, {2, 0})})[0],
               tensor<int64_t>({2, 2}, {2, 0, 5, 3}));
  expect_equal(run_op(GatherAttrs{.axis = 0}, {x, iota<int64_t>({0})})[0], iota<float>({0, 4}));
  expect_equal(run_op(GatherAttrs{.axis = 1}, {iota<bool>({2, 2, 2}), tensor<int64_t>({1}, {1})})[0],
               tensor<bool>({2, 1, 2}, {true, true, true, true}));
}

TEST(Gather, ChecksIndices) {
  const Status s = run_status(GatherAttrs{.axis = 0}, {iota<float>({3, 4}), tensor<int64_t>({2}, {0, 3})});
  EXPECT_EQ(s.code, Code::kOutOfRange);
  EXPECT_EQ(s.a, 3);
  EXPECT_EQ(s.b, 3);
  expect_run_fails(Code::kOutOfRange, GatherAttrs{.axis = 0}, {iota<float>({3}), tensor<int32_t>({1}, {-4})});
  expect_run_fails(Code::kOutOfRange, GatherAttrs{.axis = 0},
                   {iota<float>({3}), tensor<int64_t>({1}, {INT64_MIN})});
  expect_run_fails(Code::kOutOfRange, GatherAttrs{.axis = 0}, {iota<float>({0}), tensor<int64_t>({1}, {0})});
  expect_refused(GatherAttrs{.axis = 1}, {iota<float>({3}), iota<int64_t>({1})});
  expect_refused(GatherAttrs{.axis = 0}, {iota<float>({3}), iota<float>({1})});
  expect_refused(GatherAttrs{.axis = 0}, {iota<float>({}), iota<int64_t>({1})});
  expect_refused(GatherAttrs{.axis = 0}, {iota<float>({1, 1, 1, 1, 1, 1, 1, 1}), iota<int64_t>({1, 1})});
}

TEST(GatherElements, ChoosesOneByOne) {
  expect_equal(run_op(GatherElementsAttrs{.axis = 1},
                      {tensor<float>({2, 2}, {1, 2, 3, 4}), tensor<int64_t>({2, 2}, {0, 0, 1, 0})})[0],
               tensor<float>({2, 2}, {1, 1, 4, 3}));
  expect_equal(run_op(GatherElementsAttrs{.axis = 0},
                      {iota<int16_t>({3, 3}, 1), tensor<int32_t>({2, 3}, {1, 2, 0, -1, 0, 0})})[0],
               tensor<int16_t>({2, 3}, {4, 8, 3, 7, 2, 3}));
  expect_equal(
      run_op(GatherElementsAttrs{.axis = 0}, {iota<float>({3, 3}), tensor<int64_t>({4, 1}, {2, 2, 1, 0})})[0],
      tensor<float>({4, 1}, {6, 6, 3, 0}));
  expect_equal(run_op(GatherElementsAttrs{.axis = 0}, {iota<float>({3, 3}), iota<int64_t>({0, 3})})[0],
               iota<float>({0, 3}));
}

TEST(GatherElements, ChecksIndices) {
  expect_run_fails(Code::kOutOfRange, GatherElementsAttrs{.axis = 0},
                   {iota<float>({2}), tensor<int64_t>({2}, {1, 2})});
  expect_refused(GatherElementsAttrs{.axis = 0}, {iota<float>({2, 2}), iota<int64_t>({2})});
  expect_refused(GatherElementsAttrs{.axis = 0}, {iota<float>({2, 2}), iota<int64_t>({1, 3})});
}

TEST(GatherNd, ChoosesByTuples) {
  const Tensor x = iota<int32_t>({2, 2, 2});
  expect_equal(run_op(GatherNdAttrs{}, {x, tensor<int64_t>({2, 2}, {0, 1, -1, 0})})[0],
               tensor<int32_t>({2, 2}, {2, 3, 4, 5}));
  expect_equal(run_op(GatherNdAttrs{}, {x, tensor<int64_t>({2, 3}, {0, 0, 1, 1, 1, 1})})[0],
               tensor<int32_t>({2}, {1, 7}));
  expect_equal(run_op(GatherNdAttrs{}, {x, tensor<int64_t>({1}, {1})})[0],
               tensor<int32_t>({2, 2}, {4, 5, 6, 7}));
  expect_equal(run_op(GatherNdAttrs{.batch_dims = 1}, {x, tensor<int32_t>({2, 1}, {1, 0})})[0],
               tensor<int32_t>({2, 2}, {2, 3, 4, 5}));
  expect_equal(run_op(GatherNdAttrs{}, {x, iota<int64_t>({0, 2})})[0], iota<int32_t>({0, 2}));
}

TEST(GatherNd, ChecksIndices) {
  const Tensor x = iota<int32_t>({2, 2, 2});
  expect_run_fails(Code::kOutOfRange, GatherNdAttrs{}, {x, tensor<int64_t>({1, 2}, {0, 2})});
  expect_run_fails(Code::kOutOfRange, GatherNdAttrs{}, {x, tensor<int64_t>({1, 2}, {-3, 0})});
  expect_refused(GatherNdAttrs{}, {x, iota<int64_t>({1, 4})});
  expect_refused(GatherNdAttrs{}, {x, iota<int64_t>({1, 0})});
  expect_refused(GatherNdAttrs{}, {x, iota<int64_t>({})});
  expect_refused(GatherNdAttrs{.batch_dims = 1}, {x, iota<int64_t>({3, 1})});
  expect_refused(GatherNdAttrs{.batch_dims = 2}, {x, iota<int64_t>({2, 1})});
  expect_refused(GatherNdAttrs{.batch_dims = -1}, {x, iota<int64_t>({2, 1})});
}

TEST(ScatterElements, Writes) {
  expect_equal(run_op(ScatterElementsAttrs{.axis = 1},
                      {tensor<float>({1, 5}, {1, 2, 3, 4, 5}), tensor<int64_t>({1, 2}, {1, -2}),
                       tensor<float>({1, 2}, {1.5, 2.5})})[0],
               tensor<float>({1, 5}, {1, 1.5, 3, 2.5, 5}));
  expect_equal(run_op(ScatterElementsAttrs{.axis = 0},
                      {full<int8_t>({3, 3}, 0), tensor<int32_t>({2, 3}, {1, 0, 2, 0, 2, 1}),
                       iota<int8_t>({2, 3}, 1)})[0],
               tensor<int8_t>({3, 3}, {4, 2, 0, 1, 0, 6, 0, 5, 3}));
  // The last of several writes stays.
  expect_equal(run_op(ScatterElementsAttrs{},
                      {full<uint16_t>({2}, 0), tensor<int64_t>({3}, {1, 1, 1}), iota<uint16_t>({3}, 7)})[0],
               tensor<uint16_t>({2}, {0, 9}));
  expect_equal(run_op(ScatterElementsAttrs{}, {iota<float>({2}), iota<int64_t>({0}), iota<float>({0})})[0],
               iota<float>({2}));
}

TEST(ScatterElements, Reduces) {
  const Tensor x = tensor<float>({1, 3}, {1, 2, 3}), at = tensor<int64_t>({1, 3}, {1, 1, 0}),
               u = tensor<float>({1, 3}, {5, 1.5, -4});
  const auto with = [&](int64_t r) {
    return run_op(ScatterElementsAttrs{.axis = 1, .reduction = r}, {x, at, u})[0];
  };
  expect_equal(with(kAdd), tensor<float>({1, 3}, {-3, 8.5, 3}));
  expect_equal(with(kMul), tensor<float>({1, 3}, {-4, 15, 3}));
  expect_equal(with(kMax), tensor<float>({1, 3}, {1, 5, 3}));
  expect_equal(with(kMin), tensor<float>({1, 3}, {-4, 1.5, 3}));
  // Integers wrap; bools: Add and Max are "or", Mul and Min "and".
  expect_equal(run_op(ScatterElementsAttrs{.reduction = kAdd},
                      {full<int8_t>({1}, 100), iota<int64_t>({1}), full<int8_t>({1}, 100)})[0],
               tensor<int8_t>({1}, {-56}));
  expect_equal(run_op(ScatterElementsAttrs{.reduction = kMul},
                      {full<uint16_t>({1}, 0xffff), iota<int64_t>({1}), full<uint16_t>({1}, 0xffff)})[0],
               tensor<uint16_t>({1}, {1}));
  const Tensor b = tensor<bool>({2}, {true, false}), bu = tensor<bool>({2}, {false, true}),
               bi = iota<int64_t>({2});
  expect_equal(run_op(ScatterElementsAttrs{.reduction = kMax}, {b, bi, bu})[0],
               tensor<bool>({2}, {true, true}));
  expect_equal(run_op(ScatterElementsAttrs{.reduction = kMin}, {b, bi, bu})[0],
               tensor<bool>({2}, {false, false}));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  expect_equal(run_op(ScatterElementsAttrs{.reduction = kMax},
                      {tensor<float>({2}, {nan, 1}), bi, tensor<float>({2}, {1, nan})})[0],
               tensor<float>({2}, {nan, nan}));
}

TEST(ScatterElements, Refuses) {
  const Tensor x = iota<float>({2, 2}), at = iota<int64_t>({1, 2});
  expect_run_fails(Code::kOutOfRange, ScatterElementsAttrs{.axis = 0},
                   {x, tensor<int64_t>({1, 2}, {0, 2}), iota<float>({1, 2})});
  EXPECT_EQ(run_status(ScatterElementsAttrs{.axis = 0, .reduction = kAdd},
                       {bits_tensor<uint16_t>(DType::kFloat16, {1}, {0}), iota<int64_t>({1}),
                        bits_tensor<uint16_t>(DType::kFloat16, {1}, {0})})
                .code,
            Code::kUnsupported);
  expect_refused(ScatterElementsAttrs{.axis = 0}, {x, at, iota<float>({2, 1})});
  expect_refused(ScatterElementsAttrs{.axis = 0}, {x, at, iota<double>({1, 2})});
  expect_refused(ScatterElementsAttrs{.axis = 0}, {x, iota<int64_t>({1, 3}), iota<float>({1, 3})});
  expect_refused(ScatterElementsAttrs{.axis = 0, .reduction = 5}, {x, at, iota<float>({1, 2})});
  expect_refused(ScatterElementsAttrs{.axis = 2}, {x, at, iota<float>({1, 2})});
}

TEST(ScatterNd, Writes) {
  expect_equal(run_op(ScatterNdAttrs{}, {iota<float>({8}, 1), tensor<int64_t>({4, 1}, {4, 3, 1, -1}),
                                         tensor<float>({4}, {9, 10, 11, 12})})[0],
               tensor<float>({8}, {1, 11, 3, 10, 9, 6, 7, 12}));
  expect_equal(run_op(ScatterNdAttrs{}, {full<int32_t>({2, 2}, 0), tensor<int32_t>({1, 1}, {1}),
                                         tensor<int32_t>({1, 2}, {7, 8})})[0],
               tensor<int32_t>({2, 2}, {0, 0, 7, 8}));
  expect_equal(run_op(ScatterNdAttrs{.reduction = kAdd},
                      {full<int32_t>({2, 2}, 1), tensor<int64_t>({3, 2}, {1, 1, 0, 0, 1, 1}),
                       tensor<int32_t>({3}, {5, 6, 7})})[0],
               tensor<int32_t>({2, 2}, {7, 1, 1, 13}));
  expect_equal(
      run_op(ScatterNdAttrs{.reduction = kMul},
             {full<double>({2}, 3), tensor<int64_t>({2, 1}, {1, 1}), tensor<double>({2}, {2, 4})})[0],
      tensor<double>({2}, {3, 24}));
  expect_equal(run_op(ScatterNdAttrs{}, {iota<float>({2}), iota<int64_t>({0, 1}), iota<float>({0})})[0],
               iota<float>({2}));
}

TEST(ScatterNd, Refuses) {
  const Tensor x = iota<float>({2, 2});
  expect_run_fails(Code::kOutOfRange, ScatterNdAttrs{},
                   {x, tensor<int64_t>({1, 2}, {0, 2}), iota<float>({1})});
  expect_run_fails(Code::kOutOfRange, ScatterNdAttrs{},
                   {x, tensor<int64_t>({1, 2}, {-3, 0}), iota<float>({1})});
  expect_refused(ScatterNdAttrs{}, {x, iota<int64_t>({1, 3}), iota<float>({1})});
  expect_refused(ScatterNdAttrs{}, {x, iota<int64_t>({1, 2}), iota<float>({2})});
  expect_refused(ScatterNdAttrs{}, {x, iota<int64_t>({1, 2}), iota<int32_t>({1})});
  expect_refused(ScatterNdAttrs{.reduction = -1}, {x, iota<int64_t>({1, 2}), iota<float>({1})});
}

}  // namespace
}  // namespace sinter::test
