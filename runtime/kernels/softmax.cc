// Softmax and its logarithm along one axis. Sums are made in double.
#include <cmath>

#include "runtime/kernels/reference.h"
#include "runtime/kernels/support.h"

namespace sinter {
namespace {

Status infer_softmax(OpCall& call) {
  const auto& a = call.attrs<SoftmaxAttrs>();
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, is_compute_float(call.in(0).dtype)));
  SINTER_RETURN_IF_ERROR(check_axis(a.axis, call.in(0).rank));
  SINTER_RETURN_IF_ERROR(check_code(a.log, 2));
  return infer_like_input(call);
}

// Computes one line of n elements; y may be x. A NaN or an infinity of either sign alone makes the line NaN,
// as the formula does.
template <class T>
void softmax_line(std::byte* y, int64_t ys, const std::byte* x, int64_t xs, int64_t n, bool log) {
  T largest = -std::numeric_limits<T>::infinity();
  for (int64_t i = 0; i < n; ++i) {
    const T v = load<T>(x + i * xs);
    if (v > largest || v != v) largest = v;
  }
  double sum = 0;
  if (log) {
    for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(std::exp(load<T>(x + i * xs) - largest));
    const double shift = static_cast<double>(largest), log_sum = std::log(sum);
    for (int64_t i = 0; i < n; ++i)
      store<T>(y + i * ys, static_cast<T>(static_cast<double>(load<T>(x + i * xs)) - shift - log_sum));
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    const T e = std::exp(load<T>(x + i * xs) - largest);
    sum += static_cast<double>(e);
    store<T>(y + i * ys, e);
  }
  for (int64_t i = 0; i < n; ++i) {
    std::byte* p = y + i * ys;
    store<T>(p, static_cast<T>(static_cast<double>(load<T>(p)) / sum));
  }
}

Status run_softmax(const OpCall& call, RunContext&) {
  const auto& a = call.attrs<SoftmaxAttrs>();
  const TensorView &x = call.in(0), &y = call.out(0);
  const auto axis = static_cast<int>(a.axis);
  return for_float(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_each_element(make_nest_over(~(1u << axis), x, y, x), [&](std::byte* const(&p)[2]) {
      softmax_line<T>(p[0], y.strides[axis], p[1], x.strides[axis], x.dims[axis], a.log != 0);
    });
    return ok_status();
  });
}

}  // namespace

const Kernel kSoftmaxKernel = reference_kernel({Op::kSoftmax, infer_softmax, nullptr, run_softmax});

}  // namespace sinter
