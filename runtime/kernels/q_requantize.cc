// QRequantize: other scales, zero points and widths. QTable: functions of int16, interpolated.
#include "runtime/core/integer_limits.h"
#include "runtime/kernels/reference.h"
#include "runtime/kernels/requantize.h"

namespace sinter {
namespace {

Status infer_requantize(OpCall& call) {
  const auto& a = call.attrs<QRequantizeAttrs>();
  SINTER_RETURN_IF_ERROR(check_narrow(call, 0));
  SINTER_RETURN_UNLESS(
      a.to == static_cast<int64_t>(DType::kInt8) || a.to == static_cast<int64_t>(DType::kInt16),
      unsupported("element type number %a is not an integer", a.to));
  const auto to = static_cast<DType>(a.to);
  SINTER_RETURN_IF_ERROR(check_zero_point(call.in(0).dtype, a.x_zero));
  SINTER_RETURN_IF_ERROR(check_int8_multiplier(a.multiplier));
  SINTER_RETURN_IF_ERROR(check_narrow_result(a, to));
  return give_output(call, 0, to, call.in(0).shape());
}

Status run_requantize(const OpCall& call, RunContext&) {
  const auto& a = call.attrs<QRequantizeAttrs>();
  const auto zero = static_cast<int32_t>(a.x_zero);
  const auto multiplier = static_cast<float>(a.multiplier);
  return for_narrow(call.in(0).dtype, [&](auto in) {
    return for_narrow(call.out(0).dtype, [&](auto out) {
      using X = decltype(in);
      using Y = decltype(out);
      const NarrowResult<Y> result(a);
      map_unary<Y, X>(call.out(0), call.in(0),
                      [&](X x) { return result(static_cast<float>(x - zero) * multiplier); });
      return ok_status();
    });
  });
}

Status infer_table(OpCall& call) {
  const auto& a = call.attrs<QTableAttrs>();
  const TensorView &x = call.in(0), &table = call.in(1);
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, x.dtype == DType::kInt16));
  SINTER_RETURN_IF_ERROR(check_dtype(call, 1, table.dtype == DType::kInt32));
  const int64_t n = table.rank == 1 ? table.dims[0] - 1 : 0;
  SINTER_RETURN_UNLESS(n >= 256 && n <= 4096 && (n & (n - 1)) == 0,
                       invalid("the table does not have 2^k + 1 elements with k from 8 to 12"));
  SINTER_RETURN_IF_ERROR(check_result_bounds(DType::kInt16, a.q_min, a.q_max));
  return give_output(call, 0, DType::kInt16, x.shape());
}

Status run_table(const OpCall& call, RunContext&) {
  const auto& a = call.attrs<QTableAttrs>();
  const TensorView& table = call.in(1);
  int k = 8;
  while (int64_t{1} << k < table.dims[0] - 1) ++k;
  const int rest = 16 - k;
  const int32_t most = max_table_entry(k), low = static_cast<int32_t>(a.q_min),
                high = static_cast<int32_t>(a.q_max);
  const auto entry = [&](int32_t i) {
    return std::clamp(load<int32_t>(table.data + i * table.strides[0]), -most, most);
  };
  map_unary<int16_t, int16_t>(call.out(0), call.in(0), [&](int16_t x) {
    const int32_t u = x + 32768, i = u >> rest, f = u & ((1 << rest) - 1);
    const int32_t sum = entry(i) * ((1 << rest) - f) + entry(i + 1) * f;
    return static_cast<int16_t>(std::clamp(shift_right_rne(sum, 15), low, high));
  });
  return ok_status();
}

}  // namespace

const Kernel kQRequantizeKernel =
    reference_kernel({Op::kQRequantize, infer_requantize, nullptr, run_requantize});
const Kernel kQTableKernel = reference_kernel({Op::kQTable, infer_table, nullptr, run_table});

}  // namespace sinter
