#include "runtime/kernels/convert.h"

#include <type_traits>

#include "runtime/backend/target.h"
#include "runtime/core/float_formats.h"
#include "runtime/kernels/support.h"

namespace sinter {
namespace {

// True if this build has a type of the kind.
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

// Returns the double that rounds to a narrower float as a number of a wide type does.
double rounding_double(double v) { return v; }
template <class W>
double rounding_double(W v) {
  return sticky_double(v);
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

// Calls f(k, k * stride) for 0 <= k < n. The stride of a whole dense run of T is a constant.
template <class T, class F>
void for_run(int64_t stride, int64_t n, F&& f) {
  constexpr int64_t kWidth = sizeof(T);
  if (kDenseRuns && stride == kWidth && n == kRunLength) {
    for (int64_t k = 0; k < kRunLength; ++k) f(k, k * kWidth);
    return;
  }
  for (int64_t k = 0; k < n; ++k) f(k, k * stride);
}

// Elements that are numbers of type T.
template <class T>
struct Plain {
  static void read(const std::byte* data, int64_t stride, int64_t n, Run& run) {
    const auto read_to = [&](auto* out) {
      using W = std::remove_pointer_t<decltype(out)>;
      for_run<T>(stride, n, [&](int64_t k, int64_t at) { out[k] = static_cast<W>(load<T>(data + at)); });
    };
    if constexpr (std::is_floating_point_v<T>)
      read_to(run.f);
    else if constexpr (std::is_signed_v<T>)
      read_to(run.i);
    else
      read_to(run.u);
  }
  template <class W>
  static void write(const W* in, bool, std::byte* data, int64_t stride, int64_t n) {
    for_run<T>(stride, n, [&](int64_t k, int64_t at) { store<T>(data + at, as_element<T>(in[k])); });
  }
};

// Elements that are codes of floats.
template <class Bits, auto kDecode, auto kEncode>
struct Coded {
  static void read(const std::byte* data, int64_t stride, int64_t n, Run& run) {
    for (int64_t k = 0; k < n; ++k) run.f[k] = kDecode(load<Bits>(data + k * stride));
  }
  template <class W>
  static void write(const W* in, bool saturate, std::byte* data, int64_t stride, int64_t n) {
    for (int64_t k = 0; k < n; ++k) {
      const uint32_t code = kEncode(rounding_double(in[k]), saturate && sizeof(Bits) == 1);
      store<Bits>(data + k * stride, static_cast<Bits>(code));
    }
  }
};
template <class Bits, FloatFormat F>
using CodedFloat = Coded<Bits, decode_float<F>, encode_float<F>>;

template <DType t, class Codec, class F>
void when_built(F&& f) {
  if constexpr (is_built(t)) f(Codec());
}
// Calls f with the codec of a type of whole bytes, if this build has the type.
template <class F>
void with_codec(DType t, F&& f) {
  switch (t) {
    case DType::kFloat16:
      return when_built<DType::kFloat16, CodedFloat<uint16_t, kFloat16Format>>(f);
    case DType::kBFloat16:
      return when_built<DType::kBFloat16, CodedFloat<uint16_t, kBFloat16Format>>(f);
    case DType::kFloat8E4M3FN:
      return when_built<DType::kFloat8E4M3FN, CodedFloat<uint8_t, kFloat8E4M3FNFormat>>(f);
    case DType::kFloat8E4M3FNUZ:
      return when_built<DType::kFloat8E4M3FNUZ, CodedFloat<uint8_t, kFloat8E4M3FNUZFormat>>(f);
    case DType::kFloat8E5M2:
      return when_built<DType::kFloat8E5M2, CodedFloat<uint8_t, kFloat8E5M2Format>>(f);
    case DType::kFloat8E5M2FNUZ:
      return when_built<DType::kFloat8E5M2FNUZ, CodedFloat<uint8_t, kFloat8E5M2FNUZFormat>>(f);
    case DType::kFloat8E8M0:
      return when_built<DType::kFloat8E8M0, Coded<uint8_t, decode_e8m0, encode_e8m0>>(f);
    default:
      (void)for_number_or_bool(t, [&](auto tag) {
        f(Plain<typename decltype(tag)::type>());
        return ok_status();
      });
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
    const uint32_t code = t == DType::kFloat4E2M1 ? encode_float<kFloat4E2M1Format>(rounding_double(in[k]))
                                                  : static_cast<uint32_t>(as_element<int32_t>(in[k]));
    const int64_t bit = (position + k) * bits;
    data[bit / 8] |= static_cast<std::byte>((code & mask) << (bit % 8));
  }
}

template <class W>
void write_wide(DType t, const W* in, bool saturate, std::byte* data, int64_t stride, int64_t position,
                int64_t n) {
  if (!is_sub_byte(t)) return with_codec(t, [&](auto codec) { codec.write(in, saturate, data, stride, n); });
  if (kPackedBuilt) write_packed(t, in, data, position, n);
}

}  // namespace

Wide wide_kind(DType t) {
  if (is_float(t)) return Wide::kFloat;
  return is_signed_integer(t) || t == DType::kInt4 || t == DType::kInt2 ? Wide::kSigned : Wide::kUnsigned;
}

void read_run(DType t, const std::byte* data, int64_t stride, int64_t position, int64_t n, Run& run) {
  if (!is_sub_byte(t)) return with_codec(t, [&](auto codec) { codec.read(data, stride, n, run); });
  if (kPackedBuilt) read_packed(t, data, position, n, run);
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
