// Products of two activations, one for each pair of matrices of the broadcast batch, for any numerics.
#pragma once

#include "runtime/kernels/linear.h"

namespace sinter::linear {

struct Transposes {
  bool a, b;
};

inline Product mat_mul_product(const OpCall& call, Transposes t) {
  const TensorView& a = call.in(0);
  const TensorView& b = call.in(1);
  return {a.dims[a.rank - (t.a ? 1 : 2)], b.dims[b.rank - (t.b ? 2 : 1)], a.dims[a.rank - (t.a ? 2 : 1)]};
}

// Checks the shapes and gives the result's.
inline Status mat_mul_dims(const OpCall& call, Transposes t, Dims* dims) {
  const TensorView& a = call.in(0);
  const TensorView& b = call.in(1);
  SINTER_CHECK(a.rank >= 2 && b.rank >= 2,
               invalid("matrices have at least two axes, not %a and %b", a.rank, b.rank));
  SINTER_RETURN_IF_ERROR(check_dims(a));
  SINTER_RETURN_IF_ERROR(check_dims(b));
  const Product p = mat_mul_product(call, t);
  const int64_t b_depth = b.dims[b.rank - (t.b ? 1 : 2)];
  SINTER_CHECK(p.depth == b_depth, invalid("rows of %a values meet columns of %b", p.depth, b_depth));
  *dims = Dims(a.shape().first(static_cast<size_t>(a.rank) - 2));
  SINTER_RETURN_IF_ERROR(broadcast_into(dims, b.shape().first(static_cast<size_t>(b.rank) - 2)));
  SINTER_RETURN_IF_ERROR(dims->push(p.rows));
  return dims->push(p.columns);
}

// The matrices of one tensor as a value with only the batch axes.
inline TensorView batch_of(const TensorView& t) {
  TensorView v = t;
  v.rank = static_cast<uint8_t>(t.rank - 2);
  return v;
}

// Sums are stored at their place in the whole result, as column 0.
template <class N>
void mat_mul(const OpCall& call, Transposes t, const N& numerics, RunContext& context) {
  using Acc = typename N::Acc;
  const Product p = mat_mul_product(call, t);
  const int64_t a_row = t.a ? 1 : p.depth, a_step = t.a ? p.rows : 1;
  const int64_t b_column = t.b ? p.depth : 1, b_step = t.b ? 1 : p.columns;
  const TensorView y = batch_of(call.out(0));
  const auto width = static_cast<int64_t>(byte_width(y.dtype));
  for_each_element(make_nest(y.shape(), y, batch_of(call.in(0)), batch_of(call.in(1))),
                   [&](std::byte* const(&at)[3]) {
                     const int64_t first = (at[0] - y.data) / width;
                     const auto* a = reinterpret_cast<const typename N::Input*>(at[1]);
                     const auto* b = reinterpret_cast<const typename N::Weight*>(at[2]);
                     multiply<Acc>(
                         p, context,
                         [&](int64_t row, Acc* dst) {
                           for (int64_t k = 0; k < p.depth; ++k)
                             dst[k] = numerics.input(a[row * a_row + k * a_step]);
                         },
                         [&](int64_t column, int64_t k0, int64_t k1, Acc* dst) {
                           for (int64_t k = k0; k < k1; ++k, dst += kTile)
                             *dst = numerics.weight(b[column * b_column + k * b_step], 0);
                         },
                         [&](int64_t row, int64_t column, Acc sum) {
                           numerics.store(first + row * p.columns + column, 0, sum);
                         });
                   });
}

}  // namespace sinter::linear
