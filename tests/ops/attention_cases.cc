// Attention and Rope against the formula.
#include <cmath>
#include <limits>

#include "runtime/core/op_enums.h"
#include "tests/op_harness/half_test.h"
#include "tests/op_harness/op_test.h"

namespace sinter::test {
namespace {

struct Sizes {
  size_t batch, heads, groups, queries, keys, size, values;
};

std::vector<double> doubles(const Tensor& t) {
  const auto v = t.values<float>();
  return {v.begin(), v.end()};
}

std::vector<float> naive(const Sizes& s, const Tensor& q, const Tensor& k, const Tensor& v,
                         const Tensor* bias, const AttentionAttrs& a) {
  const auto qv = doubles(q), kv = doubles(k), vv = doubles(v);
  const auto bv = bias != nullptr ? doubles(*bias) : std::vector<double>{};  // [queries, keys]
  std::vector<float> y;
  for (size_t b = 0; b < s.batch; ++b)
    for (size_t h = 0; h < s.heads; ++h)
      for (size_t i = 0; i < s.queries; ++i) {
        const size_t g = b * s.groups + h / (s.heads / s.groups);
        std::vector<double> p(s.keys, 0);
        double total = 0;
        for (size_t j = 0; j < s.keys; ++j) {
          if (a.causal != 0 && j + s.queries > i + s.keys) continue;
          double score = 0;
          for (size_t d = 0; d < s.size; ++d)
            score += qv[((b * s.heads + h) * s.queries + i) * s.size + d] * kv[(g * s.keys + j) * s.size + d];
          p[j] = std::exp(score * a.scale + (bias != nullptr ? bv[i * s.keys + j] : 0));
          total += p[j];
        }
        for (size_t d = 0; d < s.values; ++d) {
          double sum = 0;
          for (size_t j = 0; j < s.keys; ++j) sum += p[j] * vv[(g * s.keys + j) * s.values + d];
          y.push_back(static_cast<float>(total == 0 ? 0 : sum / total));
        }
      }
  return y;
}

TEST(Attention, AgreesWithTheFormula) {
  const Sizes all[] = {
      {1, 1, 1, 3, 3, 4, 4}, {2, 4, 2, 5, 7, 9, 3}, {1, 6, 1, 1, 12, 8, 5}, {2, 2, 2, 6, 3, 5, 2}};
  for (const Sizes& s : all)
    for (const int64_t causal : {0, 1})
      for (const bool with_bias : {false, true}) {
        const auto dim = [](size_t n) { return static_cast<int64_t>(n); };
        const Tensor q = noise<float>({dim(s.batch), dim(s.heads), dim(s.queries), dim(s.size)}, -2, 2, 1);
        const Tensor k = noise<float>({dim(s.batch), dim(s.groups), dim(s.keys), dim(s.size)}, -2, 2, 2);
        const Tensor v = noise<float>({dim(s.batch), dim(s.groups), dim(s.keys), dim(s.values)}, -2, 2, 3);
        Tensor bias = noise<float>({dim(s.queries), dim(s.keys)}, -1, 1, 4);
        auto bias_values = bias.values<float>();
        bias_values[0] = -std::numeric_limits<float>::infinity();
        bias = tensor<float>(bias.dims, bias_values);
        const AttentionAttrs a{.scale = 0.35, .causal = causal};
        std::vector<Tensor> in{q, k, v};
        if (with_bias) in.push_back(bias);
        const Tensor y = run_op(a, in)[0];
        expect_near(y,
                    tensor<float>({dim(s.batch), dim(s.heads), dim(s.queries), dim(s.values)},
                                  naive(s, q, k, v, with_bias ? &bias : nullptr, a)),
                    1e-6, 1e-7);
      }
}

// Of 16-bit operands and a float32 bias, which 16 bits would not hold: the formula's result, rounded once.
TEST(Attention, In16Bits) {
  const Sizes s{1, 2, 1, 3, 7, 9, 4};
  for (const DType type : kHalves) {
    const Tensor q = halved(noise<float>({1, 2, 3, 9}, -2, 2, 1), type),
                 k = halved(noise<float>({1, 1, 7, 9}, -2, 2, 2), type),
                 v = halved(noise<float>({1, 1, 7, 4}, -2, 2, 3), type);
    auto numbers = noise<float>({3, 7}, -1, 1, 4).values<float>();
    for (size_t i = 0; i < numbers.size(); i += 4) numbers[i] = -1e6f;
    const Tensor bias = tensor<float>({3, 7}, numbers);
    const AttentionAttrs a{.scale = 0.35};
    RunOptions options{.taken_by = {"cuda-emulated"}};
    const Tensor y = run_op(a, {q, k, v, bias}, options)[0];
    ASSERT_EQ(y.dtype, type);
    const Tensor want = tensor<float>(
        {1, 2, 3, 4}, naive(s, unhalved<float>(q), unhalved<float>(k), unhalved<float>(v), &bias, a));
    expect_near(unhalved<float>(y), want, type == DType::kFloat16 ? 0x1.01p-11 : 0x1.01p-8, 1e-7);
    expect_refused(a, {q, k, v, halved(bias, type)});
  }
}

TEST(Attention, QueriesThatSeeNoKeyGiveZeros) {
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor q = full<float>({1, 1, 2, 1}, 1), k = full<float>({1, 1, 1, 1}, 1),
               v = full<float>({1, 1, 1, 1}, 5);
  expect_equal(run_op(AttentionAttrs{.causal = 1}, {q, k, v})[0], tensor<float>({1, 1, 2, 1}, {0, 5}));
  expect_equal(run_op(AttentionAttrs{}, {q, k, v, tensor<float>({2, 1}, {0, -inf})})[0],
               tensor<float>({1, 1, 2, 1}, {5, 0}));
  expect_equal(run_op(AttentionAttrs{}, {full<float>({1, 1, 2, 1}, inf), k, v, full<float>({1, 1}, -inf)})[0],
               full<float>({1, 1, 2, 1}, 0));
  expect_equal(run_op(AttentionAttrs{}, {q, full<float>({1, 1, 0, 1}, 1), full<float>({1, 1, 0, 1}, 1)})[0],
               full<float>({1, 1, 2, 1}, 0));
}

// What products, scale, mask and softmax give as operations of their own, for a query row each.
TEST(Attention, RulesForBiases) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const auto rule = [](AttentionRule r) {
    return AttentionAttrs{.scale = 1, .rule = static_cast<int64_t>(r)};
  };
  const Tensor q = full<float>({1, 1, 4, 1}, 1), k = tensor<float>({1, 1, 2, 1}, {20, 2}),
               v = tensor<float>({1, 1, 2, 1}, {1, 3});
  // Nothing masked, the first key, both by -inf, both by a number in which float32 loses the score.
  const Tensor bias = tensor<float>({4, 2}, {0, 0, -inf, 0, -inf, -inf, -1e9f, -1e9f});
  const RunOptions lossy{.in_float64 = false};
  const float lost = 2;  // of -1e9 + 20 and -1e9 + 2, float32 leaves -1e9
  expect_near(run_op(rule(AttentionRule::kAdds), {q, k, v, bias}, lossy)[0],
              tensor<float>({1, 1, 4, 1}, {1, 3, nan, lost}), 1e-6, 1e-6);
  expect_near(run_op(rule(AttentionRule::kAddsNanToZero), {q, k, v, bias}, lossy)[0],
              tensor<float>({1, 1, 4, 1}, {1, 3, 0, lost}), 1e-6, 1e-6);
  expect_near(run_op(rule(AttentionRule::kReplaces), {q, k, v, bias}, lossy)[0],
              tensor<float>({1, 1, 4, 1}, {1, 3, nan, 2}), 1e-6, 1e-6);
  expect_near(run_op(rule(AttentionRule::kHides),
                     {q, k, v, tensor<float>({4, 2}, {0, 0, -inf, 0, -inf, -inf, 0, 0})})[0],
              tensor<float>({1, 1, 4, 1}, {1, 3, 0, 1}), 1e-6, 1e-6);
  // A score that is not a number shows where it is added to, not where it is replaced.
  const Tensor bad = tensor<float>({1, 1, 2, 1}, {nan, 2}), masked = tensor<float>({2}, {-inf, 0});
  for (const auto& [r, y] : {std::pair{AttentionRule::kHides, 3.0f},
                             {AttentionRule::kAdds, nan},
                             {AttentionRule::kReplaces, 3.0f},
                             {AttentionRule::kAddsNanToZero, 0.0f}})
    expect_equal(run_op(rule(r), {q, bad, v, masked})[0], full<float>({1, 1, 4, 1}, y));
}

TEST(Attention, FilesOfVersion1HaveNoRule) {
  AttentionAttrs a{.rule = 3};
  const double scale[] = {0.5};
  const int64_t old[] = {1}, now[] = {1, 2}, more[] = {1, 2, 3};
  const auto decode = [&](uint16_t version, std::span<const int64_t> ints) {
    return decode_attrs(Op::kAttention, version, {ints, scale, {}}, &a).ok();
  };
  ASSERT_TRUE(decode(1, old));
  EXPECT_EQ(a, (AttentionAttrs{0.5, 1, 0}));
  ASSERT_TRUE(decode(2, now));
  EXPECT_EQ(a, (AttentionAttrs{0.5, 1, 2}));
  // The lists are those of the version, no shorter and no longer.
  EXPECT_FALSE(decode(1, now));
  EXPECT_FALSE(decode(2, old));
  EXPECT_FALSE(decode(2, more));
  EXPECT_FALSE(decode(1, {}));
}

TEST(Attention, LargeScoresDoNotOverflow) {
  const Tensor q = full<float>({1, 1, 1, 1}, 1000), k = tensor<float>({1, 1, 2, 1}, {3, 1});
  expect_equal(run_op(AttentionAttrs{}, {q, k, tensor<float>({1, 1, 2, 1}, {7, 9})})[0],
               full<float>({1, 1, 1, 1}, 7));
}

TEST(Attention, NanComesThrough) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor k = tensor<float>({1, 1, 2, 1}, {nan, 1});
  expect_equal(run_op(AttentionAttrs{}, {full<float>({1, 1, 1, 1}, 1), k, full<float>({1, 1, 2, 1}, 7)})[0],
               full<float>({1, 1, 1, 1}, nan));
}

TEST(Attention, Refuses) {
  const Tensor q = full<float>({2, 4, 3, 8}, 1), k = full<float>({2, 2, 5, 8}, 1);
  expect_refused(AttentionAttrs{.causal = 2}, {q, k, k});
  expect_refused(AttentionAttrs{.rule = 4}, {q, k, k});
  expect_refused(AttentionAttrs{}, {q, full<float>({2, 3, 5, 8}, 1), full<float>({2, 3, 5, 8}, 1)});
  expect_refused(AttentionAttrs{}, {q, full<float>({2, 0, 5, 8}, 1), full<float>({2, 0, 5, 8}, 1)});
  expect_refused(AttentionAttrs{}, {q, full<float>({1, 2, 5, 8}, 1), k});
  expect_refused(AttentionAttrs{}, {q, full<float>({2, 2, 5, 7}, 1), k});
  expect_refused(AttentionAttrs{}, {q, k, full<float>({2, 2, 4, 8}, 1)});
  expect_refused(AttentionAttrs{}, {q, k, k, full<float>({3, 4}, 1)});
  expect_refused(AttentionAttrs{}, {q, k, k, full<double>({3, 5}, 1)});
  expect_refused(AttentionAttrs{}, {q, k, full<double>({2, 2, 5, 8}, 1)});
  expect_refused(AttentionAttrs{}, {full<float>({4, 3, 8}, 1), k, k});
}

TEST(Rope, BothOrders) {
  const Tensor x = tensor<float>({1, 2, 6}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const Tensor c = tensor<float>({2, 2}, {0, 1, 0.5f, 2}), s = tensor<float>({2, 2}, {1, 0, 3, -1});
  // Rotary part (1, 2, 3, 4): pairs (1, 3), (2, 4) in halves, (1, 2), (3, 4) interleaved.
  expect_equal(run_op(RopeAttrs{.rotary_dim = 4}, {x, c, s})[0],
               tensor<float>({1, 2, 6}, {-3, 2, 1, 4, 5, 6, 3.5f - 27, 16 + 10, 21 + 4.5f, -8 + 20, 11, 12}));
  expect_equal(run_op(RopeAttrs{.interleaved = 1, .rotary_dim = 4}, {x, c, s})[0],
               tensor<float>({1, 2, 6}, {-2, 1, 3, 4, 5, 6, 3.5f - 24, 21 + 4, 18 + 10, -9 + 20, 11, 12}));
  const Tensor one = full<float>({1}, 1), zero = full<float>({}, 0);
  expect_equal(run_op(RopeAttrs{}, {x, one, zero})[0], x);
}

TEST(Rope, In16Bits) {
  for (const DType type : kHalves)
    for (const int64_t interleaved : {0, 1}) {
      const Tensor x = halved(noise<float>({2, 5, 10}, -2, 2, 1), type), c = noise<float>({5, 4}, -1, 1, 2),
                   s = noise<float>({5, 4}, -1, 1, 3);
      const RopeAttrs a{.interleaved = interleaved, .rotary_dim = 8};
      const Tensor y = run_op(a, {x, c, s}, {.taken_by = {"cuda-emulated"}})[0];
      ASSERT_EQ(y.dtype, type);
      const Tensor want = halved(run_op(a, {unhalved<float>(x), c, s})[0], type);
      expect_near(unhalved<float>(y), unhalved<float>(want), 1e-7, 1e-5);
      expect_refused(a, {x, halved(c, type), s});
    }
}

TEST(Rope, Refuses) {
  const Tensor x = full<float>({2, 6}, 1), c = full<float>({3}, 1);
  expect_refused(RopeAttrs{.rotary_dim = 3}, {x, c, c});
  expect_refused(RopeAttrs{.rotary_dim = 8}, {x, c, c});
  expect_refused(RopeAttrs{.rotary_dim = -2}, {x, c, c});
  expect_refused(RopeAttrs{.interleaved = 2}, {x, c, c});
  expect_refused(RopeAttrs{}, {x, full<float>({2}, 1), c});
  expect_refused(RopeAttrs{}, {x, c, full<float>({5, 2, 3}, 1)});
  expect_refused(RopeAttrs{}, {x, c, full<double>({3}, 1)});
  expect_refused(RopeAttrs{}, {full<float>({}, 1), c, c});
}

}  // namespace
}  // namespace sinter::test
