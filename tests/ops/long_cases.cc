// Operands that are longer than the pieces in which a device goes through them: sorts of several chunks,
// lists of many updates, more operands than one launch takes, and rows that are moved in wide elements.
#include "runtime/core/op_enums.h"
#include "tests/op_harness/op_test.h"

namespace sinter::test {
namespace {

constexpr const char* kDevice = "cuda-emulated";

TEST(TopK, LongLines) {
  struct Case {
    Shape x;
    int64_t axis, k;
  };
  const Case cases[] = {{{2, 2100}, 1, 5}, {{1100, 2}, 0, 300}, {{2100}, 0, 700}, {{1025}, 0, 1025},
                        {{3, 1024}, 1, 1}, {{64, 3}, 0, 64},    {{1, 1}, 0, 1},   {{1500}, 0, 512}};
  for (const Case& c : cases)
    for (const int64_t largest : {0, 1}) {
      SCOPED_TRACE(testing::PrintToString(c.x) + ", k " + std::to_string(c.k));
      const TopKAttrs a{.k = c.k, .axis = c.axis, .largest = largest};
      // Most int8 are equal to others.
      check_taken_by(kDevice, a, {largest != 0 ? noise<float>(c.x, -1, 1) : noise<int8_t>(c.x, -100, 100)});
    }
  for (const int64_t largest : {0, 1}) {
    const TopKAttrs a{.k = 5, .largest = largest};
    check_taken_by(kDevice, a,
                   {tensor<double>({6}, {-0.0, 0.0, -1e300, double{kInf}, double{kNan}, -double{kInf}})});
    check_taken_by(kDevice, a, {tensor<float>({6}, {0.0f, -0.0f, kNan, kInf, -kInf, kNan})});
    check_taken_by(kDevice, a, {tensor<int64_t>({5}, {INT64_MIN, -1, 0, 1, INT64_MAX})});
    check_taken_by(kDevice, a, {tensor<uint32_t>({5}, {0, UINT32_MAX, 1, 2, 1u << 31})});
    check_taken_by(kDevice, a, {tensor<int32_t>({5}, {0, INT32_MAX, -1, 2, INT32_MIN})});
    check_taken_by(kDevice, a, {tensor<int16_t>({5}, {0, INT16_MAX, -1, 2, INT16_MIN})});
  }
}

TEST(NonZero, LongOperands) {
  check_taken_by(kDevice, NonZeroAttrs{}, {noise<int8_t>({3, 7, 333}, -2, 2)});
  check_taken_by(kDevice, NonZeroAttrs{}, {noise<int64_t>({2048}, 0, 2)});
  check_taken_by(kDevice, NonZeroAttrs{}, {full<uint16_t>({2049}, 0)});
  check_taken_by(kDevice, NonZeroAttrs{}, {full<double>({5000}, 1)});
}

TEST(Unique, LongOperands) {
  for (const int64_t sorted : {0, 1}) {
    const UniqueAttrs a{.sorted = sorted};
    check_taken_by(kDevice, a, {noise<int16_t>({25, 100}, -30, 30)});
    check_taken_by(kDevice, a, {noise<float>({1500}, -1, 1)});
    check_taken_by(kDevice, a, {full<uint8_t>({2500}, 3)});
    check_taken_by(kDevice, a, {tensor<double>({5}, {0.0, double{kNan}, -0.0, 1, double{kNan}})});
    check_taken_by(kDevice, a, {noise<int64_t>({2100}, 0, 2000)}, {.unwanted = {0, 1, 2}});
  }
}

TEST(Nms, ManyBoxes) {
  for (const int64_t n : {1100, 300})
    for (const int64_t center : {0, 1}) {
      if (n > 300 && center != 0) continue;
      const NmsAttrs a{.max_per_class = n == 300 ? 300 : 40, .center_point_box = center};
      const Tensor boxes = noise<float>({2, n, 4}, 0, 10), scores = noise<float>({2, 2, n}, 0, 1);
      check_taken_by(kDevice, a, {boxes, scores, tensor<float>({}, {0.3f}), tensor<float>({}, {0.4f})});
      if (n == 300) check_taken_by(kDevice, a, {boxes, scores, tensor<double>({1}, {0.1})});
    }
}

// Floats, whose sums depend on the order.
TEST(ScatterElements, ManyUpdatesOfOneElement) {
  const Tensor at = noise<int32_t>({900, 3}, 0, 6), updates = noise<float>({900, 3}, -1, 1);
  for (int64_t reduction = 0; reduction < 5; ++reduction) {
    const ScatterElementsAttrs a{.axis = 0, .reduction = reduction};
    check_taken_by(kDevice, a, {noise<float>({6, 5}, -1, 1), at, updates});
    check_taken_by(kDevice, a, {noise<int64_t>({6, 3}, -9, 9), at, noise<int64_t>({900, 3}, -9, 9)});
    check_taken_by(kDevice, a, {noise<uint8_t>({6, 3}, 0, 9), at, noise<uint8_t>({900, 3}, 0, 9)});
  }
}

TEST(ScatterNd, Blocks) {
  const Tensor at = noise<int64_t>({40, 2}, -3, 3);
  for (int64_t reduction = 0; reduction < 5; ++reduction)
    for (const int64_t block : {1, 3, 8, 10, 64}) {
      const ScatterNdAttrs a{.reduction = reduction};
      check_taken_by(kDevice, a, {noise<float>({3, 3, block}, -1, 1), at, noise<float>({40, block}, -1, 1)});
      check_taken_by(kDevice, a,
                     {noise<int16_t>({3, 3, block}, -9, 9), at, noise<int16_t>({40, block}, -9, 9)});
    }
  const ScatterNdAttrs sum{.reduction = static_cast<int64_t>(ScatterReduction::kAdd)};
  check_taken_by(kDevice, sum,
                 {noise<float>({4, 2}, -1, 1), iota<int64_t>({5, 0}), noise<float>({5, 4, 2}, -1, 1)});
}

TEST(Concat, ManyInputs) {
  std::vector<Tensor> all;
  for (int64_t i = 0; i < 31; ++i) all.push_back(noise<int16_t>({3, i % 5, 4}, 0, 99));
  run_op(ConcatAttrs{.axis = 1}, all);
  all.resize(15);
  check_taken_by(kDevice, ConcatAttrs{.axis = 1}, all);
}

TEST(Tile, EveryAxis) {
  check_taken_by(kDevice, TileAttrs{.repeats = {2, 3, 2, 2, 2}}, {noise<int16_t>({2, 3, 2, 3, 2}, 0, 99)});
  check_taken_by(kDevice, TileAttrs{.repeats = {2, 1, 3}}, {noise<float>({2, 3, 8}, 0, 99)});
}

TEST(Pad, WideRows) {
  for (int64_t mode = 0; mode < 4; ++mode)
    for (const int64_t channels : {16, 6}) {
      const PadAttrs rows{.pads = {0, 2, 1, 0, 0, 3, 2, 0}, .mode = mode};
      check_taken_by(kDevice, rows, {noise<int8_t>({2, 5, 4, channels}, -9, 9), tensor<int8_t>({}, {7})});
      check_taken_by(kDevice, rows, {noise<float>({2, 5, 4, channels}, -9, 9), tensor<float>({}, {7})});
      const PadAttrs all{.pads = {1, 2, 1, 8, 0, 3, 2, 16}, .mode = mode};
      check_taken_by(kDevice, all, {noise<int16_t>({2, 5, 4, 32}, -9, 9), tensor<int16_t>({}, {-2})});
      check_taken_by(kDevice, all, {noise<double>({2, 5, 4, 20}, -9, 9)});
    }
}

TEST(Gather, WideRows) {
  const Tensor at = tensor<int64_t>({2, 3}, {0, -1, 3, 2, 2, 1});
  for (const int64_t row : {1, 2, 4, 6, 16})
    for (const int64_t axis : {0, 1}) {
      check_taken_by(kDevice, GatherAttrs{.axis = axis}, {noise<int8_t>({4, 4, row}, -9, 9), at});
      check_taken_by(kDevice, GatherAttrs{.axis = axis}, {noise<double>({4, 4, row}, -9, 9), at});
      check_taken_by(kDevice, GatherNdAttrs{},
                     {noise<float>({4, 4, row}, -9, 9), noise<int32_t>({7, 2}, -4, 4)});
      check_taken_by(kDevice, GatherNdAttrs{.batch_dims = 1},
                     {noise<int16_t>({3, 4, row}, -9, 9), noise<int64_t>({3, 5, 1}, -4, 4)});
    }
}

TEST(CacheUpdate, WideRows) {
  for (const int64_t row : {3, 8})
    for (const int64_t circular : {0, 1})
      check_taken_by(kDevice, CacheUpdateAttrs{.axis = 2, .circular = circular},
                     {noise<float>({2, 3, 6, row}, -9, 9), noise<float>({2, 3, 4, row}, -9, 9),
                      tensor<int32_t>({2}, {2, 1})});
}

TEST(ReverseSequence, WideRows) {
  for (const int64_t row : {3, 16}) {
    check_taken_by(kDevice, ReverseSequenceAttrs{.time_axis = 1, .batch_axis = 0},
                   {noise<int16_t>({3, 5, row}, -9, 9), tensor<int32_t>({3}, {5, 0, 3})});
    check_taken_by(kDevice, ReverseSequenceAttrs{.time_axis = 0, .batch_axis = 2},
                   {noise<float>({5, 4, 3, row}, -9, 9), tensor<int64_t>({3}, {2, 5, 1})});
  }
}

TEST(MaxPool, WideChannels) {
  for (const int64_t channels : {4, 16, 24, 48}) {
    const MaxPoolAttrs a{.kernel = {3, 2}, .strides = {2, 1}, .dilations = {1, 2}, .pads = {1, 1, 1, 1}};
    check_taken_by(kDevice, a, {noise<float>({2, 9, 7, channels}, -1, 1)});
    check_taken_by(kDevice, a, {noise<int8_t>({2, 9, 7, channels}, -99, 99)});
    check_taken_by(kDevice, a, {noise<uint8_t>({2, 9, 7, channels}, 0, 99)});
    check_taken_by(kDevice, a, {noise<int16_t>({2, 9, 7, channels}, 0, 99)});
    check_taken_by(kDevice, AvgPoolAttrs{.kernel = {3, 2}, .strides = {2, 1}, .pads = {1, 1, 1, 1}},
                   {noise<float>({2, 9, 7, channels}, -1, 1)});
    for (const int64_t counted : {0, 1}) {
      const QAvgPoolAttrs q{.kernel = {3, 2},
                            .strides = {2, 1},
                            .pads = {1, 1, 1, 1},
                            .count_include_pad = counted,
                            .multiplier = 0.75};
      check_taken_by(kDevice, q, {noise<int8_t>({2, 9, 7, channels}, -99, 99)});
      check_taken_by(kDevice, q, {noise<int16_t>({2, 9, 7, channels}, -9999, 9999)});
    }
  }
}

TEST(GridSample, GroupsOfChannels) {
  for (int64_t mode = 0; mode < 3; ++mode)
    for (int64_t padding = 0; padding < 3; ++padding) {
      const GridSampleAttrs a{.mode = mode, .padding_mode = padding, .align_corners = padding % 2};
      check_taken_by(kDevice, a, {noise<float>({2, 5, 6, 8}, -1, 1), noise<float>({2, 4, 3, 2}, -1.5, 1.5)},
                     {.in_float64 = false});
      check_taken_by(kDevice, a,
                     {noise<float>({1, 3, 4, 5, 3}, -1, 1), noise<float>({1, 2, 2, 3, 3}, -1.5, 1.5)},
                     {.in_float64 = false});
    }
}

TEST(RoiAlign, GroupsOfChannels) {
  const Tensor rois = tensor<float>({3, 4}, {0, 0, 5, 5, 1.5, 2, 6, 9, -3, 1, 2, 4}),
               at = tensor<int64_t>({3}, {0, 1, 0});
  for (int64_t mode = 0; mode < 2; ++mode)
    for (const int64_t points : {0, 2})
      check_taken_by(kDevice,
                     RoiAlignAttrs{.mode = mode, .out_height = 3, .out_width = 2, .sampling_ratio = points},
                     {noise<float>({2, 8, 9, 8}, -1, 1), rois, at}, {.in_float64 = false});
}

}  // namespace
}  // namespace sinter::test
