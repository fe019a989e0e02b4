// Add .. Max, Pow, Mod: broadcasting and the corners of integer arithmetic.

#include <cmath>

#include "tests/op_harness/op_test.h"

namespace sinter::test {
namespace {

TEST(Binary, AddBroadcasts) {
  const Tensor a = iota<float>({2, 1, 3}), b = tensor<float>({2, 1}, {10, 20});
  expect_equal(run_op(AddAttrs{}, {a, b})[0],
               tensor<float>({2, 2, 3}, {10, 11, 12, 20, 21, 22, 13, 14, 15, 23, 24, 25}));
  expect_equal(run_op(AddAttrs{}, {a, tensor<float>({}, {1})})[0], iota<float>({2, 1, 3}, 1));
  expect_equal(run_op(AddAttrs{}, {tensor<float>({}, {1}), a})[0], iota<float>({2, 1, 3}, 1));
  expect_equal(run_op(AddAttrs{}, {a, a})[0], iota<float>({2, 1, 3}, 0, 2));
  expect_equal(run_op(AddAttrs{}, {tensor<float>({2, 0}, {}), tensor<float>({1, 1}, {1})})[0],
               tensor<float>({2, 0}, {}));
  expect_refused(AddAttrs{}, {iota<float>({2, 3}), iota<float>({2})});
  expect_refused(AddAttrs{}, {iota<float>({2, 0}), iota<float>({2, 2})});
  expect_refused(AddAttrs{}, {iota<float>({2}), iota<double>({2})});
  expect_refused(AddAttrs{}, {tensor<bool>({1}, {true}), tensor<bool>({1}, {true})});
}

TEST(Binary, BroadcastInTheMiddleOfEightAxes) {
  const Tensor a = iota<int32_t>({1, 2, 1, 2, 1, 3, 1, 2}), b = iota<int32_t>({2, 1, 1, 2, 1, 1, 2, 1}, 100);
  const Tensor y = run_op(MulAttrs{}, {a, b})[0];
  ASSERT_EQ(y.dims, (Shape{2, 2, 1, 2, 1, 3, 2, 2}));
  const auto av = a.values<int32_t>(), bv = b.values<int32_t>(), yv = y.values<int32_t>();
  size_t at = 0;
  for (int i0 = 0; i0 < 2; ++i0)
    for (int i1 = 0; i1 < 2; ++i1)
      for (int i3 = 0; i3 < 2; ++i3)
        for (int i5 = 0; i5 < 3; ++i5)
          for (int i6 = 0; i6 < 2; ++i6)
            for (int i7 = 0; i7 < 2; ++i7)
              EXPECT_EQ(yv[at++], av[static_cast<size_t>(((i1 * 2 + i3) * 3 + i5) * 2 + i7)] *
                                      bv[static_cast<size_t>((i0 * 2 + i3) * 2 + i6)]);
}

// Rows from one number to more than a vector's, an operand of which is one number or one row.
TEST(Binary, ShortRows) {
  for (int64_t channels = 1; channels <= 40; channels += channels < 10 ? 1 : 15) {
    SCOPED_TRACE(channels);
    const Tensor x = noise<float>({1, 37, 83, channels}, -9, 9, 1),
                 pixels = noise<float>({37, 83, 1}, -9, 9, 2), row = noise<float>({channels}, -9, 9, 3);
    for (const Tensor& other : {pixels, row}) {
      check_taken_by("simd", SubAttrs{}, {x, other});
      check_taken_by("simd", SubAttrs{}, {other, x});
    }
    const Tensor bytes = noise<int8_t>({1, 37, 83, channels}, -128, 128, 4),
                 factors = noise<int8_t>({37, 83, 1}, -128, 128, 5);
    const QMulAttrs q{3, -9, 0.00731, 12, -50, 99};
    check_taken_by("simd", q, {bytes, factors});
    check_taken_by("simd", q, {factors, bytes});
  }
}

TEST(Binary, RefusesSizesBeyondTheAddressSpace) {
  std::vector<TensorView> in(2), out(1);
  in[0].dtype = in[1].dtype = DType::kFloat32;
  in[0].rank = in[1].rank = 3;
  in[0].dims[0] = in[1].dims[1] = in[0].dims[2] = in[1].dims[2] = int64_t{1} << 31;
  in[0].dims[1] = in[1].dims[0] = 1;
  const AddAttrs a;
  OpCall call{Op::kAdd, &a, in, out};
  EXPECT_FALSE(infer(call, reference_kernels()).ok());
  in[0].dims[2] = in[1].dims[2] = 0;  // a zero does not hide the overflow of the strides
  in[0].dims[0] = in[1].dims[1] = int64_t{1} << 40;
  EXPECT_FALSE(infer(call, reference_kernels()).ok());
}

TEST(Binary, FusedActivation) {
  AddAttrs a;
  a.act_min = 0, a.act_max = 6;
  expect_equal(run_op(a, {tensor<float>({4}, {-1, 2, 5, kNan}), tensor<float>({}, {2})})[0],
               tensor<float>({4}, {1, 4, 6, kNan}));
  SubAttrs relu;
  relu.act_min = 0;
  expect_equal(run_op(relu, {tensor<double>({2}, {-1, 9}), tensor<double>({}, {2})})[0],
               tensor<double>({2}, {0, 7}));
  expect_refused(a, {iota<int32_t>({2}), iota<int32_t>({2})});
  a.act_min = std::nan("");
  expect_refused(a, {iota<float>({2}), iota<float>({2})});
}

TEST(Binary, IntegersWrap) {
  expect_equal(run_op(AddAttrs{}, {tensor<int8_t>({2}, {127, -128}), tensor<int8_t>({2}, {1, -1})})[0],
               tensor<int8_t>({2}, {-128, 127}));
  expect_equal(run_op(SubAttrs{}, {tensor<uint32_t>({1}, {0}), tensor<uint32_t>({1}, {1})})[0],
               tensor<uint32_t>({1}, {UINT32_MAX}));
  expect_equal(run_op(MulAttrs{}, {tensor<int64_t>({1}, {INT64_MIN}), tensor<int64_t>({1}, {-1})})[0],
               tensor<int64_t>({1}, {INT64_MIN}));
  expect_equal(run_op(MulAttrs{}, {tensor<uint16_t>({1}, {65535}), tensor<uint16_t>({1}, {65535})})[0],
               tensor<uint16_t>({1}, {1}));
}

TEST(Binary, DivTruncatesAndNeverTraps) {
  expect_equal(run_op(DivAttrs{},
                      {tensor<int32_t>({4}, {7, -7, 5, INT32_MIN}), tensor<int32_t>({4}, {2, 2, 0, -1})})[0],
               tensor<int32_t>({4}, {3, -3, 0, INT32_MIN}));
  expect_equal(run_op(DivAttrs{}, {tensor<int8_t>({1}, {-128}), tensor<int8_t>({1}, {-1})})[0],
               tensor<int8_t>({1}, {-128}));
  expect_equal(run_op(DivAttrs{}, {tensor<float>({3}, {1, -1, 0}), tensor<float>({3}, {0, 0, 0})})[0],
               tensor<float>({3}, {kInf, -kInf, kNan}));
}

TEST(Binary, Mod) {
  ModAttrs floored, truncated;
  truncated.fmod = 1;
  const Tensor a = tensor<int32_t>({6}, {-4, 7, 5, 4, -7, 8}), b = tensor<int32_t>({6}, {2, -3, 8, -2, 3, 5});
  expect_equal(run_op(floored, {a, b})[0], tensor<int32_t>({6}, {0, -2, 5, 0, 2, 3}));
  expect_equal(run_op(truncated, {a, b})[0], tensor<int32_t>({6}, {0, 1, 5, 0, -1, 3}));
  expect_equal(run_op(floored, {tensor<int64_t>({2}, {INT64_MIN, 5}), tensor<int64_t>({2}, {-1, 0})})[0],
               tensor<int64_t>({2}, {0, 0}));
  expect_equal(run_op(floored, {tensor<uint8_t>({2}, {250, 5}), tensor<uint8_t>({2}, {7, 0})})[0],
               tensor<uint8_t>({2}, {5, 0}));
  expect_equal(run_op(truncated, {tensor<float>({3}, {-4.5f, 4.5f, 1}), tensor<float>({3}, {2, -2, 0})})[0],
               tensor<float>({3}, {-0.5f, 0.5f, kNan}));
  expect_refused(floored, {tensor<float>({1}, {1}), tensor<float>({1}, {1})});
}

TEST(Binary, MinAndMaxPassNan) {
  const Tensor a = tensor<float>({4}, {1, kNan, 3, -kInf}), b = tensor<float>({4}, {2, 0, kNan, 5});
  expect_equal(run_op(MinAttrs{}, {a, b})[0], tensor<float>({4}, {1, kNan, kNan, -kInf}));
  expect_equal(run_op(MaxAttrs{}, {a, b})[0], tensor<float>({4}, {2, kNan, kNan, 5}));
  expect_equal(run_op(MaxAttrs{}, {tensor<uint64_t>({2}, {UINT64_MAX, 1}), tensor<uint64_t>({}, {9})})[0],
               tensor<uint64_t>({2}, {UINT64_MAX, 9}));
  expect_equal(run_op(MinAttrs{}, {tensor<int8_t>({2}, {-128, 1}), tensor<int8_t>({}, {0})})[0],
               tensor<int8_t>({2}, {-128, 0}));
}

TEST(Binary, Pow) {
  const auto pow = [](const Tensor& a, const Tensor& b) { return run_op(PowAttrs{}, {a, b})[0]; };
  expect_near(pow(tensor<float>({3}, {2, 9, 0.5f}), tensor<float>({3}, {3, 0.5f, -2})),
              tensor<float>({3}, {8, 3, 4}));
  expect_equal(pow(tensor<float>({3}, {1, 2, -3}), tensor<int64_t>({3}, {4, 5, 3})),
               tensor<float>({3}, {1, 32, -27}));
  expect_equal(pow(tensor<int32_t>({3}, {1, 2, 3}), tensor<float>({3}, {4, 5, 6})),
               tensor<int32_t>({3}, {1, 32, 729}));
  expect_equal(pow(tensor<int32_t>({4}, {3, 2, 0, -1}), tensor<int32_t>({4}, {4, -1, 0, -3})),
               tensor<int32_t>({4}, {81, 0, 1, -1}));
  expect_equal(pow(tensor<int8_t>({3}, {2, -2, 3}), tensor<uint64_t>({3}, {8, 7, 5})),
               tensor<int8_t>({3}, {0, -128, -13}));
  expect_equal(pow(tensor<int64_t>({1}, {3}), tensor<int64_t>({1}, {INT64_MIN})), tensor<int64_t>({1}, {0}));
  expect_equal(pow(tensor<int32_t>({1}, {10}), tensor<double>({1}, {30})), tensor<int32_t>({1}, {INT32_MAX}));
  expect_equal(pow(tensor<float>({2, 1}, {2, 3}), tensor<int32_t>({2}, {1, 2})),
               tensor<float>({2, 2}, {2, 4, 3, 9}));
}

}  // namespace
}  // namespace sinter::test
