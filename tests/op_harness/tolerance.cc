#include "tests/op_harness/tolerance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/core/float_formats.h"
#include "runtime/core/op_enums.h"
#include "tests/op_harness/half_test.h"

namespace sinter::test {
namespace {

// NEON of 32-bit ARM takes and gives zero for numbers below the smallest normal one.
#ifdef __arm__
constexpr double kTiny = 1.2e-38;
#else
constexpr double kTiny = 1e-44;
#endif

// Whether the reference kernels can compute the expected result of this type in float64.
bool computable(DType t) {
  return t == DType::kFloat32 || t == DType::kFloat64 || t == DType::kFloat16 || t == DType::kBFloat16;
}

bool is_float32(double v) { return static_cast<double>(static_cast<float>(v)) == v; }

// Returns the largest finite magnitude.
double largest(const Tensor& t) {
  double most = 0;
  if (computable(t.dtype) || is_float8(t.dtype))
    for (const double v : widened(t).values<double>())
      if (std::isfinite(v)) most = std::max(most, std::fabs(v));
  return most;
}

bool has(const std::vector<Tensor>& in, size_t i) { return i < in.size() && in[i].dtype != DType::kNone; }

// Returns the largest weight of few bits without its scale: all bits, or the largest float or value of the
// table. `bits`: LowBitFullyConnectedAttrs::bits.
double largest_low_bit_weight(const std::vector<Tensor>& in, size_t weights, size_t table, int64_t bits) {
  const DType t = in[weights].dtype;
  if (has(in, table)) return largest(in[table]);
  if (is_float8(t)) return largest(in[weights]);
  if (t == DType::kFloat4E2M1) return 6;
  return (1 << (bits != 0 ? static_cast<int>(bits) : bit_width(t))) - 1;
}

// The number of terms of a result that is a sum of products, and the largest of them; no terms: not a sum.
struct Terms {
  double count = 0, largest = 0;
};
Terms terms_of(Op op, const void* attrs, const std::vector<Tensor>& in) {
  const auto weights = [&](int64_t outputs) {
    const double bias = in.size() > 2 ? largest(in[2]) : 0;  // a term, too
    return Terms{static_cast<double>(in[1].size()) / static_cast<double>(std::max<int64_t>(outputs, 1)) +
                     (in.size() > 2 ? 1 : 0),
                 std::max(largest(in[0]) * largest(in[1]), bias)};
  };
  switch (op) {
    case Op::kConv:
    case Op::kConvTranspose:
    case Op::kFullyConnected:
      return weights(in[1].dims[0]);
    case Op::kDepthwiseConv:
      return weights(in[1].dims.back());
    case Op::kMatMul: {
      const Shape& a = in[0].dims;
      const bool across = static_cast<const MatMulAttrs*>(attrs)->transpose_a != 0;
      return {static_cast<double>(a[a.size() - (across ? 2 : 1)]), largest(in[0]) * largest(in[1])};
    }
    case Op::kLowBitFullyConnected: {
      const int64_t bits = static_cast<const LowBitFullyConnectedAttrs*>(attrs)->bits;
      return {static_cast<double>(in[0].dims.back()),
              largest(in[0]) * largest(in[2]) * largest_low_bit_weight(in, 1, 5, bits)};
    }
    case Op::kExpertFullyConnected: {
      const double weight =
          has(in, 3) ? largest(in[3]) * largest_low_bit_weight(in, 2, 6, 0) : largest(in[2]);
      const double bias = has(in, 5) ? largest(in[5]) : 0;
      return {static_cast<double>(in[0].dims.back()) + 1, std::max(largest(in[0]) * weight, bias)};
    }
    default:
      return {};
  }
}

// Returns five standard deviations of the error of a float32 sum of n products of numbers spread over (-1,
// 1), of which the largest is 1: after k terms the sum is about sqrt(k) / 3 and rounds by 2^-24 of that at
// most, so that the errors add up to 2^-24 / sqrt(3) * n / sqrt(18).
double float32_sum(const Terms& t) { return t.largest * (5 * 0x1p-24 * t.count / std::sqrt(54.0) + 3e-7); }

// Returns the factor of the error on tiles of Winograd's algorithm with one input channel, where it differs
// most from that of direct sums (docs/numerics.md).
double winograd_factor(Op op, const void* attrs) {
  if (op != Op::kConv) return 1;
  switch (static_cast<const ConvAttrs*>(attrs)->winograd) {
    case 2:
      return 2;
    case 4:
      return 8;
    case 6:
      return 32;
    default:
      return 1;
  }
}

Tolerance float32_tolerance(Op op, const void* attrs, const std::vector<Tensor>& in, const Tensor& want) {
  switch (op) {
    case Op::kAbs:
    case Op::kNeg:
    case Op::kRound:
    case Op::kClamp:
    case Op::kMin:
    case Op::kMax:
    case Op::kMaxPool:
      return {};
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
    case Op::kDiv:
    case Op::kPRelu:
    case Op::kSqrt:
      return {.relative = 1e-7};
    case Op::kPow: {
      const bool square =
          in[1].size() == 1 && computable(in[1].dtype) && widened(in[1]).values<double>()[0] == 2;
      return {.relative = square ? 1e-7 : 2e-7};
    }
    case Op::kLeakyRelu:
      // alpha itself is rounded to float32.
      return {.relative = is_float32(static_cast<const LeakyReluAttrs*>(attrs)->alpha) ? 1e-7 : 1.5e-7,
              .absolute = kTiny};
    case Op::kRsqrt:
      return {.relative = 2e-7};
    case Op::kExp:
    case Op::kErf:
      return {.relative = 3e-7, .absolute = kTiny};
    case Op::kLog:
      return {.relative = 3e-7};
    case Op::kSigmoid:  // may be 0 below 2^-125
      return {.relative = 3e-7, .absolute = 0x1p-125};
    case Op::kTanh:
      return {.relative = 4e-7, .absolute = kTiny};
    case Op::kSoftplus:
      return {.relative = 4e-7, .absolute = 2e-38};
    case Op::kHardSigmoid:
      return {.relative = 2e-7, .absolute = 1e-7};
    case Op::kHardSwish:
      return {.relative = 2e-7, .absolute = 1e-6};
    case Op::kGelu:
      // Rounding the sigmoid's argument z is an error of |z| units there: absolute.
      if (static_cast<const GeluAttrs*>(attrs)->tanh_approximation != 0)
        return {.relative = 4e-7, .absolute = 1e-7};
      return {.relative = 3e-7, .absolute = 1e-6};
    case Op::kSilu:
      return {.relative = 4e-7, .absolute = static_cast<const SiluAttrs*>(attrs)->alpha == 1 ? 1e-30 : 1e-7};
    case Op::kElu:
      return {.relative = 4e-7};
    case Op::kSoftmax:
      if (static_cast<const SoftmaxAttrs*>(attrs)->log != 0) return {.relative = 1e-6, .absolute = 3e-6};
      return {.relative = 2e-6, .absolute = 1e-12};
    case Op::kRope:
    case Op::kRmsNorm:
      return {.relative = 1e-6, .absolute = 1e-6};
    case Op::kLinearAttention:  // the state of all tokens is a sum of their products
      return {.relative = 2e-6, .absolute = 1e-6 * std::max(largest(want), 1.0)};
    case Op::kLayerNorm:
    case Op::kLstm:  // the state is fed back: errors of the steps add up
    case Op::kGru:
      return {.relative = 2e-6, .absolute = 2e-6};
    case Op::kGroupNorm:
      return {.relative = 2e-6, .absolute = 3e-6};
    case Op::kReduce: {
      const auto fn = static_cast<ReduceFn>(static_cast<const ReduceAttrs*>(attrs)->fn);
      if (fn == ReduceFn::kMax || fn == ReduceFn::kMin) return {};
      const double most = largest(in[0]) / 3;
      return {.relative = 1e-6, .absolute = 1e-5 * (fn == ReduceFn::kSumSquare ? most * most : most)};
    }
    case Op::kAvgPool:
      return {.relative = 1e-6, .absolute = 1e-6 * largest(in[0])};
    case Op::kAttention:  // errors of the scores are relative errors of the weights
      return {.relative = 2e-5, .absolute = 2e-5};
    case Op::kResize:  // coordinates are float32: the error grows with the length of an axis
      return {.absolute = 2e-5 * largest(want)};
    default: {
      const Terms t = terms_of(op, attrs, in);
      return {.relative = 1e-6, .absolute = t.count > 0 ? winograd_factor(op, attrs) * float32_sum(t) : 1e-7};
    }
  }
}

// Attention in 16 bits, of which u is half a unit: docs/numerics.md. A weight is rounded to u of itself where
// a kernel multiplies it with 16-bit values, which changes a result by u of the largest value at most, as the
// weights' sum is 1. An error of all scores by e changes weights, and their sum, by that part of themselves.
// Scores are float32 sums, which tensor cores may cut off where float32 rounds: twice the error. The result
// is rounded, as is the expected one.
Tolerance half_attention_tolerance(const AttentionAttrs& a, const std::vector<Tensor>& in, double u) {
  const double score = 2 * std::fabs(a.scale) *
                       float32_sum({static_cast<double>(in[0].dims.back()), largest(in[0]) * largest(in[1])});
  const Tolerance of_float32{.relative = 2e-5, .absolute = 2e-5};
  return {.relative = 2 * u + of_float32.relative,
          .absolute = (u + 2 * score) * largest(in[2]) + of_float32.absolute};
}

constexpr double kUlp = 0x1p-10;             // of float16, relative
constexpr double kSmallestNormal = 0x1p-14;  // below it float16 rounds to multiples of 2^-24

// Whether results are operands, bounds or their negatives, which every float type holds.
bool rounds_nothing(Op op) {
  return op == Op::kAbs || op == Op::kNeg || op == Op::kClamp || op == Op::kMin || op == Op::kMax ||
         op == Op::kMaxPool;
}

Tolerance float16_tolerance(Op op, const void* attrs, const std::vector<Tensor>& in, const Tensor& want) {
  if (rounds_nothing(op)) return {};
  switch (op) {
    case Op::kAttention:
      return half_attention_tolerance(*static_cast<const AttentionAttrs*>(attrs), in, kUlp / 2);
    case Op::kSigmoid:  // below -9.7 it may be 0
      return {.relative = 4 * kUlp, .absolute = kSmallestNormal};
    case Op::kTanh:
    case Op::kHardSwish:
      return {.relative = 4 * kUlp, .absolute = 4 * kUlp * kSmallestNormal};
    case Op::kLeakyRelu:
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
    case Op::kDiv:
    case Op::kPRelu:  // rounded once
      return {.absolute = kUlp / 2 * std::max(largest(want), kSmallestNormal)};
    default: {
      const Terms t = terms_of(op, attrs, in);
      // Rounded at every term, by half a unit at most. In a result y that is large for its terms the partial
      // sums grow to y, and five standard deviations of their roundings are 5/3 * sqrt(n) half units of y.
      if (t.count > 0)
        return {.relative = kUlp / 2 * 5 / 3 * std::sqrt(t.count),
                .absolute = kUlp / 2 * std::max(t.count * t.largest, 4 * kSmallestNormal)};
      return {.absolute = 4 * kUlp * std::max(largest(want), kSmallestNormal)};
    }
  }
}

// Returns a tolerance of one unit, because the float32 result is rounded to this number or to its neighbour.
Tolerance bfloat16_tolerance(Op op, const void* attrs, const std::vector<Tensor>& in, const Tensor& want) {
  constexpr double kUnit = 0x1p-7, kSmallest = 0x1p-126;  // normal; the products' instructions flush others
  if (rounds_nothing(op) || op == Op::kAdd || op == Op::kSub || op == Op::kMul) return {};
  if (op == Op::kAttention)
    return half_attention_tolerance(*static_cast<const AttentionAttrs*>(attrs), in, 0x1p-8);
  const Tolerance wide = float32_tolerance(op, attrs, in, want);
  const double terms = std::max(terms_of(op, attrs, in).count, 1.0);
  return {.relative = kUnit, .absolute = wide.absolute + terms * kSmallest};
}

double rounded_to(DType t, double v) {
  if (t == DType::kBFloat16) return static_cast<double>(bfloat16_value(bfloat16_bits(v)));
  if (t == DType::kFloat16) return static_cast<double>(float16_value(float16_bits(v)));
  return t == DType::kFloat32 ? static_cast<double>(static_cast<float>(v)) : v;
}

}  // namespace

Tensor widened(const Tensor& t) {
  if (is_float8(t.dtype)) {
    std::vector<double> values;
    for (const uint8_t code : t.values<uint8_t>()) values.push_back(float8_value(t.dtype, code));
    return tensor<double>(t.dims, values);
  }
  if (t.dtype != DType::kFloat32) return unhalved<double>(t);
  const auto v = t.values<float>();
  return tensor<double>(t.dims, std::vector<double>(v.begin(), v.end()));
}

bool same_bits(Op op, DType first_input, DType result) {
  return !computable(result) || !computable(first_input) || (op_info(op)->traits & kMovement) != 0 ||
         op == Op::kCast;
}

Tolerance tolerance_of(Op op, const void* attrs, const std::vector<Tensor>& inputs, DType result,
                       const Tensor& want) {
  // The processor chooses the bits of an arithmetic NaN; movement keeps the bits of its operand.
  if (same_bits(op, inputs[0].dtype, result))
    return {.bits = true, .any_nan = (op_info(op)->traits & kMovement) == 0};
  if (result == DType::kFloat16) return float16_tolerance(op, attrs, inputs, want);
  if (result == DType::kBFloat16) return bfloat16_tolerance(op, attrs, inputs, want);
  if (result == DType::kFloat32) return float32_tolerance(op, attrs, inputs, want);
  return {.relative = 1e-13, .absolute = 1e-13};
}

bool equal_but_for_nan(const Tensor& a, const Tensor& b) {
  if (a.bytes == b.bytes) return true;
  if (a.dtype != b.dtype || a.dims != b.dims || !computable(a.dtype)) return false;
  const auto x = widened(a).values<double>(), y = widened(b).values<double>();
  const size_t width = byte_width(a.dtype);
  for (size_t i = 0; i < x.size(); ++i)
    if (!(std::isnan(x[i]) && std::isnan(y[i])) &&
        std::memcmp(a.bytes.data() + i * width, b.bytes.data() + i * width, width) != 0)
      return false;
  return true;
}

void expect_within(const Tensor& got, const Tensor& wide, const Tolerance& tolerance) {
  ASSERT_EQ(got.dims, wide.dims);
  if (tolerance.bits) {
    if (got.bytes == wide.bytes || (tolerance.any_nan && equal_but_for_nan(got, wide))) return;
    const size_t width = std::max<size_t>(byte_width(wide.dtype), 1);
    size_t i = 0;
    while (i < wide.bytes.size() && got.bytes[i] == wide.bytes[i]) ++i;
    ADD_FAILURE() << "other bits, first in element " << i / width;
    return;
  }
  const auto a = widened(got).values<double>(), b = wide.values<double>();
  int failures = 0;
  for (size_t i = 0; i < a.size() && failures < 5; ++i) {
    const double x = a[i], y = rounded_to(got.dtype, b[i]);
    const bool near =
        x == y || (std::isnan(x) && std::isnan(y)) ||
        (std::isfinite(y) && std::fabs(x - y) <= tolerance.absolute + tolerance.relative * std::fabs(y));
    if (!near) ADD_FAILURE() << "element " << i << ": " << x << ", expected " << y, ++failures;
  }
}

}  // namespace sinter::test
