// Lstm against numbers that onnxruntime 1.31.1 gave for the same operands, then what only this project
// guarantees.
#include <cmath>
#include <limits>

#include "tests/ops/recurrent_test.h"

namespace sinter::test::recurrent {
namespace {

TEST(Lstm, Forward) {
  LstmAttrs a;
  a.hidden_size = 2;
  check(a, 4, kBias, {},
        {{-0.194807872f, -0.0386752859f, -0.097773768f, -0.00621479191f, 0.100786373f, 0.0723097473f,
          -0.219505847f, -0.0495643131f, -0.172772422f, -0.0134462873f, -0.148786575f, -0.0264549349f},
         {-0.172772422f, -0.0134462873f, -0.148786575f, -0.0264549349f},
         {-0.439968616f, -0.0738875419f, -0.304167986f, -0.146770313f}});
}

TEST(Lstm, BidirectionalWithLengths) {
  LstmAttrs a;
  a.hidden_size = 2;
  a.direction = 2;
  check(a, 4, kBias | kH | kC, {3, 1},
        {{-0.376809001f,
          0.0117297303f,
          -0.17588672f,
          0.00935635436f,
          -0.306798875f,
          0.168249339f,
          -0.23623766f,
          -0.207909182f,
          0.0134349717f,
          0.0770934895f,
          0,
          0,
          -0.444931418f,
          0.247587055f,
          0,
          0,
          -0.183102176f,
          -0.0100934627f,
          0,
          0,
          -0.30052191f,
          0.283490688f,
          0,
          0},
         {-0.183102176f, -0.0100934627f, -0.17588672f, 0.00935635436f, -0.306798875f, 0.168249339f,
          -0.23623766f, -0.207909182f},
         {-0.489286333f, -0.0594008565f, -0.454843462f, 0.0969682187f, -1.41269112f, 0.37509048f,
          -0.550388455f, -0.363055289f}});
}

TEST(Lstm, ReverseWithPeepholes) {
  LstmAttrs a;
  a.hidden_size = 2;
  a.direction = 1;
  check(a, 4, kBias | kC | kPeep, {},
        {{-0.19956921f, -0.0222568996f, -0.190310851f, -0.0258624218f, 0.0526159741f, 0.0783129409f,
          -0.305429906f, -0.0296131577f, -0.367307872f, -0.00959601905f, -0.220298514f, 0.0398308486f},
         {-0.19956921f, -0.0222568996f, -0.190310851f, -0.0258624218f},
         {-0.440731943f, -0.145782411f, -0.356708467f, -0.180533469f}});
}

TEST(Lstm, InputForget) {
  LstmAttrs a;
  a.hidden_size = 2;
  a.input_forget = 1;
  check(a, 4, kBias, {},
        {{-0.194807872f, -0.0386752859f, -0.097773768f, -0.00621479191f, -0.049397137f, 0.040278215f,
          -0.201456189f, -0.0489646792f, -0.187838137f, -0.0307861138f, -0.193453029f, -0.0302909315f},
         {-0.187838137f, -0.0307861138f, -0.193453029f, -0.0302909315f},
         {-0.516607404f, -0.193507016f, -0.401814163f, -0.165986344f}});
}

TEST(Lstm, NoBias) {
  LstmAttrs a;
  a.hidden_size = 2;
  check(a, 4, kH, {},
        {{-0.165482059f, -0.108201228f, -0.0379842371f, -0.0414019264f, 0.0836723298f, 0.0791302025f,
          -0.133980125f, -0.149919778f, -0.101735458f, -0.0851735473f, -0.0928729028f, -0.112863764f},
         {-0.101735458f, -0.0851735473f, -0.0928729028f, -0.112863764f},
         {-0.388452619f, -0.222903848f, -0.256695956f, -0.284185976f}});
}

TEST(Lstm, Clip) {
  LstmAttrs a;
  a.hidden_size = 2;
  a.clip = 0.25;
  check(a, 4, kBias | kH | kC, {},
        {{-0.280599236f, 0.0287050381f, -0.159703732f, 0.0618428625f, -0.0741994083f, 0.0591698699f,
          -0.182413667f, -0.0284151975f, -0.0881137401f, -0.0267806724f, -0.128197014f, -0.0126111247f},
         {-0.0881137401f, -0.0267806724f, -0.128197014f, -0.0126111247f},
         {-0.204039216f, -0.0612441972f, -0.257268786f, -0.0288121011f}});
}

TEST(Lstm, OtherActivations) {
  LstmAttrs a;
  a.hidden_size = 2;
  a.activations = {code(RnnActivation::kHardSigmoid), code(RnnActivation::kScaledTanh),
                   code(RnnActivation::kSoftsign)};
  a.alpha = {0.25, 1.5};
  a.beta = {0.4, 0.5};
  check(a, 4, kBias, {},
        {{-0.0903718844f, -0, -0.0444830135f, -0.00123536726f, 0.0703900233f, 0.0369949788f, -0.100519188f,
          -0, -0.0816628262f, -0.000848026248f, -0.0593948252f, -0.00380046922f},
         {-0.0816628262f, -0.000848026248f, -0.0593948252f, -0.00380046922f},
         {-0.352055579f, -0.054710716f, -0.164094254f, -0.0758914649f}});
}

TEST(Lstm, LengthZero) {
  LstmAttrs a;
  a.hidden_size = 2;
  check(a, 4, kBias | kH | kC, {0, 2},
        {{0, 0, -0.17588672f, 0.00935635436f, 0, 0, -0.283251643f, -0.0402356796f, 0, 0, 0, 0},
         {0, 0, -0.283251643f, -0.0402356796f},
         {0, 0, -0.565992594f, -0.322541177f}});
}

TEST(Lstm, ManyUnitsAgreeWithTheFormula) {
  // One step of one sample, against sums written out.
  const int64_t inputs = 37, hidden = 19;
  const Tensor x = noise<float>({1, 1, inputs}, -1, 1, 1),
               w = noise<float>({1, 4 * hidden, inputs}, -1, 1, 2);
  const Tensor r = noise<float>({1, 4 * hidden, hidden}, -1, 1, 3),
               h0 = noise<float>({1, 1, hidden}, -1, 1, 4);
  const Tensor c0 = noise<float>({1, 1, hidden}, -1, 1, 5);
  LstmAttrs a;
  a.hidden_size = hidden;
  const auto got = run_op(a, {x, w, r, {}, {}, h0, c0}, {.outputs = 3});
  const auto xv = x.values<float>(), wv = w.values<float>(), rv = r.values<float>(), hv = h0.values<float>();
  const auto gate = [&](int64_t row) {
    double s = 0;
    for (int64_t i = 0; i < inputs; ++i)
      s += static_cast<double>(xv[static_cast<size_t>(i)]) *
           static_cast<double>(wv[static_cast<size_t>(row * inputs + i)]);
    for (int64_t i = 0; i < hidden; ++i)
      s += static_cast<double>(hv[static_cast<size_t>(i)]) *
           static_cast<double>(rv[static_cast<size_t>(row * hidden + i)]);
    return s;
  };
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  for (int64_t i = 0; i < hidden; ++i) {
    const auto k = static_cast<size_t>(i);
    const double c = sigmoid(gate(2 * hidden + i)) * static_cast<double>(c0.values<float>()[k]) +
                     sigmoid(gate(i)) * std::tanh(gate(3 * hidden + i));
    EXPECT_NEAR(got[2].values<float>()[k], c, 1e-7);
    EXPECT_NEAR(got[1].values<float>()[k], sigmoid(gate(hidden + i)) * std::tanh(c), 1e-7);
  }
}

// Units that fill vectors and that do not; threads that share the samples, or every step.
TEST(Lstm, PackedWeightsAgreeWithTheReference) {
  struct Case {
    int64_t steps, batch, input, hidden, direction;
  };
  for (const Case& c :
       {Case{1, 1, 37, 19, 0}, Case{1, 1, 33, 128, 0}, Case{4, 1, 8, 96, 1}, Case{3, 2, 5, 100, 2},
        Case{1, 5, 3, 80, 0}, Case{37, 1, 6, 16, 2}, Case{2, 3, 1, 1, 0}, Case{5, 1, 64, 33, 0}}) {
    SCOPED_TRACE(testing::PrintToString(Shape{c.steps, c.batch, c.input, c.hidden, c.direction}));
    LstmAttrs a;
    a.hidden_size = c.hidden, a.direction = c.direction;
    const int64_t d = c.direction == 2 ? 2 : 1;
    const Shape state{d, c.batch, c.hidden};
    std::vector<Tensor> in = {noise<float>({c.steps, c.batch, c.input}, -1, 1, 1),
                              noise<float>({d, 4 * c.hidden, c.input}, -0.4f, 0.4f, 2),
                              noise<float>({d, 4 * c.hidden, c.hidden}, -0.2f, 0.2f, 3),
                              noise<float>({d, 8 * c.hidden}, -0.2f, 0.2f, 4),
                              full<int32_t>({c.batch}, static_cast<int32_t>(c.steps)),
                              noise<float>(state, -1, 1, 5),
                              noise<float>(state, -1, 1, 6)};
    check_taken_by("simd", a, in, {.outputs = 3});
    in[3] = in[4] = in[5] = in[6] = {};
    check_taken_by("simd", a, in, {.outputs = 3});
  }
}

TEST(Lstm, Refuses) {
  LstmAttrs a;
  a.hidden_size = kHidden;
  const std::vector<Tensor> in = operands<float>(a, 4, kBias | kH | kC | kPeep, {1, 2});
  const auto refuse = [&](auto change) {
    LstmAttrs b = a;
    std::vector<Tensor> other = in;
    change(b, other);
    expect_refused(b, other);
  };
  refuse([](LstmAttrs& b, auto&) { b.hidden_size = 3; });
  refuse([](LstmAttrs& b, auto&) { b.hidden_size = 0; });
  refuse([](LstmAttrs& b, auto&) { b.hidden_size = std::numeric_limits<int64_t>::max(); });
  refuse([](LstmAttrs& b, auto&) { b.direction = 3; });
  refuse([](LstmAttrs& b, auto&) { b.direction = 2; });
  refuse([](LstmAttrs& b, auto&) { b.layout = -1; });
  refuse([](LstmAttrs& b, auto&) { b.input_forget = 2; });
  refuse([](LstmAttrs& b, auto&) { b.clip = -1; });
  refuse([](LstmAttrs& b, auto&) { b.activations = {0, 1}; });
  refuse([](LstmAttrs& b, auto&) { b.activations = {0, 1, 11}; });
  refuse([](LstmAttrs& b, auto&) { b.activations = {0, 4, 1}, b.alpha = {1, 2}; });
  for (const size_t i : {1u, 2u, 3u, 5u, 6u, 7u}) {
    refuse([&](auto&, auto& t) { t[i] = full<float>({1, 1, 1}, 0); });
    refuse([&](auto&, auto& t) { t[i] = full<double>(t[i].dims, 0); });
  }
  refuse([](auto&, auto& t) { t[4] = full<int64_t>({kBatch}, 1); });
  refuse([](auto&, auto& t) { t[4] = full<int32_t>({3}, 1); });
  refuse([](auto&, auto& t) { t[0] = full<float>({kSteps, kInput}, 0); });
}

TEST(Lstm, LengthsOutsideTheInputFailTheRun) {
  LstmAttrs a;
  a.hidden_size = kHidden;
  for (const int32_t length : {-1, 4, std::numeric_limits<int32_t>::min()}) {
    const std::vector<Tensor> in = operands<float>(a, 4, 0, {1, length});
    std::vector<TensorView> shapes;
    ASSERT_TRUE(infer_op(a, in, &shapes).ok());
    std::vector<Tensor> results;
    EXPECT_EQ(run_once(a, in, shapes, Layout::kDense, Layout::kDense, -1, &results).code, Code::kOutOfRange);
  }
}

}  // namespace
}  // namespace sinter::test::recurrent
