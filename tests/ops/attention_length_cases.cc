// Attention over the keys that exist: lengths, windows, caps, sinks, and keys and values in narrow types.
// Costs two seconds.
#include <cmath>
#include <limits>
#include <optional>

#include "runtime/core/float_formats.h"
#include "runtime/core/op_enums.h"
#include "tests/op_harness/half_test.h"
#include "tests/ops/run_status.h"

namespace sinter::test {
namespace {

struct LengthSizes {
  int64_t batch, heads, groups, queries, keys, size, values;
};

struct Operands {
  Tensor q, k, v, bias, lengths, sinks, key_scales, value_scales;

  std::vector<Tensor> list() const {
    std::vector<Tensor> all{q, k, v, bias, lengths, sinks, key_scales, value_scales};
    while (all.back().dtype == DType::kNone) all.pop_back();
    return all;
  }
};

Operands noise_of(const LengthSizes& s) {
  return {noise<float>({s.batch, s.heads, s.queries, s.size}, -2, 2, 1),
          noise<float>({s.batch, s.groups, s.keys, s.size}, -2, 2, 2),
          noise<float>({s.batch, s.groups, s.keys, s.values}, -2, 2, 3),
          {},
          {},
          {},
          {},
          {}};
}

// What Attention is defined to be, for float32 operands.
Tensor formula(const LengthSizes& s, const AttentionAttrs& a, const Operands& o) {
  const auto q = o.q.values<float>(), k = o.k.values<float>(), v = o.v.values<float>();
  const auto bias = o.bias.dtype == DType::kNone ? std::vector<float>{} : o.bias.values<float>();
  std::vector<float> y;
  for (int64_t b = 0; b < s.batch; ++b) {
    const int64_t length = o.lengths.dtype == DType::kNone ? s.keys : o.lengths.values<int64_t>()[size_t(b)];
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t i = 0; i < s.queries; ++i) {
        const int64_t row = (b * s.heads + h) * s.queries + i;
        const int64_t first = (b * s.groups + h / (s.heads / s.groups)) * s.keys;
        const int64_t last = a.causal != 0 ? i + length - s.queries : length - 1;
        std::vector<double> sums(size_t(s.values), 0);
        double total =
            o.sinks.dtype == DType::kNone ? 0 : std::exp(double{o.sinks.values<float>()[size_t(h)]});
        bool any = false;
        for (int64_t j = 0; j < length; ++j) {
          if (j > last || (a.window > 0 && j <= last - a.window)) continue;
          double score = 0;
          for (int64_t d = 0; d < s.size; ++d)
            score += double{q[size_t(row * s.size + d)]} * double{k[size_t((first + j) * s.size + d)]};
          score *= a.scale;
          if (a.softcap > 0) score = a.softcap * std::tanh(score / a.softcap);
          if (!bias.empty()) score += double{bias[size_t(i * s.keys + j)]};
          const double weight = std::exp(score);
          any = true, total += weight;
          for (int64_t d = 0; d < s.values; ++d)
            sums[size_t(d)] += weight * double{v[size_t((first + j) * s.values + d)]};
        }
        for (const double sum : sums) y.push_back(any ? static_cast<float>(sum / total) : 0.0f);
      }
  }
  return tensor<float>({s.batch, s.heads, s.queries, s.values}, y);
}

// Fills rows of keys or values from each sequence's length on.
Tensor poisoned(const Tensor& rows, const Tensor& lengths, float with) {
  auto numbers = rows.values<float>();
  const auto& d = rows.dims;
  for (int64_t r = 0; r < d[0] * d[1] * d[2]; ++r)
    if (r % d[2] >= lengths.values<int64_t>()[size_t(r / d[2] / d[1])])
      std::fill_n(numbers.begin() + r * d[3], d[3], with);
  return tensor<float>(d, numbers);
}

constexpr LengthSizes kAll[] = {{2, 4, 2, 1, 9, 8, 8},
                                {2, 6, 2, 3, 40, 33, 17},
                                {1, 4, 1, 2, 600, 16, 40},
                                {2, 4, 2, 50, 70, 16, 9},
                                {1, 2, 2, 60, 700, 8, 16}};

void check(const LengthSizes& s, const AttentionAttrs& a, const Operands& o) {
  SCOPED_TRACE(testing::PrintToString(
      std::vector<int64_t>{s.batch, s.heads, s.queries, s.keys, a.causal, a.window, a.softcap > 0}));
  expect_near(run_op(a, o.list(), RunOptions{.taken_by = {"simd", "cuda-emulated"}})[0], formula(s, a, o),
              1e-5, 1e-6);
}

// What is behind the length is not read: it may be anything.
TEST(AttentionLengths, OnlyKeysThatExistTakePart) {
  for (const LengthSizes& s : kAll)
    for (const int64_t causal : {0, 1})
      for (const int64_t length : {int64_t{0}, int64_t{1}, s.keys / 2, s.keys}) {
        Operands o = noise_of(s);
        o.lengths = tensor<int64_t>({s.batch}, s.batch == 1 ? std::vector<int64_t>{length}
                                                            : std::vector<int64_t>{length, s.keys - length});
        o.k = poisoned(o.k, o.lengths, kNan), o.v = poisoned(o.v, o.lengths, kNan);
        check(s, {.scale = 0.35, .causal = causal}, o);
        if (length == s.keys / 2) o.bias = noise<float>({s.queries, s.keys}, -1, 1, 5);
        check(s, {.scale = 0.35, .causal = causal}, o);
      }
}

TEST(AttentionLengths, WindowsCapsAndSinks) {
  for (const LengthSizes& s : kAll) {
    Operands o = noise_of(s);
    for (const int64_t window : {int64_t{1}, int64_t{5}, s.keys + 3})
      check(s, {.scale = 0.35, .causal = 1, .window = window}, o);
    check(s, {.scale = 0.35, .softcap = 1.5}, o);
    o.sinks = noise<float>({s.heads}, -1, 3, 6);
    check(s, {.scale = 0.35, .causal = 1}, o);
    o.lengths = full<int64_t>({s.batch}, s.keys - 2);
    o.bias = noise<float>({s.queries, s.keys}, -1, 1, 5);
    check(s, {.scale = 0.35, .causal = 1, .softcap = 2, .window = 7}, o);
  }
}

TEST(AttentionLengths, WithoutKeysAResultIsZeros) {
  for (const int64_t rule : {0, 1, 2, 3})
    for (const int64_t queries : {1, 20}) {
      Operands o = noise_of({1, 2, 1, queries, 5, 4, 3});
      o.lengths = full<int64_t>({1}, 0), o.sinks = full<float>({2}, 1);
      expect_equal(run_op(AttentionAttrs{.rule = rule}, o.list(),
                          RunOptions{.taken_by = {"simd", "cuda-emulated"}})[0],
                   full<float>({1, 2, queries, 3}, 0));
    }
}

Tensor narrowed(const Tensor& x, DType type) {
  if (type != DType::kFloat8E4M3FN) return halved(x, type);
  std::vector<uint8_t> codes;
  for (const float f : x.values<float>())
    codes.push_back(uint8_t(encode_float<kFloat8E4M3FNFormat>(double{f})));
  Tensor t = tensor<uint8_t>(x.dims, codes);
  t.dtype = type;
  return t;
}
Tensor widened(const Tensor& x, DType type) {
  if (type != DType::kFloat8E4M3FN) return unhalved<float>(x);
  Tensor codes = x;
  codes.dtype = DType::kUint8;
  std::vector<float> numbers;
  for (const uint8_t c : codes.values<uint8_t>())
    numbers.push_back(static_cast<float>(decode_float<kFloat8E4M3FNFormat>(c)));
  return tensor<float>(x.dims, numbers);
}

// Of 16-bit queries, with keys and values in their type and in 8 bits, few queries and tiles of them.
TEST(AttentionLengths, In16Bits) {
  for (const DType type : kHalves)
    for (const LengthSizes& s : {kAll[1], kAll[3], LengthSizes{1, 4, 2, 70, 150, 72, 40}})
      for (const bool narrow : {false, true}) {
        SCOPED_TRACE(testing::PrintToString(std::vector<int64_t>{static_cast<int>(type), s.keys, narrow}));
        Operands o = noise_of(s);
        o.lengths = full<int64_t>({s.batch}, s.keys - 5);
        o.k = poisoned(o.k, o.lengths, 9), o.v = poisoned(o.v, o.lengths, 9);
        const DType stored = narrow ? DType::kFloat8E4M3FN : type;
        o.q = halved(o.q, type), o.k = narrowed(o.k, stored), o.v = narrowed(o.v, stored);
        o.sinks = halved(noise<float>({s.heads}, -1, 3, 6), type);
        const RunOptions options{.taken_by = {"cuda-emulated"}};
        run_op(AttentionAttrs{.scale = 0.35, .causal = 1, .window = 11}, o.list(), options);
        o.bias = noise<float>({s.queries, s.keys}, -1, 1, 5);
        run_op(AttentionAttrs{.scale = 0.35, .causal = 1, .softcap = 2}, o.list(), options);
      }
}

// A key that a bias or causality hides need not be finite, wherever the ranges of keys are cut.
TEST(AttentionLengths, HiddenKeysNeedNotBeFinite) {
  for (const LengthSizes& s : {kAll[2], kAll[4]}) {
    Operands o = noise_of(s);
    auto bias = std::vector<float>(size_t(s.queries * s.keys), 0.0f);
    auto k = o.k.values<float>(), v = o.v.values<float>();
    for (const int64_t j : {int64_t{0}, s.keys / 2, s.keys - 1}) {
      for (int64_t i = 0; i < s.queries; ++i) bias[size_t(i * s.keys + j)] = -kInf;
      k[size_t(j * s.size)] = kNan, v[size_t(j * s.values)] = kInf;
    }
    const Operands clean = [&] {
      Operands c = o;
      c.bias = tensor<float>({s.queries, s.keys}, bias);
      return c;
    }();
    o.bias = clean.bias, o.k = tensor<float>(o.k.dims, k), o.v = tensor<float>(o.v.dims, v);
    const AttentionAttrs a{.scale = 0.35};
    expect_near(run_op(a, o.list(), RunOptions{.taken_by = {"simd", "cuda-emulated"}})[0],
                formula(s, a, clean), 1e-5, 1e-6);
  }
}

// Rules whose results are not those of kHides, over several ranges of keys.
TEST(AttentionLengths, RulesOverManyKeys) {
  for (const LengthSizes& s : {LengthSizes{1, 2, 1, 2, 600, 8, 8}, LengthSizes{1, 2, 1, 40, 600, 8, 8}})
    for (const int64_t rule : {0, 1, 2, 3})
      for (const float masked : {-kInf, -1e9f}) {
        // By kHides the reference does not lose the scores that float32 loses in -1e9.
        if (rule == 0 && masked != -kInf) continue;
        Operands o = noise_of(s);
        auto bias = std::vector<float>(size_t(s.queries * s.keys), 0.0f);
        std::fill_n(bias.begin(), s.keys, masked);        // all keys of the first query
        std::fill_n(bias.begin() + s.keys, 300, masked);  // the first range of the second
        o.bias = tensor<float>({s.queries, s.keys}, bias);
        o.lengths = full<int64_t>({1}, 590);
        run_op(AttentionAttrs{.scale = 0.35, .rule = rule}, o.list(),
               RunOptions{.in_float64 = false, .taken_by = {"simd", "cuda-emulated"}});
      }
}

// ---- narrow keys and values

TEST(AttentionNarrow, ReadsElementsOfFewBits) {
  for (const DType type : {DType::kFloat16, DType::kBFloat16, DType::kFloat8E4M3FN})
    for (const LengthSizes& s : kAll) {
      SCOPED_TRACE(testing::PrintToString(std::pair{static_cast<int>(type), s.keys}));
      const AttentionAttrs a{.scale = 0.35, .causal = 1};
      Operands o = noise_of(s), wide = o;
      o.k = narrowed(o.k, type), o.v = narrowed(o.v, type);
      wide.k = widened(o.k, type), wide.v = widened(o.v, type);
      const RunOptions options{.taken_by = {"simd", "cuda-emulated"}};
      expect_near(run_op(a, o.list(), options)[0], formula(s, a, wide), 1e-5, 1e-6);
      o.v = wide.v;  // each may have a type of its own
      expect_near(run_op(a, o.list(), options)[0], formula(s, a, wide), 1e-5, 1e-6);
    }
}

// All codes of float8, as values of keys that are looked up one by one.
// float16's infinity and NaN are not large numbers, on any instruction set.
TEST(AttentionNarrow, ValuesThatAreNotFinite) {
  constexpr int64_t kKeys = 3, kSize = 11;
  std::vector<float> numbers(kKeys * kSize, 2), want(kSize, 2);
  numbers[kSize + 1] = HUGE_VALF, numbers[kSize + 10] = kNan;
  want[1] = HUGE_VALF, want[10] = kNan;
  const Tensor v = halved(tensor<float>({1, 1, kKeys, kSize}, numbers), DType::kFloat16),
               k = halved(full<float>({1, 1, kKeys, 4}, 0), DType::kFloat16);
  expect_equal(run_op(AttentionAttrs{}, {full<float>({1, 1, 1, 4}, 1), k, v},
                      {.taken_by = {"simd", "cuda-emulated"}})[0],
               tensor<float>({1, 1, 1, kSize}, want));
}

TEST(AttentionNarrow, EveryCodeOfFloat8) {
  std::vector<uint8_t> codes;
  std::vector<float> want;
  for (int c = 0; c < 256; ++c) {
    codes.push_back(uint8_t(c));
    want.push_back(static_cast<float>(decode_float<kFloat8E4M3FNFormat>(uint32_t(c))));
  }
  Tensor v = tensor<uint8_t>({1, 1, 1, 256}, codes);
  v.dtype = DType::kFloat8E4M3FN;
  for (const int64_t queries : {1, 60})
    for (const Tensor& y :
         run_op(AttentionAttrs{}, {full<float>({1, 1, queries, 1}, 1), full<float>({1, 1, 1, 1}, 1), v}))
      for (int64_t i = 0; i < queries * 256; ++i) {
        const float found = y.values<float>()[size_t(i)], wanted = want[size_t(i % 256)];
        ASSERT_TRUE(found == wanted || (std::isnan(found) && std::isnan(wanted))) << i % 256;
      }
}

struct Quantized {
  Tensor numbers, scales;
};
Quantized quantized(const Tensor& x) {
  const auto rows = run_op(QuantizeRowsAttrs{}, {x}, RunOptions{.in_float64 = false});
  return {rows[0], rows[1]};
}
Tensor dequantized(const Quantized& q) {
  std::vector<float> x;
  const auto numbers = q.numbers.values<int8_t>();
  const auto scales = q.scales.values<float>();
  const auto size = size_t(q.numbers.dims.back());
  for (size_t i = 0; i < numbers.size(); ++i) x.push_back(static_cast<float>(numbers[i]) * scales[i / size]);
  return tensor<float>(q.numbers.dims, x);
}

TEST(AttentionNarrow, ReadsInt8WithAScaleForEachRow) {
  for (const LengthSizes& s : kAll) {
    SCOPED_TRACE(s.keys);
    const AttentionAttrs a{.scale = 0.35, .causal = 1};
    Operands o = noise_of(s), wide = o;
    const Quantized k = quantized(o.k), v = quantized(o.v);
    o.k = k.numbers, o.key_scales = k.scales, o.v = v.numbers, o.value_scales = v.scales;
    wide.k = dequantized(k), wide.v = dequantized(v);
    o.lengths = wide.lengths = full<int64_t>({s.batch}, s.keys - 3);
    expect_near(
        run_op(a, o.list(), RunOptions{.in_float64 = false, .taken_by = {"simd", "cuda-emulated"}})[0],
        formula(s, a, wide), 1e-5, 1e-6);
  }
}

// Two elements of 4 bits in a byte, the even one in the low half, each plus 8.
Tensor paired(const Tensor& codes) {
  const auto c = codes.values<int8_t>();
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < c.size(); i += 2) bytes.push_back(uint8_t((c[i] + 8) | (c[i + 1] + 8) << 4));
  std::vector<int64_t> dims = codes.dims;
  dims.back() /= 2;
  return tensor<uint8_t>(dims, bytes);
}
Tensor numbers_of(const Tensor& codes, const Tensor& scales) { return dequantized({codes, scales}); }

// Rows of any even number of elements: those that are not a multiple of a vector, and those of one byte.
constexpr LengthSizes kPairs[] = {{2, 4, 2, 1, 9, 8, 2},     {2, 6, 2, 3, 40, 34, 18},
                                  {1, 8, 1, 1, 600, 64, 64}, {1, 4, 1, 2, 600, 16, 40},
                                  {2, 4, 2, 50, 70, 16, 10}, {1, 2, 2, 60, 700, 8, 66}};

TEST(AttentionNarrow, ReadsPairsOf4Bits) {
  for (const LengthSizes& s : kPairs)
    for (const bool scaled : {false, true}) {
      SCOPED_TRACE(testing::PrintToString(std::vector<int64_t>{s.keys, s.size, s.values, scaled}));
      const AttentionAttrs a{.scale = 0.05, .causal = 1};
      Operands o = noise_of(s), wide = o;
      const Tensor k = noise<int8_t>(o.k.dims, -8, 8, 4), v = noise<int8_t>(o.v.dims, -8, 8, 5);
      const std::vector<int64_t> rows{s.batch, s.groups, s.keys};
      Tensor key_scales = full<float>(rows, 1), value_scales = key_scales;
      if (scaled) {
        o.key_scales = key_scales = noise<float>(rows, 0.2f, 1.5f, 6);
        o.value_scales = value_scales = noise<float>(rows, 0.2f, 1.5f, 7);
      }
      o.k = paired(k), o.v = paired(v);
      wide.k = numbers_of(k, key_scales), wide.v = numbers_of(v, value_scales);
      o.lengths = wide.lengths = full<int64_t>({s.batch}, s.keys - 3);
      const RunOptions options{.in_float64 = false, .taken_by = {"simd", "cuda-emulated"}};
      expect_near(run_op(a, o.list(), options)[0], formula(s, a, wide), 1e-5, 1e-5);
      o.v = noise_of(s).v, o.value_scales = {};  // each may have a type of its own
      wide.v = o.v;
      expect_near(run_op(a, o.list(), options)[0], formula(s, a, wide), 1e-5, 1e-5);
    }
}

// Sums that are not finite are added up again, element by element.
TEST(AttentionNarrow, PairsOfAKeyWhoseScaleIsNotFinite) {
  const Tensor v = paired(tensor<int8_t>({1, 1, 2, 6}, {1, -8, 7, 0, 3, -1, 1, 1, -1, 1, 0, 1}));
  const Tensor k = full<float>({1, 1, 2, 4}, 0), scales = tensor<float>({1, 1, 2}, {2, kInf});
  const float hidden = -kInf;
  for (const int64_t queries : {1, 40}) {
    std::vector<float> want;
    for (int64_t i = 0; i < queries; ++i) want.insert(want.end(), {2, -16, 14, 0, 6, -2});
    const Tensor y = run_op(
        AttentionAttrs{},
        {full<float>({1, 1, queries, 4}, 1), k, v, tensor<float>({1, 2}, {0, hidden}), {}, {}, {}, scales},
        {.in_float64 = false, .taken_by = {"simd"}})[0];
    expect_equal(y, tensor<float>({1, 1, queries, 6}, want));
  }
}

TEST(AttentionNarrow, EveryPairOf4Bits) {
  std::vector<uint8_t> bytes;
  std::vector<float> want;
  for (int c = 0; c < 256; ++c) {
    bytes.push_back(uint8_t(c));
    want.push_back(static_cast<float>(c % 16 - 8)), want.push_back(static_cast<float>(c / 16 - 8));
  }
  for (const int64_t queries : {1, 60}) {
    std::vector<float> rows;
    for (int64_t i = 0; i < queries; ++i) rows.insert(rows.end(), want.begin(), want.end());
    expect_equal(run_op(AttentionAttrs{}, {full<float>({1, 1, queries, 1}, 1), full<float>({1, 1, 1, 1}, 1),
                                           tensor<uint8_t>({1, 1, 1, 256}, bytes)})[0],
                 tensor<float>({1, 1, queries, 512}, rows));
  }
}

TEST(AttentionNarrow, ReadsInt8WithoutScales) {
  for (const LengthSizes& s : kAll) {
    SCOPED_TRACE(s.keys);
    const AttentionAttrs a{.scale = 0.002, .causal = 1};
    Operands o = noise_of(s), wide = o;
    const Quantized k = quantized(o.k), v = quantized(o.v);
    const Tensor ones = full<float>(k.scales.dims, 1);
    o.k = k.numbers, o.v = v.numbers;
    wide.k = numbers_of(k.numbers, ones), wide.v = numbers_of(v.numbers, ones);
    expect_near(
        run_op(a, o.list(), RunOptions{.in_float64 = false, .taken_by = {"simd", "cuda-emulated"}})[0],
        formula(s, a, wide), 1e-5, 1e-4);
  }
}

TEST(QuantizeRows, RoundsToTheLargestMagnitude) {
  const Tensor x = tensor<float>({2, 2, 3}, {1, -2, 0.5f, 0, 0, 0, 127, 1.5f, 2.5f, kInf, 1, 2});
  const auto y = run_op(QuantizeRowsAttrs{}, {x}, RunOptions{.in_float64 = false});
  expect_equal(y[0], tensor<int8_t>({2, 2, 3}, {64, -127, 32, 0, 0, 0, 127, 2, 2, 0, 0, 0}));
  expect_equal(y[1], tensor<float>({2, 2}, {2.0f / 127, 0, 1, kNan}));
  for (const DType type : kHalves) {
    const auto h = run_op(QuantizeRowsAttrs{}, {halved(tensor<float>({1, 3}, {1, -2, 0.5f}), type)});
    expect_equal(h[0], tensor<int8_t>({1, 3}, {64, -127, 32}));
  }
  expect_refused(QuantizeRowsAttrs{}, {full<float>({}, 1)});
  expect_refused(QuantizeRowsAttrs{}, {full<int8_t>({2, 2}, 1)});
}

// ---- refusals

TEST(AttentionLengths, Refuses) {
  const LengthSizes s{2, 4, 2, 1, 5, 8, 8};
  const AttentionAttrs plain{.scale = 0.35};
  const auto refused = [&](const AttentionAttrs& a, const std::function<void(Operands&)>& change) {
    Operands o = noise_of(s);
    change(o);
    expect_refused(a, o.list());
  };
  const auto nothing = [](Operands&) {};
  refused({.window = 2}, nothing);
  refused({.causal = 1, .window = -1}, nothing);
  refused({.softcap = -1}, nothing);
  refused({.softcap = std::numeric_limits<double>::infinity()}, nothing);
  refused({.softcap = std::numeric_limits<double>::quiet_NaN()}, nothing);
  refused(plain, [](Operands& o) { o.lengths = full<int64_t>({1}, 1); });
  refused(plain, [](Operands& o) { o.lengths = full<int32_t>({2}, 1); });
  refused(plain, [](Operands& o) { o.lengths = full<int64_t>({2, 1}, 1); });
  refused(plain, [](Operands& o) { o.sinks = full<float>({2}, 1); });
  refused(plain, [](Operands& o) { o.sinks = full<double>({4}, 1); });
  refused(plain, [](Operands& o) { o.key_scales = full<float>({2, 2, 5}, 1); });
  refused(plain, [](Operands& o) {
    o.k = full<int8_t>({2, 2, 5, 8}, 1), o.key_scales = full<float>({2, 2}, 1);
  });
  refused(plain, [](Operands& o) {
    o.k = full<int8_t>({2, 2, 5, 8}, 1), o.key_scales = full<float>({2, 5, 2}, 1);
  });
  refused(plain, [](Operands& o) { o.k = full<uint8_t>({2, 2, 5, 8}, 1); });  // 16 elements
  refused(plain, [](Operands& o) { o.k = full<uint8_t>({2, 2, 5, 3}, 1); });
  refused(plain, [](Operands& o) {
    o.k = full<uint8_t>({2, 2, 5, 4}, 1), o.key_scales = full<float>({2, 2}, 1);
  });
  refused(plain, [](Operands& o) { o.v = full<uint16_t>({2, 2, 5, 4}, 1); });
  refused(plain, [](Operands& o) {
    o.v = narrowed(o.v, DType::kFloat8E4M3FN), o.value_scales = full<float>({2, 2, 5}, 1);
  });
  refused(plain, [](Operands& o) { o.q = halved(o.q); });  // keys are not wider than queries
  for (const int64_t length : {int64_t{-1}, int64_t{6}, INT64_MAX, INT64_MIN}) {
    Operands o = noise_of(s);
    o.lengths = tensor<int64_t>({2}, {1, length});
    expect_run_fails(Code::kOutOfRange, plain, o.list());
  }
}

}  // namespace
}  // namespace sinter::test
