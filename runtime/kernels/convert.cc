#include "runtime/kernels/convert.h"

#include <type_traits>

#include "runtime/core/float_formats.h"
#include "runtime/kernels/support.h"

namespace sinter {
namespace {

// The low `bits` of `v` as a signed number.
int64_t sign_extend(uint32_t v, int bits) {
  const uint32_t sign = 1u << (bits - 1);
  return static_cast<int64_t>(v ^ sign) - static_cast<int64_t>(sign);
}

template <class T, class W>
void read_as(const std::byte* data, int64_t stride, int64_t n, W* out) {
  for (int64_t k = 0; k < n; ++k) out[k] = static_cast<W>(load<T>(data + k * stride));
}
template <FloatFormat F, class Bits>
void read_float(const std::byte* data, int64_t stride, int64_t n, double* out) {
  for (int64_t k = 0; k < n; ++k) out[k] = decode_float<F>(load<Bits>(data + k * stride));
}
template <FloatFormat F, class Bits, class W>
void write_float(const W* in, bool saturate, std::byte* data, int64_t stride, int64_t n) {
  for (int64_t k = 0; k < n; ++k) {
    double v;
    if constexpr (std::is_same_v<W, double>)
      v = in[k];
    else
      v = sticky_double(in[k]);
    store<Bits>(data + k * stride, static_cast<Bits>(encode_float<F>(v, saturate)));
  }
}

void read_packed(DType t, const std::byte* data, int64_t position, int64_t n, Run& run) {
  const int bits = bit_width(t);
  const uint32_t mask = (1u << bits) - 1;
  for (int64_t k = 0; k < n; ++k) {
    const int64_t bit = (position + k) * bits;
    const uint32_t code = static_cast<uint32_t>(data[bit / 8]) >> (bit % 8) & mask;
    if (t == DType::kFloat4E2M1)
      run.f[k] = decode_float<kFloat4E2M1Format>(code);
    else if (t == DType::kInt4 || t == DType::kInt2)
      run.i[k] = sign_extend(code, bits);
    else
      run.u[k] = code;
  }
}

template <class W>
void write_packed(DType t, const W* in, std::byte* data, int64_t position, int64_t n) {
  const int bits = bit_width(t);
  const uint32_t mask = (1u << bits) - 1;
  for (int64_t k = 0; k < n; ++k) {
    uint32_t code;
    if constexpr (std::is_same_v<W, double>) {
      code = t == DType::kFloat4E2M1 ? encode_float<kFloat4E2M1Format>(in[k])
                                     : static_cast<uint32_t>(saturate_to<int32_t>(in[k]));
    } else {
      code = t == DType::kFloat4E2M1 ? encode_float<kFloat4E2M1Format>(sticky_double(in[k]))
                                     : static_cast<uint32_t>(in[k]);
    }
    const int64_t bit = (position + k) * bits;
    data[bit / 8] |= static_cast<std::byte>((code & mask) << (bit % 8));
  }
}

template <class T, class W>
void write_as(const W* in, std::byte* data, int64_t stride, int64_t n) {
  for (int64_t k = 0; k < n; ++k) {
    if constexpr (std::is_same_v<T, bool>)
      store<bool>(data + k * stride, in[k] != W(0));
    else if constexpr (std::is_same_v<W, double> && std::is_integral_v<T>)
      store<T>(data + k * stride, saturate_to<T>(in[k]));
    else
      store<T>(data + k * stride, static_cast<T>(in[k]));
  }
}

template <class W>
void write_wide(DType t, const W* in, bool saturate, std::byte* data, int64_t stride, int64_t position,
                int64_t n) {
  switch (t) {
    case DType::kFloat32:
      return write_as<float>(in, data, stride, n);
    case DType::kFloat64:
      return write_as<double>(in, data, stride, n);
    case DType::kFloat16:
      return write_float<kFloat16Format, uint16_t>(in, false, data, stride, n);
    case DType::kBFloat16:
      return write_float<kBFloat16Format, uint16_t>(in, false, data, stride, n);
    case DType::kInt8:
      return write_as<int8_t>(in, data, stride, n);
    case DType::kUint8:
      return write_as<uint8_t>(in, data, stride, n);
    case DType::kInt16:
      return write_as<int16_t>(in, data, stride, n);
    case DType::kUint16:
      return write_as<uint16_t>(in, data, stride, n);
    case DType::kInt32:
      return write_as<int32_t>(in, data, stride, n);
    case DType::kUint32:
      return write_as<uint32_t>(in, data, stride, n);
    case DType::kInt64:
      return write_as<int64_t>(in, data, stride, n);
    case DType::kUint64:
      return write_as<uint64_t>(in, data, stride, n);
    case DType::kBool:
      return write_as<bool>(in, data, stride, n);
    case DType::kFloat8E4M3FN:
      return write_float<kFloat8E4M3FNFormat, uint8_t>(in, saturate, data, stride, n);
    case DType::kFloat8E4M3FNUZ:
      return write_float<kFloat8E4M3FNUZFormat, uint8_t>(in, saturate, data, stride, n);
    case DType::kFloat8E5M2:
      return write_float<kFloat8E5M2Format, uint8_t>(in, saturate, data, stride, n);
    case DType::kFloat8E5M2FNUZ:
      return write_float<kFloat8E5M2FNUZFormat, uint8_t>(in, saturate, data, stride, n);
    case DType::kFloat8E8M0:
      for (int64_t k = 0; k < n; ++k) {
        double v;
        if constexpr (std::is_same_v<W, double>)
          v = in[k];
        else
          v = sticky_double(in[k]);
        store<uint8_t>(data + k * stride, encode_e8m0(v, saturate));
      }
      return;
    case DType::kInt4:
    case DType::kUint4:
    case DType::kInt2:
    case DType::kUint2:
    case DType::kFloat4E2M1:
      return write_packed(t, in, data, position, n);
    case DType::kNone:
    case DType::kCount:
      return;
  }
}

}  // namespace

Wide wide_kind(DType t) {
  if (is_float(t)) return Wide::kFloat;
  return is_signed_integer(t) || t == DType::kInt4 || t == DType::kInt2 ? Wide::kSigned : Wide::kUnsigned;
}

void read_run(DType t, const std::byte* data, int64_t stride, int64_t position, int64_t n, Run& run) {
  switch (t) {
    case DType::kFloat32:
      return read_as<float>(data, stride, n, run.f);
    case DType::kFloat64:
      return read_as<double>(data, stride, n, run.f);
    case DType::kFloat16:
      return read_float<kFloat16Format, uint16_t>(data, stride, n, run.f);
    case DType::kBFloat16:
      return read_float<kBFloat16Format, uint16_t>(data, stride, n, run.f);
    case DType::kInt8:
      return read_as<int8_t>(data, stride, n, run.i);
    case DType::kInt16:
      return read_as<int16_t>(data, stride, n, run.i);
    case DType::kInt32:
      return read_as<int32_t>(data, stride, n, run.i);
    case DType::kInt64:
      return read_as<int64_t>(data, stride, n, run.i);
    case DType::kUint8:
      return read_as<uint8_t>(data, stride, n, run.u);
    case DType::kUint16:
      return read_as<uint16_t>(data, stride, n, run.u);
    case DType::kUint32:
      return read_as<uint32_t>(data, stride, n, run.u);
    case DType::kUint64:
      return read_as<uint64_t>(data, stride, n, run.u);
    case DType::kBool:
      return read_as<bool>(data, stride, n, run.u);
    case DType::kFloat8E4M3FN:
      return read_float<kFloat8E4M3FNFormat, uint8_t>(data, stride, n, run.f);
    case DType::kFloat8E4M3FNUZ:
      return read_float<kFloat8E4M3FNUZFormat, uint8_t>(data, stride, n, run.f);
    case DType::kFloat8E5M2:
      return read_float<kFloat8E5M2Format, uint8_t>(data, stride, n, run.f);
    case DType::kFloat8E5M2FNUZ:
      return read_float<kFloat8E5M2FNUZFormat, uint8_t>(data, stride, n, run.f);
    case DType::kFloat8E8M0:
      for (int64_t k = 0; k < n; ++k) run.f[k] = decode_e8m0(load<uint8_t>(data + k * stride));
      return;
    case DType::kInt4:
    case DType::kUint4:
    case DType::kInt2:
    case DType::kUint2:
    case DType::kFloat4E2M1:
      return read_packed(t, data, position, n, run);
    case DType::kNone:
    case DType::kCount:
      return;
  }
}

void write_run(DType t, Wide from, const Run& run, bool saturate, std::byte* data, int64_t stride,
               int64_t position, int64_t n) {
  switch (from) {
    case Wide::kFloat:
      return write_wide(t, run.f, saturate, data, stride, position, n);
    case Wide::kSigned:
      return write_wide(t, run.i, saturate, data, stride, position, n);
    case Wide::kUnsigned:
      return write_wide(t, run.u, saturate, data, stride, position, n);
  }
}

}  // namespace sinter
