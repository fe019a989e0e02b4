// Lstm, Gru and Rnn against numbers that onnxruntime 1.31.1 gave for the same operands (3 steps, 2 samples, 3
// inputs, 2 hidden units; element i of an operand is pattern(i)), then what only this project promises.
#include "runtime/core/op_enums.h"
#include "tests/ops/op_test.h"

namespace sinter::test {
namespace {

constexpr int64_t kSteps = 3, kBatch = 2, kInput = 3, kHidden = 2;
enum Operands { kBias = 1, kH = 2, kC = 4, kPeep = 8 };

int64_t code(RnnActivation a) { return static_cast<int64_t>(a); }

template <class T = float>
Tensor pattern(const Shape& dims, int64_t seed) {
  Tensor count{DType::kFloat32, dims, {}};
  std::vector<T> v;
  for (int64_t i = 0; i < count.size(); ++i)
    v.push_back(static_cast<T>((i * 37 + seed * 11) % 64 - 32) / T(32));
  return tensor<T>(dims, v);
}

template <class T, class A>
std::vector<Tensor> operands(const A& a, int64_t gates, int flags, const std::vector<int32_t>& lengths) {
  const int64_t d = a.direction == 2 ? 2 : 1, rows = gates * kHidden;
  const Shape state{d, kBatch, kHidden};
  std::vector<Tensor> in{pattern<T>({kSteps, kBatch, kInput}, 1), pattern<T>({d, rows, kInput}, 2),
                         pattern<T>({d, rows, kHidden}, 3)};
  in.push_back((flags & kBias) != 0 ? pattern<T>({d, 2 * rows}, 4) : Tensor{});
  in.push_back(lengths.empty() ? Tensor{} : tensor<int32_t>({kBatch}, lengths));
  in.push_back((flags & kH) != 0 ? pattern<T>(state, 5) : Tensor{});
  if constexpr (A::kOp == Op::kLstm) {
    in.push_back((flags & kC) != 0 ? pattern<T>(state, 6) : Tensor{});
    in.push_back((flags & kPeep) != 0 ? pattern<T>({d, 3 * kHidden}, 7) : Tensor{});
  }
  return in;
}

// Swaps the two axes before the last one (and what is inside them stays).
Tensor swapped(const Tensor& t, size_t axis) {
  if (t.dtype == DType::kNone) return t;
  Tensor r = t;
  std::swap(r.dims[axis], r.dims[axis + 1]);
  size_t outer = 1, inner = byte_width(t.dtype);
  for (size_t i = 0; i < axis; ++i) outer *= static_cast<size_t>(t.dims[i]);
  for (size_t i = axis + 2; i < t.dims.size(); ++i) inner *= static_cast<size_t>(t.dims[i]);
  const auto a = static_cast<size_t>(t.dims[axis]), b = static_cast<size_t>(t.dims[axis + 1]);
  for (size_t o = 0; o < outer; ++o)
    for (size_t i = 0; i < a; ++i)
      for (size_t j = 0; j < b; ++j)
        std::memcpy(&r.bytes[((o * b + j) * a + i) * inner], &t.bytes[((o * a + i) * b + j) * inner], inner);
  return r;
}

// Every layout, type and choice of outputs must give these numbers.
template <class A>
void check(A a, int64_t gates, int flags, const std::vector<int32_t>& lengths,
           const std::vector<std::vector<float>>& want) {
  const auto count = static_cast<int>(want.size());
  const std::vector<Tensor> in = operands<float>(a, gates, flags, lengths);
  const std::vector<Tensor> got = run_op(a, in, {.outputs = count});
  for (size_t i = 0; i < want.size(); ++i)
    expect_near(got[i], tensor<float>(got[i].dims, want[i]), 1e-6, 1e-6);  // onnxruntime's own error
  EXPECT_EQ(got[0].dims, (Shape{kSteps, a.direction == 2 ? 2 : 1, kBatch, kHidden}));
  for (int i = 0; i < count; ++i) {
    std::vector<int> unwanted;
    for (int j = 0; j < count; ++j)
      if (j != i) unwanted.push_back(j);
    expect_equal(run_op(a, in, {.outputs = count, .unwanted = unwanted})[static_cast<size_t>(i)],
                 got[static_cast<size_t>(i)]);
  }
  const std::vector<Tensor> wide = run_op(a, operands<double>(a, gates, flags, lengths), {.outputs = count});
  for (size_t i = 0; i < want.size(); ++i)
    for (size_t j = 0; j < want[i].size(); ++j)
      EXPECT_NEAR(wide[i].values<double>()[j], static_cast<double>(want[i][j]), 1e-6);
  a.layout = 1;
  std::vector<Tensor> batch_first = in;
  batch_first[0] = swapped(in[0], 0);
  for (const size_t i : {5u, 6u})
    if (i < in.size()) batch_first[i] = swapped(in[i], 0);
  const std::vector<Tensor> other = run_op(a, batch_first, {.outputs = count});
  expect_equal(other[0], swapped(swapped(got[0], 1), 0));
  for (size_t i = 1; i < want.size(); ++i) expect_equal(other[i], swapped(got[i], 0));
}

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

}  // namespace
}  // namespace sinter::test
