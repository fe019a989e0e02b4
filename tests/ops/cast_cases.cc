// Cast: every pair of dtypes runs; what does not fit, halves, packed types, float8 saturation.

#include <cmath>
#include <limits>
#include <string>

#include "runtime/core/float_formats.h"
#include "tests/op_harness/op_test.h"

namespace sinter::test {
namespace {

// Element `bits` of any floating-point dtype narrower than float32.
double decode_narrow_float(DType t, uint32_t bits) {
  switch (t) {
    case DType::kFloat16:
      return decode_float<kFloat16Format>(bits);
    case DType::kBFloat16:
      return decode_float<kBFloat16Format>(bits);
    case DType::kFloat8E4M3FN:
      return decode_float<kFloat8E4M3FNFormat>(bits);
    case DType::kFloat8E4M3FNUZ:
      return decode_float<kFloat8E4M3FNUZFormat>(bits);
    case DType::kFloat8E5M2:
      return decode_float<kFloat8E5M2Format>(bits);
    case DType::kFloat8E5M2FNUZ:
      return decode_float<kFloat8E5M2FNUZFormat>(bits);
    case DType::kFloat8E8M0:
      return decode_e8m0(static_cast<uint8_t>(bits));
    case DType::kFloat4E2M1:
      return decode_float<kFloat4E2M1Format>(bits);
    default:
      return std::numeric_limits<double>::quiet_NaN();
  }
}

Tensor cast(const Tensor& x, DType to, bool saturate = true) {
  CastAttrs a;
  a.to = static_cast<int64_t>(to), a.saturate = saturate ? 1 : 0;
  return run_op(a, {x})[0];
}
template <class T>
std::vector<T> cast_bits(const Tensor& x, DType to, bool saturate = true) {
  return cast(x, to, saturate).values<T>();
}
Tensor packed(DType dtype, Shape dims, std::initializer_list<int> bytes) {
  Tensor t{dtype, std::move(dims), {}};
  for (const int b : bytes) t.bytes.push_back(static_cast<std::byte>(b));
  return t;
}

TEST(Cast, FloatToIntegerTruncatesAndSaturates) {
  const Tensor x = tensor<float>({8}, {1.9f, -1.9f, 300, -300, 3e9f, -3e9f, kInf, kNan});
  expect_equal(cast(x, DType::kInt8), tensor<int8_t>({8}, {1, -1, 127, -128, 127, -128, 127, 0}));
  expect_equal(cast(x, DType::kUint8), tensor<uint8_t>({8}, {1, 0, 255, 0, 255, 0, 255, 0}));
  expect_equal(cast(x, DType::kInt32),
               tensor<int32_t>({8}, {1, -1, 300, -300, INT32_MAX, INT32_MIN, INT32_MAX, 0}));
  expect_equal(cast(tensor<double>({3}, {9.3e18, -9.3e18, 2147483647.5}), DType::kInt64),
               tensor<int64_t>({3}, {INT64_MAX, INT64_MIN, 2147483647}));
  expect_equal(cast(tensor<double>({2}, {1.9e19, -1}), DType::kUint64),
               tensor<uint64_t>({2}, {UINT64_MAX, 0}));
}

TEST(Cast, Float32AndWideIntegers) {
  expect_equal(cast(tensor<float>({6}, {9.3e18f, -9.3e18f, -0.9f, 2147483648.0f, kInf, kNan}), DType::kInt64),
               tensor<int64_t>({6}, {INT64_MAX, INT64_MIN, 0, 2147483648, INT64_MAX, 0}));
  expect_equal(cast(tensor<float>({3}, {-0.0f, kNan, 1e-45f}), DType::kBool),
               tensor<bool>({3}, {false, true, true}));
  expect_equal(cast(tensor<int64_t>({3}, {16777217, 9007199791611905, -1}), DType::kFloat32),
               tensor<float>({3}, {16777216.0f, 9007200328482816.0f, -1}));
  expect_equal(cast(tensor<int32_t>({2}, {16777219, INT32_MIN}), DType::kFloat32),
               tensor<float>({2}, {16777220.0f, -2147483648.0f}));
}

TEST(Cast, NarrowerIntegersKeepTheLowBits) {
  expect_equal(cast(tensor<int32_t>({3}, {300, -1, 128}), DType::kInt8), tensor<int8_t>({3}, {44, -1, -128}));
  expect_equal(cast(tensor<int8_t>({1}, {-1}), DType::kUint64), tensor<uint64_t>({1}, {UINT64_MAX}));
  expect_equal(cast(tensor<uint64_t>({1}, {UINT64_MAX}), DType::kInt32), tensor<int32_t>({1}, {-1}));
}

TEST(Cast, Bool) {
  expect_equal(cast(tensor<float>({4}, {0, -0.f, 0.25f, kNan}), DType::kBool),
               tensor<bool>({4}, {false, false, true, true}));
  expect_equal(cast(tensor<int32_t>({2}, {0, 256}), DType::kBool), tensor<bool>({2}, {false, true}));
  expect_equal(cast(tensor<bool>({2}, {true, false}), DType::kFloat32), tensor<float>({2}, {1, 0}));
  expect_equal(cast(bits_tensor<uint8_t>(DType::kBool, {2}, {7, 0}), DType::kBool),
               tensor<bool>({2}, {true, false}));
}

TEST(Cast, Float16) {
  const Tensor x =
      tensor<float>({9}, {1, -2.5f, 65504, 65519, 65520, 5.9604645e-8f, 2.9802322e-8f, kInf, -0.f});
  EXPECT_EQ(cast_bits<uint16_t>(x, DType::kFloat16),
            (std::vector<uint16_t>{0x3c00, 0xc100, 0x7bff, 0x7bff, 0x7c00, 1, 0, 0x7c00, 0x8000}));
  expect_equal(
      cast(bits_tensor<uint16_t>(DType::kFloat16, {4}, {0x3c01, 0x0001, 0xfc00, 0x7e00}), DType::kFloat32),
      tensor<float>({4}, {1.0009765625f, 5.9604645e-8f, -kInf, kNan}));
  // Between two halves, a hair above the middle: through float it would fall on the even one.
  EXPECT_EQ(cast_bits<uint16_t>(tensor<double>({1}, {1 + 0x1p-11 + 0x1p-40}), DType::kFloat16),
            (std::vector<uint16_t>{0x3c01}));
}

TEST(Cast, BFloat16RoundsOnceAlsoFromIntegers) {
  EXPECT_EQ(cast_bits<uint16_t>(tensor<float>({4}, {1, 1.00390625f, 1.01171875f, 3.4e38f}), DType::kBFloat16),
            (std::vector<uint16_t>{0x3f80, 0x3f80, 0x3f82, 0x7f80}));
  // 2^62 + 2^54 is the middle; one more must go up although a double cannot hold it.
  const int64_t middle = (int64_t{1} << 62) + (int64_t{1} << 54);
  EXPECT_EQ(cast_bits<uint16_t>(tensor<int64_t>({3}, {middle, middle + 1, -middle - 1}), DType::kBFloat16),
            (std::vector<uint16_t>{0x5e80, 0x5e81, 0xde81}));
  expect_equal(cast(tensor<int64_t>({2}, {(1 << 24) + 1, INT64_MAX}), DType::kFloat32),
               tensor<float>({2}, {16777216.f, 9223372036854775808.f}));
}

TEST(Cast, Float8SaturatesOrNot) {
  const Tensor x = tensor<float>({5}, {448, 465, 1e6f, -kInf, kNan});
  EXPECT_EQ(cast_bits<uint8_t>(x, DType::kFloat8E4M3FN),
            (std::vector<uint8_t>{0x7e, 0x7e, 0x7e, 0xfe, 0x7f}));
  EXPECT_EQ(cast_bits<uint8_t>(x, DType::kFloat8E4M3FN, false),
            (std::vector<uint8_t>{0x7e, 0x7f, 0x7f, 0xff, 0x7f}));
  EXPECT_EQ(cast_bits<uint8_t>(x, DType::kFloat8E4M3FNUZ),
            (std::vector<uint8_t>{0x7f, 0x7f, 0x7f, 0xff, 0x80}));
  EXPECT_EQ(cast_bits<uint8_t>(x, DType::kFloat8E5M2), (std::vector<uint8_t>{0x5f, 0x5f, 0x7b, 0xfb, 0x7e}));
  EXPECT_EQ(cast_bits<uint8_t>(x, DType::kFloat8E5M2, false),
            (std::vector<uint8_t>{0x5f, 0x5f, 0x7c, 0xfc, 0x7e}));
  EXPECT_EQ(cast_bits<uint8_t>(x, DType::kFloat8E5M2FNUZ, false),
            (std::vector<uint8_t>{0x63, 0x63, 0x80, 0x80, 0x80}));
  EXPECT_EQ(cast_bits<uint8_t>(tensor<float>({1}, {-0.f}), DType::kFloat8E4M3FNUZ),
            (std::vector<uint8_t>{0}));
  EXPECT_EQ(cast_bits<uint8_t>(tensor<float>({6}, {1, 1.5f, 0, -4, kInf, 3e38f}), DType::kFloat8E8M0),
            (std::vector<uint8_t>{127, 128, 0, 129, 255, 254}));
}

// Dense narrow floats take a way of their own; in other layouts they do not, and run_op compares the two.
TEST(Cast, EveryCodeOfNarrowFloatsIsWidenedExactly) {
  for (const DType t : {DType::kFloat16, DType::kBFloat16}) {
    std::vector<uint16_t> codes(65536);
    for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint16_t>(i);
    const Tensor x = bits_tensor(t, {256, 256}, codes);
    const std::vector<float> y = cast(x, DType::kFloat32).values<float>();
    for (uint32_t i = 0; i < 65536; ++i) {
      const double want = decode_narrow_float(t, i);
      ASSERT_TRUE(want != want ? y[i] != y[i] : static_cast<double>(y[i]) == want) << i;
      ASSERT_TRUE(want != want || std::signbit(y[i]) == std::signbit(want)) << i;
    }
  }
  for (const DType t : {DType::kFloat8E4M3FN, DType::kFloat8E4M3FNUZ, DType::kFloat8E5M2,
                        DType::kFloat8E5M2FNUZ, DType::kFloat8E8M0}) {
    std::vector<uint8_t> codes(2048);
    for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(i);
    const std::vector<float> y = cast(bits_tensor(t, {64, 32}, codes), DType::kFloat32).values<float>();
    for (uint32_t i = 0; i < codes.size(); ++i) {
      const double want = decode_narrow_float(t, i & 255);
      ASSERT_TRUE(want != want ? y[i] != y[i] : static_cast<double>(y[i]) == want) << i;
      ASSERT_TRUE(want != want || std::signbit(y[i]) == std::signbit(want)) << i;
    }
  }
}

TEST(Cast, PackedTypesHaveTheLowBitsFirst) {
  expect_equal(cast(packed(DType::kInt4, {3}, {0x8f, 0x07}), DType::kInt8), tensor<int8_t>({3}, {-1, -8, 7}));
  expect_equal(cast(packed(DType::kUint4, {3}, {0x8f, 0x07}), DType::kFloat32),
               tensor<float>({3}, {15, 8, 7}));
  expect_equal(cast(packed(DType::kInt2, {5}, {0xe4, 0x01}), DType::kInt32),
               tensor<int32_t>({5}, {0, 1, -2, -1, 1}));
  expect_equal(cast(packed(DType::kUint2, {2, 2}, {0xe4}), DType::kInt64),
               tensor<int64_t>({2, 2}, {0, 1, 2, 3}));
  expect_equal(cast(packed(DType::kFloat4E2M1, {4}, {0x20, 0xf7}), DType::kFloat32),
               tensor<float>({4}, {0, 1, 6, -6}));
  EXPECT_EQ(cast(tensor<float>({3}, {-9, 7.9f, 8}), DType::kInt4).bytes,
            packed(DType::kInt4, {3}, {0x77, 0x08}).bytes);
  EXPECT_EQ(cast(tensor<int8_t>({5}, {1, 2, 3, -1, 1}), DType::kUint2).bytes,
            packed(DType::kUint2, {5}, {0xf9, 0x01}).bytes);
  EXPECT_EQ(cast(tensor<float>({4}, {0.25f, 5, -100, kNan}), DType::kFloat4E2M1).bytes,
            packed(DType::kFloat4E2M1, {4}, {0x60, 0x8f}).bytes);
  // Longer than a run, and odd.
  const Tensor x = iota<int32_t>({3, 67});
  expect_equal(cast(cast(x, DType::kUint4), DType::kInt32), [&] {
    std::vector<int32_t> low;
    for (const int32_t v : x.values<int32_t>()) low.push_back(v & 15);
    return tensor<int32_t>({3, 67}, low);
  }());
}

TEST(Cast, EveryPairKeepsSmallNumbers) {
  const Tensor x = tensor<float>({2, 2}, {0, 1, 1, 0});
  for (int from = 1; from < static_cast<int>(DType::kCount); ++from)
    for (int to = 1; to < static_cast<int>(DType::kCount); ++to) {
      const auto f = static_cast<DType>(from), t = static_cast<DType>(to);
      if (f == DType::kFloat8E8M0 || t == DType::kFloat8E8M0) continue;  // has no zero
      if (f == DType::kInt2 || t == DType::kInt2) continue;              // compared above
      SCOPED_TRACE(std::string(dtype_name(f)) + " to " + dtype_name(t));
      expect_equal(cast(cast(cast(x, f), t), DType::kFloat32), x);
    }
}

TEST(Cast, EmptyAndRefused) {
  expect_equal(cast(tensor<float>({0, 3}, {}), DType::kInt8), tensor<int8_t>({0, 3}, {}));
  CastAttrs a;
  for (const int64_t to : {INT64_C(0), INT64_C(24), INT64_C(-1), INT64_MAX}) {
    a.to = to;
    expect_refused(a, {iota<float>({2})});
  }
}

// Every code of a narrow format survives a round trip through double.
template <FloatFormat F>
void expect_round_trip() {
  for (uint32_t bits = 0; bits < (1u << F.bits()); ++bits) {
    const double v = decode_float<F>(bits);
    if (v != v)
      EXPECT_TRUE(std::isnan(decode_float<F>(encode_float<F>(v))));
    else
      EXPECT_EQ(encode_float<F>(v), bits) << v;
  }
}
TEST(FloatFormats, RoundTrip) {
  expect_round_trip<kFloat16Format>();
  expect_round_trip<kBFloat16Format>();
  expect_round_trip<kFloat8E4M3FNFormat>();
  expect_round_trip<kFloat8E4M3FNUZFormat>();
  expect_round_trip<kFloat8E5M2Format>();
  expect_round_trip<kFloat8E5M2FNUZFormat>();
  expect_round_trip<kFloat4E2M1Format>();
  for (int code = 0; code < 255; ++code)
    EXPECT_EQ(encode_e8m0(decode_e8m0(static_cast<uint8_t>(code))), code);
}

// Between neighbours everything goes to the nearer one, the middle to the even one.
template <FloatFormat F>
void expect_nearest_even() {
  for (uint32_t code = 0; code < F.max_code; ++code) {
    const double low = decode_float<F>(code), high = decode_float<F>(code + 1), middle = (low + high) / 2;
    EXPECT_EQ(encode_float<F>(middle), (code & 1) == 0 ? code : code + 1);
    EXPECT_EQ(encode_float<F>(std::nextafter(middle, 0)), code);
    EXPECT_EQ(encode_float<F>(std::nextafter(middle, 1e300)), code + 1);
  }
}
TEST(FloatFormats, NearestEven) {
  expect_nearest_even<kFloat16Format>();
  expect_nearest_even<kBFloat16Format>();
  expect_nearest_even<kFloat8E4M3FNFormat>();
  expect_nearest_even<kFloat8E4M3FNUZFormat>();
  expect_nearest_even<kFloat8E5M2Format>();
  expect_nearest_even<kFloat8E5M2FNUZFormat>();
  expect_nearest_even<kFloat4E2M1Format>();
}

}  // namespace
}  // namespace sinter::test
