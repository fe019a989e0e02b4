// Cumulate: running sum or product along an axis, forwards or backwards, with or without the element itself.
// Floats are summed in double; integers wrap.
#include "runtime/core/op_enums.h"
#include "runtime/kernels/reference.h"
#include "runtime/kernels/support.h"

namespace sinter {
namespace {

Status infer_cumulate(OpCall& call) {
  const auto& a = call.attrs<CumulateAttrs>();
  SINTER_RETURN_IF_ERROR(check_code(a.fn, 2));
  SINTER_RETURN_IF_ERROR(check_code(a.exclusive, 2));
  SINTER_RETURN_IF_ERROR(check_code(a.reverse, 2));
  SINTER_RETURN_IF_ERROR(check_axis(a.axis, call.in(0).rank));
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, is_number(call.in(0).dtype)));
  return infer_like_input(call);
}

template <class T>
void cumulate(const OpCall& call) {
  using Acc = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;
  const auto& a = call.attrs<CumulateAttrs>();
  const TensorView &x = call.in(0), &y = call.out(0);
  const bool product = a.fn == static_cast<int64_t>(CumulateFn::kProd);
  const int64_t n = x.dims[a.axis], xs = x.strides[a.axis], ys = y.strides[a.axis];
  if (n == 0) return;
  for_each_element(make_nest_over(~(1u << a.axis), x, y, x), [&](std::byte* const(&p)[2]) {
    Acc acc = product ? 1 : 0;
    for (int64_t k = 0; k < n; ++k) {
      const int64_t i = a.reverse != 0 ? n - 1 - k : k;
      const Acc before = acc, v = static_cast<Acc>(load<T>(p[1] + i * xs));
      acc = product ? acc * v : acc + v;
      store<T>(p[0] + i * ys, static_cast<T>(a.exclusive != 0 ? before : acc));
    }
  });
}

Status run_cumulate(const OpCall& call, RunContext&) {
  return for_number(call.in(0).dtype, [&](auto tag) {
    cumulate<typename decltype(tag)::type>(call);
    return ok_status();
  });
}

}  // namespace

const Kernel kCumulateKernel = reference_kernel({Op::kCumulate, infer_cumulate, nullptr, run_cumulate});

}  // namespace sinter
