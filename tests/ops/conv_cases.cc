// Conv, DepthwiseConv and ConvTranspose against the formula, written out over rank-3 (three spatial axes)
// indices.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/op_harness/op_test.h"

namespace sinter::test {
namespace {

struct Case {
  Shape in, kernel;  // spatial
  int64_t batch, channels, outputs, group;
  std::vector<int64_t> strides, dilations, pads;
  bool bias;
};

IntList list(const std::vector<int64_t>& v) { return IntList(std::span<const int64_t>(v)); }

Shape with(int64_t first, const Shape& spatial, int64_t last) {
  Shape s{first};
  s.insert(s.end(), spatial.begin(), spatial.end());
  s.push_back(last);
  return s;
}

// Spatial lists padded to three axes in front.
std::vector<int64_t> three(std::vector<int64_t> v, int64_t fill) {
  while (v.size() < 3) v.insert(v.begin(), fill);
  return v;
}

template <class T, class Acc>
std::vector<T> naive_conv(const Case& c, const std::vector<T>& x, const std::vector<T>& w,
                          const std::vector<T>& b, const Shape& out) {
  const auto in = three(c.in, 1), k = three(c.kernel, 1), o = three(out, 1), s = three(c.strides, 1),
             d = three(c.dilations, 1);
  const auto pad = three({c.pads.begin(), c.pads.begin() + static_cast<long>(c.in.size())}, 0);
  const int64_t cg = c.channels / c.group, og = c.outputs / c.group;
  std::vector<T> y;
  for (int64_t n = 0; n < c.batch; ++n)
    for (int64_t p = 0; p < o[0] * o[1] * o[2]; ++p)
      for (int64_t oc = 0; oc < c.outputs; ++oc) {
        Acc sum = 0;
        for (int64_t t = 0; t < k[0] * k[1] * k[2]; ++t) {
          const int64_t i0 = p / (o[1] * o[2]) * s[0] - pad[0] + t / (k[1] * k[2]) * d[0];
          const int64_t i1 = p / o[2] % o[1] * s[1] - pad[1] + t / k[2] % k[1] * d[1];
          const int64_t i2 = p % o[2] * s[2] - pad[2] + t % k[2] * d[2];
          if (i0 < 0 || i0 >= in[0] || i1 < 0 || i1 >= in[1] || i2 < 0 || i2 >= in[2]) continue;
          for (int64_t ch = 0; ch < cg; ++ch)
            sum += static_cast<Acc>(x[static_cast<size_t>(
                       (((n * in[0] + i0) * in[1] + i1) * in[2] + i2) * c.channels + oc / og * cg + ch)]) *
                   static_cast<Acc>(w[static_cast<size_t>((oc * k[0] * k[1] * k[2] + t) * cg + ch)]);
        }
        if (c.bias) sum += static_cast<Acc>(b[static_cast<size_t>(oc)]);
        y.push_back(static_cast<T>(sum));
      }
  return y;
}

const Case kConvCases[] = {
    {{5}, {3}, 2, 3, 4, 1, {1}, {1}, {1, 1}, true},
    {{17}, {3}, 1, 4, 6, 2, {2}, {3}, {2, 0}, false},
    {{7, 9}, {3, 3}, 2, 5, 7, 1, {1, 1}, {1, 1}, {1, 1, 1, 1}, true},
    {{8, 6}, {3, 2}, 1, 6, 9, 3, {2, 1}, {1, 2}, {0, 1, 2, 1}, true},
    {{3, 3}, {5, 5}, 1, 2, 3, 1, {3, 3}, {1, 1}, {2, 3, 4, 1}, false},
    {{1, 1}, {1, 1}, 3, 9, 5, 1, {1, 1}, {1, 1}, {0, 0, 0, 0}, true},
    {{4, 5, 6}, {2, 3, 2}, 2, 3, 5, 1, {1, 2, 1}, {2, 1, 3}, {1, 0, 2, 0, 1, 1}, true},
    {{6, 6}, {3, 3}, 1, 70, 10, 1, {1, 1}, {1, 1}, {1, 1, 1, 1}, false},  // depth above one block
    // Tiles of several lines, of one line and of a part of one.
    {{21, 19}, {3, 3}, 2, 3, 20, 1, {2, 2}, {1, 1}, {1, 1, 1, 1}, true},
    {{9, 10}, {10, 4}, 1, 1, 33, 1, {2, 2}, {1, 1}, {4, 1, 5, 1}, true},
    {{9, 61}, {3, 5}, 1, 12, 17, 1, {1, 1}, {2, 3}, {2, 6, 2, 6}, false},
    {{4, 260}, {3, 3}, 1, 2, 40, 1, {1, 2}, {1, 1}, {1, 0, 0, 1}, true},
    {{14, 15}, {3, 3}, 1, 8, 36, 2, {1, 1}, {1, 1}, {1, 1, 1, 1}, true},
    {{260}, {7}, 2, 5, 12, 1, {2}, {1}, {3, 3}, true},
};

ConvAttrs conv_attrs(const Case& c) {
  ConvAttrs a;
  a.strides = list(c.strides), a.dilations = list(c.dilations), a.pads = list(c.pads), a.group = c.group;
  return a;
}

template <class T, class Acc>
void check_conv(const Case& c, double low, double high) {
  const Tensor x = noise<T>(with(c.batch, c.in, c.channels), low, high, 3);
  const Tensor w = noise<T>(with(c.outputs, c.kernel, c.channels / c.group), low, high, 4);
  const Tensor b = noise<T>({c.outputs}, low, high, 5);
  std::vector<Tensor> inputs{x, w};
  if (c.bias) inputs.push_back(b);
  const Tensor y = run_op(conv_attrs(c), inputs)[0];
  ASSERT_EQ(y.dims.size(), x.dims.size());
  const Shape out(y.dims.begin() + 1, y.dims.end() - 1);
  const Tensor want =
      tensor<T>(y.dims, naive_conv<T, Acc>(c, x.values<T>(), w.values<T>(), b.values<T>(), out));
  if constexpr (std::is_floating_point_v<T>)
    expect_near(y, want, sizeof(T) == 8 ? 1e-14 : 1.2e-7, sizeof(T) == 8 ? 1e-14 : 1e-12);
  else
    expect_equal(y, want);
}

TEST(Conv, AgreesWithTheFormula) {
  for (const Case& c : kConvCases) {
    SCOPED_TRACE(testing::PrintToString(c.in) + " kernel " + testing::PrintToString(c.kernel));
    check_conv<float, double>(c, -1, 1);
    check_conv<double, double>(c, -1, 1);
    check_conv<int32_t, uint32_t>(c, -2e9, 2e9);  // wraps
    check_conv<int64_t, uint64_t>(c, -9e18, 9e18);
  }
}

TEST(Conv, LengthsOfTheOutput) {
  ConvAttrs a;
  a.strides = {2}, a.dilations = {2}, a.pads = {1, 0};
  EXPECT_EQ(run_op(a, {full<float>({1, 8, 1}, 1), full<float>({1, 3, 1}, 1)})[0].dims, (Shape{1, 3, 1}));
  // Empty batch, no output channel, no input channel (the bias alone).
  EXPECT_EQ(run_op(a, {full<float>({0, 8, 1}, 1), full<float>({1, 3, 1}, 1)})[0].dims, (Shape{0, 3, 1}));
  EXPECT_EQ(run_op(a, {full<float>({1, 8, 1}, 1), full<float>({0, 3, 1}, 1)})[0].dims, (Shape{1, 3, 0}));
  expect_equal(
      run_op(a, {full<float>({1, 8, 0}, 1), full<float>({2, 3, 0}, 1), tensor<float>({2}, {4, 5})})[0],
      tensor<float>({1, 3, 2}, {4, 5, 4, 5, 4, 5}));
}

TEST(Conv, ClampsAsTheActivationStates) {
  ConvAttrs a;
  a.strides = {1}, a.dilations = {1}, a.pads = {0, 0}, a.act_min = -1.5, a.act_max = 6;
  const Tensor x = tensor<float>({1, 4, 1}, {-2, -1, 5, 7});
  expect_equal(run_op(a, {x, full<float>({1, 1, 1}, 1)})[0], tensor<float>({1, 4, 1}, {-1.5f, -1, 5, 6}));
  const Tensor xi = tensor<int32_t>({1, 4, 1}, {-2, -1, 5, 7});
  expect_equal(run_op(a, {xi, full<int32_t>({1, 1, 1}, 1)})[0], tensor<int32_t>({1, 4, 1}, {-1, -1, 5, 6}));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  expect_equal(run_op(a, {tensor<float>({1, 1, 1}, {nan}), full<float>({1, 1, 1}, 1)})[0],
               tensor<float>({1, 1, 1}, {nan}));
}

// Windows that are larger than int64 counts: all taps but one read padding.
TEST(Conv, LargestDilationsAndPads) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  ConvAttrs a;
  a.strides = {1, 1}, a.dilations = {kMost, kMost}, a.pads = {kMost, kMost, kMost, kMost};
  const Tensor x = noise<float>({1, 1, 1, 8}, -1, 1, 1), w = noise<float>({16, 3, 3, 8}, -1, 1, 2);
  const auto v = x.values<float>(), f = w.values<float>();
  std::vector<float> want(16, 0.0f);
  for (size_t n = 0; n < 16; ++n)
    for (size_t c = 0; c < 8; ++c) want[n] += v[c] * f[n * 72 + 32 + c];
  expect_near(run_op(a, {x, w})[0], tensor<float>({1, 1, 1, 16}, want), 1e-6, 1e-6);
}

TEST(Conv, Refuses) {
  ConvAttrs a;
  a.strides = {1}, a.dilations = {1}, a.pads = {0, 0};
  const Tensor x = full<float>({1, 4, 2}, 1), w = full<float>({1, 3, 2}, 1);
  const auto refuse = [&](auto change, const std::vector<Tensor>& inputs) {
    ConvAttrs b = a;
    change(b);
    expect_refused(b, inputs);
  };
  refuse([](ConvAttrs& b) { b.strides = {0}; }, {x, w});
  refuse([](ConvAttrs& b) { b.strides = {-1}; }, {x, w});
  refuse([](ConvAttrs& b) { b.strides = {1, 1}; }, {x, w});
  refuse([](ConvAttrs& b) { b.dilations = {0}; }, {x, w});
  refuse([](ConvAttrs& b) { b.dilations = {int64_t{1} << 40}; }, {x, w});
  refuse([](ConvAttrs& b) { b.dilations = {2}; }, {x, w});  // the window is longer than the input
  refuse([](ConvAttrs& b) { b.pads = {-1, 0}; }, {x, w});
  refuse([](ConvAttrs& b) { b.pads = {std::numeric_limits<int64_t>::max(), 1}; }, {x, w});
  refuse([](ConvAttrs& b) { b.group = 0; }, {x, w});
  refuse([](ConvAttrs& b) { b.group = 2; }, {x, w});
  refuse([](ConvAttrs& b) { b.group = std::numeric_limits<int64_t>::min(); }, {x, w});
  refuse([](ConvAttrs& b) { b.act_min = 2, b.act_max = 1; }, {x, w});
  refuse([](ConvAttrs& b) { b.act_min = std::nan(""); }, {x, w});
  expect_refused(a, {x, full<double>({1, 3, 2}, 1)});
  expect_refused(a, {x, full<float>({1, 3, 1}, 1)});
  expect_refused(a, {x, full<float>({1, 0, 2}, 1)});
  expect_refused(a, {x, w, full<float>({2}, 1)});
  expect_refused(a, {x, w, full<float>({1, 1}, 1)});
  expect_refused(a, {full<float>({4, 2}, 1), full<float>({3, 2}, 1)});
  expect_refused(a, {full<uint8_t>({1, 4, 2}, 1), full<uint8_t>({1, 3, 2}, 1)});
}

TEST(Conv, RefusesHostileDims) {
  ConvAttrs a;
  a.strides = {1}, a.dilations = {1}, a.pads = {0, 0};
  const int64_t huge = int64_t{1} << 40;
  TensorView in[2];
  for (TensorView& v : in) v.dtype = DType::kFloat32, v.rank = 3;
  const int64_t dims[2][3] = {{0, huge, huge}, {0, huge, huge}};
  for (int i = 0; i < 2; ++i) std::copy(dims[i], dims[i] + 3, in[i].dims);
  TensorView out[1];
  OpCall call{Op::kConv, &a, in, out};
  EXPECT_FALSE(infer(call, reference_kernels()).ok());
}

TEST(DepthwiseConv, AgreesWithTheFormula) {
  const Case cases[] = {
      {{9}, {3}, 2, 3, 3, 3, {1}, {1}, {1, 1}, true},
      {{7, 6}, {3, 3}, 1, 17, 17, 17, {2, 1}, {1, 2}, {1, 0, 2, 2}, true},
      {{5, 5}, {5, 5}, 2, 40, 40, 40, {1, 1}, {1, 1}, {2, 2, 2, 2}, false},
      {{5, 4}, {2, 3}, 1, 5, 20, 5, {1, 1}, {1, 1}, {0, 1, 1, 1}, true},
      {{4, 4, 3}, {3, 1, 2}, 1, 4, 8, 4, {1, 2, 1}, {1, 1, 2}, {1, 0, 1, 1, 0, 1}, true},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(testing::PrintToString(c.in) + " kernel " + testing::PrintToString(c.kernel));
    const auto check = [&](auto zero, double range, auto acc) {
      using T = decltype(zero);
      const Tensor x = noise<T>(with(c.batch, c.in, c.channels), -range, range, 3);
      Shape w_dims = c.kernel;
      w_dims.push_back(c.outputs);
      const Tensor w = noise<T>(w_dims, -range, range, 4), b = noise<T>({c.outputs}, -range, range, 5);
      // The formula takes [O, taps, 1].
      const auto taps = static_cast<size_t>(w.size() / c.outputs), outputs = static_cast<size_t>(c.outputs);
      const auto given = w.values<T>();
      std::vector<T> filters(given.size());
      for (size_t t = 0; t < taps; ++t)
        for (size_t o = 0; o < outputs; ++o) filters[o * taps + t] = given[t * outputs + o];
      DepthwiseConvAttrs a;
      a.strides = list(c.strides), a.dilations = list(c.dilations), a.pads = list(c.pads);
      std::vector<Tensor> inputs{x, w};
      if (c.bias) inputs.push_back(b);
      const Tensor y = run_op(a, inputs)[0];
      ASSERT_EQ(y.dims.size(), x.dims.size());
      const Shape out(y.dims.begin() + 1, y.dims.end() - 1);
      const Tensor want =
          tensor<T>(y.dims, naive_conv<T, decltype(acc)>(c, x.values<T>(), filters, b.values<T>(), out));
      if constexpr (std::is_floating_point_v<T>)
        expect_near(y, want, sizeof(T) == 8 ? 1e-14 : 1.2e-7, sizeof(T) == 8 ? 1e-14 : 1e-12);
      else
        expect_equal(y, want);
    };
    check(float{}, 1, double{});
    check(double{}, 1, double{});
    check(int32_t{}, 2e9, uint32_t{});
  }
}

TEST(DepthwiseConv, Refuses) {
  DepthwiseConvAttrs a;
  a.strides = {1}, a.dilations = {1}, a.pads = {0, 0};
  expect_refused(a, {full<float>({1, 4, 2}, 1), full<float>({3, 3}, 1)});  // 3 is not a multiple of 2
  expect_refused(a, {full<float>({1, 4, 0}, 1), full<float>({3, 2}, 1)});
  expect_refused(a, {full<float>({1, 4, 2}, 1), full<float>({1, 3, 2}, 1)});  // rank
  a.act_max = -1, a.act_min = 1;
  expect_refused(a, {full<float>({1, 4, 2}, 1), full<float>({3, 2}, 1)});
}

// Scatters every input value, as ONNX describes the operation.
template <class T, class Acc>
std::vector<T> naive_transpose(const Case& c, const std::vector<T>& x, const std::vector<T>& w,
                               const std::vector<T>& b, const Shape& out) {
  const auto in = three(c.in, 1), k = three(c.kernel, 1), o = three(out, 1), s = three(c.strides, 1),
             d = three(c.dilations, 1);
  const auto pad = three({c.pads.begin(), c.pads.begin() + static_cast<long>(c.in.size())}, 0);
  const int64_t cg = c.channels / c.group, og = c.outputs / c.group, taps = k[0] * k[1] * k[2];
  std::vector<Acc> sums(static_cast<size_t>(c.batch * o[0] * o[1] * o[2] * c.outputs), Acc{0});
  for (int64_t n = 0; n < c.batch; ++n)
    for (int64_t p = 0; p < in[0] * in[1] * in[2]; ++p)
      for (int64_t t = 0; t < taps; ++t) {
        const int64_t q0 = p / (in[1] * in[2]) * s[0] - pad[0] + t / (k[1] * k[2]) * d[0];
        const int64_t q1 = p / in[2] % in[1] * s[1] - pad[1] + t / k[2] % k[1] * d[1];
        const int64_t q2 = p % in[2] * s[2] - pad[2] + t % k[2] * d[2];
        if (q0 < 0 || q0 >= o[0] || q1 < 0 || q1 >= o[1] || q2 < 0 || q2 >= o[2]) continue;
        for (int64_t oc = 0; oc < c.outputs; ++oc)
          for (int64_t ch = 0; ch < cg; ++ch)
            sums[static_cast<size_t>((((n * o[0] + q0) * o[1] + q1) * o[2] + q2) * c.outputs + oc)] +=
                static_cast<Acc>(x[static_cast<size_t>((n * in[0] * in[1] * in[2] + p) * c.channels +
                                                       oc / og * cg + ch)]) *
                static_cast<Acc>(w[static_cast<size_t>((oc * taps + t) * cg + ch)]);
      }
  std::vector<T> y;
  for (size_t i = 0; i < sums.size(); ++i)
    y.push_back(
        static_cast<T>(c.bias ? sums[i] + static_cast<Acc>(b[i % static_cast<size_t>(c.outputs)]) : sums[i]));
  return y;
}

TEST(ConvTranspose, AgreesWithTheFormula) {
  struct {
    Case c;
    std::vector<int64_t> extra;
  } cases[] = {
      {{{5}, {3}, 2, 3, 4, 1, {2}, {1}, {1, 1}, true}, {1}},
      {{{4}, {4}, 1, 2, 6, 2, {3}, {2}, {0, 2}, false}, {0}},
      {{{4}, {2}, 1, 2, 3, 1, {5}, {1}, {0, 0}, true}, {2}},    // phases that no tap reaches: the bias alone
      {{{4}, {3}, 1, 2, 3, 1, {4}, {2}, {-1, -2}, true}, {0}},  // negative padding
      {{{5, 4}, {3, 3}, 2, 5, 7, 1, {2, 2}, {1, 1}, {1, 1, 1, 1}, true}, {1, 0}},
      {{{3, 4}, {4, 2}, 1, 6, 9, 3, {2, 3}, {3, 2}, {0, 1, 2, 1}, true}, {0, 2}},
      {{{2, 3, 4}, {2, 3, 2}, 1, 3, 5, 1, {1, 2, 3}, {2, 1, 1}, {1, 0, 0, 0, 1, 1}, true}, {0, 1, 0}},
      {{{6}, {16}, 1, 80, 5, 1, {8}, {1}, {4, 4}, true}, {0}},
      // Filters longer than the input.
      {{{1, 1}, {4, 5}, 2, 3, 5, 1, {1, 1}, {1, 1}, {0, 0, 0, 0}, true}, {0, 0}},
      {{{3}, {40}, 2, 2, 3, 1, {4}, {1}, {1, 2}, true}, {3}},
      {{{2}, {33}, 1, 3, 2, 1, {3}, {2}, {0, 5}, true}, {1}},
      {{{5}, {31}, 1, 2, 2, 2, {1}, {3}, {4, 4}, false}, {0}},
      {{{2, 3}, {17, 2}, 1, 2, 3, 1, {2, 1}, {1, 1}, {-3, 0, 0, 0}, true}, {1, 0}},
  };
  for (const auto& [c, extra] : cases) {
    SCOPED_TRACE(testing::PrintToString(c.in) + " kernel " + testing::PrintToString(c.kernel));
    const Case& conv = c;
    ConvTransposeAttrs a;
    a.strides = list(c.strides), a.dilations = list(c.dilations), a.pads = list(c.pads), a.group = c.group;
    a.output_padding = list(extra);
    const auto check = [&](auto zero, double range, auto acc) {
      using T = decltype(zero);
      const Tensor x = noise<T>(with(conv.batch, conv.in, conv.channels), -range, range, 3);
      const Tensor w =
          noise<T>(with(conv.outputs, conv.kernel, conv.channels / conv.group), -range, range, 4);
      const Tensor b = noise<T>({conv.outputs}, -range, range, 5);
      std::vector<Tensor> inputs{x, w};
      if (conv.bias) inputs.push_back(b);
      const Tensor y = run_op(a, inputs)[0];
      ASSERT_EQ(y.dims.size(), x.dims.size());
      const Shape out(y.dims.begin() + 1, y.dims.end() - 1);
      for (size_t i = 0; i < out.size(); ++i)
        EXPECT_EQ(out[i], (conv.in[i] - 1) * conv.strides[i] + (conv.kernel[i] - 1) * conv.dilations[i] + 1 -
                              conv.pads[i] - conv.pads[i + out.size()] +
                              a.output_padding[static_cast<int>(i)]);
      const Tensor want = tensor<T>(
          y.dims, naive_transpose<T, decltype(acc)>(conv, x.values<T>(), w.values<T>(), b.values<T>(), out));
      if constexpr (std::is_floating_point_v<T>)
        expect_near(y, want, sizeof(T) == 8 ? 1e-13 : 1.2e-7, sizeof(T) == 8 ? 1e-13 : 1e-12);
      else
        expect_equal(y, want);
    };
    check(float{}, 1, double{});
    check(double{}, 1, double{});
    check(int32_t{}, 2e9, uint32_t{});
    check(int64_t{}, 9e18, uint64_t{});
  }
}

TEST(ConvTranspose, EdgesAndRefusals) {
  ConvTransposeAttrs a;
  a.strides = {2}, a.dilations = {1}, a.pads = {0, 0}, a.output_padding = {0};
  const Tensor x = full<float>({1, 4, 2}, 1), w = full<float>({1, 3, 2}, 1);
  EXPECT_EQ(run_op(a, {full<float>({1, 0, 2}, 1), w})[0].dims, (Shape{1, 0, 1}));
  EXPECT_EQ(run_op(a, {full<float>({0, 4, 2}, 1), w})[0].dims, (Shape{0, 9, 1}));
  a.act_max = 3, a.act_min = -kInfinity;
  expect_equal(run_op(a, {x, w})[0], tensor<float>({1, 9, 1}, {2, 2, 3, 2, 3, 2, 3, 2, 2}));
  const auto refuse = [&](auto change) {
    ConvTransposeAttrs b = a;
    change(b);
    expect_refused(b, {x, w});
  };
  refuse([](auto& b) { b.output_padding = {-1}; });
  refuse([](auto& b) { b.output_padding = {0, 0}; });
  refuse([](auto& b) { b.pads = {5, 5}; });  // nothing would be left
  refuse([](auto& b) { b.pads = {0}; });
  refuse([](auto& b) { b.strides = {std::numeric_limits<int64_t>::max()}; });
  refuse([](auto& b) { b.group = 3; });
}

}  // namespace
}  // namespace sinter::test
