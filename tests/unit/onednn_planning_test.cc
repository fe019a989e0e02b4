// What oneDNN's planning side accepts follows from the target, whatever machine converts.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "platforms/onednn/planning/workspace.h"
#include "platforms/onednn/platform.h"

namespace sinter::onednn::testing {
namespace {

using Dims = std::vector<int64_t>;

constexpr Target kX86{.architecture = Architecture::kX86_64};
constexpr Target kVnni{.architecture = Architecture::kX86_64, .features = Feature::kAvx512Vnni};
constexpr Target kBf16{.architecture = Architecture::kX86_64, .features = Feature::kAvx512Bf16};

TensorView typed(DType type, const Dims& dims, bool constant = false) {
  TensorView v;
  v.dtype = type, v.constant = constant;
  v.set_shape(dims);
  return v;
}
TensorView floats(const Dims& dims, bool constant = false) { return typed(DType::kFloat32, dims, constant); }

struct Step {
  std::vector<TensorView> in, out;
  Status accept(Op op, const void* attributes, const Target& target = kX86, int threads = 1) {
    return onednn_platform.accept(target, {op, attributes, in, out}, threads, &workspace);
  }
  size_t workspace = 0;
};

Step conv_step(int64_t channels = 16) {
  return {{floats({1, 12, 12, channels}), floats({24, 3, 3, channels}, true)}, {floats({1, 12, 12, 24})}, 0};
}
ConvAttrs same_size() {
  ConvAttrs a;
  a.strides = {1, 1}, a.dilations = {1, 1}, a.pads = {1, 1, 1, 1};
  return a;
}

TEST(OnednnPlanning, ServesX86OnRequest) {
  EXPECT_STREQ(onednn_platform.name, "onednn");
  EXPECT_TRUE(onednn_platform.on_request);
  EXPECT_TRUE(onednn_platform.serves(kX86));
  for (const Architecture other :
       {Architecture::kPortable, Architecture::kAarch64, Architecture::kArmv7, Architecture::kCortexM}) {
    EXPECT_FALSE(onednn_platform.serves({.architecture = other}));
    const ConvAttrs a = same_size();
    EXPECT_EQ(conv_step().accept(Op::kConv, &a, {.architecture = other}).code, Code::kUnsupported);
  }
}

// The library divides its work into the same parts whatever the number of threads.
TEST(OnednnPlanning, WorkspaceDoesNotDependOnThreads) {
  const ConvAttrs a = same_size();
  Step one = conv_step(), many = conv_step();
  ASSERT_TRUE(one.accept(Op::kConv, &a, kX86, 1).ok());
  ASSERT_TRUE(many.accept(Op::kConv, &a, kX86, 64).ok());
  EXPECT_EQ(one.workspace, many.workspace);
  EXPECT_GE(one.workspace, kRunMemory);
}

TEST(OnednnPlanning, RefusesWithAReason) {
  const auto refused = [](Step step, Op op, const void* attributes, const char* reason) {
    const Status s = step.accept(op, attributes);
    EXPECT_EQ(s.code, Code::kUnsupported) << reason;
    EXPECT_STREQ(s.message, reason);
    EXPECT_EQ(step.workspace, 0u);
  };
  const ConvAttrs plain = same_size();
  Step computed = conv_step();
  computed.in[1].constant = false;
  refused(computed, Op::kConv, &plain, "weights must be constant");
  Step apart = conv_step();
  apart.in[0].strides[2] *= 2;
  refused(apart, Op::kConv, &plain, "only dense operands with elements");
  Step doubles = conv_step();
  for (TensorView* v : {&doubles.in[0], &doubles.in[1], &doubles.out[0]})
    *v = typed(DType::kFloat64, Dims(v->dims, v->dims + v->rank), v->constant);
  refused(doubles, Op::kConv, &plain, "oneDNN is used for float32, bfloat16 and int8 only");

  ConvAttrs grouped = plain;
  grouped.group = 2;
  Step halves = conv_step();
  halves.in[1] = floats({24, 3, 3, 8}, true);
  refused(halves, Op::kConv, &grouped, "only Conv of one group and DepthwiseConv");
  ConvAttrs padded = plain;
  padded.pads = {3, 1, 1, 1};
  Step high = conv_step();
  high.out[0] = floats({1, 14, 12, 24});
  refused(high, Op::kConv, &padded, "a window is entirely in the padding");
  ConvAttrs crossed = plain;
  crossed.act_min = 1, crossed.act_max = 0;
  refused(conv_step(), Op::kConv, &crossed, "the clamp's bounds are crossed");
  ConvAttrs solid;
  Step volume{{floats({1, 4, 4, 4, 8}), floats({8, 1, 1, 1, 8}, true)}, {floats({1, 4, 4, 4, 8})}, 0};
  refused(volume, Op::kConv, &solid, "only one or two spatial axes");

  refused(conv_step(1), Op::kConv, &plain, "only Conv of several input channels");
  Step column = conv_step();
  column.in[0] = floats({1, 12, 1, 16}), column.out[0] = floats({1, 12, 1, 24});
  refused(column, Op::kConv, &plain, "only Conv with results of several columns");

  DepthwiseConvAttrs dilated;
  dilated.strides = {1, 1}, dilated.dilations = {2, 2}, dilated.pads = {2, 2, 2, 2};
  Step wide{{floats({1, 4, 4, 8}), floats({3, 3, 8}, true)}, {floats({1, 4, 4, 8})}, 0};
  refused(wide, Op::kDepthwiseConv, &dilated, "only DepthwiseConv without dilation");
  const DepthwiseConvAttrs depthwise;
  Step twice{{floats({1, 4, 4, 8}), floats({1, 1, 16}, true)}, {floats({1, 4, 4, 16})}, 0};
  refused(twice, Op::kDepthwiseConv, &depthwise, "only one output channel per input channel");

  const FullyConnectedAttrs layer;
  refused({{floats({3, 8}), floats({1, 8}, true)}, {floats({3, 1})}, 0}, Op::kFullyConnected, &layer,
          "only products of several columns");
  MatMulAttrs product;
  Step batched{{floats({2, 3, 4}), floats({2, 4, 5}, true)}, {floats({2, 3, 5})}, 0};
  refused(batched, Op::kMatMul, &product, "only a single second matrix");
  product.transpose_a = 1;
  Step turned{{floats({4, 3}), floats({4, 5}, true)}, {floats({3, 5})}, 0};
  refused(turned, Op::kMatMul, &product, "only a first matrix that is not transposed");
  const AddAttrs add;
  refused({{floats({4}), floats({4})}, {floats({4})}, 0}, Op::kAdd, &add,
          "oneDNN is not used for this operation");
}

TEST(OnednnPlanning, TakesBFloat16OfProcessorsWithItsDotProducts) {
  const ConvAttrs a = same_size();
  Step step = conv_step();
  for (TensorView* v : {&step.in[0], &step.in[1], &step.out[0]})
    *v = typed(DType::kBFloat16, Dims(v->dims, v->dims + v->rank), v->constant);
  EXPECT_TRUE(step.accept(Op::kConv, &a, kBf16).ok());
  EXPECT_STREQ(step.accept(Op::kConv, &a, kVnni).message,
               "bfloat16 needs a processor with dot products of it");
  step.out[0] = floats({1, 12, 12, 24});
  EXPECT_STREQ(step.accept(Op::kConv, &a, kBf16).message, "only float operands of one type");
}

// A layer of int8 with a bias of `bias` at every output.
struct ByteLayer {
  std::vector<int32_t> bias;
  std::vector<float> multipliers;
  Step step;

  ByteLayer(int64_t depth, int64_t outputs, int32_t number)
      : bias(static_cast<size_t>(outputs), number), multipliers(static_cast<size_t>(outputs), 0.01f) {
    step = {{typed(DType::kInt8, {4, depth}), typed(DType::kInt8, {outputs, depth}, true),
             typed(DType::kInt32, {outputs}, true), typed(DType::kFloat32, {outputs}, true)},
            {typed(DType::kInt8, {4, outputs})},
            0};
    step.in[2].data = reinterpret_cast<std::byte*>(bias.data());
    step.in[3].data = reinterpret_cast<std::byte*>(multipliers.data());
  }
  std::string refusal(const QFullyConnectedAttrs& a, const Target& target = kVnni) {
    const Status s = step.accept(Op::kQFullyConnected, &a, target);
    return s.ok() ? "" : s.message;
  }
};

TEST(OnednnPlanning, TakesBytesOfProcessorsWithTheirDotProducts) {
  ByteLayer layer(64, 8, 5);
  EXPECT_EQ(layer.refusal({}), "");
  EXPECT_EQ(layer.refusal({}, kX86), "int8 needs a processor with dot products of bytes");
  for (const Op op : {Op::kQConv, Op::kQFullyConnected, Op::kQMatMul}) {
    EXPECT_TRUE(onednn_platform.has_kernel(kVnni, op));
    EXPECT_FALSE(onednn_platform.has_kernel(kX86, op));
  }
}

// 2^24 is reached by 514 products of 255 and -128, and by 1024 of -128 and -128.
TEST(OnednnPlanning, TakesBytesWhereFloat32HoldsTheSums) {
  const QFullyConnectedAttrs lowest{.x_zero = -128};
  const char* const kInexact = "sums of int8 may exceed what is exact in float32";
  EXPECT_EQ(ByteLayer(514, 8, 5).refusal(lowest), "");
  EXPECT_EQ(ByteLayer(515, 8, 5).refusal(lowest), kInexact);
  EXPECT_EQ(ByteLayer(1024, 8, 5).refusal({}), "");
  EXPECT_EQ(ByteLayer(1025, 8, 5).refusal({}), kInexact);
  EXPECT_EQ(ByteLayer(64, 8, 1 << 24).refusal({}), "");
  EXPECT_EQ(ByteLayer(64, 8, (1 << 24) + 1).refusal({}), kInexact);
  EXPECT_EQ(ByteLayer(64, 8, INT32_MIN).refusal({}), kInexact);
  // Without a bias they are rounded once.
  EXPECT_EQ(ByteLayer(5000, 8, 0).refusal(lowest), "");

  ByteLayer unseen(64, 8, 5);
  unseen.step.in[2].data = nullptr;
  EXPECT_EQ(unseen.refusal({}), "only biases that are small enough to be examined");
  ByteLayer wild(64, 8, 5);
  wild.multipliers[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(wild.refusal({}), "a multiplier is not finite");
  ByteLayer words(64, 8, 5);
  words.step.in[0] = typed(DType::kInt16, {4, 64});
  EXPECT_EQ(words.refusal({}), "of integers, oneDNN is used for int8 only");
}

}  // namespace
}  // namespace sinter::onednn::testing
