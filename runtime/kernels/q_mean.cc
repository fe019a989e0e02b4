// QMean: the mean of int8 or int16 elements over the listed axes.
#include "runtime/kernels/reduce_walk.h"
#include "runtime/kernels/reference.h"
#include "runtime/kernels/requantize.h"

namespace sinter {
namespace {

Status infer_mean(OpCall& call) {
  const auto& a = call.attrs<QMeanAttrs>();
  const TensorView& x = call.in(0);
  SINTER_RETURN_IF_ERROR(check_narrow(call, 0));
  SINTER_RETURN_IF_ERROR(check_zero_point(x.dtype, a.x_zero));
  SINTER_RETURN_IF_ERROR(check_int8_multiplier(a.multiplier));
  SINTER_RETURN_IF_ERROR(check_narrow_result(a, x.dtype));
  const int64_t most = x.dtype == DType::kInt8 ? kMaxInt8Sum : kMaxInt16Sum;
  Dims dims;
  SINTER_RETURN_IF_ERROR(reduced_dims(x, a.axes, a.keepdims, &dims));
  int64_t count = 1;
  for (const int64_t axis : a.axes)
    SINTER_RETURN_UNLESS(checked_mul(count, x.dims[axis], &count) && count <= most && count > 0,
                         unsupported("the mean covers no elements, or more than %a", most));
  return give_output(call, 0, x.dtype, dims.span());
}

template <class T>
struct QMeanFold {
  using Acc = int32_t;
  const QMeanAttrs& a;
  NarrowResult<T> result;

  static Acc start() { return 0; }
  static void step(Acc& acc, T v) { acc += v; }
  T finish(Acc acc, int64_t count) const {
    const auto zeros = static_cast<int32_t>(a.x_zero * count);
    return result(static_cast<float>(acc - zeros) * multiplier_per(a.multiplier, count));
  }
};

Status run_mean(const OpCall& call, RunContext&) {
  const auto& a = call.attrs<QMeanAttrs>();
  return for_narrow(call.in(0).dtype, [&](auto tag) {
    using T = decltype(tag);
    fold_sets<T, T>(make_reduce_walk(call, a.axes, a.keepdims != 0), QMeanFold<T>{a, NarrowResult<T>(a)});
    return ok_status();
  });
}

}  // namespace

const Kernel kQMeanKernel = reference_kernel({Op::kQMean, infer_mean, nullptr, run_mean});

}  // namespace sinter
