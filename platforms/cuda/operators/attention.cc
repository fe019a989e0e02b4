// Attention.
#include <algorithm>

#include "platforms/cuda/operators.h"

namespace sinter::cuda {
namespace {

// More queries of a head are computed in tiles.
constexpr int64_t kMostSingleQueries = 16;

uint32_t pieces(int64_t n, int64_t of) { return static_cast<uint32_t>((n + of - 1) / of); }

Status launch_rows(Lowering& l, const AttentionArguments& a, bool wide) {
  const auto bytes =
      static_cast<size_t>(attention_rows_elements(a.key_size)) * (wide ? sizeof(double) : sizeof(float));
  SINTER_RETURN_UNLESS(bytes <= kMostShared, unsupported("queries of too many elements"));
  return l.launch_one_of(wide ? Kernel::k_attention_rows_double : Kernel::k_attention_rows_float,
                         {.blocks = {a.rows, pieces(a.value_size, kAttentionValues)},
                          .shared_bytes = static_cast<uint32_t>(bytes)},
                         a);
}

Status launch_tiles(Lowering& l, AttentionArguments& a) {
  const bool narrow = a.value_size <= 64;
  const uint32_t tiles = pieces(a.queries_of_head, kAttentionQueries);
  a.queries = Divider(tiles);
  const auto heads = a.rows / static_cast<uint32_t>(a.queries_of_head);
  return l.launch_one_of(narrow ? Kernel::k_attention_tiles_float_64 : Kernel::k_attention_tiles_float_128,
                         {.blocks = {heads * tiles, pieces(a.value_size, narrow ? 64 : 128)},
                          .shared_bytes = kAttentionTileBytes},
                         a);
}

}  // namespace

Status lower_Attention(Lowering& l) {
  const auto& attrs = l.attrs<AttentionAttrs>();
  const OpCall& call = l.call();
  const TensorView &q = call.in(0), &k = call.in(1), &v = call.in(2);
  const bool wide = q.dtype == DType::kFloat64;
  SINTER_RETURN_UNLESS(wide || q.dtype == DType::kFloat32,
                       unsupported("attention is computed in float32 and float64"));
  for (size_t i = 0; i < 3; ++i)
    SINTER_RETURN_UNLESS(call.in(i).constant || call.in(i).dense(), unsupported("an operand is not dense"));
  SINTER_RETURN_UNLESS(l.out(0).dense(), unsupported("the result is not dense"));
  const int64_t batch = q.dims[0], heads = q.dims[1], queries = q.dims[2], keys = k.dims[2];
  const int64_t groups = k.dims[1], key_size = q.dims[3], value_size = v.dims[3];
  int64_t rows = 0;
  SINTER_RETURN_UNLESS(checked_mul(batch * heads, queries, &rows) && rows < INT32_MAX &&
                           keys < INT32_MAX / 2 && queries < INT32_MAX / 2 && value_size < INT32_MAX / 2 &&
                           groups < INT32_MAX,
                       unsupported("2^30 queries, keys or values, or more"));
  SINTER_RETURN_UNLESS(key_size < INT32_MAX / 64 && value_size < int64_t{kAttentionQueries} * UINT16_MAX,
                       unsupported("keys or values of too many elements"));
  if (rows == 0 || value_size == 0) return ok_status();
  AttentionArguments a;
  a.q = l.in(0).data, a.k = l.in(1).data, a.v = l.in(2).data, a.y = l.out(0).data;
  if (l.has_input(3)) {
    const int64_t scores[] = {batch, heads, queries, keys};
    Box box;
    box.rank = 4;
    const Steps steps = steps_of(l.in(3), box);
    std::copy_n(steps.of, std::size(scores), a.bias_steps);
    a.bias = l.in(3).data;
  }
  a.queries = Divider(queries), a.heads = Divider(heads);
  a.queries_of_head = static_cast<int32_t>(queries);
  a.rows = static_cast<uint32_t>(rows);
  a.keys = static_cast<int32_t>(keys), a.key_size = static_cast<int32_t>(key_size);
  a.value_size = static_cast<int32_t>(value_size);
  a.heads_per_group = static_cast<int32_t>(heads / std::max<int64_t>(groups, 1));
  a.groups = static_cast<int32_t>(groups);
  a.causal = static_cast<int32_t>(attrs.causal), a.rule = static_cast<int32_t>(attrs.rule);
  a.scale = attrs.scale;
  return queries > kMostSingleQueries && !wide ? launch_tiles(l, a) : launch_rows(l, a, wide);
}

}  // namespace sinter::cuda
