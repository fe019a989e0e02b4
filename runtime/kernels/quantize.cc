// Quantize and Dequantize per tensor, per axis and per block, and DynamicQuantize.
//
// y = sat(rne(x / scale) + zero_point) and y = (x - zero_point) * scale, in float, or in double where an
// operand or the result is float64. NaN quantizes to the zero point.
#include <cmath>

#include "runtime/backend/dynamic_range.h"
#include "runtime/core/float_formats.h"
#include "runtime/kernels/convert.h"
#include "runtime/kernels/reference.h"
#include "runtime/kernels/requantize.h"
#include "runtime/kernels/support.h"

namespace sinter {
namespace {

constexpr bool is_small_integer(DType t) {
  return (t >= DType::kInt8 && t <= DType::kUint16) || (t >= DType::kInt4 && t <= DType::kUint2);
}
constexpr bool is_small_float(DType t) {
  return (is_float8(t) && t != DType::kFloat8E8M0) || t == DType::kFloat4E2M1;
}
constexpr bool is_quantized(DType t) { return is_small_integer(t) || is_small_float(t); }

// Checks the shape of scales and zero points: one element, one for each index of `axis`, or one for each
// block along it.
Status check_parameters(const OpCall& call, int64_t axis, int64_t block_size) {
  const TensorView &x = call.in(0), &scale = call.in(1);
  SINTER_RETURN_IF_ERROR(
      check_dtype(call, 1, is_compute_float(scale.dtype) || scale.dtype == DType::kFloat8E8M0));
  SINTER_RETURN_UNLESS(block_size >= 0, invalid("block size %a is out of range", block_size));
  const auto single = [](const TensorView& v) {
    return std::all_of(v.dims, v.dims + v.rank, [](int64_t d) { return d == 1; });
  };
  if (block_size > 0 && scale.rank > 0) {
    SINTER_RETURN_IF_ERROR(check_axis(axis, x.rank));
    SINTER_RETURN_UNLESS(
        scale.rank == x.rank,
        invalid("blocks of a value of rank %b need scales of that rank, not %a", scale.rank, x.rank));
    for (int i = 0; i < x.rank; ++i) {
      const int64_t blocks = x.dims[i] / block_size + (x.dims[i] % block_size != 0 ? 1 : 0);
      const int64_t want = i == axis ? blocks : x.dims[i];
      SINTER_RETURN_UNLESS(scale.dims[i] == want,
                           invalid("there are %a scales, but the blocks need %b", scale.dims[i], want));
    }
  } else if (!single(scale)) {
    SINTER_RETURN_IF_ERROR(check_axis(axis, x.rank));
    SINTER_RETURN_UNLESS(scale.rank == 1 && scale.dims[0] == x.dims[axis],
                         invalid("the scale is neither one number nor one for each of %a", x.dims[axis]));
  }
  if (call.has_input(2))
    SINTER_RETURN_UNLESS(call.in(2).same_shape(scale) || (single(call.in(2)) && single(scale)),
                         invalid("zero points and scales differ in shape"));
  return ok_status();
}

Status infer_quantize(OpCall& call) {
  const auto& a = call.attrs<QuantizeAttrs>();
  const DType x = call.in(0).dtype;
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, is_compute_float(x) || x == DType::kInt32));
  SINTER_RETURN_UNLESS(
      a.to > 0 && a.to < static_cast<int64_t>(DType::kCount) && is_quantized(static_cast<DType>(a.to)),
      unsupported("%A is not a type to quantize to", a.to));
  SINTER_RETURN_IF_ERROR(check_code(a.saturate, 2));
  SINTER_RETURN_IF_ERROR(check_parameters(call, a.axis, a.block_size));
  if (call.has_input(2))
    SINTER_RETURN_IF_ERROR(check_dtype(call, 2, call.in(2).dtype == static_cast<DType>(a.to)));
  return give_output(call, 0, static_cast<DType>(a.to), call.in(0).shape());
}

Status infer_dequantize(OpCall& call) {
  const auto& a = call.attrs<DequantizeAttrs>();
  const DType x = call.in(0).dtype;
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, is_quantized(x) || x == DType::kInt32));
  SINTER_RETURN_UNLESS(a.to > 0 && a.to <= static_cast<int64_t>(DType::kBFloat16),
                       unsupported("%A is not a type to dequantize to", a.to));
  SINTER_RETURN_IF_ERROR(check_parameters(call, a.axis, a.block_size));
  if (call.has_input(2)) SINTER_RETURN_IF_ERROR(check_same_dtype(call, 2, 0));
  return give_output(call, 0, static_cast<DType>(a.to), call.in(0).shape());
}

// One element of a parameter (scale or zero point), of any dtype.
struct Number {
  double f = 0;
  int64_t i = 0;
};
Number read_number(const TensorView& v, int64_t byte_offset, int64_t position) {
  Run run;
  read_run(v.dtype, v.data + byte_offset, 0, position, 1, run);
  if (wide_kind(v.dtype) == Wide::kFloat) return {run.f[0], 0};
  return {0, run.i[0]};  // unsigned types here are narrow: the same bits
}

// Walks x and y in row-major order and calls f(x, y, xs, ys, position, count, scale, zero) for runs of
// elements that share their parameters; at most kRunLength each.
template <class F>
void for_each_group(const OpCall& call, int64_t axis, int64_t block_size, F f) {
  const TensorView x = by_position(call.in(0)), y = by_position(call.out(0));
  const TensorView& scale = call.in(1);
  const bool has_zero = call.has_input(2);
  const TensorView zero = has_zero ? by_position(call.in(2)) : TensorView{};
  const int last = x.rank - 1;
  const bool blocked = block_size > 0 && scale.rank > 0;
  const bool single = !blocked && scale.size() == 1;
  const int64_t block = blocked ? block_size : 1;
  if (x.size() == 0) return;
  // Finds the parameters of an index: `at[k]` counts scales (blocks along `axis`).
  const auto parameters = [&](const int64_t* index, Number* s, Number* z) {
    int64_t s_offset = 0, z_offset = 0, linear = 0;
    if (blocked) {
      for (int k = 0; k < x.rank; ++k) {
        const int64_t i = k == axis ? index[k] / block : index[k];
        s_offset += i * scale.strides[k];
        if (has_zero) z_offset += i * zero.strides[k];
        linear = linear * scale.dims[k] + i;
      }
    } else if (!single) {
      s_offset = index[axis] * scale.strides[0];
      if (has_zero) z_offset = index[axis] * zero.strides[0];
      linear = index[axis];
    }
    *s = read_number(scale, s_offset, linear);
    *z = has_zero ? read_number(zero, z_offset, linear) : Number{};
  };
  const int64_t inner = x.rank > 0 ? x.dims[last] : 1;
  const int64_t xs = x.rank > 0 ? x.strides[last] : 0, ys = x.rank > 0 ? y.strides[last] : 0;
  // The number of neighbours within a row that share a parameter. Blocked parameters vary along all axes.
  const int64_t share = single ? inner : axis == last ? block : blocked ? 1 : inner;
  int64_t index[kMaxRank] = {}, position = 0;
  Number s, z;
  if (single) parameters(index, &s, &z);
  for (;;) {
    const std::byte* px = x.data;
    std::byte* py = y.data;
    for (int k = 0; k < last; ++k) px += index[k] * x.strides[k], py += index[k] * y.strides[k];
    for (int64_t first = 0; first < inner;) {
      const int64_t count = std::min({share - first % share, inner - first, kRunLength});
      if (!single && first % share == 0) {
        if (last >= 0) index[last] = first;
        parameters(index, &s, &z);
      }
      f(px + first * xs, py + first * ys, xs, ys, position, count, s, z);
      first += count, position += count;
    }
    if (last >= 0) index[last] = 0;
    int k = last - 1;
    for (; k >= 0 && ++index[k] == x.dims[k]; --k) index[k] = 0;
    if (k < 0) return;
  }
}

// Returns sat(rne(quotient) + zero) for an integer dtype.
int64_t quantize_integer(double quotient, int64_t zero, DType t) {
  const int bits = bit_width(t);
  const bool is_signed = wide_kind(t) == Wide::kSigned;
  const double low = is_signed ? -power_of_two(bits - 1) : 0;
  const double high = power_of_two(is_signed ? bits - 1 : bits) - 1;
  const double rounded = quotient != quotient ? 0 : std::nearbyint(quotient);
  const double v = rounded + static_cast<double>(zero);
  return static_cast<int64_t>(v < low ? low : v > high ? high : v);
}

// Returns whether a computation between float32 and this type, with these scales, takes the loops below.
bool in_floats(DType real, DType integer, DType scale) {
  return real == DType::kFloat32 && scale == DType::kFloat32 && integer >= DType::kInt8 &&
         integer <= DType::kUint16;
}

// Computes the integers of quantize_integer() for a quotient of float32, without doubles, which
// microcontrollers compute in software. A quotient is clamped to the type's range less the zero point.
void quantize_floats(const std::byte* x, std::byte* y, int64_t xs, int64_t ys, int64_t count, float scale,
                     int32_t zero, DType t) {
  const int bits = bit_width(t);
  const bool is_signed = wide_kind(t) == Wide::kSigned;
  const int32_t low = is_signed ? -(1 << (bits - 1)) : 0, high = (1 << (is_signed ? bits - 1 : bits)) - 1;
  const auto least = static_cast<float>(low - zero), most = static_cast<float>(high - zero);
  for (int64_t k = 0; k < count; ++k, x += xs, y += ys) {
    const float quotient = load<float>(x) / scale;
    const int32_t v = (quotient == quotient ? round_clamped(quotient, least, most) : 0) + zero;
    if (bits == 8)
      store<uint8_t>(y, static_cast<uint8_t>(v));
    else
      store<uint16_t>(y, static_cast<uint16_t>(v));
  }
}

Status run_quantize(const OpCall& call, RunContext&) {
  const auto& a = call.attrs<QuantizeAttrs>();
  const TensorView &x = call.in(0), &y = call.out(0), &scale = call.in(1);
  if (is_sub_byte(y.dtype) && y.dense_bytes() > 0)
    std::memset(y.data, 0, static_cast<size_t>(y.dense_bytes()));
  const bool wide = x.dtype == DType::kFloat64 || scale.dtype == DType::kFloat64;
  const bool to_float = is_small_float(y.dtype);
  const Wide kind = wide_kind(x.dtype);
  for_each_group(call, a.axis, a.block_size,
                 [&](const std::byte* px, std::byte* py, int64_t xs, int64_t ys, int64_t position, int64_t n,
                     const Number& s, const Number& z) {
                   if (in_floats(x.dtype, y.dtype, scale.dtype))
                     return quantize_floats(px, py, xs, ys, n, static_cast<float>(s.f),
                                            static_cast<int32_t>(z.i), y.dtype);
                   Run run;
                   read_run(x.dtype, px, xs, position, n, run);
                   for (int64_t k = 0; k < n; ++k) {
                     const double v = kind == Wide::kFloat ? run.f[k] : static_cast<double>(run.i[k]);
                     const double quotient =
                         wide ? v / s.f
                              : static_cast<double>(static_cast<float>(v) / static_cast<float>(s.f));
                     if (to_float)
                       run.f[k] = quotient + z.f;
                     else
                       run.i[k] = quantize_integer(quotient, z.i, y.dtype);
                   }
                   write_run(y.dtype, to_float ? Wide::kFloat : Wide::kSigned, run, a.saturate != 0, py, ys,
                             position, n);
                 });
  return ok_status();
}

// Computes (x - zero) * scale. Bits are read unsigned; the exclusive or and the subtraction restore the sign.
void dequantize_floats(const std::byte* x, std::byte* y, int64_t xs, int64_t ys, int64_t count, float scale,
                       int32_t zero, DType t) {
  const int bits = bit_width(t);
  const int32_t sign = wide_kind(t) == Wide::kSigned ? 1 << (bits - 1) : 0;
  for (int64_t k = 0; k < count; ++k, x += xs, y += ys) {
    const int32_t v = bits == 8 ? load<uint8_t>(x) : load<uint16_t>(x);
    store<float>(y, static_cast<float>((v ^ sign) - sign - zero) * scale);
  }
}

Status run_dequantize(const OpCall& call, RunContext&) {
  const auto& a = call.attrs<DequantizeAttrs>();
  const TensorView &x = call.in(0), &y = call.out(0), &scale = call.in(1);
  const bool wide = y.dtype == DType::kFloat64 || scale.dtype == DType::kFloat64;
  const bool from_float = wide_kind(x.dtype) == Wide::kFloat;
  for_each_group(
      call, a.axis, a.block_size,
      [&](const std::byte* px, std::byte* py, int64_t xs, int64_t ys, int64_t position, int64_t n,
          const Number& s, const Number& z) {
        if (in_floats(y.dtype, x.dtype, scale.dtype))
          return dequantize_floats(px, py, xs, ys, n, static_cast<float>(s.f), static_cast<int32_t>(z.i),
                                   x.dtype);
        Run run;
        read_run(x.dtype, px, xs, position, n, run);
        for (int64_t k = 0; k < n; ++k) {
          // A difference of two int32 is exact in double, and rounds to float once.
          const double difference = from_float ? run.f[k] - z.f : static_cast<double>(run.i[k] - z.i);
          run.f[k] = wide ? difference * s.f
                          : static_cast<double>(static_cast<float>(difference) * static_cast<float>(s.f));
        }
        write_run(y.dtype, Wide::kFloat, run, true, py, ys, position, n);
      });
  return ok_status();
}

Status infer_dynamic_quantize(OpCall& call) {
  const int64_t to = call.attrs<DynamicQuantizeAttrs>().to;
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, is_compute_float(call.in(0).dtype)));
  SINTER_RETURN_UNLESS(to == static_cast<int64_t>(DType::kUint8) || to == static_cast<int64_t>(DType::kInt8),
                       unsupported("%A is not a type to quantize to", to));
  SINTER_RETURN_IF_ERROR(give_output(call, 0, static_cast<DType>(to), call.in(0).shape()));
  SINTER_RETURN_IF_ERROR(give_output(call, 1, DType::kFloat32, {}));
  return give_output(call, 2, static_cast<DType>(to), {});
}

// The range always holds zero. NaN does not affect the range.
Status run_dynamic_quantize(const OpCall& call, RunContext&) {
  return for_float(call.in(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const TensorView& x = call.in(0);
    float low = 0, high = 0;
    for_each_element(make_nest(x.shape(), x), [&](std::byte* const(&p)[1]) {
      const float v = static_cast<float>(load<T>(p[0]));
      if (v < low) low = v;
      if (v > high) high = v;
    });
    const DynamicRange range = dynamic_range(low, high);
    // int8 differs in the highest bit alone.
    const bool less = call.attrs<DynamicQuantizeAttrs>().to == static_cast<int64_t>(DType::kInt8);
    const auto flip = static_cast<uint8_t>(less ? 128 : 0);
    if (call.has_output(0))
      map_unary<uint8_t, T>(call.out(0), x, [=](T v) {
        return static_cast<uint8_t>(quantize_integer(static_cast<double>(static_cast<float>(v) / range.scale),
                                                     range.zero, DType::kUint8) ^
                                    flip);
      });
    if (call.has_output(1)) store<float>(call.out(1).data, range.scale);
    if (call.has_output(2)) store<uint8_t>(call.out(2).data, static_cast<uint8_t>(range.zero ^ flip));
    return ok_status();
  });
}

}  // namespace

const Kernel kQuantizeKernel = reference_kernel({Op::kQuantize, infer_quantize, nullptr, run_quantize});
const Kernel kDequantizeKernel =
    reference_kernel({Op::kDequantize, infer_dequantize, nullptr, run_dequantize});
const Kernel kDynamicQuantizeKernel =
    reference_kernel({Op::kDynamicQuantize, infer_dynamic_quantize, nullptr, run_dynamic_quantize});

}  // namespace sinter
