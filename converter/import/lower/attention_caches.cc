// Keys and values of earlier calls, and the rotation of queries and keys by their positions after these.
#include <cmath>

#include "converter/import/lower.h"
#include "converter/import/lower/attention_parts.h"
#include "converter/import/lower/common.h"
#include "converter/import/lower/microsoft_attention.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {

ValueId appended_to_cache(NodeLowering& n, ValueId cache, ValueId rows) {
  const ContextValues& context = n.parent().context();
  const Dims c = n.dims(cache), r = n.dims(rows);
  if (r.size() != 4 || r[0] != c[0] || r[1] != c[1] || r[2] != context.tokens || r[3] != c[3])
    return n.refuse_shapes("appends {} to a cache of {}, where a run has {} tokens", to_string(r),
                           to_string(c), context.tokens);
  const ValueId at = n.broadcast(n.reshape(context.position, {1}), {c[0]});
  const ValueId present = n.emit_padded(CacheUpdateAttrs{2, 0}, {cache, rows, at}, {true})[0];
  if (present >= 0) n.parent().graph().value(present).bounded_dims = {{2, context.next}};
  return present;
}

ValueId written_to_cache(NodeLowering& n, ValueId cache, ValueId rows, ValueId at, int64_t axis) {
  const ConstantPtr known = n.constant(at);
  if (known && !is_float(known->dtype()) && n.rank(cache) > axis && n.rank(rows) > axis) {
    const int64_t room = n.dims(cache)[static_cast<size_t>(axis)],
                  count = n.dims(rows)[static_cast<size_t>(axis)];
    for (const int64_t first : known->as_int64s())
      if (first < 0 || first > room - count)
        return n.refuse_shapes("caches of {} rows have no room for {} after {}", room, count, first);
  }
  return n.emit(CacheUpdateAttrs{axis, 0}, {cache, rows, at});
}

Caches append(NodeLowering& n, MicrosoftAttention& h, Caches past, ValueId count) {
  if (h.q < 0 || h.k < 0 || h.v < 0 || past.keys < 0 || past.values < 0) return {kUnknown, kUnknown};
  const Dims pd = n.dims(past.keys), kd = n.dims(h.k);
  if (pd.size() != 4 || n.rank(past.values) != 4)
    return n.refuse_shapes("past keys {} and values {}, not of rank 4", to_string(pd),
                           to_string(n.dims(past.values))),
           Caches{kUnknown, kUnknown};
  if (const ContextValues& context = n.parent().context();
      count == kAbsent && context.caches.count(past.keys) != 0 && context.caches.count(past.values) != 0) {
    h.past_rows = context.position;
    h.k = appended_to_cache(n, past.keys, h.k), h.v = appended_to_cache(n, past.values, h.v);
    return {h.k, h.v};
  }
  if (count == kAbsent) {
    h.past = pd[2];
    h.k = n.emit(ConcatAttrs{2}, {past.keys, h.k});
    h.v = n.emit(ConcatAttrs{2}, {past.values, h.v});
    return {h.k, h.v};
  }
  if (n.size(count) != 1 || is_float(n.dtype(count)))
    return n.refuse_shapes("past_sequence_length {} is not one integer", to_string(n.dims(count))),
           Caches{kUnknown, kUnknown};
  const ValueId at = n.broadcast(n.reshape(n.cast(count, DType::kInt64), {1}), {kd[0]});
  const Caches present{written_to_cache(n, past.keys, h.k, at, 2),
                       written_to_cache(n, past.values, h.v, at, 2)};
  if (present.keys < 0 || present.values < 0) return present;
  if (const ConstantPtr known = n.constant(count)) {
    h.past = known->as_int64s()[0];
    h.k = n.slice(present.keys, 2, 0, h.past + kd[2]);
    h.v = n.slice(present.values, 2, 0, h.past + kd[2]);
  } else {
    h.past_rows = count;
    h.k = present.keys, h.v = present.values;
  }
  return present;
}

void rotate_by_position(NodeLowering& n, MicrosoftAttention& h, const Caches& past, ValueId count) {
  if (h.q < 0 || h.k < 0 || past.keys == kUnknown) return;
  const Dims d = n.dims(h.q);
  int64_t size = n.attr_int("rotary_embedding_dim", 0);
  if (size == 0) size = d[3];
  if (size < 2 || size % 2 != 0 || size > d[3]) {
    n.refuse_shapes("rotary_embedding_dim {} does not fit heads of {} elements", size, d[3]);
    return;
  }
  const int64_t room = past.keys == kAbsent ? 0 : n.dims(past.keys)[2], rows = room + d[2], pairs = size / 2;
  const ValueId turns = n.mul(n.reshape(n.cast(index_row(n, rows), DType::kFloat64), {rows, 1}), [&] {
    std::vector<double> speeds;
    for (int64_t i = 0; i < pairs; ++i)
      speeds.push_back(std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(pairs)));
    return n.add_constant(Constant::of<double>(DType::kFloat64, {1, pairs}, speeds));
  }());
  ValueId positions = n.reshape(index_row(n, d[2]), {1, d[2]});
  if (count != kAbsent)
    positions = n.add(positions, n.reshape(n.cast(count, DType::kInt64), {1, 1}));
  else
    positions = n.add(positions, n.int64(room));
  const auto table = [&](TrigFn fn) {
    return n.cast(n.emit(TrigAttrs{static_cast<int64_t>(fn)}, {turns}), n.dtype(h.q));
  };
  const ValueId cos = table(TrigFn::kCos), sin = table(TrigFn::kSin);
  h.q = rotated(n, h.q, cos, sin, positions, false);
  h.k = rotated(n, h.k, cos, sin, positions, false);
}

}  // namespace sinter::convert
