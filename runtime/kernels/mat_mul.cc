// MatMul: one product per matrix of the broadcast batch.
#include "runtime/kernels/linear.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

using namespace linear;

Product product(const OpCall& call) {
  const auto& attrs = call.attrs<MatMulAttrs>();
  const TensorView& a = call.in(0);
  const TensorView& b = call.in(1);
  return {a.dims[a.rank - (attrs.transpose_a ? 1 : 2)], b.dims[b.rank - (attrs.transpose_b ? 2 : 1)],
          a.dims[a.rank - (attrs.transpose_a ? 2 : 1)]};
}

Status infer_call(OpCall& call) {
  const auto& attrs = call.attrs<MatMulAttrs>();
  const TensorView& a = call.in(0);
  const TensorView& b = call.in(1);
  SINTER_RETURN_IF_ERROR(check_code(attrs.transpose_a, 2));
  SINTER_RETURN_IF_ERROR(check_code(attrs.transpose_b, 2));
  SINTER_CHECK(a.rank >= 2 && b.rank >= 2,
               invalid("matrices have at least two axes, not %a and %b", a.rank, b.rank));
  SINTER_RETURN_IF_ERROR(check_linear_dtype(call));
  SINTER_RETURN_IF_ERROR(check_same_dtype(call, 1, 0));
  SINTER_RETURN_IF_ERROR(check_dims(a));
  SINTER_RETURN_IF_ERROR(check_dims(b));
  const Product p = product(call);
  const int64_t b_depth = b.dims[b.rank - (attrs.transpose_b ? 1 : 2)];
  SINTER_CHECK(p.depth == b_depth, invalid("rows of %a values meet columns of %b", p.depth, b_depth));
  Dims dims(a.shape().first(static_cast<size_t>(a.rank) - 2));
  SINTER_RETURN_IF_ERROR(broadcast_into(&dims, b.shape().first(static_cast<size_t>(b.rank) - 2)));
  SINTER_RETURN_IF_ERROR(dims.push(p.rows));
  SINTER_RETURN_IF_ERROR(dims.push(p.columns));
  return give_output(call, 0, a.dtype, dims.span());
}

Status workspace(const OpCall& call, int threads, size_t* bytes) {
  return product_workspace<double>(product(call), threads, bytes);
}

// The matrices of one tensor as a value with only the batch axes.
TensorView batch_of(const TensorView& t) {
  TensorView v = t;
  v.rank = static_cast<uint8_t>(t.rank - 2);
  return v;
}

template <class T>
void mat_mul(const OpCall& call, RunContext& context) {
  using Acc = Accumulator<T>;
  const auto& attrs = call.attrs<MatMulAttrs>();
  const Product p = product(call);
  const int64_t a_row = attrs.transpose_a ? 1 : p.depth, a_step = attrs.transpose_a ? p.rows : 1;
  const int64_t b_column = attrs.transpose_b ? p.depth : 1, b_step = attrs.transpose_b ? 1 : p.columns;
  const TensorView y = batch_of(call.out(0));
  for_each_element(make_nest(y.shape(), y, batch_of(call.in(0)), batch_of(call.in(1))), [&](std::byte* const(
                                                                                            &at)[3]) {
    T* to = reinterpret_cast<T*>(at[0]);
    const T* a = reinterpret_cast<const T*>(at[1]);
    const T* b = reinterpret_cast<const T*>(at[2]);
    multiply<Acc>(
        p, context,
        [&](int64_t row, Acc* dst) {
          for (int64_t k = 0; k < p.depth; ++k) dst[k] = static_cast<Acc>(a[row * a_row + k * a_step]);
        },
        [&](int64_t column, int64_t k0, int64_t k1, Acc* dst) {
          for (int64_t k = k0; k < k1; ++k, dst += kTile)
            *dst = static_cast<Acc>(b[column * b_column + k * b_step]);
        },
        [&](int64_t row, int64_t column, Acc sum) { to[row * p.columns + column] = static_cast<T>(sum); });
  });
}

Status run(const OpCall& call, RunContext& context) {
  return dispatch(call.in(0).dtype, [&](auto t) { return mat_mul<decltype(t)>(call, context), ok_status(); });
}

}  // namespace

const Kernel kMatMulKernel = {Op::kMatMul, infer_call, workspace, run};

}  // namespace sinter
