// Arguments of kernels/attention/linear_attention.cu.
#pragma once

#include "platforms/cuda/grid/divider.h"
#include "runtime/core/dtype.h"

namespace sinter::cuda {

// All operands are dense: q [batch, tokens, queries, key_size], k [batch, tokens, heads, key_size], v [..,
// value_size], state [batch, heads, key_size, value_size], decay [batch, tokens, heads, decay_size], beta
// [batch, tokens, beta_heads]. A state is float32 where q has 16 bits.
struct LinearAttentionArguments {
  const std::byte *q = nullptr, *k = nullptr, *v = nullptr;
  const std::byte *state = nullptr, *decay = nullptr, *beta = nullptr;  // or null
  std::byte* y = nullptr;     // [batch, tokens, results, value_size]
  std::byte* next = nullptr;  // [slots of states], or null
  DType dtype = DType::kFloat32;
  Divider heads, tiles;  // tiles: of the values
  uint32_t batches = 0;
  int32_t tokens = 0, queries = 1, key_size = 0, value_size = 0;
  int32_t decay_size = 0, beta_heads = 0;
  int32_t slots = 1, window = 0;  // states that are kept; window 0: the last one
  double scale = 1;
};

// A block has kLinearColumns values of a head; its warps share the elements of the keys.
inline constexpr int kLinearColumns = 32, kLinearWarps = 8;
// Elements of the sums' type in shared memory: the state, then sums of the warps.
constexpr int linear_attention_elements(int key_size) { return (key_size + kLinearWarps) * kLinearColumns; }

}  // namespace sinter::cuda
