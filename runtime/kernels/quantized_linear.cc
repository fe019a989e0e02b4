#include "runtime/kernels/quantized_linear.h"

namespace sinter::linear {
namespace {

struct IntegerRange {
  int64_t min = 0, max = 0;
  bool holds(int64_t v) const { return v >= min && v <= max; }
};
IntegerRange range_of(DType t) {
  return t == DType::kInt8 ? IntegerRange{-128, 127} : IntegerRange{-32768, 32767};
}
bool is_quantized_type(DType t) { return t == DType::kInt8 || t == DType::kInt16; }

// Checks an operand that is one value, or one for each output channel.
Status check_per_column(const OpCall& call, size_t i, DType dtype, int64_t columns) {
  const TensorView& v = call.in(i);
  SINTER_RETURN_IF_ERROR(check_dtype(call, i, v.dtype == dtype));
  SINTER_RETURN_UNLESS(v.rank == 1 && (v.dims[0] == columns || v.dims[0] == 1),
                       invalid("it is not one value for each output channel").of_input(i));
  return ok_status();
}

}  // namespace

Status check_quantized_range(const OpCall& call, const QuantizedSettings& s, DType* result) {
  const DType x = call.in(0).dtype;
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, is_quantized_type(x)));
  SINTER_RETURN_UNLESS(range_of(x).holds(s.x_zero), invalid("x_zero %a is out of range", s.x_zero));
  *result = static_cast<DType>(s.to);
  SINTER_RETURN_UNLESS(s.to == static_cast<int64_t>(DType::kFloat32) || is_quantized_type(*result),
                       unsupported("an integer product cannot give element type number %a", s.to));
  if (*result == DType::kFloat32) return ok_status();
  const IntegerRange range = range_of(*result);
  SINTER_RETURN_UNLESS(range.holds(s.y_zero), invalid("y_zero %a is out of range", s.y_zero));
  SINTER_RETURN_UNLESS(
      range.holds(s.q_min) && range.holds(s.q_max) && s.q_min <= s.q_max,
      invalid("the result's bounds %a and %b are out of range or crossed", s.q_min, s.q_max));
  return ok_status();
}

Status check_quantized(const OpCall& call, const QuantizedSettings& s, int64_t columns, DType* result) {
  SINTER_RETURN_IF_ERROR(check_quantized_range(call, s, result));
  SINTER_RETURN_IF_ERROR(check_dtype(call, 1, call.in(1).dtype == DType::kInt8));
  const bool narrow = call.in(0).dtype == DType::kInt8;
  SINTER_RETURN_IF_ERROR(check_dtype(call, 2, call.in(2).dtype == (narrow ? DType::kInt32 : DType::kInt64)));
  SINTER_RETURN_UNLESS(call.in(2).rank == 1 && call.in(2).dims[0] == columns,
                       invalid("the bias is not one value per output channel"));
  SINTER_RETURN_IF_ERROR(check_per_column(call, 3, DType::kFloat32, columns));
  return call.has_input(4) ? check_per_column(call, 4, DType::kInt8, columns) : ok_status();
}

}  // namespace sinter::linear
