// Attention.
#include <algorithm>

#include "platforms/cuda/operators.h"

namespace sinter::cuda {
namespace {

// More queries of a head are computed in tiles.
constexpr int64_t kMostSingleQueries = 16;

// Of few queries, keys are cut into parts until a launch has this many blocks, but no shorter than one pass
// of a block's warps. It depends on nothing but the call, as the workspace does.
constexpr int64_t kEnoughBlocks = 256, kMinimumKeys = kAttentionWarps * 32;

uint32_t pieces(int64_t n, int64_t of) { return static_cast<uint32_t>((n + of - 1) / of); }

Kernel rows_kernel(DType type, bool several) {
  switch (type) {
    case DType::kFloat64:
      return Kernel::k_attention_row_double;
    case DType::kFloat16:
      return several ? Kernel::k_attention_rows_float16 : Kernel::k_attention_row_float16;
    case DType::kBFloat16:
      return several ? Kernel::k_attention_rows_bfloat16 : Kernel::k_attention_row_bfloat16;
    default:
      return several ? Kernel::k_attention_rows_float : Kernel::k_attention_row_float;
  }
}

Status launch_rows(Lowering& l, AttentionArguments& a, DType type) {
  const bool wide = type == DType::kFloat64;
  const auto width = static_cast<int64_t>(wide ? sizeof(double) : sizeof(float));
  const auto piece = static_cast<int64_t>(16 / byte_width(type));
  a.value_lanes = 4;
  while (a.value_lanes < 32 && a.value_lanes * piece < a.value_size) a.value_lanes *= 2;
  const int64_t values = a.value_lanes * piece;
  const auto shared_of = [&](int rows) {
    return int64_t{attention_rows_elements(rows, a.key_size, static_cast<int>(values))} * width;
  };
  const bool several = !wide && a.rows_of_matrix > 1 && shared_of(kAttentionRows) <= int64_t{kMostShared};
  const int rows = several ? kAttentionRows : 1;
  const int64_t shared = shared_of(rows);
  SINTER_RETURN_UNLESS(shared <= int64_t{kMostShared}, unsupported("queries of too many elements"));
  const uint32_t row_blocks = pieces(a.rows_of_matrix, rows), value_blocks = pieces(a.value_size, values);
  const uint32_t blocks = a.rows / static_cast<uint32_t>(a.rows_of_matrix) * row_blocks;
  a.row_blocks = Divider(row_blocks);
  const int64_t results = int64_t{a.rows} * a.value_size;
  if (results <= INT32_MAX)
    a.split_keys = static_cast<int32_t>(
        pieces(a.keys, std::max<int64_t>(kEnoughBlocks / (int64_t{blocks} * value_blocks), 1)));
  else
    a.split_keys = a.keys;
  a.split_keys = std::max<int32_t>(static_cast<int32_t>(pieces(a.split_keys, kMinimumKeys) * kMinimumKeys),
                                   kMinimumKeys);
  a.splits = std::max<int32_t>(static_cast<int32_t>(pieces(a.keys, a.split_keys)), 1);
  if (a.splits > 1) {
    a.sums = l.workspace(static_cast<size_t>(a.splits * results * width));
    a.weights = l.workspace(static_cast<size_t>(int64_t{a.splits} * a.rows * kAttentionWeights * width));
  }
  SINTER_RETURN_IF_ERROR(l.launch_one_of(rows_kernel(type, several),
                                         {.blocks = {blocks, value_blocks, static_cast<uint32_t>(a.splits)},
                                          .shared_bytes = static_cast<uint32_t>(shared)},
                                         a));
  if (a.splits == 1) return ok_status();
  a.values = Divider(a.value_size);
  a.dtype = type;
  return l.launch<Kernel::k_attention_sums>(
      {.blocks = {blocks_for(results, threads_of(Kernel::k_attention_sums))}}, a);
}

Status launch_half_tiles(Lowering& l, AttentionArguments& a, bool bfloat16) {
  struct Tile {
    int depth, values, keys;
    Kernel float16, bfloat16;
  };
  constexpr Tile kTiles[] = {
      {64, 64, 64, Kernel::k_attention_float16_64, Kernel::k_attention_bfloat16_64},
      {128, 128, 64, Kernel::k_attention_float16_128, Kernel::k_attention_bfloat16_128},
      {kMostHalfKeySize, 128, 32, Kernel::k_attention_float16_256, Kernel::k_attention_bfloat16_256}};
  const Tile& tile = a.key_size <= 64 && a.value_size <= 64 ? kTiles[0]
                     : a.key_size <= 128                    ? kTiles[1]
                                                            : kTiles[2];
  const uint32_t tiles = pieces(a.queries_of_head, kAttentionQueries);
  const auto heads = a.rows / static_cast<uint32_t>(a.queries_of_head);
  a.queries = Divider(tiles);
  const uint32_t shared = attention_half_elements(tile.depth, tile.values, tile.keys) * 2;
  return l.launch_one_of(
      bfloat16 ? tile.bfloat16 : tile.float16,
      {.blocks = {heads * tiles, pieces(a.value_size, tile.values)}, .shared_bytes = shared}, a);
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
  const bool half = q.dtype == DType::kFloat16 || q.dtype == DType::kBFloat16;
  for (size_t i = 0; i < 3; ++i)
    SINTER_RETURN_UNLESS(call.in(i).constant || call.in(i).dense(), unsupported("an operand is not dense"));
  SINTER_RETURN_UNLESS(l.out(0).dense(), unsupported("the result is not dense"));
  for (size_t i = 4; i < call.inputs.size(); ++i)
    SINTER_RETURN_UNLESS(!call.has_input(i), unsupported("the kernels take no lengths, sinks or scales"));
  SINTER_RETURN_UNLESS(k.dtype == q.dtype && v.dtype == q.dtype,
                       unsupported("the kernels take keys and values of the queries' type"));
  SINTER_RETURN_UNLESS(attrs.softcap == 0 && attrs.window == 0,
                       unsupported("the kernels have no softcap and no window"));
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
  a.rows_of_matrix = a.heads_per_group * a.queries_of_head;
  a.causal = static_cast<int32_t>(attrs.causal), a.rule = static_cast<int32_t>(attrs.rule);
  a.scale = attrs.scale;
  const bool in_tiles =
      queries > kMostSingleQueries && (q.dtype == DType::kFloat32 || (half && key_size <= kMostHalfKeySize));
  if (!in_tiles) return launch_rows(l, a, q.dtype);
  return half ? launch_half_tiles(l, a, q.dtype == DType::kBFloat16) : launch_tiles(l, a);
}

}  // namespace sinter::cuda
