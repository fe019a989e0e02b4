// Rope.
#include "platforms/cuda/operators.h"

namespace sinter::cuda {

Status lower_Rope(Lowering& l) {
  const auto& attrs = l.attrs<RopeAttrs>();
  const TensorView& x = l.call().in(0);
  RopeArguments a;
  a.dtype = x.dtype;
  SINTER_RETURN_UNLESS((x.constant || x.dense()) && l.out(0).dense(), unsupported("an operand is not dense"));
  if (x.size() == 0) return ok_status();
  const int64_t size = x.dims[x.rank - 1];
  const int64_t rotated = attrs.rotary_dim == 0 ? size : attrs.rotary_dim;
  SINTER_RETURN_UNLESS(x.size() <= INT32_MAX, unsupported("2^31 elements or more"));
  Box all;
  SINTER_RETURN_IF_ERROR(box_of(x.shape(), &all));
  a.rows = all, --a.rows.rank;
  a.rows.size = static_cast<uint32_t>(x.size() / size);
  const Steps cos = steps_of(l.in(1), all), sin = steps_of(l.in(2), all);
  a.cos_steps = cos, a.sin_steps = sin;
  a.cos_step = cos.of[all.rank - 1], a.sin_step = sin.of[all.rank - 1];
  a.cos_steps.of[all.rank - 1] = a.sin_steps.of[all.rank - 1] = 0;
  Steps* const both[] = {&a.cos_steps, &a.sin_steps};
  merge_axes(&a.rows, both);
  a.pairs = static_cast<int32_t>(rotated / 2), a.size = static_cast<int32_t>(size);
  a.interleaved = static_cast<int32_t>(attrs.interleaved);
  a.columns = Divider(size - rotated / 2);
  a.threads = a.rows.size * a.columns.divisor;
  a.x = l.in(0).data, a.cos = l.in(1).data, a.sin = l.in(2).data, a.y = l.out(0).data;
  return l.launch<Kernel::k_rope>({.blocks = {blocks_for(a.threads, threads_of(Kernel::k_rope))}}, a);
}

}  // namespace sinter::cuda
