// Keys and values that the model itself keeps in few bits (GroupQueryAttention with k_quant_type and
// v_quant_type): x = q * scale, with one scale for all, or one for each channel of a head.
//
// Attention reads the elements as they are: the queries are multiplied by the scales of the keys before, the
// results by those of the values behind it, which costs a product per query and not one per key.
//
// B: batch, G: heads of keys and values, H: heads of queries (a multiple of G), D: elements of a head.
#pragma once

#include <string_view>

#include "converter/import/lowering.h"

namespace sinter::convert {

struct QuantizedCache {
  // int8 or float8e4m3fn; uint8: pairs of 4 bits (runtime/core/attention_rows.h); none: not quantized.
  DType type = DType::kNone;
  ValueId scale = kAbsent;  // float32, [1, 1, 1, 1] or [1, G, 1, D]

  explicit operator bool() const { return type != DType::kNone; }
};

// Reads the attribute `type` (k_quant_type or v_quant_type), the input of the scales, and the past rows,
// whose type decides between integers and floats of 8 bits (kAbsent: integers). False: refused.
bool read_quantized_cache(NodeLowering& n, std::string_view type, size_t scales, ValueId past, int64_t groups,
                          int64_t size, QuantizedCache* cache);
// Returns what the cache holds of float rows [B, G, S, D]: [B, G, S, D], or [B, G, S, D / 2] pairs.
ValueId stored_rows(NodeLowering& n, const QuantizedCache& cache, ValueId rows);
// Queries [B, H, S, D] for such keys: times the scales, in float32.
ValueId attending_queries(NodeLowering& n, const QuantizedCache& cache, ValueId q, int64_t groups);
// Returns what attention gives for such values, [B, H, S, D]: times the scales, in float32.
ValueId attended_values(NodeLowering& n, const QuantizedCache& cache, ValueId y, int64_t groups);

}  // namespace sinter::convert
