// Weights that are narrower floats than what they multiply.
#include <cmath>

#include "tests/op_harness/half_test.h"
#include "tests/op_harness/op_test.h"

namespace sinter::test {
namespace {

constexpr DType kNarrow[] = {DType::kFloat16,        DType::kBFloat16,   DType::kFloat8E4M3FN,
                             DType::kFloat8E4M3FNUZ, DType::kFloat8E5M2, DType::kFloat8E5M2FNUZ};

// Finite numbers of every size that the type has.
Tensor weights(DType type, const Shape& dims, uint64_t seed) {
  const Tensor wide = noise<float>(dims, -1, 1, seed);
  if (is_half(type)) return halved(wide, type);
  std::vector<uint8_t> codes;
  for (const float v : wide.values<float>()) {
    auto code = static_cast<uint8_t>(static_cast<int>(v * 127) & 0xff);
    if ((code & 0x7f) > 0x7b || code == 0x80) code &= 0x8f;  // neither NaN nor infinite
    codes.push_back(code == 0x80 ? 1 : code);
  }
  return bits_tensor(type, dims, codes);
}

template <class A>
void check_taken(const A& attrs, const std::vector<Tensor>& inputs, bool emulated = true) {
  run_op(attrs, inputs, {.emulated = emulated, .taken_by = {"simd", "cuda-emulated"}});
}

TEST(NarrowWeights, FullyConnected) {
  // Rows, columns, depth: few and many rows, depths that end within vectors, words and pieces.
  const int64_t sizes[][3] = {{1, 1, 1},      {1, 9, 64},   {2, 33, 97},  {3, 70, 640},   {4, 5, 90},
                              {5, 7, 31},     {16, 40, 3},  {17, 65, 98}, {40, 130, 601}, {33, 3, 515},
                              {35, 66, 1030}, {1, 0, 32},   {0, 3, 32},   {2, 3, 0},      {38, 3, 0},
                              {7, 21, 129},   {34, 31, 127}};
  for (const auto& [m, n, k] : sizes)
    for (const DType t : kNarrow) {
      SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k << " of " << dtype_name(t));
      const Tensor x = noise<float>({m, k}, -1, 1, 1), w = weights(t, {n, k}, 2);
      // CUDA's kernel for large products has one code for all types but for the conversion of a weight.
      const bool emulated = m * n * k <= 1 << 18 || t == DType::kBFloat16 || t == DType::kFloat8E5M2;
      check_taken(FullyConnectedAttrs{}, {x, w}, emulated);
      check_taken(FullyConnectedAttrs{.act_min = -0.5, .act_max = 0.25}, {x, w, noise<float>({n}, -1, 1, 3)},
                  emulated);
    }
}

// Windows, single taps, and taps that skip pixels; more channels than are widened at a time.
TEST(NarrowWeights, Convolutions) {
  const struct {
    Shape x, w;
    IntList strides, dilations, pads;
  } cases[] = {
      {{1, 7, 6, 20}, {40, 3, 3, 20}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
      {{2, 9, 5, 33}, {35, 3, 2, 33}, {2, 1}, {1, 2}, {0, 1, 2, 0}},
      {{1, 6, 5, 70}, {65, 1, 1, 70}, {1, 1}, {1, 1}, {0, 0, 0, 0}},
      {{1, 3, 3, 70}, {65, 1, 1, 70}, {1, 1}, {1, 1}, {0, 0, 0, 0}},
      {{1, 6, 6, 64}, {40, 1, 1, 64}, {2, 2}, {1, 1}, {0, 0, 0, 0}},
      {{1, 30, 12}, {32, 5, 12}, {1}, {1}, {2, 2}},
      {{1, 3, 3, 1200}, {140, 3, 3, 1200}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
  };
  for (const auto& c : cases)
    for (const DType t : kNarrow) {
      if (c.x.back() > 1000 && t != DType::kBFloat16) continue;
      SCOPED_TRACE(testing::PrintToString(c.x) + " by " + testing::PrintToString(c.w) + dtype_name(t));
      ConvAttrs a;
      a.strides = c.strides, a.dilations = c.dilations, a.pads = c.pads, a.act_max = 1.5;
      check_taken(a, {noise<float>(c.x, -1, 1, 1), weights(t, c.w, 2), noise<float>({c.w[0]}, -1, 1, 3)});
    }
}

// No backend may compute these by reading the weights as numbers of x's type.
TEST(NarrowWeights, ConvolutionsOfGroups) {
  ConvAttrs a;
  a.strides = {2, 1}, a.dilations = {1, 1}, a.pads = {1, 1, 1, 1}, a.group = 2;
  a.act_min = 0;
  for (const DType t : kNarrow) {
    SCOPED_TRACE(dtype_name(t));
    run_op(a,
           {noise<float>({2, 5, 6, 8}, -1, 1, 1), weights(t, {6, 3, 3, 4}, 2), noise<float>({6}, -1, 1, 3)});
  }
}

TEST(NarrowWeights, DoublesToo) {
  run_op(FullyConnectedAttrs{}, {noise<double>({3, 9}, -1, 1), weights(DType::kFloat16, {4, 9}, 2)});
}

TEST(NarrowWeights, Refusals) {
  const FullyConnectedAttrs a;
  const Tensor x = full<float>({2, 4}, 1), wide = full<double>({3, 4}, 1);
  expect_refused(a, {x, wide});
  expect_refused(a, {x, bits_tensor(DType::kFloat8E8M0, {3, 4}, std::vector<uint8_t>(12))});
  expect_refused(a, {halved(x), halved(full<float>({3, 4}, 1), DType::kBFloat16)});
  expect_refused(a, {full<int32_t>({2, 4}, 1), halved(full<float>({3, 4}, 1))});
  expect_refused(a, {x, halved(full<float>({3, 4}, 1)), halved(full<float>({3}, 1))});
  ConvAttrs conv;
  conv.strides = {1, 1}, conv.dilations = {1, 1}, conv.pads = {0, 0, 0, 0}, conv.winograd = 4;
  expect_refused(conv, {full<float>({1, 8, 8, 4}, 1), halved(full<float>({5, 3, 3, 4}, 1))});
  DepthwiseConvAttrs depthwise;
  depthwise.strides = {1, 1}, depthwise.dilations = {1, 1}, depthwise.pads = {0, 0, 0, 0};
  expect_refused(depthwise, {full<float>({1, 8, 8, 4}, 1), halved(full<float>({3, 3, 4}, 1))});
}

}  // namespace
}  // namespace sinter::test
