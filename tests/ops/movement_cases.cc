// View, Copy, Broadcast, Transpose, Slice, Concat, Tile, ReverseSequence, CacheUpdate.
#include <gtest/gtest.h>

#include "tests/ops/run_status.h"

namespace sinter::test {
namespace {

TEST(View, GivesOtherDims) {
  const auto y = run_op(ViewAttrs{.dims = {3, 2}}, {iota<float>({2, 3})});
  expect_equal(y[0], iota<float>({3, 2}));
  expect_equal(run_op(ViewAttrs{}, {tensor<int8_t>({1, 1}, {7})})[0], tensor<int8_t>({}, {7}));
  expect_equal(run_op(ViewAttrs{.dims = {0, 5}}, {iota<float>({3, 0})})[0], iota<float>({0, 5}));
}

TEST(View, GivesAnotherTypeOfTheSameSize) {
  const auto y = run_op(ViewAttrs{.dims = {1}, .dtype = static_cast<int64_t>(DType::kFloat32)},
                        {tensor<uint8_t>({4}, {0, 0, 0x80, 0x3f})});
  expect_equal(y[0], tensor<float>({1}, {1.0f}));
}

TEST(View, TakesPackedElements) {
  const auto y =
      run_op(ViewAttrs{.dims = {2, 2}}, {Tensor{DType::kInt4, {4}, {std::byte{0x21}, std::byte{0x43}}}});
  EXPECT_EQ(y[0].dims, (Shape{2, 2}));
  EXPECT_EQ(y[0].bytes, (std::vector<std::byte>{std::byte{0x21}, std::byte{0x43}}));
}

TEST(View, RefusesAnotherSize) {
  expect_refused(ViewAttrs{.dims = {4}}, {iota<float>({3})});
  expect_refused(ViewAttrs{.dims = {-3}}, {iota<float>({3})});
  expect_refused(ViewAttrs{.dims = {int64_t{1} << 62, 4}}, {iota<float>({3})});
  expect_refused(ViewAttrs{.dims = {1, 1, 1, 1, 1, 1, 1, 1, 3}}, {iota<float>({3})});
  expect_refused(ViewAttrs{.dims = {3}, .dtype = 0}, {iota<float>({3})});
  expect_refused(ViewAttrs{.dims = {3}, .dtype = 99}, {iota<float>({3})});
  expect_refused(ViewAttrs{.dims = {3}, .dtype = static_cast<int64_t>(DType::kInt8)}, {iota<float>({3})});
  expect_refused(ViewAttrs{.dims = {3}}, {Tensor{DType::kInt4, {4}, std::vector<std::byte>(2)}});
}

TEST(Copy, CopiesEveryWidth) {
  expect_equal(run_op(CopyAttrs{}, {iota<double>({2, 3, 4})})[0], iota<double>({2, 3, 4}));
  expect_equal(run_op(CopyAttrs{}, {iota<uint8_t>({5})})[0], iota<uint8_t>({5}));
  expect_equal(run_op(CopyAttrs{}, {tensor<bool>({2}, {true, false})})[0], tensor<bool>({2}, {true, false}));
  const Tensor halves = bits_tensor<uint16_t>(DType::kFloat16, {3}, {0x3c00, 0x7e01, 0x8000});
  expect_equal(run_op(CopyAttrs{}, {halves})[0], halves);
  expect_equal(run_op(CopyAttrs{}, {iota<int64_t>({})})[0], iota<int64_t>({}));
  expect_equal(run_op(CopyAttrs{}, {iota<int32_t>({2, 0, 3})})[0], iota<int32_t>({2, 0, 3}));
}

TEST(Broadcast, Repeats) {
  expect_equal(run_op(BroadcastAttrs{.dims = {2, 2, 3}}, {tensor<float>({2, 1}, {1, 2})})[0],
               tensor<float>({2, 2, 3}, {1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2}));
  expect_equal(run_op(BroadcastAttrs{.dims = {3}}, {tensor<int8_t>({}, {5})})[0],
               tensor<int8_t>({3}, {5, 5, 5}));
  expect_equal(run_op(BroadcastAttrs{.dims = {0, 2}}, {tensor<float>({2}, {1, 2})})[0],
               tensor<float>({0, 2}, {}));
}

TEST(Broadcast, RefusesWhatDoesNotFit) {
  expect_refused(BroadcastAttrs{.dims = {3}}, {tensor<float>({2}, {1, 2})});
  expect_refused(BroadcastAttrs{.dims = {2}}, {tensor<float>({1, 2}, {1, 2})});
  expect_refused(BroadcastAttrs{.dims = {1, 2}}, {iota<float>({3, 2})});
  expect_refused(BroadcastAttrs{.dims = {-1, 2}}, {tensor<float>({2}, {1, 2})});
  expect_refused(BroadcastAttrs{.dims = {int64_t{1} << 61, 2}}, {tensor<float>({2}, {1, 2})});
}

TEST(Transpose, MovesAxes) {
  expect_equal(run_op(TransposeAttrs{.perm = {1, 0}}, {iota<float>({2, 3})})[0],
               tensor<float>({3, 2}, {0, 3, 1, 4, 2, 5}));
  expect_equal(run_op(TransposeAttrs{.perm = {0, 2, 1}}, {iota<int8_t>({2, 2, 3})})[0],
               tensor<int8_t>({2, 3, 2}, {0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11}));
  expect_equal(run_op(TransposeAttrs{.perm = {2, 0, 1}}, {iota<double>({2, 2, 2})})[0],
               tensor<double>({2, 2, 2}, {0, 2, 4, 6, 1, 3, 5, 7}));
  expect_equal(run_op(TransposeAttrs{}, {iota<float>({})})[0], iota<float>({}));
  expect_equal(run_op(TransposeAttrs{.perm = {1, 0}}, {iota<float>({0, 3})})[0], iota<float>({3, 0}));
}

// Larger than a tile in both axes.
TEST(Transpose, MatchesIndexArithmetic) {
  const Tensor x = noise<float>({3, 70, 2, 45}, -1, 1);
  const auto y = run_op(TransposeAttrs{.perm = {3, 0, 2, 1}}, {x});
  ASSERT_EQ(y[0].dims, (Shape{45, 3, 2, 70}));
  const auto a = x.values<float>(), b = y[0].values<float>();
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 70; ++j)
      for (int k = 0; k < 2; ++k)
        for (int l = 0; l < 45; ++l)
          ASSERT_EQ(b[((l * 3 + i) * 2 + k) * 70 + j], a[((i * 70 + j) * 2 + k) * 45 + l]);
}

// Rows that alternate, and tiles with every remainder.
template <class T>
void check_planes() {
  const auto check = [](int64_t outer, int64_t m, int64_t n) {
    SCOPED_TRACE(testing::PrintToString(Shape{outer, m, n}));
    check_taken_by("simd", TransposeAttrs{.perm = {0, 2, 1}}, {noise<T>({outer, m, n}, 0, 100)});
  };
  for (int64_t n = 1; n <= 70; n += n < 36 ? 1 : 11)
    for (int64_t k = 2; k <= 5; ++k) check(3, k, n), check(3, n, k);
  for (const int64_t n : {6, 8, 15, 17, 33, 65})
    for (const int64_t m : {7, 16, 20, 66}) check(2, m, n);
  check(1, 2, 17000);
  check(1, 17000, 3);
}
TEST(Transpose, PlanesOfEverySize) {
  check_planes<uint8_t>();
  check_planes<int16_t>();
  check_planes<float>();
  check_planes<int64_t>();
}

TEST(Transpose, RowsOfEveryLength) {
  for (int64_t n = 1; n <= 40; ++n)
    check_taken_by("simd", TransposeAttrs{.perm = {0, 2, 1, 3}}, {noise<uint8_t>({2, 3, 5, n}, 0, 255)});
  check_taken_by("simd", TransposeAttrs{.perm = {3, 0, 2, 1, 4}}, {noise<float>({2, 3, 2, 5, 7}, 0, 255)});
}

TEST(Transpose, RefusesWhatIsNoPermutation) {
  expect_refused(TransposeAttrs{.perm = {0}}, {iota<float>({2, 3})});
  expect_refused(TransposeAttrs{.perm = {0, 0}}, {iota<float>({2, 3})});
  expect_refused(TransposeAttrs{.perm = {0, 2}}, {iota<float>({2, 3})});
  expect_refused(TransposeAttrs{.perm = {0, -1}}, {iota<float>({2, 3})});
  expect_refused(TransposeAttrs{.perm = {0, int64_t{1} << 40}}, {iota<float>({2, 3})});
}

TEST(Slice, RowsOfEveryLength) {
  for (int64_t n = 1; n <= 40; ++n) {
    SCOPED_TRACE(n);
    const Tensor x = noise<uint8_t>({3, 5, n}, 0, 255, static_cast<uint64_t>(n));
    Tensor want{DType::kUint8, {3, 2, n}, {}};
    for (int64_t i = 0; i < 3; ++i)
      for (const int64_t j : {1, 3}) {
        const auto row = x.bytes.begin() + (i * 5 + j) * n;
        want.bytes.insert(want.bytes.end(), row, row + n);
      }
    expect_equal(run_op(SliceAttrs{.starts = {0, 1, 0}, .steps = {1, 2, 1}, .sizes = {3, 2, n}}, {x})[0],
                 want);
  }
}

// Rows of every length, pieces of several threads, elements that are apart, and repeated ones.
TEST(Copies, AreTakenByTheSimdBackend) {
  for (int64_t n = 1; n <= 140; n += n < 70 ? 1 : 9) {
    SCOPED_TRACE(n);
    const Tensor x = noise<uint8_t>({4, 3, n}, 0, 255), y = noise<uint8_t>({4, 3, 5}, 0, 255);
    check_taken_by("simd", ConcatAttrs{.axis = 2}, {y, x, y, x});
    check_taken_by("simd", SliceAttrs{.starts = {0, 2, 0}, .steps = {2, -2, 1}, .sizes = {2, 2, n}}, {x});
    check_taken_by("simd", BroadcastAttrs{.dims = {4, 2, n}}, {noise<uint8_t>({4, 1, n}, 0, 255)});
  }
  const Tensor wide = noise<float>({50, 70, 9}, 0, 255), narrow = noise<float>({50, 70, 1}, 0, 255);
  check_taken_by("simd", ConcatAttrs{.axis = 2}, {wide, narrow, narrow});
  check_taken_by("simd", ConcatAttrs{.axis = 0}, {wide, wide});
  check_taken_by("simd", CopyAttrs{}, {noise<double>({300, 70}, 0, 255)});
  check_taken_by("simd", BroadcastAttrs{.dims = {50, 70, 9}}, {narrow});
  check_taken_by("simd", SliceAttrs{.starts = {1, 69, 8}, .steps = {2, -2, -3}, .sizes = {24, 35, 3}},
                 {wide});
}

TEST(Slice, TakesAWindow) {
  expect_equal(
      run_op(SliceAttrs{.starts = {1, 3}, .steps = {1, -2}, .sizes = {2, 2}}, {iota<float>({3, 4})})[0],
      tensor<float>({2, 2}, {7, 5, 11, 9}));
  expect_equal(run_op(SliceAttrs{.starts = {2}, .steps = {INT64_MIN}, .sizes = {1}}, {iota<int64_t>({3})})[0],
               tensor<int64_t>({1}, {2}));
  expect_equal(
      run_op(SliceAttrs{.starts = {99, 0}, .steps = {0, 1}, .sizes = {0, 2}}, {iota<int8_t>({3, 2})})[0],
      iota<int8_t>({0, 2}));
  expect_equal(run_op(SliceAttrs{}, {iota<int8_t>({})})[0], iota<int8_t>({}));
}

TEST(Slice, RefusesToLeaveTheValue) {
  const std::vector<Tensor> x = {iota<float>({4})};
  expect_refused(SliceAttrs{.starts = {4}, .steps = {1}, .sizes = {1}}, x);
  expect_refused(SliceAttrs{.starts = {-1}, .steps = {1}, .sizes = {1}}, x);
  expect_refused(SliceAttrs{.starts = {2}, .steps = {1}, .sizes = {3}}, x);
  expect_refused(SliceAttrs{.starts = {1}, .steps = {-1}, .sizes = {3}}, x);
  expect_refused(SliceAttrs{.starts = {1}, .steps = {0}, .sizes = {2}}, x);
  expect_refused(SliceAttrs{.starts = {1}, .steps = {INT64_MAX}, .sizes = {3}}, x);
  expect_refused(SliceAttrs{.starts = {1}, .steps = {1}, .sizes = {-1}}, x);
  expect_refused(SliceAttrs{.starts = {1, 0}, .steps = {1}, .sizes = {1}}, x);
}

TEST(Concat, JoinsAlongAnAxis) {
  expect_equal(run_op(ConcatAttrs{.axis = 1}, {tensor<float>({2, 1}, {1, 2}),
                                               tensor<float>({2, 2}, {3, 4, 5, 6}), iota<float>({2, 0})})[0],
               tensor<float>({2, 3}, {1, 3, 4, 2, 5, 6}));
  expect_equal(run_op(ConcatAttrs{.axis = 0}, {iota<int16_t>({1, 2}), iota<int16_t>({2, 2}, 5)})[0],
               tensor<int16_t>({3, 2}, {0, 1, 5, 6, 7, 8}));
  expect_equal(run_op(ConcatAttrs{}, {iota<bool>({0})})[0], iota<bool>({0}));
}

TEST(Concat, RefusesWhatDoesNotFit) {
  expect_refused(ConcatAttrs{.axis = 1}, {iota<float>({2, 1}), iota<float>({3, 1})});
  expect_refused(ConcatAttrs{.axis = 2}, {iota<float>({2, 1}), iota<float>({2, 1})});
  expect_refused(ConcatAttrs{.axis = -1}, {iota<float>({2, 1}), iota<float>({2, 1})});
  expect_refused(ConcatAttrs{.axis = 0}, {iota<float>({2}), iota<float>({2, 1})});
  expect_refused(ConcatAttrs{.axis = 0}, {iota<float>({2}), iota<double>({2})});
  expect_refused(ConcatAttrs{.axis = 0}, {iota<float>({2}), Tensor{}});
  expect_refused(ConcatAttrs{.axis = 0}, {iota<float>({})});
}

TEST(Tile, Repeats) {
  expect_equal(
      run_op(TileAttrs{.repeats = {2, 3}}, {iota<float>({2, 2})})[0],
      tensor<float>({4, 6}, {0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3, 0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3}));
  expect_equal(run_op(TileAttrs{.repeats = {5}}, {iota<int8_t>({2})})[0],
               tensor<int8_t>({10}, {0, 1, 0, 1, 0, 1, 0, 1, 0, 1}));
  expect_equal(run_op(TileAttrs{.repeats = {1, 1, 2}}, {iota<int64_t>({1, 2, 1})})[0],
               tensor<int64_t>({1, 2, 2}, {0, 0, 1, 1}));
  expect_equal(run_op(TileAttrs{.repeats = {0, 2}}, {iota<float>({2, 2})})[0], iota<float>({0, 4}));
  expect_equal(run_op(TileAttrs{}, {iota<float>({})})[0], iota<float>({}));
}

TEST(Tile, RefusesBadRepeats) {
  expect_refused(TileAttrs{.repeats = {2}}, {iota<float>({2, 2})});
  expect_refused(TileAttrs{.repeats = {-1, 2}}, {iota<float>({2, 2})});
  expect_refused(TileAttrs{.repeats = {INT64_MAX, 2}}, {iota<float>({2, 2})});
  expect_refused(TileAttrs{.repeats = {int64_t{1} << 31, int64_t{1} << 31}}, {iota<float>({2, 2})});
}

TEST(ReverseSequence, ReversesEachRowsBeginning) {
  // The example of the ONNX specification: time is axis 0, batch axis 1.
  expect_equal(run_op(ReverseSequenceAttrs{.time_axis = 0, .batch_axis = 1},
                      {tensor<float>({4, 4}, {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15}),
                       tensor<int64_t>({4}, {4, 3, 2, 1})})[0],
               tensor<float>({4, 4}, {3, 6, 9, 12, 2, 5, 8, 13, 1, 4, 10, 14, 0, 7, 11, 15}));
  expect_equal(run_op(ReverseSequenceAttrs{.time_axis = 1, .batch_axis = 0},
                      {iota<int32_t>({2, 3, 2}), tensor<int32_t>({2}, {0, 2})})[0],
               tensor<int32_t>({2, 3, 2}, {0, 1, 2, 3, 4, 5, 8, 9, 6, 7, 10, 11}));
  expect_equal(run_op(ReverseSequenceAttrs{}, {iota<float>({3, 0}), iota<int64_t>({0})})[0],
               iota<float>({3, 0}));
}

TEST(ReverseSequence, ChecksLengths) {
  const ReverseSequenceAttrs a{.time_axis = 0, .batch_axis = 1};
  expect_run_fails(Code::kOutOfRange, a, {iota<float>({2, 1}), tensor<int64_t>({1}, {3})});
  expect_run_fails(Code::kOutOfRange, a, {iota<float>({2, 1}), tensor<int64_t>({1}, {-1})});
  expect_refused(a, {iota<float>({2, 1}), tensor<int64_t>({2}, {1, 1})});
  expect_refused(a, {iota<float>({2, 1}), tensor<float>({1}, {1})});
  expect_refused(ReverseSequenceAttrs{.time_axis = 1, .batch_axis = 1},
                 {iota<float>({2, 1}), iota<int64_t>({1})});
  expect_refused(ReverseSequenceAttrs{.time_axis = 0, .batch_axis = 2},
                 {iota<float>({2, 1}), iota<int64_t>({1})});
}

TEST(CacheUpdate, WritesInPlaceOfThePast) {
  const Tensor past = full<float>({2, 3, 2}, 9), update = iota<float>({2, 2, 2});
  expect_equal(run_op(CacheUpdateAttrs{}, {past, update, tensor<int64_t>({2}, {1, 0})})[0],
               tensor<float>({2, 3, 2}, {9, 9, 0, 1, 2, 3, 4, 5, 6, 7, 9, 9}));
  expect_equal(run_op(CacheUpdateAttrs{}, {past, update})[0],
               tensor<float>({2, 3, 2}, {0, 1, 2, 3, 9, 9, 4, 5, 6, 7, 9, 9}));
  expect_equal(run_op(CacheUpdateAttrs{.circular = 1}, {past, update, tensor<int64_t>({2}, {2, -2})})[0],
               tensor<float>({2, 3, 2}, {2, 3, 9, 9, 0, 1, 9, 9, 4, 5, 6, 7}));
  expect_equal(
      run_op(CacheUpdateAttrs{.circular = 1}, {past, update, tensor<int64_t>({2}, {INT64_MAX, 3})})[0],
      tensor<float>({2, 3, 2}, {9, 9, 0, 1, 2, 3, 4, 5, 6, 7, 9, 9}));
  expect_equal(run_op(CacheUpdateAttrs{.axis = 2},
                      {full<int8_t>({1, 2, 2}, 9), iota<int8_t>({1, 2, 1}), tensor<int64_t>({1}, {1})})[0],
               tensor<int8_t>({1, 2, 2}, {9, 0, 9, 1}));
}

TEST(CacheUpdate, DoesNotWalkEmptyValues) {
  const Tensor past = iota<float>({int64_t{1} << 40, 0, 3});
  expect_equal(run_op(CacheUpdateAttrs{.axis = 2}, {past, past})[0], past);
}

TEST(CacheUpdate, RefusesToLeaveTheCache) {
  const Tensor past = full<float>({1, 3, 2}, 9), update = iota<float>({1, 2, 2});
  expect_run_fails(Code::kOutOfRange, CacheUpdateAttrs{}, {past, update, tensor<int64_t>({1}, {2})});
  expect_run_fails(Code::kOutOfRange, CacheUpdateAttrs{}, {past, update, tensor<int64_t>({1}, {-1})});
  expect_run_fails(Code::kOutOfRange, CacheUpdateAttrs{}, {past, update, tensor<int64_t>({1}, {INT64_MAX})});
  expect_refused(CacheUpdateAttrs{}, {past, iota<float>({1, 4, 2})});
  expect_refused(CacheUpdateAttrs{}, {past, iota<float>({1, 2, 1})});
  expect_refused(CacheUpdateAttrs{}, {past, iota<double>({1, 2, 2})});
  expect_refused(CacheUpdateAttrs{.axis = 0}, {past, update});
  expect_refused(CacheUpdateAttrs{.axis = 3}, {past, update});
  expect_refused(CacheUpdateAttrs{.circular = 2}, {past, update});
  expect_refused(CacheUpdateAttrs{}, {past, update, tensor<int64_t>({2}, {0, 0})});
}

// Packed elements are moved by View and Copy only.
TEST(Movement, RefusesPackedElementsWhenRun) {
  const Tensor x{DType::kInt4, {2, 2}, std::vector<std::byte>(2)};
  expect_run_fails(Code::kUnsupported, TransposeAttrs{.perm = {1, 0}}, {x});
  expect_run_fails(Code::kUnsupported, SliceAttrs{.starts = {0, 0}, .steps = {1, 1}, .sizes = {1, 2}}, {x});
  expect_run_fails(Code::kUnsupported, ConcatAttrs{.axis = 0}, {x, x});
  expect_run_fails(Code::kUnsupported, TileAttrs{.repeats = {2, 2}}, {x});
  expect_run_fails(Code::kUnsupported, BroadcastAttrs{.dims = {2, 2, 2}}, {x});
  expect_run_fails(Code::kUnsupported, GatherAttrs{}, {x, iota<int64_t>({1})});
  expect_run_fails(
      Code::kUnsupported, ScatterNdAttrs{},
      {x, tensor<int64_t>({1, 2}, {0, 0}), Tensor{DType::kInt4, {1}, std::vector<std::byte>(1)}});
}

}  // namespace
}  // namespace sinter::test
