// Compare, Bitwise, Where.

#include "runtime/core/op_enums.h"
#include "tests/op_harness/op_test.h"

namespace sinter::test {
namespace {

Tensor compare(CompareFn fn, const Tensor& a, const Tensor& b) {
  CompareAttrs attrs;
  attrs.fn = static_cast<int64_t>(fn);
  return run_op(attrs, {a, b})[0];
}
Tensor bitwise(BitwiseFn fn, const Tensor& a, const Tensor& b) {
  BitwiseAttrs attrs;
  attrs.fn = static_cast<int64_t>(fn);
  return run_op(attrs, {a, b})[0];
}

TEST(Compare, Floats) {
  const Tensor a = tensor<float>({4}, {1, 2, 3, kNan}), b = tensor<float>({4}, {2, 2, 2, kNan});
  expect_equal(compare(CompareFn::kEqual, a, b), tensor<bool>({4}, {false, true, false, false}));
  expect_equal(compare(CompareFn::kNotEqual, a, b), tensor<bool>({4}, {true, false, true, true}));
  expect_equal(compare(CompareFn::kLess, a, b), tensor<bool>({4}, {true, false, false, false}));
  expect_equal(compare(CompareFn::kLessOrEqual, a, b), tensor<bool>({4}, {true, true, false, false}));
  expect_equal(compare(CompareFn::kGreater, a, b), tensor<bool>({4}, {false, false, true, false}));
  expect_equal(compare(CompareFn::kGreaterOrEqual, a, b), tensor<bool>({4}, {false, true, true, false}));
}

TEST(Compare, IntegersAreExact) {
  expect_equal(compare(CompareFn::kLess, tensor<uint64_t>({2}, {UINT64_MAX - 1, 0}),
                       tensor<uint64_t>({}, {UINT64_MAX})),
               tensor<bool>({2}, {true, true}));
  expect_equal(
      compare(CompareFn::kEqual, tensor<int64_t>({1}, {INT64_MAX}), tensor<int64_t>({1}, {INT64_MAX - 1})),
      tensor<bool>({1}, {false}));
  expect_equal(compare(CompareFn::kGreater, tensor<uint8_t>({1}, {200}), tensor<uint8_t>({2, 1}, {100, 201})),
               tensor<bool>({2, 1}, {true, false}));
}

TEST(Compare, BoolsCompareAsTruth) {
  const Tensor two = bits_tensor<uint8_t>(DType::kBool, {2}, {2, 0});
  expect_equal(compare(CompareFn::kEqual, two, tensor<bool>({2}, {true, false})),
               tensor<bool>({2}, {true, true}));
}

TEST(Compare, Refuses) {
  CompareAttrs a;
  expect_refused(a, {iota<float>({2}), iota<int32_t>({2})});
  expect_refused(a, {iota<float>({2}), iota<float>({3})});
  a.fn = 6;
  expect_refused(a, {iota<float>({2}), iota<float>({2})});
}

TEST(Bitwise, LogicOfBoolsAndIntegers) {
  const Tensor p = tensor<bool>({4}, {true, true, false, false}),
               q = tensor<bool>({4}, {true, false, true, false});
  expect_equal(bitwise(BitwiseFn::kAnd, p, q), tensor<bool>({4}, {true, false, false, false}));
  expect_equal(bitwise(BitwiseFn::kOr, p, q), tensor<bool>({4}, {true, true, true, false}));
  expect_equal(bitwise(BitwiseFn::kXor, p, q), tensor<bool>({4}, {false, true, true, false}));
  const Tensor a = tensor<int32_t>({2}, {12, -1}), b = tensor<int32_t>({}, {10});
  expect_equal(bitwise(BitwiseFn::kAnd, a, b), tensor<int32_t>({2}, {8, 10}));
  expect_equal(bitwise(BitwiseFn::kOr, a, b), tensor<int32_t>({2}, {14, -1}));
  expect_equal(bitwise(BitwiseFn::kXor, a, b), tensor<int32_t>({2}, {6, -11}));
}

TEST(Bitwise, ShiftsBeyondTheWidth) {
  expect_equal(bitwise(BitwiseFn::kShiftLeft, tensor<uint8_t>({4}, {1, 3, 255, 1}),
                       tensor<uint8_t>({4}, {7, 7, 8, 200})),
               tensor<uint8_t>({4}, {128, 128, 0, 0}));
  expect_equal(bitwise(BitwiseFn::kShiftRight, tensor<int16_t>({5}, {-8, 8, -8, -1, 8}),
                       tensor<int16_t>({5}, {1, 1, 16, -1, -1})),
               tensor<int16_t>({5}, {-4, 4, -1, -1, 0}));
  expect_equal(bitwise(BitwiseFn::kShiftLeft, tensor<int64_t>({2}, {-1, 1}), tensor<int64_t>({2}, {63, 64})),
               tensor<int64_t>({2}, {INT64_MIN, 0}));
  BitwiseAttrs a;
  a.fn = static_cast<int64_t>(BitwiseFn::kShiftLeft);
  expect_refused(a, {tensor<bool>({1}, {true}), tensor<bool>({1}, {true})});
  a.fn = 0;
  expect_refused(a, {iota<float>({2}), iota<float>({2})});
}

TEST(Where, BroadcastsThreeOperands) {
  const Tensor c = tensor<bool>({2, 1}, {true, false});
  expect_equal(run_op(WhereAttrs{}, {c, iota<float>({3}), tensor<float>({}, {-1})})[0],
               tensor<float>({2, 3}, {0, 1, 2, -1, -1, -1}));
  expect_equal(
      run_op(WhereAttrs{}, {tensor<bool>({2}, {true, false}), iota<int64_t>({2}), iota<int64_t>({2}, 7)})[0],
      tensor<int64_t>({2}, {0, 8}));
  const Tensor half = bits_tensor<uint16_t>(DType::kBFloat16, {2}, {1, 2}),
               other = bits_tensor<uint16_t>(DType::kBFloat16, {2}, {3, 4});
  EXPECT_EQ(run_op(WhereAttrs{}, {tensor<bool>({2}, {false, true}), half, other})[0].values<uint16_t>(),
            (std::vector<uint16_t>{3, 2}));
  const Tensor b = tensor<bool>({2}, {false, true});
  expect_equal(run_op(WhereAttrs{}, {b, b, tensor<bool>({2}, {true, true})})[0],
               tensor<bool>({2}, {true, true}));
  expect_refused(WhereAttrs{}, {iota<uint8_t>({2}), iota<float>({2}), iota<float>({2})});
  expect_refused(WhereAttrs{}, {c, iota<float>({2}), iota<double>({2})});
}

}  // namespace
}  // namespace sinter::test
