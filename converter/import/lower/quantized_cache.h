// Keys and values that the model itself keeps in few bits (GroupQueryAttention with k_quant_type and
// v_quant_type): x = q * scale, with one scale for all, or one for each channel of a head.
//
// Attention reads the integers as they are: the queries are multiplied by the scales of the keys before, the
// results by those of the values behind it, which costs a product per query and not one per key.
//
// B: batch, G: heads of keys and values, H: heads of queries (a multiple of G), D: elements of a head.
#pragma once

#include <string_view>

#include "converter/import/lowering.h"

namespace sinter::convert {

struct QuantizedCache {
  int64_t bits = 0;         // 8, in int8; or 4: q + 8 in uint8, the even element in the low half. 0: none
  ValueId scale = kAbsent;  // float32, [1, 1, 1, 1] or [1, G, 1, D]

  explicit operator bool() const { return bits != 0; }
};

// Of the attribute `type` (k_quant_type or v_quant_type) and the input of the scales. False: refused.
bool read_quantized_cache(NodeLowering& n, std::string_view type, size_t scales, int64_t groups, int64_t size,
                          QuantizedCache* cache);
// What the cache holds of float rows [B, G, S, D].
ValueId stored_rows(NodeLowering& n, const QuantizedCache& cache, ValueId rows);
// int8 [B, G, T, D] of what the cache holds. 4 bits are unpacked in each run, all T of them, into rows with
// the even channels first, because moving halves of rows costs less than moving elements.
ValueId attended_rows(NodeLowering& n, const QuantizedCache& cache, ValueId stored);
// Queries [B, H, S, D] for such keys, in float32: times the scales, with the channels in the same order.
ValueId attending_queries(NodeLowering& n, const QuantizedCache& cache, ValueId q, int64_t groups);
// What attention gives for such values, [B, H, S, D], as the model has it; in float32.
ValueId attended_values(NodeLowering& n, const QuantizedCache& cache, ValueId y, int64_t groups);

}  // namespace sinter::convert
