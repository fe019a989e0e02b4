#include "platforms/xnnpack/planning/product.h"

#include <algorithm>

#include "platforms/xnnpack/planning/accept.h"
#include "runtime/core/op.h"

namespace sinter::xnnpack {

Status fully_connected_product(const OpCall& call, Product* p) {
  const TensorView &a = call.in(0), &b = call.in(1);
  p->constant = true;
  p->k = static_cast<size_t>(b.dims[1]);
  p->n = static_cast<size_t>(b.dims[0]);
  p->rows = static_cast<size_t>(a.size()) / p->k;
  SINTER_RETURN_UNLESS(pixel_step(a, &p->in_step) && pixel_step(call.out(0), &p->out_step),
                       unsupported("rows are not evenly spaced"));
  return ok_status();
}

Status mat_mul_product(const OpCall& call, Product* p) {
  const TensorView &a = call.in(0), &b = call.in(1);
  const auto& attrs = call.attrs<MatMulAttrs>();
  SINTER_RETURN_UNLESS(attrs.transpose_a == 0, unsupported("the first operand may not be transposed"));
  p->transposed = attrs.transpose_b != 0;
  p->k = static_cast<size_t>(a.dims[a.rank - 1]);
  p->n = static_cast<size_t>(b.dims[b.rank - (p->transposed ? 2 : 1)]);
  if (b.constant && b.size() == static_cast<int64_t>(p->k * p->n)) {
    p->constant = true;
    p->rows = static_cast<size_t>(a.size()) / p->k;
    p->in_step = p->k, p->out_step = p->n;
    return ok_status();
  }
  p->rows = static_cast<size_t>(a.dims[a.rank - 2]);
  p->batch_rank = std::max(a.rank, b.rank) - 2;
  SINTER_RETURN_UNLESS(p->batch_rank <= kMaxAxes, unsupported("more than 6 batch axes"));
  const auto batch = [&](const TensorView& v, int i) {
    const int axis = i - (p->batch_rank - (v.rank - 2));
    return axis < 0 ? size_t{1} : static_cast<size_t>(v.dims[axis]);
  };
  for (int i = 0; i < p->batch_rank; ++i) p->batch_a[i] = batch(a, i), p->batch_b[i] = batch(b, i);
  return ok_status();
}

}  // namespace sinter::xnnpack
