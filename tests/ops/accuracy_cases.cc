// Float functions of numbers of every size, arithmetic of every shape, normalization and reductions: how
// exact backends are.
#include <cmath>
#include <limits>
#include <string>

#include "runtime/core/op_enums.h"
#include "tests/op_harness/op_test.h"

namespace sinter::test {
namespace {

// NEON of 32-bit ARM takes and gives zero for numbers below the smallest normal one; no option changes that.
#ifdef __arm__
constexpr int kSmallestExponent = -125;
#else
constexpr int kSmallestExponent = -140;
#endif

// Numbers of all magnitudes, and the special ones.
Tensor many_values(bool positive = false) {
  std::vector<float> v;
  for (int e = kSmallestExponent; e <= 127; ++e)
    for (const float m : {1.0f, 1.3f, 1.77f}) {
      v.push_back(std::ldexp(m, e));
      if (!positive) v.push_back(-std::ldexp(m, e));
    }
  for (int i = -4000; i <= 4000; ++i)
    if (i >= 0 || !positive) v.push_back(static_cast<float>(i) * 0.0127f);
  for (const float x : {0.0f, -0.0f, 1.0f, std::numeric_limits<float>::infinity(),
                        -std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
    v.push_back(x);
  return tensor<float>({static_cast<int64_t>(v.size())}, v);
}

TEST(Unary, AllMagnitudes) {
  const Tensor x = many_values();
  check_taken_by("simd", AbsAttrs{}, {x});
  check_taken_by("simd", NegAttrs{}, {x});
  for (const int64_t fn : {0, 1, 2}) check_taken_by("simd", RoundAttrs{.fn = fn}, {x});
  check_taken_by("simd", SqrtAttrs{}, {x});
  check_taken_by("simd", RsqrtAttrs{}, {x});
  check_taken_by("simd", ExpAttrs{}, {x});
  check_taken_by("simd", LogAttrs{}, {x});
  check_taken_by("simd", ErfAttrs{}, {x});
  check_taken_by("simd", SigmoidAttrs{}, {x});
  check_taken_by("simd", TanhAttrs{}, {x});
  check_taken_by("simd", SoftplusAttrs{}, {x});
  check_taken_by("simd", ClampAttrs{.min = -1.5, .max = 6}, {x});
  check_taken_by("simd", LeakyReluAttrs{.alpha = 0.125}, {x});
}

TEST(Unary, Activations) {
  const Tensor x = noise<float>({3, 7001}, -12, 12, 5);
  check_taken_by("simd", HardSigmoidAttrs{}, {x});
  check_taken_by("simd", HardSwishAttrs{}, {x});
  check_taken_by("simd", GeluAttrs{}, {x});
  // Rounding the sigmoid's argument z is an error of |z| units there: absolute, as
  // platforms/simd/isa/math-inl.h documents.
  check_taken_by("simd", GeluAttrs{.tanh_approximation = 1}, {x});
  check_taken_by("simd", SiluAttrs{}, {x});
  check_taken_by("simd", SiluAttrs{}, {noise<float>({1, 7001}, -80, 80, 6)});
  check_taken_by("simd", SiluAttrs{}, {tensor<float>({4}, {1e38f, -1e38f, HUGE_VALF, NAN})});
  check_taken_by("simd", SiluAttrs{.alpha = 1.702}, {x});
  check_taken_by("simd", EluAttrs{}, {x});
  check_taken_by("simd", EluAttrs{.alpha = 1.6732632423543772, .beta = 1, .gamma = 1.0507009873554805}, {x});
  check_taken_by("simd", EluAttrs{.alpha = 2, .beta = 0.5, .gamma = 1}, {x});
}

TEST(Unary, AnyLength) {
  for (int64_t n = 0; n < 70; ++n) {
    check_taken_by("simd", SigmoidAttrs{}, {noise<float>({n}, -3, 3, 2)});
    check_taken_by("simd", SiluAttrs{}, {noise<float>({n}, -70, 70, 2)});
  }
  check_taken_by("simd", SigmoidAttrs{}, {noise<float>({}, -3, 3, 2)});
}

template <class A>
void check_binary(const A& attrs) {
  const std::pair<Shape, Shape> shapes[] = {{{}, {}},
                                            {{5}, {}},
                                            {{}, {7}},
                                            {{2, 3, 37}, {2, 3, 37}},
                                            {{2, 3, 37}, {37}},
                                            {{3, 1}, {1, 70}},
                                            {{4, 33, 3}, {4, 33, 1}},
                                            {{2, 1, 5, 9}, {3, 1, 9}},
                                            {{0, 4}, {4}},
                                            {{40000}, {40000}},
                                            {{2, 20000}, {2, 1}},
                                            {{1, 6, 6, 16}, {1, 1, 1, 16}},
                                            {{41, 6, 16}, {16}},
                                            {{16}, {41, 6, 16}},
                                            {{700, 3}, {3}},
                                            {{3, 257}, {257}},
                                            {{1, 6, 6, 16}, {1, 6, 6, 1}}};
  for (const auto& [a, b] : shapes) {
    SCOPED_TRACE(testing::PrintToString(a) + " with " + testing::PrintToString(b));
    check_taken_by("simd", attrs, {noise<float>(a, -3, 3, 1), noise<float>(b, 0.5, 3, 2)});
  }
}

TEST(Binary, Broadcasts) {
  check_binary(AddAttrs{});
  check_binary(AddAttrs{.act_min = 0, .act_max = 4});
  check_binary(SubAttrs{});
  check_binary(MulAttrs{});
  check_binary(DivAttrs{});
  check_binary(MinAttrs{});
  check_binary(MaxAttrs{});
  check_binary(SubAttrs{.act_min = 0});
  const Tensor x = noise<float>({2, 5, 33}, -3, 3, 1);
  check_taken_by("simd", PReluAttrs{}, {x, noise<float>({33}, 0, 1, 2)});
  check_taken_by("simd", PReluAttrs{}, {x, noise<float>({5, 1}, 0, 1, 2)});
  check_taken_by("simd", PowAttrs{}, {x, tensor<float>({}, {2})});
  check_taken_by("simd", PowAttrs{}, {x, tensor<float>({1}, {3})});
}

TEST(Binary, NanAndInfinities) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor a = tensor<float>({6}, {nan, 1, inf, -inf, nan, 0}),
               b = tensor<float>({6}, {1, nan, 2, 2, nan, 0});
  check_taken_by("simd", MinAttrs{}, {a, b});
  check_taken_by("simd", MaxAttrs{}, {a, b});
  check_taken_by("simd", AddAttrs{.act_min = -1, .act_max = 5}, {a, b});
  check_taken_by("simd", DivAttrs{}, {a, b});
}

TEST(Rope, BothOrdersAndBroadcasts) {
  for (const int64_t interleaved : {0, 1})
    for (const int64_t half : {1, 4, 8, 9, 32, 35}) {
      const Tensor x = noise<float>({2, 3, 5, 2 * half + 3}, -2, 2, 1);
      for (const Shape& s : {Shape{half}, Shape{5, half}, Shape{3, 1, half}, Shape{2, 1, 5, half}})
        check_taken_by("simd", RopeAttrs{.interleaved = interleaved, .rotary_dim = 2 * half},
                       {x, noise<float>(s, -1, 1, 2), noise<float>(s, -1, 1, 3)});
    }
  check_taken_by("simd", RopeAttrs{},
                 {noise<float>({0, 4}, 0, 1, 1), full<float>({2}, 1), full<float>({2}, 1)});
}

TEST(Softmax, LastAxis) {
  for (const Shape& s : {Shape{1}, Shape{5, 1}, Shape{3, 2}, Shape{4, 17}, Shape{2, 3, 64}, Shape{1, 1000},
                         Shape{200, 50}, Shape{2, 7, 1}, Shape{0, 4}}) {
    SCOPED_TRACE(testing::PrintToString(s));
    const auto axis = static_cast<int64_t>(s.size()) - 1;
    const Tensor x = noise<float>(s, -20, 20, 3);
    check_taken_by("simd", SoftmaxAttrs{.axis = axis}, {x});
    check_taken_by("simd", SoftmaxAttrs{.axis = axis, .log = 1}, {x});
  }
  check_taken_by("simd", SoftmaxAttrs{.axis = 1}, {noise<float>({3, 5, 1}, -1, 1, 3)});
  // Rows shorter than half a vector, of every instruction set.
  for (int64_t n = 1; n <= 9; ++n)
    for (const int64_t rows : {1, 3, 4, 17, 5000}) {
      const Tensor x = noise<float>({rows, n}, -9, 9, 4);
      check_taken_by("simd", SoftmaxAttrs{.axis = 1}, {x});
      check_taken_by("simd", SoftmaxAttrs{.axis = 1, .log = 1}, {x});
    }
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  check_taken_by(
      "simd", SoftmaxAttrs{.axis = 1},
      {tensor<float>({5, 3}, {1, -inf, 1, -inf, -inf, -inf, nan, 1, 2, 1, 2, nan, 1000, 0, -1000})});
}

TEST(Norm, Rows) {
  for (const auto& [s, axis] : {std::pair<Shape, int64_t>{{3, 1}, 1},
                                {{5, 7}, 1},
                                {{2, 3, 768}, 2},
                                {{2, 3, 50}, 1},
                                {{4, 4099}, 1},
                                {{0, 3}, 1}}) {
    SCOPED_TRACE(testing::PrintToString(s));
    const Shape own(s.begin() + axis, s.end());
    const Tensor x = noise<float>(s, 2, 5, 1), scale = noise<float>(own, -2, 2, 2),
                 bias = noise<float>(own, -2, 2, 3);
    check_taken_by("simd", LayerNormAttrs{.axis = axis}, {x, scale});
    check_taken_by("simd", LayerNormAttrs{.axis = axis, .epsilon = 1e-3}, {x, scale, bias}, {.outputs = 3});
    check_taken_by("simd", RmsNormAttrs{.axis = axis}, {x, scale});
  }
}

TEST(Norm, Groups) {
  for (const auto& [s, groups] : {std::pair<Shape, int64_t>{{2, 5, 6, 8}, 4},
                                  {{1, 33, 37, 30}, 30},
                                  {{2, 9, 32}, 1},
                                  {{1, 3000, 3}, 3},
                                  {{3, 4}, 2},
                                  {{1, 0, 4}, 2}}) {
    SCOPED_TRACE(testing::PrintToString(s));
    const Shape own{s.back()};
    check_taken_by("simd", GroupNormAttrs{.groups = groups},
                   {noise<float>(s, 1, 4, 1), noise<float>(own, -2, 2, 2), noise<float>(own, -2, 2, 3)});
  }
}

TEST(Reduce, NeighbouringAxes) {
  struct {
    Shape shape;
    IntList axes;
  } cases[] = {{{7}, {0}},
               {{3, 50}, {1}},
               {{3, 50}, {0}},
               {{2, 7, 7, 40}, {1, 2}},
               {{2, 7, 7, 40}, {2, 3}},
               {{4, 5, 6}, {0, 1, 2}},
               {{5, 10000}, {1}},
               {{1, 10000, 5}, {1}},
               {{2, 3, 200}, {1}},
               {{4, 1, 9}, {1}},
               {{1, 1, 6, 9}, {0, 3}},
               {{300, 3}, {1}}};
  for (const auto& [shape, axes] : cases)
    for (const ReduceFn fn : {ReduceFn::kSum, ReduceFn::kMean, ReduceFn::kMax, ReduceFn::kMin,
                              ReduceFn::kSumSquare, ReduceFn::kL1}) {
      SCOPED_TRACE(testing::PrintToString(shape) + " fn " + std::to_string(static_cast<int>(fn)));
      check_taken_by("simd", ReduceAttrs{.fn = static_cast<int64_t>(fn), .axes = axes},
                     {noise<float>(shape, -1, 3, 1)});
    }
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor special = tensor<float>({4, 3}, {1, nan, 2, -inf, -inf, -inf, inf, 1, 2, nan, 1, 3});
  for (const int64_t axis : {0, 1})
    for (const ReduceFn fn : {ReduceFn::kSum, ReduceFn::kMax, ReduceFn::kMin})
      check_taken_by("simd", ReduceAttrs{.fn = static_cast<int64_t>(fn), .axes = {axis}}, {special});
}

}  // namespace
}  // namespace sinter::test
