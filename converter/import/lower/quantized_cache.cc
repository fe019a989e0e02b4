#include "converter/import/lower/quantized_cache.h"

#include "converter/import/lower/attention_parts.h"
#include "converter/import/lower/common.h"
#include "runtime/core/attention_rows.h"

namespace sinter::convert {
namespace {

// [B, G, S, D] of 0 to 15 -> [B, G, S, D / 2], the even one of two in the low half of a byte.
ValueId packed(NodeLowering& n, ValueId codes) {
  if (codes < 0) return codes;
  Dims halves = n.dims(codes);
  halves.back() /= 2;
  Dims pairs = halves;
  pairs.push_back(2);
  codes = n.reshape(codes, pairs);
  const auto half = [&](int64_t which) { return n.reshape(n.slice(codes, 4, which, 1), halves); };
  return n.add(half(0), n.mul(half(1), n.scalar(DType::kUint8, 16)));
}

// Queries or results [B, H, S, D], in float32, times the scales of their group.
ValueId times_scale(NodeLowering& n, const QuantizedCache& cache, ValueId x, int64_t groups) {
  if (x < 0) return x;
  const Dims d = n.dims(x);
  x = n.reshape(n.cast(x, DType::kFloat32), {d[0], groups, d[1] / groups, d[2], d[3]});
  return n.reshape(n.mul(x, n.unsqueeze(cache.scale, 2)), d);
}

}  // namespace

bool read_quantized_cache(NodeLowering& n, std::string_view type, size_t scales, ValueId past, int64_t groups,
                          int64_t size, QuantizedCache* cache) {
  const std::string kind = n.attr_string(type, "NONE");
  const int64_t bits = n.attr_int("kv_cache_bit_width", 0);
  if (kind == "NONE") return !n.has_input(scales) || n.refuse("scales of a cache whose {} is NONE", type);
  const bool whole = kind == "PER_TENSOR";
  if (!whole && kind != "PER_CHANNEL") return n.refuse("{} {} is not known", type, kind);
  if (bits != 8 && bits != 4) return n.refuse("kv_cache_bit_width is {}, not 8 or 4", bits);
  if (bits == 4 && size % 2 != 0) return n.refuse_shapes("heads of {} elements in pairs of 4 bits", size);
  if (!n.has_input(scales)) return n.refuse("{} {} needs scales", type, kind);
  const ValueId given = n.input(scales);
  if (n.size(given) != (whole ? 1 : groups * size))
    return n.refuse_shapes("scales {} do not fit {} {} and {} heads of {}", to_string(n.dims(given)), type,
                           kind, groups, size);
  const bool floats = past >= 0 && n.dtype(past) == DType::kFloat8E4M3FN;
  if (floats && bits != 8) return n.refuse("kv_cache_bit_width is {} for a cache of float8e4m3fn", bits);
  cache->type = floats ? DType::kFloat8E4M3FN : bits == 8 ? DType::kInt8 : DType::kUint8;
  cache->scale =
      n.reshape(n.cast(given, DType::kFloat32), whole ? Dims{1, 1, 1, 1} : Dims{1, groups, 1, size});
  return cache->scale >= 0;
}

ValueId stored_rows(NodeLowering& n, const QuantizedCache& cache, ValueId rows) {
  if (!cache || rows < 0) return rows;
  // Scales for each channel belong to one axis, as Quantize has it.
  const int64_t count = n.size(cache.scale);
  const bool whole = count == 1;
  const Dims d = n.dims(rows);
  std::vector<ValueId> operands{whole ? rows : heads_together(n, rows), n.reshape(cache.scale, {count})};
  if (holds_pairs(cache.type))
    operands.push_back(n.broadcast(n.reshape(n.scalar(cache.type, kAttentionMiddle), {1}), {count}));
  ValueId q = n.emit(QuantizeAttrs{2, 0, static_cast<int64_t>(cache.type), 1}, operands);
  if (!whole) q = heads_apart(n, q, d[1]);
  return holds_pairs(cache.type) ? packed(n, n.emit(ClampAttrs{0, 15}, {q})) : q;
}

ValueId attending_queries(NodeLowering& n, const QuantizedCache& cache, ValueId q, int64_t groups) {
  return cache ? times_scale(n, cache, q, groups) : q;
}

ValueId attended_values(NodeLowering& n, const QuantizedCache& cache, ValueId y, int64_t groups) {
  return cache ? times_scale(n, cache, y, groups) : y;
}

}  // namespace sinter::convert
