#include "runtime/kernels/convert.h"

#include <type_traits>

#include "runtime/backend/target.h"
#include "runtime/core/float_formats.h"
#include "runtime/kernels/support.h"

namespace sinter {
namespace {

// True if this build has a packed type.
constexpr bool kPackedBuilt = is_built(DType::kInt4) || is_built(DType::kUint4) || is_built(DType::kInt2) ||
                              is_built(DType::kUint2) || is_built(DType::kFloat4E2M1);
constexpr bool kUnsignedBuilt = is_built(DType::kUint8) || is_built(DType::kUint16) ||
                                is_built(DType::kUint32) || is_built(DType::kUint64) ||
                                is_built(DType::kBool) || is_built(DType::kUint4) || is_built(DType::kUint2);
// Whole dense runs have loops of their own, whose steps are known, except where code is scarce.
constexpr bool kDenseRuns = kHostArchitecture != Architecture::kCortexM;

// Returns the low `bits` of `v` as a signed number.
int64_t sign_extend(uint32_t v, int bits) {
  const uint32_t sign = 1u << (bits - 1);
  return static_cast<int64_t>(v ^ sign) - static_cast<int64_t>(sign);
}

template <class T, class W>
void read_as(const std::byte* data, int64_t stride, int64_t n, W* out) {
  if (kDenseRuns && stride == sizeof(T) && n == kRunLength) {
    for (int64_t k = 0; k < kRunLength; ++k) out[k] = static_cast<W>(load<T>(data + k * sizeof(T)));
    return;
  }
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
T as_element(W v) {
  if constexpr (std::is_same_v<T, bool>)
    return v != W(0);
  else if constexpr (std::is_same_v<W, double> && std::is_integral_v<T>)
    return saturate_to<T>(v);
  else
    return static_cast<T>(v);
}
template <class T, class W>
void write_as(const W* in, std::byte* data, int64_t stride, int64_t n) {
  if (kDenseRuns && stride == sizeof(T) && n == kRunLength) {
    for (int64_t k = 0; k < kRunLength; ++k) store<T>(data + k * sizeof(T), as_element<T>(in[k]));
    return;
  }
  for (int64_t k = 0; k < n; ++k) store<T>(data + k * stride, as_element<T>(in[k]));
}

template <class W>
void write_wide(DType t, const W* in, bool saturate, std::byte* data, int64_t stride, int64_t position,
                int64_t n) {
  switch (t) {
    case DType::kFloat32:
      if (is_built(DType::kFloat32)) write_as<float>(in, data, stride, n);
      return;
    case DType::kFloat64:
      if (is_built(DType::kFloat64)) write_as<double>(in, data, stride, n);
      return;
    case DType::kFloat16:
      if (is_built(DType::kFloat16)) write_float<kFloat16Format, uint16_t>(in, false, data, stride, n);
      return;
    case DType::kBFloat16:
      if (is_built(DType::kBFloat16)) write_float<kBFloat16Format, uint16_t>(in, false, data, stride, n);
      return;
    case DType::kInt8:
      if (is_built(DType::kInt8)) write_as<int8_t>(in, data, stride, n);
      return;
    case DType::kUint8:
      if (is_built(DType::kUint8)) write_as<uint8_t>(in, data, stride, n);
      return;
    case DType::kInt16:
      if (is_built(DType::kInt16)) write_as<int16_t>(in, data, stride, n);
      return;
    case DType::kUint16:
      if (is_built(DType::kUint16)) write_as<uint16_t>(in, data, stride, n);
      return;
    case DType::kInt32:
      if (is_built(DType::kInt32)) write_as<int32_t>(in, data, stride, n);
      return;
    case DType::kUint32:
      if (is_built(DType::kUint32)) write_as<uint32_t>(in, data, stride, n);
      return;
    case DType::kInt64:
      if (is_built(DType::kInt64)) write_as<int64_t>(in, data, stride, n);
      return;
    case DType::kUint64:
      if (is_built(DType::kUint64)) write_as<uint64_t>(in, data, stride, n);
      return;
    case DType::kBool:
      if (is_built(DType::kBool)) write_as<bool>(in, data, stride, n);
      return;
    case DType::kFloat8E4M3FN:
      if (is_built(DType::kFloat8E4M3FN))
        write_float<kFloat8E4M3FNFormat, uint8_t>(in, saturate, data, stride, n);
      return;
    case DType::kFloat8E4M3FNUZ:
      if (is_built(DType::kFloat8E4M3FNUZ))
        write_float<kFloat8E4M3FNUZFormat, uint8_t>(in, saturate, data, stride, n);
      return;
    case DType::kFloat8E5M2:
      if (is_built(DType::kFloat8E5M2))
        write_float<kFloat8E5M2Format, uint8_t>(in, saturate, data, stride, n);
      return;
    case DType::kFloat8E5M2FNUZ:
      if (is_built(DType::kFloat8E5M2FNUZ))
        write_float<kFloat8E5M2FNUZFormat, uint8_t>(in, saturate, data, stride, n);
      return;
    case DType::kFloat8E8M0:
      for (int64_t k = 0; is_built(DType::kFloat8E8M0) && k < n; ++k) {
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
      if (kPackedBuilt) write_packed(t, in, data, position, n);
      return;
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
      if (is_built(DType::kFloat32)) read_as<float>(data, stride, n, run.f);
      return;
    case DType::kFloat64:
      if (is_built(DType::kFloat64)) read_as<double>(data, stride, n, run.f);
      return;
    case DType::kFloat16:
      if (is_built(DType::kFloat16)) read_float<kFloat16Format, uint16_t>(data, stride, n, run.f);
      return;
    case DType::kBFloat16:
      if (is_built(DType::kBFloat16)) read_float<kBFloat16Format, uint16_t>(data, stride, n, run.f);
      return;
    case DType::kInt8:
      if (is_built(DType::kInt8)) read_as<int8_t>(data, stride, n, run.i);
      return;
    case DType::kInt16:
      if (is_built(DType::kInt16)) read_as<int16_t>(data, stride, n, run.i);
      return;
    case DType::kInt32:
      if (is_built(DType::kInt32)) read_as<int32_t>(data, stride, n, run.i);
      return;
    case DType::kInt64:
      if (is_built(DType::kInt64)) read_as<int64_t>(data, stride, n, run.i);
      return;
    case DType::kUint8:
      if (is_built(DType::kUint8)) read_as<uint8_t>(data, stride, n, run.u);
      return;
    case DType::kUint16:
      if (is_built(DType::kUint16)) read_as<uint16_t>(data, stride, n, run.u);
      return;
    case DType::kUint32:
      if (is_built(DType::kUint32)) read_as<uint32_t>(data, stride, n, run.u);
      return;
    case DType::kUint64:
      if (is_built(DType::kUint64)) read_as<uint64_t>(data, stride, n, run.u);
      return;
    case DType::kBool:
      if (is_built(DType::kBool)) read_as<bool>(data, stride, n, run.u);
      return;
    case DType::kFloat8E4M3FN:
      if (is_built(DType::kFloat8E4M3FN)) read_float<kFloat8E4M3FNFormat, uint8_t>(data, stride, n, run.f);
      return;
    case DType::kFloat8E4M3FNUZ:
      if (is_built(DType::kFloat8E4M3FNUZ))
        read_float<kFloat8E4M3FNUZFormat, uint8_t>(data, stride, n, run.f);
      return;
    case DType::kFloat8E5M2:
      if (is_built(DType::kFloat8E5M2)) read_float<kFloat8E5M2Format, uint8_t>(data, stride, n, run.f);
      return;
    case DType::kFloat8E5M2FNUZ:
      if (is_built(DType::kFloat8E5M2FNUZ))
        read_float<kFloat8E5M2FNUZFormat, uint8_t>(data, stride, n, run.f);
      return;
    case DType::kFloat8E8M0:
      for (int64_t k = 0; is_built(DType::kFloat8E8M0) && k < n; ++k)
        run.f[k] = decode_e8m0(load<uint8_t>(data + k * stride));
      return;
    case DType::kInt4:
    case DType::kUint4:
    case DType::kInt2:
    case DType::kUint2:
    case DType::kFloat4E2M1:
      if (kPackedBuilt) read_packed(t, data, position, n, run);
      return;
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
      if (kUnsignedBuilt) write_wide(t, run.u, saturate, data, stride, position, n);
      return;
  }
}

}  // namespace sinter
