// Products of the sizes at which kernels that compute tiles change from one way to another: few
// rows, few columns, much depth, many products; elements that are not a multiple of what is read at a time.
#include <string>

#include "tests/op_harness/half_test.h"
#include "tests/op_harness/op_test.h"

namespace sinter::test {
namespace {

class Tiles : public testing::TestWithParam<DType> {
 protected:
  // In the type of the test.
  template <class A>
  void check(const A& attrs, const std::vector<Tensor>& inputs) {
    check_taken_by("cuda-emulated", attrs, is_half(GetParam()) ? halved(inputs, GetParam()) : inputs);
  }
};

INSTANTIATE_TEST_SUITE_P(Types, Tiles, testing::Values(DType::kFloat32, DType::kFloat16, DType::kBFloat16),
                         [](const auto& type) { return std::string(dtype_name(type.param)); });

TEST_P(Tiles, FewRows) {
  for (const int64_t rows : {1, 2, 3, 8})
    for (const auto& [depth, columns] : {std::pair<int64_t, int64_t>{1040, 37}, {523, 6}, {8, 3}})
      check(FullyConnectedAttrs{.act_min = -1, .act_max = 2},
            {noise<float>({rows, depth}, -1, 1, 1), noise<float>({columns, depth}, -1, 1, 2),
             noise<float>({columns}, -1, 1, 3)});
  check(MatMulAttrs{.transpose_b = 1},
        {noise<float>({3, 5, 24}, -1, 1, 1), noise<float>({3, 9, 24}, -1, 1, 2)});
}

TEST_P(Tiles, MuchDepthIsAddedUpInPieces) {
  const Tensor bias = noise<float>({40}, -1, 1, 3);
  check(FullyConnectedAttrs{.act_max = 0.5},
        {noise<float>({20, 500}, -1, 1, 1), noise<float>({40, 500}, -1, 1, 2), bias});
  check(ConvAttrs{.strides = {1, 1}, .dilations = {1, 1}, .pads = {1, 1, 1, 1}, .act_min = 0},
        {noise<float>({1, 3, 4, 48}, -1, 1, 1), noise<float>({40, 3, 3, 48}, -1, 1, 2), bias});
}

// Enough of them for the largest tiles, with rows, or rows and columns, that are adjacent.
TEST_P(Tiles, ManyLargeProducts) {
  check(MatMulAttrs{.transpose_b = 1},
        {noise<float>({64, 101, 16}, -1, 1, 1), noise<float>({64, 120, 16}, -1, 1, 2)});
  check(MatMulAttrs{.transpose_a = 1},
        {noise<float>({64, 9, 104}, -1, 1, 1), noise<float>({64, 9, 120}, -1, 1, 2)});
}

TEST_P(Tiles, PhasesOfTransposedConvolutions) {
  // Nine phases, some without a tap, of channels that are read one by one and together.
  for (const int64_t channels : {3, 16})
    for (const int64_t kernel : {2, 5})
      check(
          ConvTransposeAttrs{
              .strides = {3, 3}, .dilations = {1, 1}, .pads = {1, 0, 0, 1}, .output_padding = {1, 2}},
          {noise<float>({2, 6, 5, channels}, -1, 1, 1),
           noise<float>({10, kernel, kernel, channels}, -1, 1, 2), noise<float>({10}, -1, 1, 3)});
}

TEST_P(Tiles, GroupsOfFewColumns) {
  check(
      ConvTransposeAttrs{
          .strides = {2, 2}, .dilations = {1, 1}, .pads = {1, 1, 1, 1}, .output_padding = {0, 0}, .group = 8},
      {noise<float>({2, 5, 4, 8}, -1, 1, 1), noise<float>({8, 4, 4, 1}, -1, 1, 2)});
  check(ConvAttrs{.strides = {1, 2}, .dilations = {1, 1}, .pads = {1, 1, 1, 1}, .group = 3, .act_max = 0.5},
        {noise<float>({2, 5, 6, 15}, -1, 1, 1), noise<float>({9, 3, 3, 5}, -1, 1, 2),
         noise<float>({9}, -1, 1, 3)});
}

TEST_P(Tiles, DepthwiseLines) {
  for (const int64_t kernel : {1, 3, 5})
    for (const int64_t stride : {1, 2})
      check(
          DepthwiseConvAttrs{
              .strides = {stride, stride}, .dilations = {1, 1}, .pads = {2, 1, 0, 1}, .act_min = -0.5},
          {noise<float>({2, 9, 11, 16}, -1, 1, 1), noise<float>({kernel, kernel, 16}, -1, 1, 2),
           noise<float>({16}, -1, 1, 3)});
}

}  // namespace
}  // namespace sinter::test
