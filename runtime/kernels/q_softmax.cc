// QSoftmax: a table of exponentials, a sum and one division for each element, all in integers.
#include "runtime/kernels/reference.h"
#include "runtime/kernels/requantize.h"

namespace sinter {
namespace {

Status infer_q_softmax(OpCall& call) {
  const auto& a = call.attrs<QSoftmaxAttrs>();
  const TensorView &x = call.in(0), &table = call.in(1);
  SINTER_RETURN_IF_ERROR(check_int8(call, 0));
  SINTER_RETURN_IF_ERROR(check_dtype(call, 1, table.dtype == DType::kUint32));
  SINTER_RETURN_UNLESS(table.rank == 1 && table.dims[0] == 256,
                       invalid("the table does not have 256 elements"));
  SINTER_RETURN_IF_ERROR(check_axis(a.axis, x.rank));
  SINTER_RETURN_UNLESS(x.dims[a.axis] <= kMaxSoftmaxLength,
                       unsupported("the axis has more than %a elements", kMaxSoftmaxLength));
  SINTER_RETURN_UNLESS(a.multiplier >= 1 && a.multiplier <= kMaxSoftmaxMultiplier && a.shift >= 0 &&
                           a.shift <= kMaxSoftmaxShift,
                       invalid("multiplier %a or shift %b is out of range", a.multiplier, a.shift));
  SINTER_RETURN_IF_ERROR(check_int8_result(a));
  return infer_like_input(call);
}

// Returns rne(a / b), at most 1024 (beyond every bound), and 0 for 0 / 0.
int32_t divide_rne(uint64_t a, uint64_t b) {
  if (b == 0) return 0;
  const uint64_t quotient = a / b, rest = a % b;
  if (quotient >= 1024) return 1024;
  const bool up = rest > b - rest || (rest == b - rest && (quotient & 1) != 0);
  return static_cast<int32_t>(quotient) + (up ? 1 : 0);
}

// Computes one line of n elements; y may be x.
void softmax_line(const QSoftmaxAttrs& a, const TensorView& table, std::byte* y, int64_t ys,
                  const std::byte* x, int64_t xs, int64_t n) {
  int8_t largest = -128;
  for (int64_t i = 0; i < n; ++i) largest = std::max(largest, load<int8_t>(x + i * xs));
  const auto entry = [&](int64_t i) -> uint64_t {
    return load<uint32_t>(table.data + (largest - load<int8_t>(x + i * xs)) * table.strides[0]);
  };
  uint64_t sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += entry(i);
  const Int8Result result(a);
  for (int64_t i = 0; i < n; ++i)
    store<int8_t>(y + i * ys,
                  result(divide_rne(entry(i) * static_cast<uint64_t>(a.multiplier), sum << a.shift)));
}

Status run_q_softmax(const OpCall& call, RunContext&) {
  const auto& a = call.attrs<QSoftmaxAttrs>();
  const TensorView &x = call.in(0), &y = call.out(0);
  const auto axis = static_cast<int>(a.axis);
  for_each_element(make_nest_over(~(1u << axis), x, y, x), [&](std::byte* const(&p)[2]) {
    softmax_line(a, call.in(1), p[0], y.strides[axis], p[1], x.strides[axis], x.dims[axis]);
  });
  return ok_status();
}

}  // namespace

const Kernel kQSoftmaxKernel = reference_kernel({Op::kQSoftmax, infer_q_softmax, nullptr, run_q_softmax});

}  // namespace sinter
