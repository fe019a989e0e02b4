// Lstm, Gru and Transpose of many sizes.
#include <cmath>

#include "tests/op_harness/op_test.h"

namespace sinter::test {
namespace {

struct LayerSizes {
  int64_t steps, batch, input, hidden;
};

template <class A>
std::vector<Tensor> operands(const A& a, const LayerSizes& s, int64_t gates, bool all,
                             const std::vector<int32_t>& lengths) {
  const int64_t d = a.direction == 2 ? 2 : 1, rows = gates * s.hidden;
  const Shape x = a.layout == 1 ? Shape{s.batch, s.steps, s.input} : Shape{s.steps, s.batch, s.input};
  const Shape state = a.layout == 1 ? Shape{s.batch, d, s.hidden} : Shape{d, s.batch, s.hidden};
  const double range = 1.5 / std::sqrt(static_cast<double>(s.hidden));
  std::vector<Tensor> in{noise<float>(x, -1, 1, 1), noise<float>({d, rows, s.input}, -range, range, 2),
                         noise<float>({d, rows, s.hidden}, -range, range, 3)};
  if (all) in.push_back(noise<float>({d, 2 * rows}, -1, 1, 4));
  if (all) in.push_back(lengths.empty() ? Tensor{} : tensor<int32_t>({s.batch}, lengths));
  if (all) in.push_back(noise<float>(state, -1, 1, 5));
  if (all && A::kOp == Op::kLstm) in.push_back(noise<float>(state, -1, 1, 6));
  return in;
}

const LayerSizes kSizes[] = {{1, 1, 128, 128}, {7, 2, 5, 3}, {20, 1, 33, 19},
                             {3, 3, 1, 1},     {5, 2, 0, 8}, {0, 2, 4, 4}};

template <class A>
void check_all(int64_t gates, int outputs, A a = {}) {
  for (const LayerSizes& s : kSizes)
    for (const int64_t direction : {0, 1, 2})
      for (const int64_t layout : {0, 1})
        for (const bool all : {false, true}) {
          SCOPED_TRACE(testing::Message()
                       << s.steps << " steps, hidden " << s.hidden << ", direction " << direction);
          a.hidden_size = s.hidden, a.direction = direction, a.layout = layout;
          check_taken_by("simd", a, operands(a, s, gates, all, {}), {.outputs = outputs});
        }
  const LayerSizes s{6, 3, 4, 9};
  a.hidden_size = s.hidden, a.direction = 2, a.layout = 0;
  check_taken_by("simd", a, operands(a, s, gates, true, {6, 0, 2}), {.outputs = outputs});
  check_taken_by("simd", a, operands(a, s, gates, true, {6, 0, 2}), {.outputs = outputs, .unwanted = {0}});
}

TEST(Lstm, AgreesWithTheReference) { check_all<LstmAttrs>(4, 3); }
TEST(Gru, AgreesWithTheReference) {
  check_all<GruAttrs>(3, 2);
  GruAttrs a;
  a.linear_before_reset = 1;
  check_all<GruAttrs>(3, 2, a);
}

template <class T>
void check_transpose(const Shape& dims, const IntList& perm) {
  SCOPED_TRACE(testing::PrintToString(dims) + " by " +
               testing::PrintToString(Shape(perm.begin(), perm.end())));
  const Tensor x = sizeof(T) == 1 ? noise<T>(dims, 0, 250) : iota<T>(dims);
  Shape out;
  for (const int64_t p : perm) out.push_back(dims[static_cast<size_t>(p)]);
  Tensor want = full<T>(out, T{0});
  const auto v = x.values<T>();
  std::vector<T> moved(v.size());
  for (size_t i = 0; i < v.size(); ++i) {  // the element at output index i
    size_t rest = i, from = 0;
    std::vector<size_t> index(dims.size());
    for (size_t k = dims.size(); k-- > 0;) {
      const auto n = static_cast<size_t>(out[k]);
      index[static_cast<size_t>(perm[static_cast<int>(k)])] = rest % n;
      rest /= n;
    }
    for (size_t k = 0; k < dims.size(); ++k) from = from * static_cast<size_t>(dims[k]) + index[k];
    moved[i] = v[from];
  }
  want = tensor<T>(out, moved);
  RunOptions options{.taken_by = {"simd"}};
  expect_equal(run_op(TransposeAttrs{.perm = perm}, {x}, options)[0], want);
}

TEST(Transpose, MovesEveryElement) {
  const std::pair<Shape, IntList> cases[] = {
      {{}, {}},
      {{5}, {0}},
      {{4, 4}, {1, 0}},
      {{37, 70}, {1, 0}},
      {{3, 5, 7}, {2, 1, 0}},
      {{2, 3, 33, 35}, {0, 2, 3, 1}},
      {{2, 9, 10, 3}, {0, 3, 1, 2}},
      {{2, 12, 4, 8}, {0, 2, 1, 3}},
      {{1, 6, 1, 5}, {3, 2, 1, 0}},
      {{2, 3, 4, 5, 6}, {4, 0, 3, 1, 2}},
      {{0, 3}, {1, 0}},
      {{3, 4, 5}, {0, 1, 2}},
      {{2, 3, 50, 90}, {0, 2, 3, 1}},
      {{2, 50, 90, 3}, {0, 3, 1, 2}},
      {{3, 3}, {1, 0}},
      {{3, 70, 2}, {1, 0, 2}},
      {{100, 24}, {1, 0}},
      {{2, 300, 16}, {0, 2, 1}},
  };
  for (const auto& [dims, perm] : cases) {
    check_transpose<float>(dims, perm);
    check_transpose<uint8_t>(dims, perm);
    check_transpose<int16_t>(dims, perm);
    check_transpose<double>(dims, perm);
  }
}

}  // namespace
}  // namespace sinter::test
