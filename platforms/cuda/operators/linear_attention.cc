// LinearAttention.
#include <algorithm>

#include "platforms/cuda/operators.h"

namespace sinter::cuda {

Status lower_LinearAttention(Lowering& l) {
  const auto& attrs = l.attrs<LinearAttentionAttrs>();
  const OpCall& call = l.call();
  const TensorView &q = call.in(0), &v = call.in(2);
  SINTER_RETURN_IF_ERROR(l.check_dense());
  const int64_t batch = q.dims[0], tokens = q.dims[1], heads = v.dims[2];
  const int64_t key_size = q.dims[3], value_size = v.dims[3];
  const int64_t tiles = (value_size + kLinearColumns - 1) / kLinearColumns;
  int64_t units = 0, blocks = 0;
  SINTER_RETURN_UNLESS(checked_mul(batch, heads, &units) && checked_mul(units, tiles, &blocks) &&
                           blocks <= INT32_MAX && value_size <= INT32_MAX && tokens <= INT32_MAX &&
                           attrs.window <= INT32_MAX && q.dims[2] <= INT32_MAX,
                       unsupported("2^31 heads, tokens or values, or more"));
  const bool wide = q.dtype == DType::kFloat64;
  const int64_t width = wide ? 8 : 4, most = kMostShared / width / kLinearColumns - kLinearWarps;
  SINTER_RETURN_UNLESS(key_size <= most, unsupported("keys of %a elements; at most %b fit", key_size, most));
  LinearAttentionArguments a;
  a.q = l.in(0).data, a.k = l.in(1).data, a.v = l.in(2).data;
  if (l.has_input(3)) a.state = l.in(3).data;
  if (l.has_input(4)) a.decay = l.in(4).data, a.decay_size = static_cast<int32_t>(call.in(4).dims[3]);
  if (l.has_input(5)) a.beta = l.in(5).data, a.beta_heads = static_cast<int32_t>(call.in(5).dims[2]);
  if (l.has_output(0)) a.y = l.out(0).data;
  if (l.has_output(1)) a.next = l.out(1).data;
  a.dtype = q.dtype;
  a.heads = Divider(heads), a.tiles = Divider(std::max<int64_t>(tiles, 1));
  a.batches = static_cast<uint32_t>(batch), a.tokens = static_cast<int32_t>(tokens);
  a.queries = static_cast<int32_t>(q.dims[2]);
  a.key_size = static_cast<int32_t>(key_size), a.value_size = static_cast<int32_t>(value_size);
  a.window = static_cast<int32_t>(attrs.window), a.slots = std::max(a.window, 1);
  a.scale = attrs.scale;
  return l.launch_one_of(
      wide ? Kernel::k_linear_attention_double : Kernel::k_linear_attention,
      {.blocks = {static_cast<uint32_t>(blocks)},
       .shared_bytes = static_cast<uint32_t>(linear_attention_elements(a.key_size) * width)},
      a);
}

}  // namespace sinter::cuda
