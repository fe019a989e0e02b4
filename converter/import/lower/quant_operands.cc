#include "converter/import/lower/quant_operands.h"

#include <cmath>
#include <utility>

#include "converter/import/lower/common.h"
#include "runtime/core/checked.h"

namespace sinter::convert {

namespace {

constexpr char kFittingZeroPoint[] = "store a zero point within the range of the data's type";

// The values that a zero point of quantized data may have.
std::pair<double, double> quantized_range(DType t) {
  const int bits = bit_width(t);
  const bool is_signed = is_signed_integer(t) || t == DType::kInt4 || t == DType::kInt2;
  const double low = is_signed ? -std::ldexp(1.0, bits - 1) : 0;
  return {low, low + std::ldexp(1.0, bits) - 1};
}

void note_quant(NodeLowering& n, ValueId v, DType to, TypeRule rule, const char* reason) {
  const DType given = n.dtype(v);
  n.record(n.parent().graph().value(v).name, given, to, rule, reason,
           n.constant(v) ? TypeEffect::kRetyped : TypeEffect::kCast,
           {{"operand", given, n.constant(v) != nullptr}});
}

// The formula subtracts it, but most runtimes take float8 data to have none.
void report_float8_zero(NodeLowering& n, DType data, ValueId zero_point) {
  const ConstantPtr c = n.constant(zero_point);
  if (!c || !is_float8(data)) return;
  for (const double v : c->as_doubles())
    if (v != 0)
      return n.warn("zero point '{}' of {} data holds {}, where only 0 is usual; it is used as written",
                    n.parent().graph().value(zero_point).name, dtype_name(data), v);
}

}  // namespace

bool quantized_type(DType t) {
  return is_float8(t) || is_sub_byte(t) || (is_integer(t) && bit_width(t) <= 16);
}

bool settle_zero_point(NodeLowering& n, DType data, ValueId* zero_point, bool* as_numbers) {
  *as_numbers = false;
  const DType given = n.dtype(*zero_point);
  if (*zero_point < 0) return true;
  if (given == data) return report_float8_zero(n, data, *zero_point), true;
  const std::string name = n.parent().graph().value(*zero_point).name;
  const auto decide = [&](const char* reason, DType to) {
    n.record(name, given, to, TypeRule::kQuantZero, reason,
             given == to               ? TypeEffect::kKept
             : n.constant(*zero_point) ? TypeEffect::kRetyped
                                       : TypeEffect::kCast,
             {{"data", data, false}, {"zero point", given, n.constant(*zero_point) != nullptr}});
  };
  const ConstantPtr c = n.constant(*zero_point);
  if (!c) {
    decide("a zero point that is computed at run time is subtracted as a number", DType::kFloat32);
    return *as_numbers = true;
  }
  const auto [low, high] = quantized_range(data);
  bool fits = true;
  for (const double v : c->as_doubles()) {
    // float8 data have no other zero point than 0.
    if (is_float(data) && v != 0)
      return n.refuse_advising(kFittingZeroPoint, "zero point '{}' ({}) holds {}, which {} data cannot have",
                               name, dtype_name(given), v, dtype_name(data));
    if (is_float(data)) continue;
    if (v != std::trunc(v)) {
      n.warn("zero point '{}' ({}) holds {}: fractions are kept by computing in float", name,
             dtype_name(given), v);
      decide("a fractional zero point is subtracted as a number", DType::kFloat32);
      return *as_numbers = true;
    }
    if (v >= low && v <= high) continue;
    if (data != DType::kInt8 || given != DType::kUint8 || v != 128)
      return n.refuse_advising(kFittingZeroPoint, "zero point '{}' ({}) holds {}, which {} data cannot have",
                               name, dtype_name(given), v, dtype_name(data));
    fits = false;
  }
  if (!fits) {
    n.warn("zero point '{}' is the middle of uint8, but its data is int8; check the data's type", name);
    decide("the zero point is outside the data's type and is subtracted as a number", DType::kFloat32);
    return *as_numbers = true;
  }
  decide("the values fit the data's type", data);
  *zero_point = n.emit(CastAttrs{static_cast<int64_t>(data), 1}, {*zero_point});
  return *zero_point >= 0;
}

ValueId real_scale(NodeLowering& n, ValueId scale) {
  if (is_float(n.dtype(scale))) return scale;
  note_quant(n, scale, DType::kFloat32, TypeRule::kQuantTypes, "a scale is a floating-point number");
  return n.cast(scale, DType::kFloat32);
}

bool settle_zero_point_of_result(NodeLowering& n, DType to, ValueId* zero_point) {
  if (*zero_point < 0) return true;
  if (n.dtype(*zero_point) == to) return report_float8_zero(n, to, *zero_point), true;
  const std::string name = n.parent().graph().value(*zero_point).name;
  const DType given = n.dtype(*zero_point);
  const ConstantPtr c = n.constant(*zero_point);
  if (!c)
    return n.refuse("zero point '{}' is {} and computed at run time, but the result is {}", name,
                    dtype_name(given), dtype_name(to));
  const auto [low, high] = is_float(to) ? std::pair(0.0, 0.0) : quantized_range(to);
  for (const double v : c->as_doubles())
    if (v != std::trunc(v) || v < low || v > high)
      return n.refuse_advising(kFittingZeroPoint, "zero point '{}' ({}) holds {}, which {} data cannot have",
                               name, dtype_name(given), v, dtype_name(to));
  note_quant(n, *zero_point, to, TypeRule::kQuantZero, "the values fit the result's type");
  *zero_point = n.cast(*zero_point, to);
  return *zero_point >= 0;
}

DType result_type(NodeLowering& n, ValueId zero_point) {
  const DType given = n.dtype(zero_point);
  if (quantized_type(given) || n.node().outputs.empty()) return given;
  const std::string& result = n.node().outputs[0];
  const ImportedGraph& model = n.parent().model().graph;
  for (const ImportedValueInfo& output : model.outputs)
    if (output.name == result && quantized_type(output.dtype)) return output.dtype;
  for (const ImportedNode& reader : model.nodes)
    if (reader.op_type == "DequantizeLinear" && reader.inputs.size() > 2 && reader.inputs[0] == result)
      if (const DType t = n.dtype(n.parent().lookup(reader.inputs[2])); quantized_type(t)) return t;
  DType to = DType::kUint8;
  if (const ConstantPtr c = n.constant(zero_point)) {
    for (const double v : c->as_doubles())
      if (v < 0) to = DType::kInt8;
    n.warn(
        "zero point '{}' is {}, which is not a type of quantized values; {} is used; give output_dtype to "
        "confirm it",
        n.parent().graph().value(zero_point).name, dtype_name(given), dtype_name(to));
  }
  return to;
}

ValueId repeated(NodeLowering& n, ValueId v, int64_t axis, int64_t block_size, const Dims& full) {
  if (v < 0) return v;
  Dims dims = n.dims(v);
  if (dims.size() != full.size())
    return n.refuse("scales or zero points in blocks of {} have rank {}, but the data has rank {}",
                    block_size, dims.size(), full.size());
  const auto at = static_cast<size_t>(axis);
  const int64_t blocks = dims[at], length = full[at];
  int64_t all_blocks = 0;
  if (!checked_mul(blocks, block_size, &all_blocks) || all_blocks != length)
    return n.refuse("{} blocks of {} for {} elements", blocks, block_size, length);
  dims.insert(dims.begin() + axis + 1, 1);
  const ValueId split = n.reshape(v, dims);
  dims[at + 1] = block_size;
  const ValueId all = n.broadcast(split, dims);
  dims.erase(dims.begin() + axis + 1);
  dims[at] = length;
  return n.reshape(all, dims);
}

bool same_shape(NodeLowering& n, ValueId* scale, ValueId* zero_point, int64_t* axis, int64_t block_size) {
  const bool has_zero = *zero_point >= 0;
  const bool one_scale = n.size(*scale) == 1, one_zero = !has_zero || n.size(*zero_point) == 1;
  if (one_scale && one_zero && block_size == 0) {
    *scale = n.reshape(*scale, {});
    if (has_zero) *zero_point = n.reshape(*zero_point, {});
    *axis = 0;
  } else if (one_scale && !one_zero && block_size == 0) {
    *scale = n.broadcast(n.reshape(*scale, {}), n.dims(*zero_point));
  } else if (has_zero && one_zero && !one_scale) {
    const DType stored = n.dtype(*zero_point);
    const DType whole = is_signed_integer(stored) || stored == DType::kInt4 ? DType::kInt8 : DType::kUint8;
    const ValueId zero = is_sub_byte(stored) ? n.cast(*zero_point, whole) : *zero_point;
    *zero_point = n.cast(n.broadcast(n.reshape(zero, {}), n.dims(*scale)), stored);
  }
  return *scale >= 0 && (!has_zero || *zero_point >= 0);
}

}  // namespace sinter::convert
