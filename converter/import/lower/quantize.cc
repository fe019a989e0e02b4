// Quantize, dequantize, and the operators that compute on quantized values: dequantize, the float operator,
// quantize (QLinear...), or exactly in int32 (...Integer).
#include <algorithm>
#include <cmath>

#include "converter/import/lower.h"
#include "converter/import/lower/common.h"
#include "converter/import/lower/quant_operands.h"
#include "converter/import/lower/spatial.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {

ValueId dequantize(NodeLowering& n, ValueId x, ValueId scale, ValueId zero_point, int64_t axis,
                   int64_t block_size, DType to) {
  if (x < 0 || scale < 0) return n.refuse("an operand is missing");
  scale = real_scale(n, scale);
  // Integers that no Dequantize takes, and data that are floating-point already, are numbers too.
  const DType data = n.dtype(x);
  const bool plain = !quantized_type(data) && data != DType::kInt32;
  const DType number = plain && is_integer(data) ? DType::kFloat64 : DType::kFloat32;
  if (is_wide_float(data) || data == DType::kFloat16 || data == DType::kBFloat16)
    n.warn("its data is {} already, and is scaled as numbers", dtype_name(data));
  bool as_numbers = plain;
  if (!plain && !settle_zero_point(n, data, &zero_point, &as_numbers)) {
    return kUnknown;
  } else if (as_numbers) {
    const auto shaped = [&](ValueId v) {
      if (n.size(v) == 1) return n.reshape(v, {});
      return block_size != 0 ? repeated(n, v, axis, block_size, n.dims(x))
                             : along_axis(n, v, axis, n.rank(x));
    };
    ValueId v = n.cast(x, number);
    if (zero_point != kAbsent) v = n.sub(v, n.cast(shaped(zero_point), number));
    return n.cast(n.mul(v, n.cast(shaped(scale), number)), to);
  }
  if (!same_shape(n, &scale, &zero_point, &axis, block_size)) return kUnknown;
  std::vector<ValueId> inputs{x, scale};
  if (zero_point != kAbsent) inputs.push_back(zero_point);
  return n.emit(DequantizeAttrs{axis, block_size, static_cast<int64_t>(to)}, inputs);
}

ValueId quantize(NodeLowering& n, ValueId x, ValueId scale, ValueId zero_point, int64_t axis,
                 int64_t block_size, DType to, int64_t saturate) {
  if (x < 0 || scale < 0) return n.refuse("an operand is missing");
  scale = real_scale(n, scale);
  if (!settle_zero_point_of_result(n, to, &zero_point)) return kUnknown;
  if (!same_shape(n, &scale, &zero_point, &axis, block_size)) return kUnknown;
  // No value of less than a byte exists at run time: a byte, within the same ends.
  const bool bits = is_sub_byte(to) && to != DType::kFloat4E2M1 && !n.constant(x);
  const bool is_signed = to == DType::kInt4 || to == DType::kInt2;
  const DType stored = !bits ? to : is_signed ? DType::kInt8 : DType::kUint8;
  std::vector<ValueId> inputs{as_float(n, x), scale};
  if (zero_point != kAbsent) inputs.push_back(n.cast(zero_point, stored));
  const ValueId q = n.emit(QuantizeAttrs{axis, block_size, static_cast<int64_t>(stored), saturate}, inputs);
  if (!bits || q < 0) return q;
  n.record(n.node().outputs[0], to, stored, TypeRule::kQuantTypes,
           "values of less than a byte do not exist at run time", TypeEffect::kWidened);
  const double steps = std::ldexp(1.0, bit_width(to));
  return n.emit(ClampAttrs{is_signed ? -steps / 2 : 0, (is_signed ? steps / 2 : steps) - 1}, {q});
}

namespace {

// The axis of a scale that has one: negative from the end; per tensor it has no meaning.
bool scale_axis(NodeLowering& n, int64_t* axis, int64_t* block_size) {
  *axis = n.attr_int("axis", 1), *block_size = n.attr_int("block_size", 0);
  if (*block_size < 0) return n.refuse("block_size is {}", *block_size);
  const bool single = n.size(n.input(1)) == 1 && (!n.has_input(2) || n.size(n.input(2)) == 1);
  if (single && *block_size == 0) return *axis = 0, true;
  if (!n.normalize_axis(axis, n.rank(n.input(0)))) return false;
  if (n.rank(n.input(1)) <= 1 || *block_size > 0) return true;
  // Rank > 1 without block_size: blocks that divide the axis evenly are meant.
  const int64_t length = n.dims(n.input(0))[static_cast<size_t>(*axis)];
  if (n.rank(n.input(1)) != n.rank(n.input(0)))
    return n.refuse_shapes("scale {} does not fit {}", to_string(n.dims(n.input(1))),
                           to_string(n.dims(n.input(0))));
  const int64_t blocks = n.dims(n.input(1))[static_cast<size_t>(*axis)];
  if (blocks < 1 || length % blocks != 0)
    return n.refuse("{} scales for {} elements and no block_size", blocks, length);
  *block_size = length / blocks;
  return true;
}

bool lower_quantize(NodeLowering& n) {
  int64_t axis, block_size;
  if (!scale_axis(n, &axis, &block_size)) return false;
  n.ignore_attr("precision");
  const int64_t number = n.attr_int("output_dtype", 0);
  const DType declared = dtype_from_onnx(number);
  if (number != 0 && declared == DType::kNone)
    return n.refuse("output_dtype {} is not supported", onnx_type_name(number));
  if (number != 0 && !quantized_type(declared))
    return n.refuse_advising("name a quantized type (int8, uint8, int16, uint16, 4 bits, float8)",
                             "output_dtype is {}, which holds no quantized values", dtype_name(declared));
  DType to = declared == DType::kNone ? DType::kUint8 : declared;
  if (n.has_input(2)) {
    to = declared != DType::kNone && !quantized_type(n.dtype(n.input(2))) ? declared
                                                                          : result_type(n, n.input(2));
    if (declared != DType::kNone && declared != to)
      return n.refuse_advising("give both the intended type", "output_dtype is {} and the zero point is {}",
                               dtype_name(declared), dtype_name(to));
  }
  return n.output(
      0, quantize(n, n.input(0), n.input(1), n.input(2), axis, block_size, to, n.attr_int("saturate", 1)));
}

bool lower_dequantize(NodeLowering& n) {
  int64_t axis, block_size;
  if (!scale_axis(n, &axis, &block_size)) return false;
  const int64_t number = n.attr_int("output_dtype", 0);
  const DType scale = n.dtype(n.input(1));
  const DType to = number != 0 ? dtype_from_onnx(number) : is_float(scale) ? scale : DType::kFloat32;
  if (!is_float(to)) return n.refuse("output type {} is not supported", onnx_type_name(number));
  return n.output(0, dequantize(n, n.input(0), n.input(1), n.input(2), axis, block_size, to));
}

bool lower_dynamic_quantize(NodeLowering& n) {
  const std::vector<ValueId> r =
      n.emit_many(DynamicQuantizeAttrs{}, {n.cast(n.input(0), DType::kFloat32)}, 3);
  for (size_t i = 0; i < 3 && i < n.output_count(); ++i)
    if (!n.output(i, r[i])) return false;
  return true;
}

// Per tensor, along `axis`, or of x's rank: float32 of a quantized operand.
ValueId real(NodeLowering& n, ValueId x, ValueId scale, ValueId zero_point, int64_t axis) {
  if (x < 0 || scale < 0) return n.refuse("an operand is missing");
  if (n.size(scale) == 1 || n.rank(scale) == 1) {
    const bool several = n.size(scale) > 1 || (zero_point >= 0 && n.size(zero_point) > 1);
    if (several && !n.normalize_axis(&axis, n.rank(x))) return kUnknown;
    return dequantize(n, x, scale, zero_point, axis, 0, DType::kFloat32);
  }
  ValueId v = n.cast(x, DType::kFloat32);
  if (zero_point != kAbsent) v = n.sub(v, n.cast(zero_point, DType::kFloat32));
  return n.mul(v, n.cast(scale, DType::kFloat32));
}
// float32 of a sum of products in units of both scales.
ValueId scaled(NodeLowering& n, ValueId sum, ValueId a_scale, ValueId b_scale) {
  const ValueId b = n.cast(n.size(b_scale) == 1 ? n.reshape(b_scale, {}) : b_scale, DType::kFloat32);
  const ValueId scale = n.mul(n.cast(n.reshape(a_scale, {}), DType::kFloat32), b);
  return n.mul(n.cast(sum, DType::kFloat32), scale);
}
// Returns x in integers of the zero point's type, else of `fallback`.
ValueId store(NodeLowering& n, ValueId x, ValueId scale, ValueId zero_point, DType fallback) {
  return quantize(n, x, scale, zero_point, 0, 0,
                  zero_point == kAbsent ? fallback : result_type(n, zero_point), 1);
}
// x - zero point, exactly, in int32. A zero point of several elements is along `axis`.
ValueId integer(NodeLowering& n, ValueId x, ValueId zero_point, int64_t axis) {
  if (x < 0) return n.refuse("an operand is missing");
  const ValueId v = n.cast(x, DType::kInt32);
  if (zero_point == kAbsent) return v;
  bool ignored = false;
  if (!settle_zero_point(n, n.dtype(x), &zero_point, &ignored)) return kUnknown;
  ValueId z = n.cast(zero_point, DType::kInt32);
  if (n.size(z) == 1)
    z = n.reshape(z, {});
  else if (n.rank(z) == 1)
    z = along_axis(n, z, axis, n.rank(x));
  return n.sub(v, z);
}

bool lower_qlinear_matmul(NodeLowering& n) {
  if (!n.has_input(6)) return n.refuse("needs eight inputs");
  const ValueId a = real(n, n.input(0), n.input(1), n.input(2), -2),
                b = real(n, n.input(3), n.input(4), n.input(5), -1);
  return n.output(0, store(n, matrix_product(n, a, b), n.input(6), n.input(7), n.dtype(n.input(0))));
}
bool lower_matmul_integer(NodeLowering& n) {
  const ValueId a = n.input(0), b = n.input(1);
  const int64_t row_axis = std::max<int64_t>(n.rank(a) - 2, 0),
                column_axis = std::max<int64_t>(n.rank(b) - 1, 0);
  const ValueId columns = integer(n, b, n.input(3), column_axis);
  return n.output(0, matrix_product(n, integer(n, a, n.input(2), row_axis), columns));
}

// `last`: x and the result are channels-last.
bool qlinear_conv(NodeLowering& n, bool last) {
  if (!n.has_input(6)) return n.refuse("needs eight inputs");
  const ValueId x_scale = n.input(1), w_scale = n.input(4);
  ValueId x = real(n, n.input(0), x_scale, n.input(2), 1);
  if (last) x = n.to_channels_first(x);
  const ValueId w = real(n, n.input(3), w_scale, n.input(5), 0);
  ValueId bias = n.input(8);
  if (bias != kAbsent) bias = scaled(n, bias, x_scale, w_scale);
  ValueId y = convolution(n, x, w, bias);
  if (last) y = n.to_channels_last(y);
  return n.output(0, store(n, y, n.input(6), n.input(7), n.dtype(n.input(0))));
}
bool lower_qlinear_conv(NodeLowering& n) { return qlinear_conv(n, false); }
bool lower_conv_integer(NodeLowering& n) {
  const ValueId w = integer(n, n.input(1), n.input(3), 0);
  return n.output(0, convolution(n, integer(n, n.input(0), n.input(2), 1), w, kAbsent));
}

// ---- com.microsoft

bool lower_qlinear_conv_microsoft(NodeLowering& n) {
  return qlinear_conv(n, n.attr_int("channels_last", 0) != 0);
}
template <class Attrs>
bool lower_qlinear_binary(NodeLowering& n) {
  if (!n.has_input(6)) return n.refuse("needs eight inputs");
  const ValueId a = real(n, n.input(0), n.input(1), n.input(2), 0),
                b = real(n, n.input(3), n.input(4), n.input(5), 0);
  return n.output(0, store(n, n.emit(Attrs{}, {a, b}), n.input(6), n.input(7), n.dtype(n.input(0))));
}
// (X, X_scale, X_zero_point, Y_scale, Y_zero_point)
template <class Apply>
bool qlinear_unary(NodeLowering& n, Apply apply) {
  if (!n.has_input(3)) return n.refuse("needs five inputs");
  const ValueId x = real(n, n.input(0), n.input(1), n.input(2), 0);
  return n.output(0, store(n, apply(x), n.input(3), n.input(4), n.dtype(n.input(0))));
}
bool lower_qlinear_sigmoid(NodeLowering& n) {
  return qlinear_unary(n, [&](ValueId x) { return n.emit(SigmoidAttrs{}, {x}); });
}
bool lower_qlinear_leaky_relu(NodeLowering& n) {
  return qlinear_unary(n, [&](ValueId x) {
    return n.emit(LeakyReluAttrs{n.attr_float("alpha", static_cast<double>(0.01f))}, {x});
  });
}
bool lower_qlinear_global_average_pool(NodeLowering& n) {
  const bool last = n.attr_int("channels_last", 0) != 0;
  return qlinear_unary(n, [&](ValueId x) {
    std::vector<int64_t> axes;
    for (int64_t i = 1; i + 1 < n.rank(x); ++i) axes.push_back(last ? i : i + 1);
    return n.reduce(ReduceFn::kMean, int_list(axes), 1, {x});
  });
}
bool lower_qlinear_average_pool(NodeLowering& n) {
  const bool last = n.attr_int("channels_last", 0) != 0;
  return qlinear_unary(n, [&](ValueId x) {
    return last ? n.to_channels_last(average_pool(n, n.to_channels_first(x))) : average_pool(n, x);
  });
}
bool lower_qlinear_reduce_mean(NodeLowering& n) {
  return qlinear_unary(n, [&](ValueId x) -> ValueId {
    std::vector<int64_t> axes = n.attr_ints("axes");
    if (!n.normalize_axes(&axes, n.rank(x))) return kUnknown;
    if (axes.empty())
      for (int64_t i = 0; i < n.rank(x); ++i) axes.push_back(i);
    return n.reduce(ReduceFn::kMean, int_list(axes), n.attr_int("keepdims", 1) != 0, {x});
  });
}
bool lower_qlinear_softmax(NodeLowering& n) {
  const bool flat = n.attr_int("opset", 13) < 13;
  return qlinear_unary(n, [&](ValueId x) -> ValueId {
    int64_t axis = n.attr_int("axis", flat ? 1 : -1);
    if (!n.normalize_axis(&axis, n.rank(x))) return kUnknown;
    if (!flat) return n.emit(SoftmaxAttrs{axis, 0}, {x});
    const Dims d = n.dims(x);
    return n.reshape(n.emit(SoftmaxAttrs{1, 0}, {flatten_to_2d(n, x, axis)}), d);
  });
}
// (Y_scale, Y_zero_point, then tensor, scale, zero point each)
bool lower_qlinear_concat(NodeLowering& n) {
  if (n.input_count() < 5 || (n.input_count() - 2) % 3 != 0)
    return n.refuse("has {} inputs", n.input_count());
  std::vector<ValueId> parts;
  for (size_t i = 2; i < n.input_count(); i += 3)
    parts.push_back(real(n, n.input(i), n.input(i + 1), n.input(i + 2), 0));
  int64_t axis = n.attr_int("axis", 0);
  if (!n.normalize_axis(&axis, n.rank(parts[0]))) return false;
  return n.output(0, store(n, n.emit(ConcatAttrs{axis}, parts), n.input(0), n.input(1), n.dtype(n.input(2))));
}
bool lower_qlinear_where(NodeLowering& n) {
  if (!n.has_input(7)) return n.refuse("needs nine inputs");
  const ValueId a = real(n, n.input(1), n.input(2), n.input(3), 0),
                b = real(n, n.input(4), n.input(5), n.input(6), 0);
  return n.output(0, store(n, n.where({n.input(0), a, b}), n.input(7), n.input(8), n.dtype(n.input(1))));
}

// A, a_scale, a_zero_point, B, b_scale, b_zero_point, C? (int32), y_scale?, y_zero_point?
bool lower_qgemm(NodeLowering& n) {
  if (!n.has_input(5)) return n.refuse("needs six inputs");
  const double alpha = n.attr_float("alpha", 1);
  const bool trans_a = n.attr_int("transA", 0) != 0, trans_b = n.attr_int("transB", 0) != 0;
  const ValueId a_scale = n.input(1), b_scale = n.input(4);
  ValueId a = real(n, n.input(0), a_scale, n.input(2), 0),
          b = real(n, n.input(3), b_scale, n.input(5), trans_b ? 0 : 1);
  if (trans_a) a = n.transpose(a, {1, 0});
  if (trans_b) b = n.transpose(b, {1, 0});
  ValueId y = matrix_product(n, a, b);
  if (n.has_input(6)) y = n.add(y, scaled(n, n.input(6), a_scale, b_scale));
  if (alpha != 1) y = n.mul(y, n.scalar(n.dtype(y), alpha));
  if (!n.has_input(7)) return n.output(0, y);
  return n.output(0, store(n, y, n.input(7), n.input(8), n.dtype(n.input(0))));
}

// Integer product of a dynamically quantized activation, as (x - zx) * (w - zw) in int32, then scaled.
ValueId scaled_product(NodeLowering& n, ValueId a, ValueId a_scale, ValueId a_zero, ValueId b,
                       ValueId b_scale, ValueId b_zero, ValueId bias) {
  const int64_t columns = std::max<int64_t>(n.rank(b) - 1, 0);
  const ValueId w = integer(n, b, b_zero, columns);
  const ValueId sum = matrix_product(n, integer(n, a, a_zero, std::max<int64_t>(n.rank(a) - 2, 0)), w);
  const ValueId y = scaled(n, sum, a_scale, b_scale);
  return bias == kAbsent ? y : n.add(y, n.cast(bias, DType::kFloat32));
}
bool lower_dynamic_quantize_matmul(NodeLowering& n) {
  const std::vector<ValueId> q =
      n.emit_many(DynamicQuantizeAttrs{}, {n.cast(n.input(0), DType::kFloat32)}, 3);
  return n.output(0, scaled_product(n, q[0], q[1], q[2], n.input(1), n.input(2), n.input(3), n.input(4)));
}
bool lower_matmul_integer_to_float(NodeLowering& n) {
  if (!n.has_input(3)) return n.refuse("needs four inputs");
  const ValueId y =
      scaled_product(n, n.input(0), n.input(2), n.input(4), n.input(1), n.input(3), n.input(5), n.input(6));
  return n.output(0, n.cast(y, n.dtype(n.input(2))));
}

}  // namespace

std::span<const OnnxOperator> quantize_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"QuantizeLinear", 10, lower_quantize, "", kTakesBounded | kTwoInputs},
      {"DequantizeLinear", 10, lower_dequantize, "", kTakesBounded | kTwoInputs},
      {"DynamicQuantizeLinear", 11, lower_dynamic_quantize, "", kTakesBounded},
      {"QLinearMatMul", 10, lower_qlinear_matmul, "", kNoTraits},
      {"QLinearConv", 10, lower_qlinear_conv, "", kNoTraits},
      {"MatMulInteger", 10, lower_matmul_integer, "", kTakesBounded | kTwoInputs},
      {"ConvInteger", 10, lower_conv_integer, "", kTakesBounded | kTwoInputs},
      {"QuantizeLinear", 1, lower_quantize, "", kTakesBounded | kTwoInputs, kMicrosoft},
      {"DequantizeLinear", 1, lower_dequantize, "", kTakesBounded | kTwoInputs, kMicrosoft},
      {"QLinearConv", 1, lower_qlinear_conv_microsoft, "", kNoTraits, kMicrosoft},
      {"QLinearAdd", 1, lower_qlinear_binary<AddAttrs>, "", kNoTraits, kMicrosoft},
      {"QLinearMul", 1, lower_qlinear_binary<MulAttrs>, "", kNoTraits, kMicrosoft},
      {"QLinearSigmoid", 1, lower_qlinear_sigmoid, "", kNoTraits, kMicrosoft},
      {"QLinearLeakyRelu", 1, lower_qlinear_leaky_relu, "", kNoTraits, kMicrosoft},
      {"QLinearGlobalAveragePool", 1, lower_qlinear_global_average_pool, "", kNoTraits, kMicrosoft},
      {"QLinearAveragePool", 1, lower_qlinear_average_pool, "", kNoTraits, kMicrosoft},
      {"QLinearReduceMean", 1, lower_qlinear_reduce_mean, "", kNoTraits, kMicrosoft},
      {"QLinearSoftmax", 1, lower_qlinear_softmax, "", kNoTraits, kMicrosoft},
      {"QLinearConcat", 1, lower_qlinear_concat, "", kNoTraits, kMicrosoft},
      {"QLinearWhere", 1, lower_qlinear_where, "b", kNoTraits, kMicrosoft},
      {"QGemm", 1, lower_qgemm, "", kNoTraits, kMicrosoft},
      {"DynamicQuantizeMatMul", 1, lower_dynamic_quantize_matmul, "", kTakesBounded | kThreeInputs,
       kMicrosoft},
      {"MatMulIntegerToFloat", 1, lower_matmul_integer_to_float, "", kTakesBounded, kMicrosoft},
  };
  return kRules;
}

}  // namespace sinter::convert
