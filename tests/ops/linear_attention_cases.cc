// LinearAttention against the recurrence, on every backend.
#include <cmath>
#include <cstring>

#include "runtime/core/op_enums.h"
#include "tests/op_harness/half_test.h"
#include "tests/op_harness/op_test.h"

namespace sinter::test {
namespace {

struct StateSizes {
  int64_t batch, tokens, queries, heads, key_size, value_size;
  bool decay_by_key = false, beta_by_head = true;

  int64_t results() const { return std::max(queries, heads); }
};

struct StateOperands {
  Tensor q, k, v, state, decay, beta;
};
StateOperands state_operands(const StateSizes& s) {
  return {noise<float>({s.batch, s.tokens, s.queries, s.key_size}, -1, 1, 1),
          noise<float>({s.batch, s.tokens, s.heads, s.key_size}, -0.4, 0.4, 2),
          noise<float>({s.batch, s.tokens, s.heads, s.value_size}, -1, 1, 3),
          noise<float>({s.batch, s.heads, s.key_size, s.value_size}, -1, 1, 4),
          noise<float>({s.batch, s.tokens, s.heads, s.decay_by_key ? s.key_size : 1}, -1, 0, 5),
          noise<float>({s.batch, s.tokens, s.beta_by_head ? s.heads : 1}, 0, 1, 6)};
}

double element_at(const Tensor& t, std::initializer_list<int64_t> index) {
  int64_t i = 0;
  size_t axis = 0;
  for (const int64_t n : index) i = i * t.dims[axis++] + n;
  float value = 0;
  std::memcpy(&value, t.bytes.data() + static_cast<size_t>(i) * sizeof(float), sizeof(float));
  return static_cast<double>(value);
}

struct StateResult {
  std::vector<float> y;
  std::vector<std::vector<float>> states;  // after each token, and before the first
};

// S' = e^g S + beta k (v - (e^g S)^T k)^T and y = scale S'^T q, written down head by head as matrices.
StateResult recurrence(const StateSizes& s, const StateOperands& o, LinearAttentionRule rule, bool with_state,
                       double scale) {
  const bool gated = rule == LinearAttentionRule::kGated || rule == LinearAttentionRule::kGatedDelta,
             delta = rule == LinearAttentionRule::kDelta || rule == LinearAttentionRule::kGatedDelta;
  const auto count = static_cast<size_t>(s.batch * s.heads * s.key_size * s.value_size);
  StateResult r;
  r.y.resize(static_cast<size_t>(s.batch * s.tokens * s.results() * s.value_size));
  r.states.assign(static_cast<size_t>(s.tokens + 1), std::vector<float>(count));
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h) {
      const auto n = static_cast<size_t>(s.key_size * s.value_size);
      const auto cell = [&](int64_t d, int64_t j) { return static_cast<size_t>(d * s.value_size + j); };
      std::vector<double> state(n, 0);
      for (int64_t d = 0; d < s.key_size && with_state; ++d)
        for (int64_t j = 0; j < s.value_size; ++j) state[cell(d, j)] = element_at(o.state, {b, h, d, j});
      const auto keep = [&](int64_t t) {
        for (size_t i = 0; i < n; ++i)
          r.states[static_cast<size_t>(t)][static_cast<size_t>(b * s.heads + h) * n + i] =
              static_cast<float>(state[i]);
      };
      keep(0);
      for (int64_t t = 0; t < s.tokens; ++t) {
        for (int64_t d = 0; d < s.key_size && gated; ++d)
          for (int64_t j = 0; j < s.value_size; ++j)
            state[cell(d, j)] *= std::exp(element_at(o.decay, {b, t, h, s.decay_by_key ? d : 0}));
        std::vector<double> add;
        for (int64_t j = 0; j < s.value_size; ++j) {
          double v = element_at(o.v, {b, t, h, j});
          for (int64_t d = 0; d < s.key_size && delta; ++d)
            v -= element_at(o.k, {b, t, h, d}) * state[cell(d, j)];
          add.push_back(delta ? v * element_at(o.beta, {b, t, s.beta_by_head ? h : 0}) : v);
        }
        for (int64_t d = 0; d < s.key_size; ++d)
          for (int64_t j = 0; j < s.value_size; ++j)
            state[cell(d, j)] += element_at(o.k, {b, t, h, d}) * add[static_cast<size_t>(j)];
        keep(t + 1);
        for (int64_t i = 0; i < s.results(); ++i) {
          const int64_t own = s.queries >= s.heads ? i / (s.queries / s.heads) : i,
                        query = s.queries >= s.heads ? i : i / (s.heads / s.queries);
          if (own != h) continue;
          for (int64_t j = 0; j < s.value_size; ++j) {
            double sum = 0;
            for (int64_t d = 0; d < s.key_size; ++d)
              sum += element_at(o.q, {b, t, query, d}) * state[cell(d, j)];
            r.y[static_cast<size_t>(((b * s.tokens + t) * s.results() + i) * s.value_size + j)] =
                static_cast<float>(scale * sum);
          }
        }
      }
    }
  return r;
}

const LinearAttentionRule kStateRules[] = {LinearAttentionRule::kLinear, LinearAttentionRule::kGated,
                                           LinearAttentionRule::kDelta, LinearAttentionRule::kGatedDelta};

std::vector<Tensor> state_inputs(const StateOperands& o, LinearAttentionRule rule, bool with_state) {
  const bool gated = rule == LinearAttentionRule::kGated || rule == LinearAttentionRule::kGatedDelta,
             delta = rule == LinearAttentionRule::kDelta || rule == LinearAttentionRule::kGatedDelta;
  std::vector<Tensor> all{
      o.q, o.k, o.v, with_state ? o.state : Tensor{}, gated ? o.decay : Tensor{}, delta ? o.beta : Tensor{}};
  while (all.back().dtype == DType::kNone) all.pop_back();
  return all;
}

// Heads alone, grouped and inversely grouped; columns that end within vectors.
const StateSizes kStateSizes[] = {
    {1, 1, 1, 1, 1, 1},        {1, 1, 2, 2, 16, 70, true}, {2, 5, 4, 2, 9, 5, false, false},
    {1, 7, 2, 6, 8, 33, true}, {1, 3, 3, 3, 5, 16},        {2, 4, 8, 4, 12, 130, true, false}};

TEST(LinearAttention, AgreesWithTheRecurrence) {
  for (const StateSizes& s : kStateSizes)
    for (const LinearAttentionRule rule : kStateRules)
      for (const bool with_state : {true, false}) {
        SCOPED_TRACE(testing::Message() << s.tokens << " tokens, " << s.queries << " and " << s.heads
                                        << " heads of " << s.key_size << " x " << s.value_size << ", rule "
                                        << static_cast<int>(rule) << (with_state ? ", a state" : ""));
        const StateOperands o = state_operands(s);
        const LinearAttentionAttrs a{.scale = 0.5, .rule = static_cast<int64_t>(rule)};
        const auto y = run_op(a, state_inputs(o, rule, with_state),
                              {.outputs = 2, .taken_by = {"simd", "cuda-emulated"}});
        const StateResult want = recurrence(s, o, rule, with_state, 0.5);
        expect_near(y[0], tensor<float>({s.batch, s.tokens, s.results(), s.value_size}, want.y), 1e-6, 1e-6);
        expect_near(y[1], tensor<float>(o.state.dims, want.states.back()), 1e-6, 1e-6);
        const auto alone =
            run_op(a, state_inputs(o, rule, with_state), {.taken_by = {"simd", "cuda-emulated"}});
        expect_equal(alone[0], y[0]);
      }
}

TEST(LinearAttention, Windows) {
  const StateSizes s{2, 3, 2, 1, 4, 6};
  const StateOperands o = state_operands(s);
  const auto rule = LinearAttentionRule::kGatedDelta;
  for (const int64_t window : {1, 2, 3, 5}) {
    const LinearAttentionAttrs a{.rule = static_cast<int64_t>(rule), .window = window};
    const auto y =
        run_op(a, state_inputs(o, rule, true), {.outputs = 2, .taken_by = {"simd", "cuda-emulated"}});
    const StateResult want = recurrence(s, o, rule, true, 1);
    std::vector<float> states;
    for (int64_t slot = 0; slot < window; ++slot) {
      const int64_t token = s.tokens - window + slot;
      const std::vector<float> none(want.states[0].size(), 0);
      const std::vector<float>& one = token < 0 ? none : want.states[static_cast<size_t>(token + 1)];
      states.insert(states.end(), one.begin(), one.end());
    }
    expect_near(y[1], tensor<float>({window, 2, 1, 4, 6}, states), 1e-6, 1e-6);
  }
}

TEST(LinearAttention, NoTokens) {
  const StateSizes s{1, 0, 2, 2, 3, 4};
  const StateOperands o = state_operands(s);
  const auto rule = LinearAttentionRule::kLinear;
  expect_equal(run_op(LinearAttentionAttrs{}, state_inputs(o, rule, true), {.outputs = 2})[1], o.state);
  expect_equal(run_op(LinearAttentionAttrs{}, state_inputs(o, rule, false), {.outputs = 2})[1],
               full<float>({1, 2, 3, 4}, 0));
  expect_equal(run_op(LinearAttentionAttrs{.window = 2}, state_inputs(o, rule, true), {.outputs = 2})[1],
               full<float>({2, 1, 2, 3, 4}, 0));
}

// The state of 16-bit queries is float32.
TEST(LinearAttention, In16Bits) {
  const StateSizes s{1, 4, 2, 2, 6, 5};
  const auto rule = LinearAttentionRule::kGatedDelta;
  const LinearAttentionAttrs a{.rule = static_cast<int64_t>(rule)};
  for (const DType type : kHalves) {
    StateOperands o = state_operands(s);
    for (Tensor* t : {&o.q, &o.k, &o.v, &o.decay, &o.beta}) *t = unhalved<float>(halved(*t, type));
    std::vector<Tensor> in = state_inputs(o, rule, true);
    for (const size_t i : {0, 1, 2, 4, 5}) in[i] = halved(in[i], type);
    const auto y = run_op(a, in, {.outputs = 2});
    const StateResult want = recurrence(s, o, rule, true, 1);
    ASSERT_EQ(y[0].dtype, type);
    expect_near(unhalved<float>(y[0]), tensor<float>({1, 4, 2, 5}, want.y),
                type == DType::kFloat16 ? 0x1.01p-11 : 0x1.01p-8, 1e-7);
    expect_near(y[1], tensor<float>(o.state.dims, want.states.back()), 1e-6, 1e-6);
    in[3] = halved(o.state, type);
    expect_refused(a, in);
  }
}

TEST(LinearAttention, Refuses) {
  const Tensor q = full<float>({1, 2, 4, 3}, 1), k = full<float>({1, 2, 2, 3}, 1),
               v = full<float>({1, 2, 2, 5}, 1), state = full<float>({1, 2, 3, 5}, 1),
               g = full<float>({1, 2, 2, 1}, 1), beta = full<float>({1, 2, 2}, 1);
  const LinearAttentionAttrs plain, gated{.rule = 1}, delta{.rule = 2}, both{.rule = 3};
  std::vector<TensorView> out;
  EXPECT_TRUE(infer_op(both, {q, k, v, state, g, beta}, &out).ok());
  expect_refused(LinearAttentionAttrs{.rule = 4}, {q, k, v});
  expect_refused(LinearAttentionAttrs{.window = -1}, {q, k, v});
  expect_refused(LinearAttentionAttrs{.window = INT64_MAX}, {q, k, v});
  expect_refused(plain, {q, k, v, state, g});
  expect_refused(gated, {q, k, v, state});
  expect_refused(gated, {q, k, v, state, g, beta});
  expect_refused(delta, {q, k, v, state, {}});
  expect_refused(both, {q, k, v, state, g});
  expect_refused(both, {q, k, v, state, full<float>({1, 2, 2, 2}, 1), beta});
  expect_refused(both, {q, k, v, state, full<float>({1, 2, 1, 1}, 1), beta});
  expect_refused(both, {q, k, v, state, g, full<float>({1, 2, 3}, 1)});
  expect_refused(both, {q, k, v, state, g, full<double>({1, 2, 2}, 1)});
  expect_refused(plain, {q, k, v, full<float>({1, 2, 5, 3}, 1)});
  expect_refused(plain, {q, k, v, full<double>({1, 2, 3, 5}, 1)});
  expect_refused(plain, {q, full<float>({1, 2, 2, 4}, 1), v});
  expect_refused(plain, {q, full<float>({1, 3, 2, 3}, 1), v});
  expect_refused(plain, {q, k, full<float>({1, 2, 3, 5}, 1)});
  expect_refused(plain, {full<float>({1, 2, 3, 3}, 1), k, v});
  expect_refused(plain, {full<int32_t>({1, 2, 4, 3}, 1), full<int32_t>({1, 2, 2, 3}, 1),
                         full<int32_t>({1, 2, 2, 5}, 1)});
}

}  // namespace
}  // namespace sinter::test
