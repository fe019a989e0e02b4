// Arguments of kernels/attention_*.cu.
#pragma once

#include "platforms/cuda/grid/divider.h"

namespace sinter::cuda {

struct AttentionArguments {
  // Dense: q [batch, heads, queries, key_size], k [batch, groups, keys, key_size], v [.., keys, value_size].
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
  double scale = 1;
};

// Values of a block, and what it takes of shared memory, in elements of its sums' type.
inline constexpr int kAttentionValues = 128;
constexpr int attention_rows_elements(int key_size) {
  return (key_size + 3) / 4 * 4 + 8 * (kAttentionValues + 4);
}

// Queries of a tile, and shared memory: two tiles of 16 elements by depth, and the weights.
inline constexpr int kAttentionQueries = 64;
inline constexpr uint32_t kAttentionTileBytes = (2 * 16 + 64) * (64 + 4) * 4;

}  // namespace sinter::cuda
