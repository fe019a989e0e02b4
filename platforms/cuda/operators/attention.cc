// Attention and Rope.
#include <algorithm>

#include "platforms/cuda/operators/products.h"

namespace sinter::cuda {
namespace {

Status float_of(DType type, Element* element) {
  SINTER_RETURN_IF_ERROR(element_of(type, element));
  SINTER_RETURN_UNLESS(*element <= Element::kBFloat16, unsupported("the kernels compute in floats only"));
  return ok_status();
}

// More queries of a head are computed in tiles.
constexpr int64_t kMostSingleQueries = 16;

uint32_t pieces(int64_t n, int64_t of) { return static_cast<uint32_t>((n + of - 1) / of); }

Status launch_rows(Lowering& l, const AttentionArguments& a, Element element) {
  const Kernel kernel = element == Element::kFloat64    ? Kernel::k_attention_rows_double
                        : element == Element::kFloat16  ? Kernel::k_attention_rows_float16
                        : element == Element::kBFloat16 ? Kernel::k_attention_rows_bfloat16
                                                        : Kernel::k_attention_rows_float;
  const size_t width = element == Element::kFloat64 ? sizeof(double) : sizeof(float);
  const auto elements = static_cast<size_t>(attention_rows_elements(a.key_size));
  SINTER_RETURN_UNLESS(elements * width <= kMostShared, unsupported("queries of too many elements"));
  return l.launch_one_of(kernel,
                         {.blocks = {a.rows, pieces(a.value_size, kAttentionValues)},
                          .shared_bytes = static_cast<uint32_t>(elements * width)},
                         a);
}

Status launch_tiles(Lowering& l, AttentionArguments& a, Element element) {
  const bool narrow = a.value_size <= 64;
  const Kernel kernel =
      element == Element::kFloat16
          ? (narrow ? Kernel::k_attention_tiles_float16_64 : Kernel::k_attention_tiles_float16_128)
      : element == Element::kBFloat16
          ? (narrow ? Kernel::k_attention_tiles_bfloat16_64 : Kernel::k_attention_tiles_bfloat16_128)
          : (narrow ? Kernel::k_attention_tiles_float_64 : Kernel::k_attention_tiles_float_128);
  const uint32_t tiles = pieces(a.queries_of_head, kAttentionQueries);
  a.queries = Divider(tiles);
  const auto heads = a.rows / static_cast<uint32_t>(a.queries_of_head);
  return l.launch_one_of(kernel,
                         {.blocks = {heads * tiles, pieces(a.value_size, narrow ? 64 : 128)},
                          .shared_bytes = kAttentionTileBytes},
                         a);
}

}  // namespace

Status lower_Attention(Lowering& l) {
  const auto& attrs = l.attrs<AttentionAttrs>();
  const OpCall& call = l.call();
  const TensorView &q = call.in(0), &k = call.in(1), &v = call.in(2);
  Element element;
  SINTER_RETURN_IF_ERROR(float_of(q.dtype, &element));
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
  return queries > kMostSingleQueries && element != Element::kFloat64 ? launch_tiles(l, a, element)
                                                                      : launch_rows(l, a, element);
}

Status lower_Rope(Lowering& l) {
  const auto& attrs = l.attrs<RopeAttrs>();
  const TensorView& x = l.call().in(0);
  RopeArguments a;
  SINTER_RETURN_IF_ERROR(float_of(x.dtype, &a.element));
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
