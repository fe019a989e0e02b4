// QMean: the mean of int8 elements over the listed axes.
#include "runtime/kernels/reduce_walk.h"
#include "runtime/kernels/reference.h"
#include "runtime/kernels/requantize.h"

namespace sinter {
namespace {

Status infer_mean(OpCall& call) {
  const auto& a = call.attrs<QMeanAttrs>();
  const TensorView& x = call.in(0);
  SINTER_RETURN_IF_ERROR(check_int8(call, 0));
  SINTER_RETURN_IF_ERROR(check_int8_number(a.x_zero));
  SINTER_RETURN_IF_ERROR(check_int8_multiplier(a.multiplier));
  SINTER_RETURN_IF_ERROR(check_int8_result(a));
  Dims dims;
  SINTER_RETURN_IF_ERROR(reduced_dims(x, a.axes, a.keepdims, &dims));
  int64_t count = 1;
  for (const int64_t axis : a.axes)
    SINTER_CHECK(checked_mul(count, x.dims[axis], &count) && count <= kMaxInt8Sum && count > 0,
                 unsupported("a mean of no elements, or of more than %a", kMaxInt8Sum));
  return give_output(call, 0, DType::kInt8, dims.span());
}

struct QMeanFold {
  using Acc = int32_t;
  const QMeanAttrs& a;
  Int8Result result;

  static Acc start() { return 0; }
  static void step(Acc& acc, int8_t v) { acc += v; }
  int8_t finish(Acc acc, int64_t count) const {
    const auto zeros = static_cast<int32_t>(a.x_zero * count);
    return result(static_cast<float>(acc - zeros) * multiplier_per(a.multiplier, count));
  }
};

Status run_mean(const OpCall& call, RunContext&) {
  const auto& a = call.attrs<QMeanAttrs>();
  fold_sets<int8_t, int8_t>(make_reduce_walk(call, a.axes, a.keepdims != 0), QMeanFold{a, Int8Result(a)});
  return ok_status();
}

}  // namespace

const Kernel kQMeanKernel = {Op::kQMean, infer_mean, nullptr, run_mean};

}  // namespace sinter
