// FullyConnected: every row of x with every row of the weights.
#include "runtime/kernels/linear.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

using namespace linear;

Status infer_call(OpCall& call) {
  const auto& a = call.attrs<FullyConnectedAttrs>();
  const TensorView& x = call.in(0);
  const TensorView& w = call.in(1);
  SINTER_CHECK(x.rank >= 1 && w.rank == 2,
               invalid("x needs an axis and the weights two, not %a and %b", x.rank, w.rank));
  SINTER_RETURN_IF_ERROR(check_linear_dtype(call));
  SINTER_RETURN_IF_ERROR(check_same_dtype(call, 1, 0));
  SINTER_RETURN_IF_ERROR(check_dims(x));
  SINTER_RETURN_IF_ERROR(check_dims(w));
  SINTER_RETURN_IF_ERROR(check_bounds(a.act_min, a.act_max));
  SINTER_CHECK(w.dims[1] == x.dims[x.rank - 1],
               invalid("the weights read %a values of each row of %b", w.dims[1], x.dims[x.rank - 1]));
  if (call.has_input(2)) {
    SINTER_RETURN_IF_ERROR(check_same_dtype(call, 2, 0));
    SINTER_CHECK(call.in(2).rank == 1 && call.in(2).dims[0] == w.dims[0],
                 invalid("the bias is not one value per row of the weights"));
  }
  Dims dims(x.shape());
  dims.d[x.rank - 1] = w.dims[0];
  return give_output(call, 0, x.dtype, dims.span());
}

Status workspace(const OpCall& call, int threads, size_t* bytes) {
  return product_workspace<double>(connected_product(call), threads, bytes);
}

template <class T>
void fully_connected(const OpCall& call, RunContext& context) {
  using Acc = Accumulator<T>;
  const auto& a = call.attrs<FullyConnectedAttrs>();
  const T* x = call.in(0).as<T>();
  const T* w = call.in(1).as<T>();
  const T* bias = call.has_input(2) ? call.in(2).as<T>() : nullptr;
  T* y = call.out(0).as<T>();
  const Bounds<T> bounds(a.act_min, a.act_max);
  const Product p = connected_product(call);
  multiply<Acc>(
      p, context,
      [&](int64_t row, Acc* dst) {
        for (int64_t k = 0; k < p.depth; ++k) dst[k] = static_cast<Acc>(x[row * p.depth + k]);
      },
      [&](int64_t column, int64_t k0, int64_t k1, Acc* dst) {
        for (int64_t k = k0; k < k1; ++k, dst += kTile) *dst = static_cast<Acc>(w[column * p.depth + k]);
      },
      [&](int64_t row, int64_t column, Acc sum) {
        if (bias != nullptr) sum += static_cast<Acc>(bias[column]);
        y[row * p.columns + column] = bounds(sum);
      });
}

Status run(const OpCall& call, RunContext& context) {
  return dispatch(call.in(0).dtype,
                  [&](auto t) { return fully_connected<decltype(t)>(call, context), ok_status(); });
}

}  // namespace

const Kernel kFullyConnectedKernel = {Op::kFullyConnected, infer_call, workspace, run};

}  // namespace sinter
