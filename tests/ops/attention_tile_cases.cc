// Attention at the sizes at which kernels that compute tiles change from one way to another: few and many
// queries, keys that are cut into parts, heads that share keys, sizes that are not a multiple of what is read
// at a time. Queries, keys and values have the type of the test; a bias is float32 beside 16 bits.
#include <array>
#include <string>

#include "tests/op_harness/half_test.h"
#include "tests/op_harness/op_test.h"

namespace sinter::test {
namespace {

constexpr float kLowestFloat = std::numeric_limits<float>::lowest();

class AttentionTiles : public testing::TestWithParam<DType> {
 protected:
  void check(const AttentionAttrs& attrs, std::vector<Tensor> inputs, const RunOptions& options = {}) {
    for (size_t i = 0; i < 3 && is_half(GetParam()); ++i) inputs[i] = halved(inputs[i], GetParam());
    check_taken_by("cuda-emulated", attrs, inputs, options);
  }
};

INSTANTIATE_TEST_SUITE_P(Types, AttentionTiles,
                         testing::Values(DType::kFloat32, DType::kFloat16, DType::kBFloat16),
                         [](const auto& type) { return std::string(dtype_name(type.param)); });

struct TileSizes {
  int64_t heads, groups, queries, keys, size, values;
};
std::vector<Tensor> operands_of(const TileSizes& s, int64_t batch = 1) {
  return {noise<float>({batch, s.heads, s.queries, s.size}, -2, 2, 1),
          noise<float>({batch, s.groups, s.keys, s.size}, -2, 2, 2),
          noise<float>({batch, s.groups, s.keys, s.values}, -2, 2, 3)};
}
std::vector<Tensor> with_bias(std::vector<Tensor> inputs, const Tensor& bias) {
  inputs.push_back(bias);
  return inputs;
}

TEST_P(AttentionTiles, EdgesOfTiles) {
  for (const TileSizes& s :
       {TileSizes{2, 1, 65, 70, 17, 150}, {1, 1, 17, 64, 64, 64}, {2, 1, 70, 3, 8, 1}, {1, 1, 64, 65, 4, 65}})
    for (const int64_t causal : {0, 1}) {
      const AttentionAttrs a{.scale = 0.3, .causal = causal};
      check(a, operands_of(s));
      check(a, with_bias(operands_of(s, s.heads), noise<float>({s.heads, 1, s.keys}, -1, 1, 4)));
    }
}

TEST_P(AttentionTiles, LargeHeads) {
  for (const TileSizes& s : {TileSizes{1, 1, 20, 66, 128, 128},
                             {1, 1, 33, 40, 256, 136},
                             {1, 1, 17, 33, 200, 24},
                             {2, 1, 18, 65, 80, 80},
                             {1, 1, 17, 9, 264, 8}})
    check(AttentionAttrs{.scale = 0.05, .causal = 1}, operands_of(s));
}

// Enough keys to be cut into parts, which are not of one length.
TEST_P(AttentionTiles, FewQueriesOfManyKeys) {
  for (const TileSizes& s : {TileSizes{1, 1, 1, 600, 64, 64},
                             {4, 2, 1, 300, 24, 5},
                             {6, 1, 1, 260, 8, 20},
                             {2, 1, 3, 520, 17, 40},
                             {1, 1, 16, 260, 8, 300}}) {
    check(AttentionAttrs{.scale = 0.2}, operands_of(s));
    check(AttentionAttrs{.scale = 0.2, .causal = 1},
          with_bias(operands_of(s, s.groups), noise<float>({s.heads, s.queries, s.keys}, -1, 1, 4)));
  }
}

// A part in which every key is hidden, from some queries or from all.
TEST_P(AttentionTiles, PartsWithoutAKey) {
  std::vector<float> bias(3 * 600, 0.5f);
  for (size_t j = 0; j < bias.size(); ++j)
    if (j / 600 == 1 || j % 600 >= 200) bias[j] = -kInf;
  for (const int64_t rule : {0, 1, 3})
    check(AttentionAttrs{.scale = 0.5, .rule = rule},
          with_bias(operands_of({2, 1, 3, 600, 8, 8}), tensor<float>({3, 600}, bias)));
  check(AttentionAttrs{.scale = 0.5, .causal = 1}, operands_of({1, 1, 2, 1, 8, 8}));
}

// What is hidden from a query may be anything. A product with the weight 0 would make NaN of them.
TEST_P(AttentionTiles, HiddenValuesAreNotRead) {
  const auto spoiled = [](Tensor t, size_t from, size_t width) {
    auto v = t.values<float>();
    for (size_t j = from; j * width < v.size(); ++j) v[j * width] = j % 2 == 0 ? kInf : kNan;
    return tensor<float>(t.dims, v);
  };
  std::vector<float> bias(90, 0.5f);
  std::fill(bias.begin() + 60, bias.end(), -kInf);
  for (const int64_t queries : {3, 20}) {
    auto in = operands_of({1, 1, queries, 90, 4, 70});
    in[2] = spoiled(in[2], 60, 70);
    check({}, with_bias(in, tensor<float>({90}, bias)));
    in[1] = spoiled(in[1], 60, 4);
    check({}, with_bias(in, tensor<float>({90}, bias)));
    // By causality, the last key is seen by the last query alone.
    in = operands_of({1, 1, queries, 90, 4, 6});
    in[2] = spoiled(in[2], 89, 6);
    check(AttentionAttrs{.causal = 1}, in);
    check(AttentionAttrs{.causal = 1, .rule = 1}, with_bias(in, full<float>({90}, 0.25f)));
  }
}

TEST_P(AttentionTiles, RulesForBiases) {
  for (const int64_t queries : {4, 20})
    for (const int64_t rule : {0, 1, 2, 3})
      for (const float low : {-kInf, -1e30f, kLowestFloat, kNan}) {
        std::vector<float> bias(static_cast<size_t>(queries) * 70);
        for (size_t i = 0; i < bias.size(); ++i) bias[i] = i / 70 % 3 == 0 ? low : i % 2 == 0 ? low : 0.25f;
        check(AttentionAttrs{.scale = 0.5, .rule = rule},
              with_bias(operands_of({2, 2, queries, 70, 4, 6}), tensor<float>({queries, 70}, bias)));
      }
}

TEST_P(AttentionTiles, NanAndInfinitiesComeThrough) {
  for (const int64_t queries : {2, 20})
    for (const float odd : {kNan, kInf, -kInf})
      for (const size_t operand : {0u, 1u, 2u}) {
        auto in = operands_of({1, 1, queries, 70, 4, 6});
        auto v = in[operand].values<float>();
        v[5] = odd;
        in[operand] = tensor<float>(in[operand].dims, v);
        check(AttentionAttrs{.scale = 0.1}, in);
      }
}

}  // namespace
}  // namespace sinter::test
