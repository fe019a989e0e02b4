// Attention.
#include <algorithm>

#include "platforms/cuda/operators/sequence.h"
#include "runtime/core/attention_rows.h"

namespace sinter::cuda {
namespace {

// More queries of a head are computed in tiles.
constexpr int64_t kMostSingleQueries = 16;

// For few queries, keys are cut into parts until a launch has this many blocks, but no shorter than one pass
// of a block's warps. It depends on nothing but the call, as the workspace does.
constexpr int64_t kEnoughBlocks = 256;

uint32_t pieces(int64_t n, int64_t of) { return static_cast<uint32_t>((n + of - 1) / of); }

// Returns the most parts into which keys can be cut.
int64_t most_splits(const AttentionArguments& a) {
  int64_t keys = a.keys;
  if (a.window > 0) keys = std::min<int64_t>(keys, int64_t{a.window} + a.queries_of_head);
  return std::max<int64_t>(pieces(keys, kAttentionPass), 1);
}

// The kernels for one query, or for several that have the same keys.
struct RowKernels {
  DType queries, keys;  // keys and values
  Kernel one, several;
};
constexpr RowKernels kRowKernels[] = {
#define SINTER_ROW(queries, keys, name) \
  { DType::queries, DType::keys, Kernel::k_attention_row_##name, Kernel::k_attention_rows_##name }
    SINTER_ROW(kFloat32, kFloat32, float),
    SINTER_ROW(kFloat32, kFloat16, float_float16),
    SINTER_ROW(kFloat32, kBFloat16, float_bfloat16),
    SINTER_ROW(kFloat32, kFloat8E4M3FN, float_float8),
    SINTER_ROW(kFloat32, kInt8, float_int8),
    SINTER_ROW(kFloat16, kFloat16, float16),
    SINTER_ROW(kFloat16, kFloat8E4M3FN, float16_float8),
    SINTER_ROW(kFloat16, kInt8, float16_int8),
    SINTER_ROW(kBFloat16, kBFloat16, bfloat16),
    SINTER_ROW(kBFloat16, kFloat8E4M3FN, bfloat16_float8),
    SINTER_ROW(kBFloat16, kInt8, bfloat16_int8),
#undef SINTER_ROW
    {DType::kFloat64, DType::kFloat64, Kernel::k_attention_row_double, Kernel::k_attention_row_double},
};
const RowKernels* row_kernels(DType queries, DType keys) {
  for (const RowKernels& k : kRowKernels)
    if (k.queries == queries && k.keys == keys) return &k;
  return nullptr;
}

Status launch_rows(Lowering& l, AttentionArguments& a, const RowKernels& kernels) {
  const bool wide = kernels.queries == DType::kFloat64;
  const auto width = static_cast<int64_t>(wide ? sizeof(double) : sizeof(float));
  const int64_t piece = attention_piece(byte_width(kernels.keys));
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
  a.splits = 1;
  if (results <= INT32_MAX)
    a.splits = static_cast<int32_t>(
        std::clamp<int64_t>(kEnoughBlocks / (int64_t{blocks} * value_blocks), 1, most_splits(a)));
  if (a.splits > 1) {
    a.sums = l.workspace(static_cast<size_t>(a.splits * results * width));
    a.weights = l.workspace(static_cast<size_t>(int64_t{a.splits} * a.rows * kAttentionWeights * width));
  }
  SINTER_RETURN_IF_ERROR(l.launch_one_of(several ? kernels.several : kernels.one,
                                         {.blocks = {blocks, value_blocks, static_cast<uint32_t>(a.splits)},
                                          .shared_bytes = static_cast<uint32_t>(shared)},
                                         a));
  if (a.splits == 1) return ok_status();
  a.values = Divider(a.value_size);
  a.dtype = kernels.queries;
  return l.launch<Kernel::k_attention_sums>(
      {.blocks = {blocks_for(results, threads_of(Kernel::k_attention_sums))}}, a);
}

// Widens keys (operand 1) or values (2) to the type of the queries.
Status widen_rows(Lowering& l, const AttentionArguments& a, size_t i, const float* scales,
                  const std::byte** rows) {
  const TensorView& from = l.in(i);
  const DType dtype = l.call().in(0).dtype;
  if (from.dtype == dtype) return ok_status();
  Box box;
  SINTER_RETURN_IF_ERROR(box_of(from.shape(), &box));
  if (box.size == 0) return ok_status();
  AttentionWidenArguments w;
  w.from = from.data, w.scales = scales, w.lengths = a.lengths;
  w.rows = box.size / static_cast<uint32_t>(from.dims[3]);
  const int64_t elements = int64_t{w.rows} * row_elements(from.dtype, from.dims[3]);
  SINTER_RETURN_UNLESS(elements <= INT32_MAX, unsupported("keys or values of 2^31 elements or more"));
  w.to = l.workspace(static_cast<size_t>(elements) * byte_width(dtype));
  w.dtype = dtype, w.stored = from.dtype;
  w.groups = Divider(from.dims[1]), w.keys = Divider(from.dims[2]),
  w.size = Divider(row_elements(from.dtype, from.dims[3]));
  *rows = w.to;
  return l.launch<Kernel::k_attention_widen>(
      {.blocks = {blocks_for(elements, threads_of(Kernel::k_attention_widen))}}, w);
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
  for (const size_t i : {0, 1, 2, 4, 5, 6, 7})
    SINTER_RETURN_UNLESS(!call.has_input(i) || call.in(i).constant || call.in(i).dense(),
                         unsupported("an operand is not dense"));
  SINTER_RETURN_UNLESS(l.out(0).dense(), unsupported("the result is not dense"));
  const int64_t batch = q.dims[0], heads = q.dims[1], queries = q.dims[2], keys = k.dims[2];
  const int64_t groups = k.dims[1], key_size = q.dims[3], value_size = row_elements(v.dtype, v.dims[3]);
  int64_t rows = 0;
  SINTER_RETURN_UNLESS(checked_mul(batch * heads, queries, &rows) && rows < INT32_MAX &&
                           keys < INT32_MAX / 2 && queries < INT32_MAX / 2 && value_size < INT32_MAX / 2 &&
                           groups < INT32_MAX,
                       unsupported("2^30 queries, keys or values, or more"));
  SINTER_RETURN_UNLESS(key_size < INT32_MAX / 64 && value_size < int64_t{kAttentionQueries} * UINT16_MAX,
                       unsupported("keys or values of too many elements"));
  SINTER_RETURN_UNLESS(batch <= INT32_MAX, unsupported("2^31 sequences or more"));
  if (rows == 0 || value_size == 0)
    return l.has_input(4) ? check_range(l, l.in(4), keys, FaultCode::kLength) : ok_status();
  AttentionArguments a;
  a.q = l.in(0).data, a.k = l.in(1).data, a.v = l.in(2).data, a.y = l.out(0).data;
  if (l.has_input(4)) a.lengths = l.in(4).as<const int64_t>(), a.fault = l.fault();
  if (l.has_input(5)) a.sinks = l.in(5).data;
  if (l.has_input(6)) a.key_scales = l.in(6).as<const float>();
  if (l.has_input(7)) a.value_scales = l.in(7).as<const float>();
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
  a.scale = attrs.scale, a.softcap = attrs.softcap;
  a.window = static_cast<int32_t>(std::min<int64_t>(attrs.window, INT32_MAX));
  const bool in_tiles =
      queries > kMostSingleQueries && (q.dtype == DType::kFloat32 || (half && key_size <= kMostHalfKeySize));
  const RowKernels* const narrow = k.dtype == v.dtype ? row_kernels(q.dtype, k.dtype) : nullptr;
  if (!in_tiles && narrow != nullptr) return launch_rows(l, a, *narrow);
  SINTER_RETURN_IF_ERROR(widen_rows(l, a, 1, a.key_scales, &a.k));
  SINTER_RETURN_IF_ERROR(widen_rows(l, a, 2, a.value_scales, &a.v));
  a.key_scales = a.value_scales = nullptr;
  if (!in_tiles) return launch_rows(l, a, *row_kernels(q.dtype, q.dtype));
  return half ? launch_half_tiles(l, a, q.dtype == DType::kBFloat16) : launch_tiles(l, a);
}

}  // namespace sinter::cuda
