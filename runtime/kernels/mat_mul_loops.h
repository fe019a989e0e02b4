// Products of two activations, one for each pair of matrices of the broadcast batch, for any numerics.
#pragma once

#include "runtime/kernels/product.h"

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
  SINTER_RETURN_UNLESS(a.rank >= 2 && b.rank >= 2,
                       invalid("matrices must have at least two axes, not %a and %b", a.rank, b.rank));
  SINTER_RETURN_IF_ERROR(check_dims(a));
  SINTER_RETURN_IF_ERROR(check_dims(b));
  const Product p = mat_mul_product(call, t);
  const int64_t b_depth = b.dims[b.rank - (t.b ? 1 : 2)];
  SINTER_RETURN_UNLESS(p.depth == b_depth, invalid("rows have %a values, columns %b", p.depth, b_depth));
  *dims = Dims(a.shape().first(static_cast<size_t>(a.rank) - 2));
  SINTER_RETURN_IF_ERROR(broadcast_into(dims, b.shape().first(static_cast<size_t>(b.rank) - 2)));
  SINTER_RETURN_IF_ERROR(dims->push(p.rows));
  return dims->push(p.columns);
}

// Returns the matrices of one tensor as a value with only the batch axes.
inline TensorView batch_of(const TensorView& t) {
  TensorView v = t;
  v.rank = static_cast<uint8_t>(t.rank - 2);
  return v;
}

// Matrices are read where they are, four adjacent columns of b or rows of a at a time. Only where neither has
// adjacent ones, floats gather rows.
inline Status mat_mul_workspace(const OpCall& call, Transposes t, int threads, size_t* bytes) {
  *bytes = 0;
  if (t.a || !t.b) return ok_status();
  return product_workspace(mat_mul_product(call, t), call.in(0).dtype, true, threads, bytes);
}

// Multiplies one pair of matrices.
template <class N, class Store>
void mat_mul_pair(const typename N::Input* a, const typename N::Weight* b, const Product& p, Transposes t,
                  const N& numerics, RunContext& context, Store&& store) {
  const auto row = numerics.row_reader(), column = numerics.column_reader(0);
  if (!t.b) {
    lanes_in_place(b, p.columns, column, p.columns, a, t.a ? 1 : p.depth, t.a ? p.rows : 1, row, p.rows,
                   p.depth, context, [&](int64_t c, int64_t r, typename N::Acc sum) { store(r, c, sum); });
  } else if (t.a) {
    lanes_in_place(a, p.rows, row, p.rows, b, p.depth, 1, column, p.columns, p.depth, context, store);
  } else {
    multiply(
        p, 1, numerics, context, [&](int64_t r) { return a + r * p.depth; },
        [&](int64_t r, auto* dst, int64_t step) {
          spread(a + r * p.depth, numerics.padding(), p.depth, dst, step);
        },
        [&](int64_t c, int64_t) { return b + c * p.depth; }, [&](int64_t) { return column; }, store);
  }
}

// Sums are stored at their place in the whole result, which counts as column 0.
template <class N>
void mat_mul(const OpCall& call, Transposes t, const N& numerics, RunContext& context) {
  const Product p = mat_mul_product(call, t);
  const TensorView y = batch_of(call.out(0));
  const auto width = static_cast<int64_t>(byte_width(y.dtype));
  for_each_element(make_nest(y.shape(), y, batch_of(call.in(0)), batch_of(call.in(1))),
                   [&](std::byte* const(&at)[3]) {
                     const int64_t first = (at[0] - y.data) / width;
                     mat_mul_pair(reinterpret_cast<const typename N::Input*>(at[1]),
                                  reinterpret_cast<const typename N::Weight*>(at[2]), p, t, numerics, context,
                                  [&](int64_t row, int64_t column, typename N::Acc sum) {
                                    numerics.store(first + row * p.columns + column, 0, sum);
                                  });
                   });
}

}  // namespace sinter::linear
