// QLstm and QGru against their formulas in docs/numerics.md, against Lstm and Gru in float32, and the
// vectorised kernels against the reference ones.
#include <algorithm>
#include <cmath>
#include <functional>

#include "runtime/core/op_enums.h"
#include "tests/op_harness/op_test.h"
#include "tests/ops/run_status.h"

namespace sinter::test {
namespace {

constexpr int64_t kInt8 = static_cast<int64_t>(DType::kInt8), kInt16 = static_cast<int64_t>(DType::kInt16),
                  kFloat32 = static_cast<int64_t>(DType::kFloat32);

std::vector<int16_t> activation_tables(int64_t sets, bool lstm) {
  std::vector<int16_t> t;
  for (int64_t s = 0; s < sets; ++s)
    for (int k = 0; k < (lstm ? 3 : 2); ++k)
      for (int i = 0; i <= 512; ++i) {
        const double x = i / 32.0 - 8, y = k == 0 ? 1 / (1 + std::exp(-x)) : std::tanh(x);
        t.push_back(static_cast<int16_t>(std::clamp(std::nearbyint(y * 32768), -32768.0, 32767.0)));
      }
  return t;
}

// A layer in integers, and the same in float32.
struct Layer {
  std::vector<Tensor> integers, floats;
};

struct Shapes {
  int64_t steps, batch, input, hidden, directions;
};

template <class A>
Layer layer(const A& a, const Shapes& s, double x_scale, DType x_type, uint64_t seed) {
  constexpr bool kLstm = A::kOp == Op::kQLstm;
  const int64_t rows = (kLstm ? 4 : 3) * s.hidden, d = s.directions;
  const Shape x_dims = a.layout == 1 ? Shape{s.batch, s.steps, s.input} : Shape{s.steps, s.batch, s.input},
              state = a.layout == 1 ? Shape{s.batch, d, s.hidden} : Shape{d, s.batch, s.hidden};
  Tensor x = x_type == DType::kInt8 ? noise<int8_t>(x_dims, -128, 127.9, seed)
                                    : noise<int16_t>(x_dims, -32768, 32767.9, seed);
  // Every other row has the largest number, which some kernels split into bytes in another way.
  if (x_type == DType::kInt16) {
    auto numbers = x.values<int16_t>();
    for (size_t i = 0; i < numbers.size(); i += 2 * static_cast<size_t>(s.input)) numbers[i] = 32767;
    x = tensor<int16_t>(x_dims, numbers);
  }
  const Tensor w = noise<int8_t>({d, rows, s.input}, -127, 127.9, seed + 1),
               r = noise<int8_t>({d, rows, s.hidden}, -127, 127.9, seed + 2),
               ws = noise<float>({d, rows}, 0.001, 0.004, seed + 3),
               rs = noise<float>({d, rows}, 0.001, 0.004, seed + 4),
               b = noise<float>({d, 2 * rows}, -0.5, 0.5, seed + 5), h = noise<float>(state, -1, 1, seed + 6),
               c = noise<float>(state, -2, 2, seed + 7);
  std::vector<float> xm, hm, bias, fx, fw, fr;
  for (const float v : ws.values<float>()) xm.push_back(static_cast<float>(v * x_scale * 4096));
  for (const float v : rs.values<float>()) hm.push_back(v * 4096 / 8192);
  for (const float v : b.values<float>()) bias.push_back(v * 4096);
  if (x_type == DType::kInt8)
    for (const int8_t v : x.values<int8_t>())
      fx.push_back(static_cast<float>((v - static_cast<double>(a.x_zero)) * x_scale));
  else
    for (const int16_t v : x.values<int16_t>()) fx.push_back(static_cast<float>(v * x_scale));
  const auto number = [](const Tensor& q, const Tensor& steps, int64_t columns, std::vector<float>* to) {
    const auto items = q.values<int8_t>();
    const auto scales = steps.values<float>();
    for (size_t i = 0; i < items.size(); ++i)
      to->push_back(static_cast<float>(items[i]) * scales[i / static_cast<size_t>(columns)]);
  };
  number(w, ws, s.input, &fw), number(r, rs, s.hidden, &fr);
  const int64_t n = kLstm ? 3 : 2;
  Layer result{{x, w, r, tensor<float>({d, rows}, xm), tensor<float>({d, rows}, hm),
                tensor<float>({d, 2 * rows}, bias), tensor<int16_t>({1, n, 513}, activation_tables(1, kLstm)),
                Tensor{}, h},
               {tensor<float>(x_dims, fx), tensor<float>({d, rows, s.input}, fw),
                tensor<float>({d, rows, s.hidden}, fr), b, Tensor{}, h}};
  if (kLstm) result.integers.push_back(c), result.floats.push_back(c);
  return result;
}

template <class A>
A attributes(int64_t hidden, int64_t direction, int64_t to) {
  A a;
  a.hidden_size = hidden, a.direction = direction, a.to = to;
  a.multiplier = to == kInt8 ? 0x1p-6 : to == kInt16 ? 0.5 : 0x1p-13;
  if (to == kInt16) a.q_min = -32768, a.q_max = 32767;
  return a;
}

TEST(QLstm, OneStepByHand) {
  // One hidden unit and one input of 3 steps: gates in units of 2^-12 follow from the products and biases.
  auto a = attributes<QLstmAttrs>(1, 0, kFloat32);
  a.x_zero = -2;
  const std::vector<int16_t> t = activation_tables(1, true);
  const std::vector<Tensor> in{tensor<int8_t>({1, 1, 1}, {1}),
                               tensor<int8_t>({1, 4, 1}, {10, -20, 30, 40}),
                               tensor<int8_t>({1, 4, 1}, {1, 2, -3, 4}),
                               tensor<float>({1, 4}, {50, 50, 50, 50}),
                               tensor<float>({1, 4}, {0.25f, 0.25f, 0.25f, 0.25f}),
                               tensor<float>({1, 8}, {0.5f, 1, 2, 3, 0, 0, 0, 0}),
                               tensor<int16_t>({1, 3, 513}, t),
                               Tensor{},
                               tensor<float>({1, 1, 1}, {0.5f}),
                               tensor<float>({1, 1, 1}, {-0.75f})};
  const auto at = [&](int table, int32_t gate) {
    const int32_t u = gate + 32768, i = u / 128, f = u % 128;
    const int16_t* entries = t.data() + table * 513;
    return static_cast<int32_t>(std::floor((entries[i] * (128 - f) + entries[i + 1] * f + 64) / 128.0));
  };
  // 3 * w * 50 + bias + 4096 * r / 4: 2524.5 rounds to even.
  const int32_t i = at(0, 2524), o = at(0, -951), f = at(0, 1430), g = at(1, 10099);
  const double c = std::nearbyint((static_cast<double>(f) * -24576 + static_cast<double>(i) * g) / 32768);
  const int32_t tanh = at(2, static_cast<int32_t>(std::floor((c + 4) / 8)));
  const double h = std::floor((static_cast<double>(o) * tanh + 65536) / 131072);
  const std::vector<Tensor> got = run_op(a, in, {.outputs = 3});
  EXPECT_EQ(got[0].values<float>()[0], static_cast<float>(h / 8192));
  EXPECT_EQ(got[1].values<float>()[0], static_cast<float>(h / 8192));
  EXPECT_EQ(got[2].values<float>()[0], static_cast<float>(c / 32768));
}

// Differences to the float32 layer: one of 2^-12 in a gate and of 1e-4 in an activation, over some steps.
TEST(QLstm, NearTheFloatLayer) {
  for (const int64_t direction : {0, 1, 2}) {
    const Shapes s{9, 3, 5, 7, direction == 2 ? 2 : 1};
    LstmAttrs f;
    f.hidden_size = s.hidden, f.direction = direction;
    for (const DType type : {DType::kInt8, DType::kInt16}) {
      auto a = attributes<QLstmAttrs>(s.hidden, direction, kFloat32);
      a.x_zero = type == DType::kInt8 ? 9 : 0;
      const Layer l = layer(a, s, type == DType::kInt8 ? 0x1p-7 : 0x1p-15, type, 1);
      const std::vector<Tensor> got = run_op(a, l.integers, {.outputs = 3}),
                                want = run_op(f, l.floats, {.outputs = 3});
      for (size_t i = 0; i < 3; ++i) expect_near(got[i], want[i], 0, i == 2 ? 3e-3 : 1.5e-3);
    }
  }
}
TEST(QGru, NearTheFloatLayer) {
  for (const int64_t direction : {0, 1, 2})
    for (const int64_t linear : {0, 1}) {
      const Shapes s{9, 3, 5, 7, direction == 2 ? 2 : 1};
      GruAttrs f;
      f.hidden_size = s.hidden, f.direction = direction, f.linear_before_reset = linear;
      auto a = attributes<QGruAttrs>(s.hidden, direction, kFloat32);
      a.linear_before_reset = linear;
      const Layer l = layer(a, s, 0x1p-15, DType::kInt16, 2);
      const std::vector<Tensor> got = run_op(a, l.integers, {.outputs = 2}),
                                want = run_op(f, l.floats, {.outputs = 2});
      for (size_t i = 0; i < 2; ++i) expect_near(got[i], want[i], 0, 1.5e-3);
    }
}

// Hidden values and cells come back exactly: two runs over halves of a sequence give the bits of one.
TEST(QLstm, HalvesOfASequenceGiveTheWhole) {
  const Shapes s{10, 1, 4, 6, 1};
  const auto a = attributes<QLstmAttrs>(s.hidden, 0, kInt8);
  const Layer l = layer(a, s, 0x1p-15, DType::kInt16, 3);
  const std::vector<Tensor> whole = run_op(a, l.integers, {.outputs = 3});
  const auto x = l.integers[0].values<int16_t>();
  std::vector<Tensor> in = l.integers;
  std::vector<int8_t> y;
  std::vector<Tensor> part;
  for (const size_t half : {0u, 1u}) {
    in[0] =
        tensor<int16_t>({5, 1, 4}, std::vector<int16_t>(x.begin() + static_cast<ptrdiff_t>(20 * half),
                                                        x.begin() + static_cast<ptrdiff_t>(20 * half + 20)));
    part = run_op(a, in, {.outputs = 3});
    for (const int8_t v : part[0].values<int8_t>()) y.push_back(v);
    in[8] = part[1], in[9] = part[2];
  }
  EXPECT_EQ(y, whole[0].values<int8_t>());
  expect_equal(part[1], whole[1]);
  expect_equal(part[2], whole[2]);
}

TEST(QLstm, ShortSequencesAndLayouts) {
  const Shapes s{5, 3, 4, 6, 2};
  auto a = attributes<QLstmAttrs>(s.hidden, 2, kInt8);
  a.y_zero = 7;
  Layer l = layer(a, s, 0x1p-7, DType::kInt8, 4);
  l.integers[7] = tensor<int32_t>({3}, {5, 0, 2});
  const std::vector<Tensor> got = run_op(a, l.integers, {.outputs = 3});
  const auto y = got[0].values<int8_t>();
  for (int64_t t = 0; t < 5; ++t)
    for (int64_t d = 0; d < 2; ++d)
      for (int64_t i = 0; i < 6; ++i) {
        EXPECT_EQ(y[static_cast<size_t>(((t * 2 + d) * 3 + 1) * 6 + i)], 7) << "of a sequence without steps";
        if (t >= 2) {
          EXPECT_EQ(y[static_cast<size_t>(((t * 2 + d) * 3 + 2) * 6 + i)], 7) << "behind a sequence's end";
        }
      }
  std::vector<Tensor> wrong = l.integers;
  wrong[7] = tensor<int32_t>({3}, {5, 6, 2});
  expect_run_fails(Code::kOutOfRange, a, wrong);
}

template <class A>
void on_every_backend() {
  for (const Shapes& s : {Shapes{3, 1, 3, 1, 1}, Shapes{4, 2, 17, 33, 2}, Shapes{2, 3, 64, 16, 1},
                          Shapes{2, 1, 100, 130, 1}, Shapes{0, 2, 3, 4, 1}})
    for (const int64_t to : {kInt8, kInt16, kFloat32})
      for (const DType type : {DType::kInt8, DType::kInt16}) {
        auto a = attributes<A>(s.hidden, s.directions == 2 ? 2 : 1, to);
        a.x_zero = type == DType::kInt8 ? -100 : 0;
        if (to == kInt8) a.y_zero = -3;
        if constexpr (A::kOp == Op::kQGru) a.linear_before_reset = type == DType::kInt8 ? 1 : 0;
        Layer l = layer(a, s, type == DType::kInt8 ? 0x1p-5 : 0x1p-12, type, 5);
        check_taken_by("simd", a, l.integers);
        if (s.directions == 2) {
          l.integers[7] = tensor<int32_t>({2}, {3, 0});
          check_taken_by("simd", a, l.integers);
        }
      }
  // Batch first; tables for each direction; whatever a file may hold.
  const Shapes s{4, 3, 9, 11, 2};
  auto a = attributes<A>(s.hidden, 2, kFloat32);
  a.layout = 1;
  Layer l = layer(a, s, 0x1p-12, DType::kInt16, 6);
  constexpr bool kLstm = A::kOp == Op::kQLstm;
  l.integers[6] = noise<int16_t>({2, kLstm ? 3 : 2, 513}, -32768, 32767.9, 7);
  check_taken_by("simd", a, l.integers);
  const RunOptions all{.outputs = kLstm ? 3 : 2};
  check_taken_by("simd", a, l.integers, all);
  l.integers[3] = full<float>(l.integers[3].dims, kNan);
  l.integers[4] = full<float>(l.integers[4].dims, kInf);
  l.integers[1] = full<int8_t>(l.integers[1].dims, -128);
  check_taken_by("simd", a, l.integers);
}
TEST(QLstm, TheSameBitsOnEveryBackend) { on_every_backend<QLstmAttrs>(); }
TEST(QGru, TheSameBitsOnEveryBackend) { on_every_backend<QGruAttrs>(); }

TEST(QLstm, Refuses) {
  const Shapes s{2, 1, 3, 2, 1};
  const auto a = attributes<QLstmAttrs>(s.hidden, 0, kInt8);
  const Layer l = layer(a, s, 0x1p-7, DType::kInt8, 8);
  const auto refuse = [&](const std::function<void(QLstmAttrs&, std::vector<Tensor>&)>& change) {
    QLstmAttrs b = a;
    std::vector<Tensor> in = l.integers;
    change(b, in);
    expect_refused(b, in);
  };
  refuse([](QLstmAttrs& b, auto&) { b.hidden_size = 3; });
  refuse([](QLstmAttrs& b, auto&) { b.direction = 3; });
  refuse([](QLstmAttrs& b, auto&) { b.direction = 2; });
  refuse([](QLstmAttrs& b, auto&) { b.layout = 2; });
  refuse([](QLstmAttrs& b, auto&) { b.x_zero = 128; });
  refuse([](QLstmAttrs& b, auto&) { b.y_zero = -129; });
  refuse([](QLstmAttrs& b, auto&) { b.multiplier = std::nan(""); });
  refuse([](QLstmAttrs& b, auto&) { b.to = static_cast<int64_t>(DType::kInt32); });
  refuse([](QLstmAttrs&, auto& in) { in[0] = full<uint8_t>({2, 1, 3}, 1); });
  refuse([](QLstmAttrs&, auto& in) { in[1] = full<int8_t>({1, 8, 4}, 1); });
  refuse([](QLstmAttrs&, auto& in) { in[3] = full<float>({8}, 1); });
  refuse([](QLstmAttrs&, auto& in) { in[5] = full<float>({1, 8}, 1); });
  refuse([](QLstmAttrs&, auto& in) { in[6] = full<int16_t>({1, 3, 512}, 1); });
  refuse([](QLstmAttrs&, auto& in) { in[6] = full<int16_t>({2, 3, 513}, 1); });
  refuse([](QLstmAttrs&, auto& in) { in[9] = full<float>({1, 1, 3}, 1); });
}

}  // namespace
}  // namespace sinter::test
