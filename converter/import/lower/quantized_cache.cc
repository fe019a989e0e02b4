#include "converter/import/lower/quantized_cache.h"

#include "converter/import/lower/attention_parts.h"
#include "converter/import/lower/common.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

constexpr int64_t kMiddle = 8;  // what 0 is in 4 bits

// [B, G, S, D] int8 from -8 to 7 -> uint8 [B, G, S, D / 2]
ValueId packed(NodeLowering& n, ValueId q) {
  if (q < 0) return q;
  Dims halves = n.dims(q);
  halves.back() /= 2;
  Dims pairs = halves;
  pairs.push_back(2);
  const auto half = [&](ValueId v, int64_t which) { return n.reshape(n.slice(v, 4, which, 1), halves); };
  const ValueId codes = n.reshape(n.cast(n.add(q, n.scalar(DType::kInt8, kMiddle)), DType::kUint8), pairs);
  return n.add(half(codes, 0), n.mul(half(codes, 1), n.scalar(DType::kUint8, 16)));
}

// [B, G, T, D / 2] -> int8 [B, G, T, D], the low halves of a row's bytes before the high ones.
ValueId halves_of(NodeLowering& n, ValueId bytes) {
  if (bytes < 0) return bytes;
  // The table of each half, by byte.
  const auto half = [&](int shift) {
    int8_t table[256];
    for (int i = 0; i < 256; ++i) table[i] = static_cast<int8_t>((i >> shift & 15) - kMiddle);
    return n.emit(LutAttrs{},
                  {bytes, n.add_constant(Constant::of<int8_t>(DType::kInt8, {256}, std::span(table)))});
  };
  return n.emit(ConcatAttrs{3}, {half(0), half(4)});
}

// The last axis as rows of `columns` elements, exchanged with these.
ValueId exchanged(NodeLowering& n, ValueId x, int64_t columns) {
  if (x < 0) return x;
  const Dims d = n.dims(x);
  const ValueId apart = n.reshape(x, {d[0], d[1], d[2], d[3] / columns, columns});
  return n.reshape(n.transpose(apart, {0, 1, 2, 4, 3}), d);
}

// Queries or results [B, H, S, D], in float32, times the scales of their group.
ValueId times_scale(NodeLowering& n, const QuantizedCache& cache, ValueId x, int64_t groups) {
  if (x < 0) return x;
  const Dims d = n.dims(x);
  x = n.reshape(n.cast(x, DType::kFloat32), {d[0], groups, d[1] / groups, d[2], d[3]});
  return n.reshape(n.mul(x, n.unsqueeze(cache.scale, 2)), d);
}

}  // namespace

bool read_quantized_cache(NodeLowering& n, std::string_view type, size_t scales, int64_t groups, int64_t size,
                          QuantizedCache* cache) {
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
  cache->bits = bits;
  cache->scale =
      n.reshape(n.cast(given, DType::kFloat32), whole ? Dims{1, 1, 1, 1} : Dims{1, groups, 1, size});
  return cache->scale >= 0;
}

ValueId stored_rows(NodeLowering& n, const QuantizedCache& cache, ValueId rows) {
  if (!cache || rows < 0) return rows;
  // Scales for each channel belong to one axis, as Quantize has it.
  const bool whole = n.size(cache.scale) == 1;
  const Dims d = n.dims(rows);
  const ValueId x = whole ? rows : heads_together(n, rows);
  ValueId q = n.emit(QuantizeAttrs{2, 0, static_cast<int64_t>(DType::kInt8), 1},
                     {x, n.reshape(cache.scale, {n.size(cache.scale)})});
  if (!whole) q = heads_apart(n, q, d[1]);
  return cache.bits == 8 ? q : packed(n, n.emit(ClampAttrs{-kMiddle, kMiddle - 1}, {q}));
}

ValueId attended_rows(NodeLowering& n, const QuantizedCache& cache, ValueId stored) {
  return cache.bits == 4 ? halves_of(n, stored) : stored;
}

ValueId attending_queries(NodeLowering& n, const QuantizedCache& cache, ValueId q, int64_t groups) {
  if (!cache) return q;
  q = times_scale(n, cache, q, groups);
  return cache.bits == 4 ? exchanged(n, q, 2) : q;
}

ValueId attended_values(NodeLowering& n, const QuantizedCache& cache, ValueId y, int64_t groups) {
  if (!cache || y < 0) return y;
  return times_scale(n, cache, cache.bits == 4 ? exchanged(n, y, n.dims(y)[3] / 2) : y, groups);
}

}  // namespace sinter::convert
