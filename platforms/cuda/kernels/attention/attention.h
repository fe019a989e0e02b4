// Arguments of kernels/attention_*.cu.
#pragma once

#include "platforms/cuda/grid/divider.h"
#include "platforms/cuda/grid/fault.h"
#include "runtime/core/dtype.h"

namespace sinter::cuda {

struct AttentionArguments {
  // Dense operands: q [batch, heads, queries, key_size], k [batch, groups, keys, key_size], v [..,
  // value_size].
  const std::byte* q = nullptr;
  const std::byte* k = nullptr;
  const std::byte* v = nullptr;
  std::byte* y = nullptr;
  const std::byte* bias = nullptr;  // or null
  int64_t bias_steps[4] = {};       // bytes between batches, heads, queries, keys
  Divider queries, heads;           // queries: of a head, or their tiles
  int32_t queries_of_head = 0;
  uint32_t rows = 0;  // of all heads and batches
  int32_t keys = 0, key_size = 0, value_size = 0;
  int32_t heads_per_group = 1, groups = 1;
  int32_t causal = 0, rule = 0;  // AttentionRule
  int32_t window = 0;            // with causality: the last keys that a query attends to; 0: all
  double scale = 1, softcap = 0;
  const int64_t* lengths = nullptr;                            // [batch] or null
  const std::byte* sinks = nullptr;                            // [heads], in q's type, or null
  const float *key_scales = nullptr, *value_scales = nullptr;  // [batch, groups, keys], of int8
  FaultPlace fault;                                            // for the lengths

  // For attention_rows_*: the queries of the heads that share keys are rows of one matrix; a block takes some
  // of them. The keys that a sequence attends to are cut into `splits` parts, whose results attention_sums
  // combines.
  Divider row_blocks, values;  // of a matrix; of a row, in attention_sums
  int32_t rows_of_matrix = 1;  // heads_per_group * queries_of_head
  int32_t value_lanes = 32;    // lanes that read a key's values: 4, 8, 16 or 32
  int32_t splits = 1;
  std::byte* sums = nullptr;  // [split][row][value_size], in the type of sums
  std::byte* weights =
      nullptr;  // [split][row][kAttentionWeights]: the largest score, the sum of weights, any key
  DType dtype = DType::kFloat32;  // of results, in attention_sums
};

// The rows of existing keys or their values, as elements of the queries' type.
struct AttentionWidenArguments {
  std::byte* to = nullptr;  // dense, [batch, groups, keys, size]
  const std::byte* from = nullptr;
  const float* scales = nullptr;  // [batch, groups, keys] or null
  const int64_t* lengths = nullptr;
  DType dtype = DType::kFloat32, stored = DType::kInt8;  // of `to` and `from`
  Divider groups, keys, size;
  uint32_t rows = 0;  // of all batches and groups
};

// For attention_rows_*: the rows of a block that takes several; the numbers that a split keeps of a row's
// weights; the shared memory of a block of `rows` rows and `values` values, in elements of sums.
inline constexpr int kAttentionRows = 4, kAttentionWeights = 3;
inline constexpr int kAttentionWarps = 8;
// The keys of a part are a multiple of those that a block's warps take in one pass.
inline constexpr int kAttentionPass = kAttentionWarps * 32;
// Returns the elements of `width` bytes that a lane reads of a key or value at a time.
constexpr int attention_piece(size_t width) { return width == 1 ? 8 : 16 / static_cast<int>(width); }
constexpr int attention_query_room(int key_size) { return (key_size + 63) / 64 * 64; }
constexpr int attention_rows_elements(int rows, int key_size, int values) {
  return rows * (attention_query_room(key_size) + kAttentionWarps * (32 + values + 4));
}

// For attention_float16_* and attention_bfloat16_*: a block has kAttentionQueries queries, too. Its shared
// memory has keys and values, or the queries before them.
inline constexpr int kMostHalfKeySize = 256;
constexpr uint32_t attention_half_elements(int depth, int values, int keys) {
  const int queries = 64 * (depth + 8), tiles = keys * (depth + 8 + values + 8);
  return static_cast<uint32_t>(queries > tiles ? queries : tiles);
}

// For attention_tiles_*: the queries of a tile, and its shared memory: two tiles of 16 elements by depth, and
// the weights.
inline constexpr int kAttentionQueries = 64;
inline constexpr uint32_t kAttentionTileBytes = (2 * 16 + 64) * (64 + 4) * 4;

}  // namespace sinter::cuda
