// Cast between any two dtypes; see write_run for what becomes of numbers that do not fit.
#include "runtime/kernels/convert.h"
#include "runtime/kernels/reference.h"
#include "runtime/kernels/support.h"

namespace sinter {
namespace {

Status infer_cast(OpCall& call) {
  const auto& a = call.attrs<CastAttrs>();
  SINTER_CHECK(a.to > 0 && a.to < static_cast<int64_t>(DType::kCount),
               invalid("%a is no element type", a.to));
  SINTER_RETURN_IF_ERROR(check_code(a.saturate, 2));
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, bit_width(call.in(0).dtype) > 0));
  return give_output(call, 0, static_cast<DType>(a.to), call.in(0).shape());
}

Status run_cast(const OpCall& call, RunContext&) {
  const TensorView x = by_position(call.in(0)), y = by_position(call.out(0));
  if (x.dtype == y.dtype && !is_sub_byte(x.dtype) && x.dtype != DType::kBool) return copy_elements(y, x);
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

const Kernel kCastKernel = {Op::kCast, infer_cast, nullptr, run_cast};

}  // namespace sinter
