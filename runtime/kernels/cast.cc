// Cast between any two dtypes. write_run defines the conversion of numbers that do not fit.
#include "runtime/core/float_formats.h"
#include "runtime/kernels/convert.h"
#include "runtime/kernels/reference.h"
#include "runtime/kernels/support.h"

namespace sinter {
namespace {

Status infer_cast(OpCall& call) {
  const auto& a = call.attrs<CastAttrs>();
  SINTER_RETURN_UNLESS(a.to > 0 && a.to < static_cast<int64_t>(DType::kCount),
                       invalid("%a is not an element type", a.to));
  SINTER_RETURN_IF_ERROR(check_code(a.saturate, 2));
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, bit_width(call.in(0).dtype) > 0));
  return give_output(call, 0, static_cast<DType>(a.to), call.in(0).shape());
}

// The number of elements that one loop without a branch converts if none of them is rare.
constexpr int64_t kBatch = 32;

template <class X, class Y, class Rare, class General, class Usual>
void convert_batches(const X* x, Y* y, int64_t n, const Rare& rare, const General& general,
                     const Usual& usual) {
  for (int64_t first = 0; first < n; first += kBatch, x += kBatch, y += kBatch) {
    const int64_t count = std::min(kBatch, n - first);
    uint32_t any = count < kBatch;
    if (any == 0)
      for (int64_t i = 0; i < kBatch; ++i) any |= static_cast<uint32_t>(rare(x[i]));
    if (any == 0)
      for (int64_t i = 0; i < kBatch; ++i) y[i] = usual(x[i]);
    else
      for (int64_t i = 0; i < count; ++i) y[i] = rare(x[i]) ? general(x[i]) : usual(x[i]);
  }
}

// Converts dense narrow floats to float32, which holds all their numbers. A session that is created widens
// weights so. Infinities and NaNs take the general path, for the same bits.
template <FloatFormat F>
void widen_halves(const uint16_t* x, float* y, int64_t n) {
  constexpr uint32_t kSign = F.sign_bit();
  // The fields are those of float32 with the narrow bias, subnormal numbers included; the product, by a power
  // of two, is exact.
  const auto factor = F.bias == 127 ? 1.0f : static_cast<float>(power_of_two(127 - F.bias));
  const auto usual = [factor](uint16_t half) {
    const uint32_t code = half;
    const float value = std::bit_cast<float>((code & (kSign - 1)) << (23 - F.mantissa_bits)) * factor;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | (code & kSign) << 16);
  };
  convert_batches(
      x, y, n, [](uint16_t code) { return (code & (kSign - 1)) >= F.inf_code; },
      [](uint16_t code) { return static_cast<float>(decode_float<F>(code)); }, usual);
}

constexpr int64_t kTabled = 1024;  // float8 elements for which a table of all codes pays off

bool widen_floats(const TensorView& x, const TensorView& y) {
  if (y.dtype != DType::kFloat32 || !x.dense() || !y.dense()) return false;
  const int64_t n = x.size();
  if (x.dtype == DType::kFloat16) {
    widen_halves<kFloat16Format>(x.as<const uint16_t>(), y.as<float>(), n);
    return true;
  }
  if (x.dtype == DType::kBFloat16) {
    widen_halves<kBFloat16Format>(x.as<const uint16_t>(), y.as<float>(), n);
    return true;
  }
  if (!is_float8(x.dtype) || n < kTabled) return false;
  float table[256];
  uint8_t codes[256];
  for (int i = 0; i < 256; ++i) codes[i] = static_cast<uint8_t>(i);
  Run run;
  for (int i = 0; i < 256; i += kRunLength) {
    read_run(x.dtype, reinterpret_cast<const std::byte*>(codes + i), 1, i, kRunLength, run);
    write_run(DType::kFloat32, Wide::kFloat, run, true, reinterpret_cast<std::byte*>(table + i),
              sizeof(float), i, kRunLength);
  }
  const auto* from = x.as<const uint8_t>();
  auto* to = y.as<float>();
  for (int64_t i = 0; i < n; ++i) to[i] = table[from[i]];
  return true;
}

// Does the work of encode_float for a float32 number below kTooLargeHalf, by its fields. Larger numbers and
// NaN take the general path.
constexpr float kTooLargeHalf = 65520;
uint16_t narrow_half(float x) {
  constexpr uint32_t kSmallestNormal = 0x38800000, kHalf = 0x3f000000;
  const uint32_t bits = std::bit_cast<uint32_t>(x), magnitude = bits & 0x7fffffff, sign = bits >> 16 & 0x8000;
  // Added to 1/2, a subnormal number is rounded to its unit.
  const uint32_t subnormal = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - kHalf;
  const uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  const uint32_t normal = (rounded - ((127u - 15u) << 23)) >> 13;
  return static_cast<uint16_t>(sign | (magnitude < kSmallestNormal ? subnormal : normal));
}

// Converts dense float32 and int32 to float16, as folding does with unpacked weights.
template <class X>
void narrow_halves(const X* x, uint16_t* y, int64_t n) {
  constexpr auto kMost = static_cast<X>(kTooLargeHalf);
  convert_batches(
      x, y, n, [](X v) { return !(v > -kMost && v < kMost); },
      [](X v) { return float16_bits(static_cast<double>(v)); },
      [](X v) { return narrow_half(static_cast<float>(v)); });
}

bool narrow_to_halves(const TensorView& x, const TensorView& y) {
  if (y.dtype != DType::kFloat16 || !x.dense() || !y.dense()) return false;
  if (x.dtype == DType::kFloat32)
    narrow_halves(x.as<const float>(), y.as<uint16_t>(), x.size());
  else if (x.dtype == DType::kInt32)
    narrow_halves(x.as<const int32_t>(), y.as<uint16_t>(), x.size());
  else
    return false;
  return true;
}

Status run_cast(const OpCall& call, RunContext&) {
  const TensorView x = by_position(call.in(0)), y = by_position(call.out(0));
  if (x.dtype == y.dtype && !is_sub_byte(x.dtype) && x.dtype != DType::kBool) return copy_elements(y, x);
  if (is_integer(x.dtype) && is_integer(y.dtype) && byte_width(x.dtype) == byte_width(y.dtype))
    return copy_elements(y, x);
  if (widen_floats(x, y) || narrow_to_halves(x, y)) return ok_status();
  // The bits of packed outputs are or-ed in.
  if (is_sub_byte(y.dtype) && y.dense_bytes() > 0)
    std::memset(y.data, 0, static_cast<size_t>(y.dense_bytes()));
  const bool saturate = call.attrs<CastAttrs>().saturate != 0;
  const Wide kind = wide_kind(x.dtype);
  // Packed operands are dense: their strides are 0, and elements are found by their position in row-major
  // order.
  int64_t position = 0;
  Run run;
  for_each_row(make_nest(y.shape(), y, x), [&](std::byte* const(&p)[2], const int64_t(&s)[2], int64_t n) {
    for (int64_t first = 0; first < n; first += kRunLength) {
      const int64_t count = std::min(kRunLength, n - first);
      read_run(x.dtype, p[1] + first * s[1], s[1], position, count, run);
      write_run(y.dtype, kind, run, saturate, p[0] + first * s[0], s[0], position, count);
      position += count;
    }
  });
  return ok_status();
}

}  // namespace

const Kernel kCastKernel = reference_kernel({Op::kCast, infer_cast, nullptr, run_cast});

}  // namespace sinter
