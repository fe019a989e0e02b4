// Conversions between any two types, those of 8 and fewer bits included: the casts and quantizations that the
// element-wise programs do not take. Every number of every type is exact in double, or in an integer of 64
// bits.
#include "platforms/cuda/grid/grid.h"
#include "platforms/cuda/kernels/elements/convert.h"
#include "platforms/cuda/kernels/elements/saturate.h"
#include "runtime/core/float_formats.h"

namespace sinter::cuda {
namespace {

struct Number {
  enum class Kind : uint8_t { kFloat, kSigned, kUnsigned };
  Kind kind = Kind::kFloat;
  double f = 0;
  int64_t i = 0;  // an unsigned one as its bits
};
SINTER_DEVICE Number float_number(double v) { return {Number::Kind::kFloat, v, 0}; }
SINTER_DEVICE Number signed_number(int64_t v) { return {Number::Kind::kSigned, 0, v}; }
SINTER_DEVICE Number unsigned_number(uint64_t v) {
  return {Number::Kind::kUnsigned, 0, static_cast<int64_t>(v)};
}

template <class T>
SINTER_DEVICE T read(const std::byte* at) {
  return *reinterpret_cast<const T*>(at);
}

SINTER_DEVICE Number number_at(const ConvertOperand& o, int64_t offset) {
  const std::byte* at = o.data + offset;
  switch (o.dtype) {
    case DType::kFloat32:
      return float_number(static_cast<double>(read<float>(at)));
    case DType::kFloat64:
      return float_number(read<double>(at));
    case DType::kFloat16:
      return float_number(static_cast<double>(widen(Float16{read<uint16_t>(at)})));
    case DType::kBFloat16:
      return float_number(static_cast<double>(widen(BFloat16{read<uint16_t>(at)})));
    case DType::kInt8:
      return signed_number(read<int8_t>(at));
    case DType::kInt16:
      return signed_number(read<int16_t>(at));
    case DType::kInt32:
      return signed_number(read<int32_t>(at));
    case DType::kInt64:
      return signed_number(read<int64_t>(at));
    case DType::kUint8:
      return unsigned_number(read<uint8_t>(at));
    case DType::kUint16:
      return unsigned_number(read<uint16_t>(at));
    case DType::kUint32:
      return unsigned_number(read<uint32_t>(at));
    case DType::kUint64:
      return unsigned_number(read<uint64_t>(at));
    case DType::kBool:
      return unsigned_number(read<uint8_t>(at) != 0 ? 1 : 0);
    case DType::kFloat8E4M3FN:
      return float_number(decode_float<kFloat8E4M3FNFormat>(read<uint8_t>(at)));
    case DType::kFloat8E4M3FNUZ:
      return float_number(decode_float<kFloat8E4M3FNUZFormat>(read<uint8_t>(at)));
    case DType::kFloat8E5M2:
      return float_number(decode_float<kFloat8E5M2Format>(read<uint8_t>(at)));
    case DType::kFloat8E5M2FNUZ:
      return float_number(decode_float<kFloat8E5M2FNUZFormat>(read<uint8_t>(at)));
    case DType::kFloat8E8M0:
      return float_number(decode_e8m0(read<uint8_t>(at)));
    default:
      break;
  }
  // `offset` counts elements: low bits first.
  const int bits = bit_width(o.dtype);
  const int64_t bit = offset * bits;
  const uint32_t code = read<uint8_t>(o.data + bit / 8) >> (bit % 8) & ((1u << bits) - 1);
  const uint32_t sign = 1u << (bits - 1);
  if (o.dtype == DType::kFloat4E2M1) return float_number(decode_float<kFloat4E2M1Format>(code));
  if (o.dtype == DType::kInt4 || o.dtype == DType::kInt2)
    return signed_number(static_cast<int64_t>(code ^ sign) - static_cast<int64_t>(sign));
  return unsigned_number(code);
}

template <class Int>
SINTER_DEVICE uint64_t integer_bits(const Number& v) {
  if (v.kind != Number::Kind::kFloat) return static_cast<uint64_t>(v.i);  // keeps the low bits
  if constexpr (sizeof(Int) >= 4) {
    return static_cast<uint64_t>(saturated<Int>(v.f));
  } else {
    constexpr int32_t kLowest = std::numeric_limits<Int>::min(), kHighest = std::numeric_limits<Int>::max();
    const auto n = saturated<int32_t>(v.f);
    return static_cast<uint64_t>(n < kLowest ? kLowest : n > kHighest ? kHighest : n);
  }
}
SINTER_DEVICE double as_double(const Number& v) {
  return v.kind == Number::Kind::kFloat    ? v.f
         : v.kind == Number::Kind::kSigned ? static_cast<double>(v.i)
                                           : static_cast<double>(static_cast<uint64_t>(v.i));
}
// Returns the bits of the number in type t, rounded once.
SINTER_DEVICE uint64_t bits_as(DType t, const Number& v, bool saturates) {
  switch (t) {
    case DType::kFloat64:
      return bits_of(as_double(v));
    case DType::kInt8:
      return integer_bits<int8_t>(v);
    case DType::kUint8:
      return integer_bits<uint8_t>(v);
    case DType::kInt16:
      return integer_bits<int16_t>(v);
    case DType::kUint16:
      return integer_bits<uint16_t>(v);
    case DType::kInt32:
    case DType::kInt4:
    case DType::kUint4:
    case DType::kInt2:
    case DType::kUint2:
      return integer_bits<int32_t>(v);
    case DType::kUint32:
      return integer_bits<uint32_t>(v);
    case DType::kInt64:
      return integer_bits<int64_t>(v);
    case DType::kUint64:
      return integer_bits<uint64_t>(v);
    case DType::kBool:
      return as_double(v) != 0 ? 1 : 0;
    default:
      break;
  }
  const double f = v.kind == Number::Kind::kFloat    ? v.f
                   : v.kind == Number::Kind::kSigned ? sticky_double(v.i)
                                                     : sticky_double(static_cast<uint64_t>(v.i));
  switch (t) {
    case DType::kFloat32:
      return bits_of(static_cast<float>(f));
    case DType::kFloat16:
      return encode_float<kFloat16Format>(f);
    case DType::kBFloat16:
      return encode_float<kBFloat16Format>(f);
    case DType::kFloat8E4M3FN:
      return encode_float<kFloat8E4M3FNFormat>(f, saturates);
    case DType::kFloat8E4M3FNUZ:
      return encode_float<kFloat8E4M3FNUZFormat>(f, saturates);
    case DType::kFloat8E5M2:
      return encode_float<kFloat8E5M2Format>(f, saturates);
    case DType::kFloat8E5M2FNUZ:
      return encode_float<kFloat8E5M2FNUZFormat>(f, saturates);
    case DType::kFloat8E8M0:
      return encode_e8m0(f, saturates);
    default:
      return encode_float<kFloat4E2M1Format>(f);
  }
}

// Returns sat(rne(quotient) + zero); NaN gives the zero point.
SINTER_DEVICE int64_t quantized(double quotient, int64_t zero, DType t) {
  const int bits = bit_width(t);
  const bool is_signed = is_signed_integer(t) || t == DType::kInt4 || t == DType::kInt2;
  const double low = is_signed ? -power_of_two(bits - 1) : 0;
  const double high = power_of_two(is_signed ? bits - 1 : bits) - 1;
  const double v = (m_isnan(quotient) ? 0 : m_rint(quotient)) + static_cast<double>(zero);
  return static_cast<int64_t>(v < low ? low : v > high ? high : v);
}

// Returns element n of the result.
SINTER_DEVICE Number converted(const ConvertArguments& a, uint32_t n) {
  const Number v = number_at(a.x, offset_of(a.box, a.x.steps, n));
  if (a.conversion == Conversion::kCast) return v;
  int64_t scale_at = 0, zero_at = 0;
  uint32_t rest = n;
  SINTER_ROLLED for (int i = a.box.rank - 1; i >= 0; --i) {
    uint32_t at;
    rest = a.box.dims[i].divide(rest, &at);
    if (i == a.axis) at = a.block.divide(at);
    scale_at += at * a.scale.steps.of[i], zero_at += at * a.zero.steps.of[i];
  }
  const double scale = number_at(a.scale, scale_at).f;
  const Number zero = a.zero.data != nullptr ? number_at(a.zero, zero_at) : Number{};
  if (a.conversion == Conversion::kQuantize) {
    const double x = as_double(v);
    const double quotient =
        a.wide ? x / scale : static_cast<double>(static_cast<float>(x) / static_cast<float>(scale));
    return is_float(a.y.dtype) ? float_number(quotient + zero.f)
                               : signed_number(quantized(quotient, zero.i, a.y.dtype));
  }
  const double difference = is_float(a.x.dtype) ? v.f - zero.f : static_cast<double>(v.i - zero.i);
  return float_number(a.wide
                          ? difference * scale
                          : static_cast<double>(static_cast<float>(difference) * static_cast<float>(scale)));
}

SINTER_DEVICE void write(std::byte* at, size_t width, uint64_t bits) {
  if (width == 1)
    *reinterpret_cast<uint8_t*>(at) = static_cast<uint8_t>(bits);
  else if (width == 2)
    *reinterpret_cast<uint16_t*>(at) = static_cast<uint16_t>(bits);
  else if (width == 4)
    *reinterpret_cast<uint32_t*>(at) = static_cast<uint32_t>(bits);
  else
    *reinterpret_cast<uint64_t*>(at) = bits;
}

}  // namespace

// A thread computes an element, or a byte of them.
SINTER_KERNEL(convert, ConvertArguments) {
  const int bits = bit_width(a.y.dtype), per_thread = bits < 8 ? 8 / bits : 1;
  const int64_t end = (int64_t{a.box.size} + per_thread - 1) / per_thread;
  for (int64_t t = global_thread(); t < end; t += global_threads()) {
    const int64_t first = t * per_thread;
    if (per_thread == 1) {
      const auto n = static_cast<uint32_t>(first);
      write(a.y.data + offset_of(a.box, a.y.steps, n), static_cast<size_t>(bits) / 8,
            bits_as(a.y.dtype, converted(a, n), a.saturates));
      continue;
    }
    uint64_t byte = 0;
    SINTER_ROLLED for (int k = 0; k < per_thread; ++k) {
      if (first + k >= a.box.size) break;
      const uint64_t code = bits_as(a.y.dtype, converted(a, static_cast<uint32_t>(first + k)), a.saturates);
      byte |= (code & ((uint64_t{1} << bits) - 1)) << (k * bits);
    }
    write(a.y.data + t, 1, byte);
  }
}

}  // namespace sinter::cuda
