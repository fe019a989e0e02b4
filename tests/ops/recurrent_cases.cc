// Gru and Rnn against numbers that onnxruntime 1.31.1 gave for the same operands, then what only this project
// guarantees.
#include <cmath>

#include "tests/ops/recurrent_test.h"

namespace sinter::test::recurrent {
namespace {

TEST(Gru, Forward) {
  GruAttrs a;
  a.hidden_size = 2;
  check(a, 3, kBias, {},
        {{-0.150517985f, 0.0587696098f, -0.559963584f, -0.416994035f, -0.699089825f, -0.600160062f,
          -0.451020062f, -0.398867786f, -0.579977274f, -0.373513877f, -0.692256927f, -0.550957501f},
         {-0.579977274f, -0.373513877f, -0.692256927f, -0.550957501f}});
}

TEST(Gru, BidirectionalLinearBeforeReset) {
  GruAttrs a;
  a.hidden_size = 2;
  a.direction = 2;
  a.linear_before_reset = 1;
  check(a, 3, kBias | kH, {2, 3},
        {{0.220273152f,
          -0.0417728499f,
          -0.834049106f,
          -0.065348357f,
          0.0768190473f,
          0.389420211f,
          0.359994888f,
          0.393908292f,
          -0.592748523f,
          -0.599891365f,
          -0.551170766f,
          0.11289452f,
          0.205725968f,
          0.684255123f,
          0.238617241f,
          0.134797528f,
          0,
          0,
          -0.732690871f,
          -0.0481508598f,
          0,
          0,
          0.428005517f,
          0.843713164f},
         {-0.592748523f, -0.599891365f, -0.732690871f, -0.0481508598f, 0.0768190473f, 0.389420211f,
          0.359994888f, 0.393908292f}});
}

TEST(Gru, ReverseWithLengths) {
  GruAttrs a;
  a.hidden_size = 2;
  a.direction = 1;
  check(a, 3, kBias | kH, {1, 2},
        {{0.209149122f, -0.0965005904f, -0.738868952f, -0.427652895f, 0, 0, -0.587935925f, -0.00428389013f, 0,
          0, 0, 0},
         {0.209149122f, -0.0965005904f, -0.738868952f, -0.427652895f}});
}

TEST(Gru, ClipAndLeakyRelu) {
  GruAttrs a;
  a.hidden_size = 2;
  a.clip = 0.5;
  a.activations = {code(RnnActivation::kSigmoid), code(RnnActivation::kLeakyRelu)};
  a.alpha = {0.1};
  check(a, 3, kBias, {},
        {{-0.01574363f, 0.0774253383f, -0.0311229657f, -0.0278681759f, -0.0370668285f, -0.00189174898f,
          -0.0308579728f, -0.0318785906f, -0.0376047045f, 0.145959824f, -0.0427731052f, -0.0413572639f},
         {-0.0376047045f, 0.145959824f, -0.0427731052f, -0.0413572639f}});
}

TEST(Gru, LengthZero) {
  GruAttrs a;
  a.hidden_size = 2;
  check(a, 3, kBias | kH, {0, 2},
        {{0, 0, -0.844528556f, -0.367183506f, 0, 0, -0.620625496f, -0.345448762f, 0, 0, 0, 0},
         {0, 0, -0.620625496f, -0.345448762f}});
}

TEST(Rnn, Forward) {
  RnnAttrs a;
  a.hidden_size = 2;
  check(a, 1, kBias, {},
        {{0.934077621f, 0.261369944f, 0.653982759f, -0.693915665f, 0.306634903f, -0.822051287f, 0.986332536f,
          0.38651967f, 0.980117917f, 0.724390507f, 0.407488585f, -0.520382583f},
         {0.980117917f, 0.724390507f, 0.407488585f, -0.520382583f}});
}

TEST(Rnn, BidirectionalAffineAndElu) {
  RnnAttrs a;
  a.hidden_size = 2;
  a.direction = 2;
  a.activations = {code(RnnActivation::kAffine), code(RnnActivation::kElu)};
  a.alpha = {0.5, 0.75};
  a.beta = {0.125};
  check(a, 1, kBias | kH, {3, 2},
        {{1.03173828f,
          0.413574219f,
          0.424804688f,
          -0.516113281f,
          -0.712256789f,
          -0.24574475f,
          -0.682243586f,
          -0.201069608f,
          0.223106384f,
          -0.47782135f,
          1.29394531f,
          0.245010376f,
          -0.535086989f,
          0.580374062f,
          -0.679278851f,
          -0.185526475f,
          1.1341244f,
          0.48299706f,
          0,
          0,
          -0.720083952f,
          -0.291981697f,
          0,
          0},
         {1.1341244f, 0.48299706f, 1.29394531f, 0.245010376f, -0.712256789f, -0.24574475f, -0.682243586f,
          -0.201069608f}});
}

TEST(Rnn, ReverseRelu) {
  RnnAttrs a;
  a.hidden_size = 2;
  a.direction = 1;
  a.activations = {code(RnnActivation::kRelu)};
  check(a, 1, kBias, {},
        {{1.69649696f, 0.345060349f, 0.775839806f, 0, 0.225402832f, 0, 1.92764282f, 0.0820007324f,
          1.62304688f, 0.400390625f, 0.715820312f, 0},
         {1.69649696f, 0.345060349f, 0.775839806f, 0}});
}

TEST(Rnn, ThresholdedRelu) {
  RnnAttrs a;
  a.hidden_size = 2;
  a.activations = {code(RnnActivation::kThresholdedRelu)};
  a.alpha = {0.3};
  check(a, 1, kBias, {},
        {{1.68945312f, 0, 0.782226562f, 0, 0.55279541f, 0, 1.92971802f, 0, 1.64032173f, 0.590414047f,
          0.776124001f, 0},
         {1.64032173f, 0.590414047f, 0.776124001f, 0}});
}

TEST(Rnn, Softplus) {
  RnnAttrs a;
  a.hidden_size = 2;
  a.activations = {code(RnnActivation::kSoftplus)};
  check(a, 1, kBias, {},
        {{1.85887551f, 0.835859358f, 1.15887129f, 0.354230672f, 0.634454608f, 0.27932772f, 1.82875896f,
          0.722147942f, 1.63320804f, 0.960946381f, 0.790587783f, 0.491268486f},
         {1.63320804f, 0.960946381f, 0.790587783f, 0.491268486f}});
}

TEST(Rnn, NothingToDo) {
  RnnAttrs a;
  a.hidden_size = 2;
  const Tensor w = full<float>({1, 2, 3}, 1), r = full<float>({1, 2, 2}, 1);
  EXPECT_EQ(run_op(a, {full<float>({0, 2, 3}, 1), w, r})[0].dims, (Shape{0, 1, 2, 2}));
  EXPECT_EQ(run_op(a, {full<float>({3, 0, 3}, 1), w, r})[0].dims, (Shape{3, 1, 0, 2}));
  // No input values: the recurrence alone.
  const auto y = run_op(
      a, {full<float>({1, 1, 0}, 1), full<float>({1, 2, 0}, 1), r, {}, {}, full<float>({1, 1, 2}, 0.25f)});
  expect_near(y[0], full<float>({1, 1, 1, 2}, std::tanh(0.5f)));
}

// As many steps, samples and hidden units as backends divide among their threads.
template <class A>
void compare_backends(A a, int64_t gates, Shape x_dims, const std::vector<int32_t>& lengths,
                      bool peephole = false) {
  const int64_t d = a.direction == 2 ? 2 : 1, rows = gates * a.hidden_size, input = x_dims[2],
                batch = x_dims[1];
  const float most = 1 / std::sqrt(static_cast<float>(a.hidden_size));
  const Shape state{d, batch, a.hidden_size};
  std::vector<Tensor> in{noise<float>(x_dims, -1, 1),
                         noise<float>({d, rows, input}, -most, most, 2),
                         noise<float>({d, rows, a.hidden_size}, -most, most, 3),
                         noise<float>({d, 2 * rows}, -0.5, 0.5, 4),
                         lengths.empty() ? Tensor{} : tensor<int32_t>({batch}, lengths),
                         noise<float>(state, -1, 1, 5)};
  if constexpr (A::kOp == Op::kLstm) {
    in.push_back(noise<float>(state, -1, 1, 6));
    if (peephole) in.push_back(noise<float>({d, 3 * a.hidden_size}, -0.5, 0.5, 7));
  }
  run_op(a, in, {.outputs = A::kOp == Op::kLstm ? 3 : 2});
}

TEST(Recurrent, LayersOfManyUnits) {
  compare_backends(LstmAttrs{.hidden_size = 184, .direction = 2}, 4, {3, 3, 5}, {3, 0, 2}, true);
  compare_backends(LstmAttrs{.hidden_size = 33}, 4, {9, 8, 70}, {});
  compare_backends(GruAttrs{.hidden_size = 212, .direction = 1}, 3, {2, 2, 3}, {2, 1});
  compare_backends(GruAttrs{.hidden_size = 212, .linear_before_reset = 1}, 3, {3, 1, 3}, {});
  compare_backends(RnnAttrs{.hidden_size = 368, .direction = 2}, 1, {2, 2, 40}, {1, 2});
  compare_backends(RnnAttrs{.hidden_size = 3}, 1, {70, 1, 17}, {65});
  compare_backends(RnnAttrs{.hidden_size = 3}, 1, {0, 2, 4}, {});
}

}  // namespace
}  // namespace sinter::test::recurrent
