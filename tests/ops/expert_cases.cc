// ExpertFullyConnected against the formula, on every backend.
#include <cmath>

#include "tests/op_harness/half_test.h"
#include "tests/op_harness/op_test.h"
#include "tests/ops/run_status.h"

namespace sinter::test {
namespace {

struct ExpertSizes {
  int64_t rows, experts, columns, depth, block;
};

// Experts that rows choose: the last one often, some of the others not at all.
Tensor expert_choices(int64_t rows, int64_t experts) {
  std::vector<int64_t> e;
  for (int64_t r = 0; r < rows; ++r) e.push_back(r % 3 == 0 ? experts - 1 : r * r % experts);
  return tensor<int64_t>({rows}, e);
}

// y[r] = weights of the expert of r times x[r], plus its bias. w: [experts, columns, depth].
Tensor expert_formula(const ExpertSizes& s, const Tensor& x, const Tensor& expert,
                      const std::vector<double>& w, const Tensor* bias) {
  const auto xv = x.values<float>();
  const auto ev = expert.values<int64_t>();
  const auto bv = bias != nullptr ? bias->values<float>() : std::vector<float>{};
  std::vector<float> y;
  for (int64_t r = 0; r < s.rows; ++r)
    for (int64_t c = 0; c < s.columns; ++c) {
      const int64_t row = ev[static_cast<size_t>(r)] * s.columns + c;
      double sum = bias != nullptr ? static_cast<double>(bv[static_cast<size_t>(row)]) : 0;
      for (int64_t k = 0; k < s.depth; ++k)
        sum += w[static_cast<size_t>(row * s.depth + k)] *
               static_cast<double>(xv[static_cast<size_t>(r * s.depth + k)]);
      y.push_back(static_cast<float>(sum));
    }
  return tensor<float>({s.rows, s.columns}, y);
}

std::vector<double> wide_numbers(const Tensor& t) {
  const auto v = t.values<float>();
  return {v.begin(), v.end()};
}

// Rows without an expert's four, exactly four, more, and panels of every width.
const ExpertSizes kExpertSizes[] = {{1, 1, 5, 6, 2},   {2, 8, 33, 64, 32},  {4, 3, 9, 50, 16},
                                    {7, 2, 40, 34, 8}, {13, 4, 70, 96, 32}, {40, 3, 100, 600, 64},
                                    {5, 6, 3, 2, 2},   {0, 3, 4, 8, 4},     {3, 2, 0, 8, 4}};

TEST(ExpertFullyConnected, FloatWeights) {
  for (const ExpertSizes& s : kExpertSizes) {
    SCOPED_TRACE(testing::Message() << s.rows << " rows, " << s.experts << " of " << s.columns << " x "
                                    << s.depth);
    const Tensor x = noise<float>({s.rows, s.depth}, -1, 1, 1), expert = expert_choices(s.rows, s.experts),
                 w = noise<float>({s.experts, s.columns, s.depth}, -1, 1, 2),
                 bias = noise<float>({s.experts, s.columns}, -1, 1, 3);
    const RunOptions taken{.taken_by = {"simd", "cuda-emulated"}};
    expect_near(run_op(ExpertFullyConnectedAttrs{}, {x, expert, w}, taken)[0],
                expert_formula(s, x, expert, wide_numbers(w), nullptr), 1e-6, 1e-6);
    expect_near(run_op(ExpertFullyConnectedAttrs{}, {x, expert, w, {}, {}, bias}, taken)[0],
                expert_formula(s, x, expert, wide_numbers(w), &bias), 1e-6, 1e-6);
    for (const DType type : kHalves) {
      const Tensor narrow = halved(w, type);
      expect_near(run_op(ExpertFullyConnectedAttrs{}, {x, expert, narrow, {}, {}, bias}, taken)[0],
                  expert_formula(s, x, expert, wide_numbers(unhalved<float>(narrow)), &bias), 1e-6, 1e-6);
    }
  }
}

// On every instruction set, in rows of any number: float16's infinity and NaN are not large numbers.
TEST(ExpertFullyConnected, WeightsThatAreNotFinite) {
  constexpr int64_t kDepth = 21;
  for (const int64_t rows : {1, 9}) {
    const Tensor x = full<float>({rows, kDepth}, 1), expert = full<int64_t>({rows}, 0);
    Tensor w = full<float>({1, 3, kDepth}, 1);
    std::vector<float> numbers = w.values<float>(), want;
    numbers[2] = HUGE_VALF, numbers[kDepth + 20] = kNan;
    for (int64_t r = 0; r < rows; ++r) want.insert(want.end(), {HUGE_VALF, kNan, static_cast<float>(kDepth)});
    w = halved(tensor<float>({1, 3, kDepth}, numbers), DType::kFloat16);
    expect_equal(
        run_op(ExpertFullyConnectedAttrs{}, {x, expert, w}, {.taken_by = {"simd", "cuda-emulated"}})[0],
        tensor<float>({rows, 3}, want));
  }
}

// Element i of packed bytes, low bits first.
double packed_expert_number(DType t, const Tensor& w, int64_t i) {
  const int bits = bit_width(t);
  const auto byte = static_cast<unsigned>(w.bytes[static_cast<size_t>(i * bits / 8)]);
  const unsigned code = byte >> (i * bits % 8) & ((1U << bits) - 1);
  const bool is_signed = t == DType::kInt8 || t == DType::kInt4 || t == DType::kInt2;
  return static_cast<double>(code) - (is_signed && (code >> (bits - 1)) != 0 ? 1 << bits : 0);
}

TEST(ExpertFullyConnected, LowBits) {
  for (const DType t :
       {DType::kUint4, DType::kInt4, DType::kUint8, DType::kInt8, DType::kUint2, DType::kInt2})
    for (const ExpertSizes& s : kExpertSizes) {
      SCOPED_TRACE(testing::Message() << dtype_name(t) << ": " << s.rows << " rows, " << s.experts << " of "
                                      << s.columns << " x " << s.depth << " by " << s.block);
      const int64_t blocks = (s.depth + s.block - 1) / s.block;
      const auto packed = [&](const Shape& dims, uint64_t seed) {
        const int64_t bytes = (dims[0] * dims[1] * dims[2] * bit_width(t) + 7) / 8;
        return Tensor{t, dims, noise<uint8_t>({bytes}, 0, 256, seed).bytes};
      };
      const Tensor x = noise<float>({s.rows, s.depth}, -1, 1, 1), expert = expert_choices(s.rows, s.experts),
                   w = packed({s.experts, s.columns, s.depth}, 2),
                   zeros = packed({s.experts, s.columns, blocks}, 4),
                   scales = noise<float>({s.experts, s.columns, blocks}, 0.05, 0.1, 5),
                   bias = noise<float>({s.experts, s.columns}, -1, 1, 3);
      const auto scale = scales.values<float>();
      const auto wide = [&](const Tensor* z) {
        std::vector<double> all;
        for (int64_t i = 0; i < s.experts * s.columns * s.depth; ++i) {
          const int64_t at = i / s.depth * blocks + i % s.depth / s.block;
          const double zero = z != nullptr ? packed_expert_number(t, *z, at) : 0;
          all.push_back((packed_expert_number(t, w, i) - zero) *
                        static_cast<double>(scale[static_cast<size_t>(at)]));
        }
        return all;
      };
      const ExpertFullyConnectedAttrs a{.block_size = s.block};
      RunOptions options;
      // Rows, blocks and an expert's zero points begin at whole bytes.
      const bool whole = s.columns * blocks * bit_width(t) % 8 == 0;
      if (bit_width(t) > 2 || (s.depth % 4 == 0 && (blocks <= 1 || s.block % 8 == 0)))
        options.taken_by = {"simd", "cuda-emulated"};
      expect_near(run_op(a, {x, expert, w, scales}, options)[0],
                  expert_formula(s, x, expert, wide(nullptr), nullptr), 1e-6, 1e-5);
      if (!whole) options.taken_by = {};
      expect_near(run_op(a, {x, expert, w, scales, zeros, bias}, options)[0],
                  expert_formula(s, x, expert, wide(&zeros), &bias), 1e-6, 1e-5);
    }
}

// In other types than float32, with narrower scales, and zero points that are numbers.
TEST(ExpertFullyConnected, OtherTypes) {
  const Tensor expert = tensor<int64_t>({2}, {1, 0}), w = tensor<uint8_t>({2, 1, 2}, {1, 2, 3, 4});
  const ExpertFullyConnectedAttrs a{.block_size = 2};
  expect_equal(run_op(a, {tensor<double>({2, 2}, {1, 10, 100, 1000}), expert, w, full<double>({2, 1, 1}, 0.5),
                          tensor<double>({2, 1, 1}, {0.5, 1})})[0],
               tensor<double>({2, 1}, {16, 775}));
  const Tensor x = tensor<float>({2, 2}, {1, 10, 100, 1000});
  expect_equal(run_op(a, {x, expert, w, halved(full<float>({2, 1, 1}, 0.5))})[0],
               tensor<float>({2, 1}, {21.5, 1050}));
  for (const DType type : kHalves)
    expect_equal(unhalved<float>(run_op(a, {halved(tensor<float>({2, 2}, {1, 2, 3, 4}), type), expert, w,
                                            halved(full<float>({2, 1, 1}, 2), type)})[0]),
                 tensor<float>({2, 1}, {22, 22}));
  // float8 weights: 1, 2 and -1, 0.5.
  const Tensor narrow = bits_tensor<uint8_t>(DType::kFloat8E4M3FN, {2, 1, 2}, {0x38, 0x40, 0xb8, 0x30});
  expect_equal(run_op(ExpertFullyConnectedAttrs{}, {x, expert, narrow})[0], tensor<float>({2, 1}, {4, 2100}));
  const Tensor small = tensor<float>({2, 2}, {1, 10, 100, 200});
  for (const DType type : kHalves)
    expect_equal(unhalved<float>(run_op(ExpertFullyConnectedAttrs{}, {halved(small, type), expert, narrow},
                                        {.taken_by = {"cuda-emulated"}})[0]),
                 tensor<float>({2, 1}, {4, 500}));
}

TEST(ExpertFullyConnected, ExpertsOutOfRangeFail) {
  const Tensor x = full<float>({3, 4}, 1), w = full<float>({2, 5, 4}, 1);
  for (const int64_t bad : {int64_t{-1}, int64_t{2}, INT64_MAX, INT64_MIN})
    expect_run_fails(Code::kOutOfRange, ExpertFullyConnectedAttrs{},
                     {x, tensor<int64_t>({3}, {0, bad, 1}), w});
  expect_run_fails(Code::kOutOfRange, ExpertFullyConnectedAttrs{},
                   {x, tensor<int64_t>({3}, {0, 0, 0}), full<float>({0, 5, 4}, 1)});
}

TEST(ExpertFullyConnected, Refuses) {
  const Tensor x = full<float>({3, 4}, 1), e = tensor<int64_t>({3}, {0, 1, 0}), w = full<float>({2, 5, 4}, 1),
               q = full<uint8_t>({2, 5, 4}, 1), s = full<float>({2, 5, 2}, 1);
  const ExpertFullyConnectedAttrs a{.block_size = 2};
  std::vector<TensorView> out;
  EXPECT_TRUE(infer_op(a, {x, e, q, s}, &out).ok());
  expect_refused(ExpertFullyConnectedAttrs{.block_size = 2, .bits = 3}, {x, e, q, s});
  expect_refused(ExpertFullyConnectedAttrs{.block_size = 0}, {x, e, q, s});
  expect_refused(a, {full<int32_t>({3, 4}, 1), e, q, s});
  expect_refused(a, {full<float>({3, 1, 4}, 1), e, q, s});
  expect_refused(a, {x, tensor<int32_t>({3}, {0, 1, 0}), q, s});
  expect_refused(a, {x, tensor<int64_t>({2}, {0, 1}), q, s});
  expect_refused(a, {x, e, full<float>({2, 5, 3}, 1)});
  expect_refused(a, {x, e, full<float>({5, 4}, 1)});
  expect_refused(a, {x, e, full<double>({2, 5, 4}, 1)});
  expect_refused(a, {x, e, q});
  expect_refused(a, {x, e, w, s});
  expect_refused(a, {x, e, q, full<double>({2, 5, 2}, 1)});
  expect_refused(a, {x, e, q, full<float>({2, 5, 1}, 1)});
  expect_refused(a, {x, e, q, full<float>({2, 10}, 1)});
  expect_refused(a, {x, e, q, s, full<int8_t>({2, 5, 2}, 1)});
  expect_refused(a, {x, e, q, s, full<uint8_t>({2, 5, 1}, 1)});
  expect_refused(a, {x, e, w, {}, full<float>({2, 5, 2}, 1)});
  const Tensor f{DType::kFloat8E4M3FN, {2, 5, 4}, q.bytes},
      places{DType::kUint4, {2, 5, 4}, std::vector<std::byte>(20)}, table = full<float>({16}, 1);
  EXPECT_TRUE(infer_op(a, {x, e, f, s}, &out).ok());
  EXPECT_TRUE(infer_op(a, {x, e, places, s, {}, {}, table}, &out).ok());
  expect_refused(a, {x, e, f, s, {DType::kFloat8E4M3FN, {2, 5, 2}, std::vector<std::byte>(20)}});
  expect_refused(a, {x, e, f, s, s});
  expect_refused(a, {x, e, f, {DType::kFloat4E2M1, {2, 5, 2}, std::vector<std::byte>(10)}});
  expect_refused(a, {x, e, {DType::kFloat8E8M0, {2, 5, 4}, q.bytes}, s});
  expect_refused(a, {x, e, places, {}, {}, {}, table});
  expect_refused(a, {x, e, places, s, s, {}, table});
  expect_refused(a, {x, e, q, s, {}, {}, table});
  expect_refused(a, {x, e, places, s, {}, {}, full<float>({15}, 1)});
  expect_refused(a, {x, e, places, s, {}, {}, full<float>({1, 16}, 1)});
  expect_refused(a, {x, e, places, s, {}, {}, full<double>({16}, 1)});
  expect_refused(a, {x, e, w, {}, {}, full<float>({5}, 1)});
  expect_refused(a, {x, e, w, {}, {}, full<double>({2, 5}, 1)});
}

}  // namespace
}  // namespace sinter::test
