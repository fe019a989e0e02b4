// com.microsoft's GroupQueryAttention: heads that share keys and values, behind a cache whose number of valid
// rows each run gives.
//
// For batch entry b, total[b] = seqlens_k[b] + 1 keys are valid after this call, and past[b] = total[b] - S
// before it (0 where the first prompt is padded behind its end). Query i has position past[b] + i and
// attends to the keys up to it. The result's cache has max(P, total_sequence_length) rows, P of them given;
// rows that are not valid keep what the given cache has there, as they do where both are one buffer. Where a
// run gives total_sequence_length, that number of rows is a bounded dimension.
// Attention reads quantized caches (quantized_cache.h), those of a first prompt too.
#include <algorithm>
#include <cmath>

#include "converter/import/lengths/bounded.h"
#include "converter/import/lower.h"
#include "converter/import/lower/attention_parts.h"
#include "converter/import/lower/common.h"
#include "converter/import/lower/quantized_cache.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

struct GroupQuery {
  int64_t heads = 0, groups = 0;
  ValueId q = kAbsent, k = kAbsent, v = kAbsent;  // [B, H or G, S, D]
  // Keys before this call in int64: [B], or where it is known, for all entries.
  ValueId past = kAbsent;
  bool first_prompt = false;  // there are none
  QuantizedCache keys, values;
};

// query [B, S, H * D] with key and value [B, S, G * D], or all three in query, [B, S, (H + 2 G) * D].
bool read_operands(NodeLowering& n, GroupQuery* g) {
  g->heads = n.attr_int("num_heads", 0), g->groups = n.attr_int("kv_num_heads", 0);
  ValueId q = n.input(0), k = n.input(1), v = n.input(2);
  if (q == kAbsent || (k == kAbsent) != (v == kAbsent) || !n.has_input(5) || !n.has_input(6))
    return n.refuse("needs a query, seqlens_k and total_sequence_length, and key and value together");
  const Dims d = n.dims(q);
  if (d.size() != 3 || g->groups < 1 || g->heads < 1 || g->heads % g->groups != 0)
    return n.refuse_shapes("a query of {} does not fit num_heads {} and kv_num_heads {}", to_string(d),
                           g->heads, g->groups);
  if (k == kAbsent) {
    const int64_t parts = g->heads + 2 * g->groups;
    if (d[2] % parts != 0)
      return n.refuse_shapes("a packed query of {} does not split into {} heads", to_string(d), parts);
    const int64_t size = d[2] / parts;
    k = n.slice(q, 2, g->heads * size, g->groups * size);
    v = n.slice(q, 2, (g->heads + g->groups) * size, g->groups * size);
    q = n.slice(q, 2, 0, g->heads * size);
  }
  g->q = heads_apart(n, q, g->heads), g->k = heads_apart(n, k, g->groups),
  g->v = heads_apart(n, v, g->groups);
  if (g->q < 0 || g->k < 0 || g->v < 0) return false;
  if (n.dims(g->k)[2] != d[1] || n.dims(g->v)[2] != d[1])
    return n.refuse_shapes("{} keys for {} queries", n.dims(g->k)[2], d[1]);
  if (n.has_input(14) != n.has_input(15)) return n.refuse("q_norm_weight and k_norm_weight belong together");
  const double both = n.attr_float("qk_norm_epsilon", 1e-6), epsilon_q = n.attr_float("q_norm_epsilon", both),
               epsilon_k = n.attr_float("k_norm_epsilon", both);
  if (n.has_input(14)) {
    g->q = n.emit(RmsNormAttrs{3, epsilon_q}, {g->q, n.input(14)});
    g->k = n.emit(RmsNormAttrs{3, epsilon_k}, {g->k, n.input(15)});
  }
  return g->q >= 0 && g->k >= 0;
}

// The number of keys before this call.
bool read_lengths(NodeLowering& n, GroupQuery* g, std::optional<int64_t> total) {
  const int64_t batch = n.dims(g->q)[0], queries = n.dims(g->q)[2];
  if (n.size(n.input(5)) != batch)
    return n.refuse_shapes("seqlens_k {} does not hold {} lengths", to_string(n.dims(n.input(5))), batch);
  const ValueId last = n.reshape(n.cast(n.input(5), DType::kInt64), {batch});
  g->first_prompt = total == queries;
  if (g->first_prompt) {
    g->past = n.broadcast(n.reshape(n.scalar(DType::kInt64, 0), {1}), {batch});
  } else {
    const ValueId less = n.int64(1 - queries);
    g->past = n.emit(MaxAttrs{}, {n.add(last, less), n.scalar(DType::kInt64, 0)});
  }
  return g->past >= 0;
}

bool rotate(NodeLowering& n, GroupQuery* g) {
  const bool interleaved = n.attr_int("rotary_interleaved", 0) != 0, wanted = n.attr_int("do_rotary", 0) != 0;
  const ValueId cos = n.input(7), sin = n.input(8), ids = n.input(9);
  if (!wanted) return true;
  if (cos == kAbsent || sin == kAbsent) return n.refuse("do_rotary needs cos_cache and sin_cache");
  const int64_t batch = n.dims(g->q)[0], queries = n.dims(g->q)[2];
  const ValueId row = n.reshape(index_row(n, queries), {1, queries});
  ValueId positions = n.add(n.reshape(g->past, {batch, 1}), row);
  if (ids != kAbsent && g->first_prompt) {
    // Counted from the first of them.
    positions = n.add(n.reshape(n.slice(n.reshape(ids, {n.size(ids)}), 0, 0, 1), {1, 1}), row);
  } else if (ids != kAbsent) {
    if (n.size(ids) != batch * queries)
      return n.refuse_shapes("position_ids {} do not fit {} queries", to_string(n.dims(ids)), queries);
    positions = n.reshape(ids, {batch, queries});
  }
  g->q = rotated(n, g->q, cos, sin, positions, interleaved);
  g->k = rotated(n, g->k, cos, sin, positions, interleaved);
  return g->q >= 0 && g->k >= 0;
}

// The rows of the result's caches: planned ones, and where a run decides how many of them there are, their
// number. A cache that is kept between runs has as many as the given one.
struct PresentRows {
  int64_t planned = 0;
  std::optional<LengthId> length;
};

// Returns whether the result's caches take the place of the given ones, which have room for what is added.
bool share_buffer(NodeLowering& n) {
  const LoweringOptions& options = n.parent().options();
  if (!options.states.empty() || options.all_states || options.max_context > 0) return true;
  const ImportedGraph& source = n.parent().source();
  const auto rows = [](const std::vector<ImportedValueInfo>& all, const std::string& name) {
    const auto it = std::find_if(all.begin(), all.end(), [&](const auto& v) { return v.name == name; });
    return it == all.end() || it->dims.size() != 4 ? ImportedDim() : it->dims[2];
  };
  if (n.node().outputs.size() < 2) return false;
  const ImportedDim past = rows(source.inputs, n.node().inputs[3]),
                    present = rows(source.outputs, n.node().outputs[1]);
  return present.value >= 0 ? present.value == past.value
                            : !present.symbol.empty() && present.symbol == past.symbol;
}

PresentRows present_rows(NodeLowering& n, int64_t room, int64_t queries, std::optional<int64_t> total) {
  PresentRows rows{std::max(room, total.value_or(queries)), std::nullopt};
  if (total || room == 0 || share_buffer(n)) return rows;
  Bounded b(n);
  Lengths& lengths = b.lengths();
  const auto given = lengths.items(n.input(6));
  if (!given || given->size() != 1) return rows;
  const LengthId most = b.at_most(given->front(), room + queries, LengthRule::kWithin),
                 length = lengths.max(most, lengths.constant(room));
  rows.planned = std::max(lengths.high(length), rows.planned);
  if (!lengths.known(length)) rows.length = length;
  return rows;
}

// Puts this call's keys or values into a cache of so many rows.
ValueId cached(NodeLowering& n, const GroupQuery& g, ValueId now, ValueId cache, const PresentRows& rows) {
  Dims d = n.dims(now);
  if (cache == kAbsent && d[2] == rows.planned) return now;
  int64_t room = 0;
  if (cache != kAbsent) {
    const Dims c = n.dims(cache);
    if (c.size() != 4 || c[0] != d[0] || c[1] != d[1] || c[3] != d[3])
      return n.refuse_shapes("a cache of {} does not fit {}", to_string(c), to_string(d));
    if (n.dtype(cache) != n.dtype(now))
      return n.refuse("a cache of {} for {} is not supported", dtype_name(n.dtype(cache)),
                      dtype_name(n.dtype(now)));
    room = c[2];
  }
  const ContextValues& context = n.parent().context();
  const bool kept = context.caches.count(cache) != 0 && room == rows.planned;
  if (room < rows.planned) {
    d[2] = rows.planned - room;
    const ValueId fresh = n.broadcast(n.scalar(n.dtype(now), 0), d);
    cache = cache == kAbsent ? fresh : n.emit(ConcatAttrs{2}, {cache, fresh});
  }
  if (!kept && !rows.length) return written_to_cache(n, cache, now, g.past, 2);
  // The values that the model computes from the number of rows follow the run.
  const ValueId length = kept ? context.next : n.parent().lengths().value(*rows.length);
  const ValueId present = n.emit_padded(CacheUpdateAttrs{2, 0}, {cache, now, g.past}, {true})[0];
  if (present >= 0) n.parent().graph().value(present).bounded_dims = {{2, length}};
  return present;
}

// A bias with a column for each token so far (--max-context), where it is not proven that there are as many
// keys: their number, which fails a run of another one. kAbsent: nothing to check. kUnknown: refused.
ValueId checked_columns(NodeLowering& n, ValueId bias, ValueId keys) {
  Lengths& lengths = n.parent().lengths();
  for (int64_t axis = 0; axis + 1 < n.rank(bias); ++axis)
    if (!lengths.known(lengths.of_axis(bias, axis)))
      return n.refuse("dimension {} of the bias {} is bounded", axis, to_string(n.dims(bias)));
  const ValueId next = n.parent().context().next;
  const auto so_far = next >= 0 ? lengths.items(next) : std::nullopt;
  const LengthId columns = lengths.of_axis(bias, n.rank(bias) - 1),
                 count = so_far ? so_far->front() : lengths.of_axis(keys, 2);
  if (lengths.known(columns) || columns == count) return kAbsent;
  const LengthId both = Bounded(n).equal(count, columns);
  return n.refused() ? kUnknown : lengths.value(both);
}

// sliding_window_cache: a cache that is full drops its first rows. One with room for all tokens never is.
bool keeps_all_tokens(NodeLowering& n, int64_t room, std::optional<int64_t> total) {
  if (n.attr_int("sliding_window_cache", 0) == 0 || (total && *total <= room) ||
      room == n.parent().options().max_context)
    return true;
  return n.refuse_advising(
      "convert a decoder with --max-context N, which gives its caches room for N tokens",
      "sliding_window_cache with caches of {} rows, which may have to drop some, is not supported", room);
}

bool lower_group_query_attention(NodeLowering& n) {
  GroupQuery g;
  const int64_t shown = n.attr_int("qk_output", 0), window = n.attr_int("local_window_size", -1);
  if (shown != 0 && n.wants_output(3)) return n.refuse("qk_output {} is not supported", shown);
  if (window == 0 || window < -1) return n.refuse("local_window_size {} is not a number of keys", window);
  const bool causal = n.attr_int("causal", 1) != 0;
  if (!causal && window > 0) return n.refuse("local_window_size needs causal attention");
  if (!read_operands(n, &g)) return false;
  const DType t = n.dtype(g.q);
  if (!read_quantized_cache(n, "k_quant_type", 12, n.input(3), g.groups, n.dims(g.k)[3], &g.keys) ||
      !read_quantized_cache(n, "v_quant_type", 13, n.input(4), g.groups, n.dims(g.v)[3], &g.values))
    return false;
  if (n.has_input(3) != n.has_input(4)) return n.refuse("past_key and past_value belong together");

  const int64_t queries = n.dims(g.q)[2];
  const ValueId past_key = n.input(3), past_value = n.input(4);
  const auto but_last = [&](ValueId cache) { return std::span(n.dims(cache)).first(3); };
  if (past_key != kAbsent && (n.rank(past_key) != 4 || n.rank(past_value) != 4 ||
                              !std::ranges::equal(but_last(past_key), but_last(past_value))))
    return n.refuse_shapes("past_key {} and past_value {} are not caches of as many rows",
                           to_string(n.dims(past_key)), to_string(n.dims(past_value)));
  const int64_t room = past_key == kAbsent ? 0 : n.dims(past_key)[2];
  std::optional<int64_t> total;
  if (const ConstantPtr known = n.constant(n.input(6)); known && known->size() == 1)
    total = known->as_int64s()[0];
  // Without a cache, all keys belong to this call.
  if (room == 0 && !total) total = queries;
  if (total && (*total < queries || *total > room + queries || (room == 0 && *total != queries)))
    return n.refuse_shapes("total_sequence_length is {}, for {} queries after a cache of {} rows", *total,
                           queries, room);
  const PresentRows rows = present_rows(n, room, queries, total);
  if (!keeps_all_tokens(n, room, total) || !read_lengths(n, &g, total) || !rotate(n, &g)) return false;
  g.q = attending_queries(n, g.keys, g.q, g.groups);
  g.k = stored_rows(n, g.keys, g.k), g.v = stored_rows(n, g.values, g.v);
  if (g.q < 0 || g.k < 0 || g.v < 0) return false;
  const ValueId k = cached(n, g, g.k, room == 0 ? kAbsent : past_key, rows),
                v = cached(n, g, g.v, room == 0 ? kAbsent : past_value, rows);
  if (k < 0 || v < 0) return false;
  if (n.wants_output(1) && !n.output(1, k)) return false;
  if (n.wants_output(2) && !n.output(2, v)) return false;

  const Dims d = n.dims(g.q);
  OnePassForm form;
  form.scale = n.attr_float("scale", 0);
  if (form.scale == 0) form.scale = 1 / std::sqrt(static_cast<double>(d[3]));
  form.softcap = n.attr_float("softcap", 0);
  if (!fits_one_pass(form)) return n.refuse("softcap {} is not a number up to 1e15", form.softcap);
  form.causal = causal;
  if (window > 0) form.window = window;
  // The first prompt reads only its own keys.
  const ValueId keys = g.first_prompt ? g.k : k;
  ValueId values = g.first_prompt ? g.v : v;
  // Queries that were multiplied by scales are float32, and values are not wider.
  if (g.keys && n.dtype(values) == DType::kFloat64) values = n.cast(values, DType::kFloat32);
  if (!causal) {
    const ValueId one = n.scalar(DType::kInt64, 1);
    form.lengths = n.add(n.reshape(n.cast(n.input(5), DType::kInt64), {d[0]}), one);
  } else if (!g.first_prompt) {
    form.lengths = n.add(g.past, n.int64(queries));
  }
  if (n.has_input(10)) {
    ValueId given = n.input(10);
    const int64_t count = n.dims(keys)[2], columns = n.rank(given) > 0 ? n.dims(given).back() : 1;
    if (columns > count && columns <= rows.planned) given = n.slice(given, n.rank(given) - 1, 0, count);
    const ValueId checked = checked_columns(n, given, keys);
    if (checked == kUnknown) return false;
    if (checked != kAbsent) form.lengths = n.broadcast(n.reshape(checked, {1}), {d[0]});
    AttentionBias bias(n, t, d[0], queries, count);
    bias.add(given);
    form.bias = bias.sum();
  }
  if (n.has_input(11)) {
    if (n.size(n.input(11)) != g.heads)
      return n.refuse_shapes("head_sink {} does not hold {} numbers", to_string(n.dims(n.input(11))),
                             g.heads);
    form.sink = n.reshape(n.input(11), {g.heads});
    n.ignore_attr("smooth_softmax");
  } else if (n.attr_int("smooth_softmax", 0) > 0) {
    form.sink = n.broadcast(n.reshape(n.scalar(t, 0), {1}), {g.heads});
  }
  const ValueId y = attended_values(n, g.values, one_pass_attention(n, g.q, keys, values, form), g.groups);
  return n.output(0, n.cast(heads_together(n, y), t));
}

}  // namespace

std::span<const OnnxOperator> group_query_attention_rules() {
  // Models of two lengths of context choose the tables of cosines and sines by the number of tokens; caches
  // and a bias have the length of the tokens so far where the model computes with it.
  static constexpr uint32_t kTables = 1u << 7 | 1u << 8, kCaches = 1u << 3 | 1u << 4, kBias = 1u << 10;
  static constexpr OnnxOperator kRules[] = {
      {"GroupQueryAttention", 1, lower_group_query_attention, "F F F q q * * F F * F F * * F F",
       kSumsProducts, kMicrosoft, kTables | kCaches | kBias},
  };
  return kRules;
}

}  // namespace sinter::convert
