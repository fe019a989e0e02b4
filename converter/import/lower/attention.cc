// Attention (opset 23 to 28) and RotaryEmbedding.
#include <cmath>

#include "converter/import/lengths/bounded.h"
#include "converter/import/lower.h"
#include "converter/import/lower/attention_parts.h"

namespace sinter::convert {
namespace {

// Past rows and new ones.
ValueId with_past(NodeLowering& n, ValueId past, ValueId rows) {
  if (n.parent().context().caches.count(past) != 0) return appended_to_cache(n, past, rows);
  return n.emit(ConcatAttrs{2}, {past, rows});
}

// The number of rows of [B, H, N, D] where it is bounded, an int64 scalar; else kAbsent.
ValueId bounded_rows(NodeLowering& n, ValueId v) {
  Lengths& lengths = n.parent().lengths();
  const LengthId length = lengths.of_axis(v, 2);
  return lengths.known(length) ? kAbsent : lengths.value(length);
}

// The keys that exist, where their number is bounded, an int64 scalar; a run in which values or the mask have
// another number fails. kAbsent: it is fixed. kUnknown: refused.
ValueId bounded_keys(NodeLowering& n, ValueId k, ValueId v, ValueId mask) {
  Lengths& lengths = n.parent().lengths();
  LengthId count = lengths.of_axis(k, 2);
  const auto meet = [&](ValueId id, int64_t along) -> bool {
    for (int64_t axis = 0; axis < n.rank(id); ++axis) {
      const LengthId length = lengths.of_axis(id, axis);
      if (axis == along && n.dims(id)[static_cast<size_t>(axis)] != 1)
        count = Bounded(n).equal(count, length);
      else if (axis != along && !lengths.known(length))
        return n.refuse_advising(lengths.fixing_advice(length),
                                 "dimension {} of {} is bounded, which Attention supports for keys alone",
                                 axis, to_string(n.dtype(id), n.dims(id)));
    }
    return true;
  };
  bool any = !n.parent().graph().value(k).bounded_dims.empty() ||
             !n.parent().graph().value(v).bounded_dims.empty() ||
             (mask >= 0 && !n.parent().graph().value(mask).bounded_dims.empty());
  if (!any) return kAbsent;
  if (!meet(k, 2) || !meet(v, 2) || (mask >= 0 && !meet(mask, n.rank(mask) - 1))) return kUnknown;
  return lengths.known(count) ? kAbsent : lengths.value(count);
}

bool lower_attention(NodeLowering& n) {
  ValueId q = n.input(0), k = n.input(1), v = n.input(2);
  const ValueId mask = n.input(3), past_key = n.input(4), past_value = n.input(5), valid = n.input(6);
  const bool three_d = n.rank(q) == 3;
  if ((n.rank(q) != 3 && n.rank(q) != 4) || n.rank(k) != n.rank(q) || n.rank(v) != n.rank(q))
    return n.refuse("Q, K and V must all have rank 3 or 4");
  if ((past_key == kAbsent) != (past_value == kAbsent))
    return n.refuse("past_key and past_value belong together");
  if (valid != kAbsent && past_key != kAbsent)
    return n.refuse("nonpad_kv_seqlen cannot be combined with past_key");
  const int64_t q_heads = n.attr_int("q_num_heads", 0), kv_heads = n.attr_int("kv_num_heads", 0);
  if (three_d) {
    if (q_heads < 1 || kv_heads < 1) return n.refuse("3-D operands need q_num_heads and kv_num_heads");
    q = heads_apart(n, q, q_heads), k = heads_apart(n, k, kv_heads), v = heads_apart(n, v, kv_heads);
  }
  if (q < 0 || k < 0 || v < 0) return false;
  const DType t = n.dtype(q);
  const int64_t fresh = n.rank(k) == 4 ? n.dims(k)[2] : 0;  // keys of this run
  if (past_key != kAbsent) {
    k = with_past(n, past_key, k), v = with_past(n, past_value, v);
    if (k < 0 || v < 0) return false;
  }
  const ValueId existing = bounded_keys(n, k, v, mask);
  if (existing == kUnknown) return false;
  if (existing != kAbsent && valid != kAbsent)
    return n.refuse("nonpad_kv_seqlen cannot be combined with keys whose number is bounded");
  if (n.wants_output(1) && !n.output(1, k)) return false;
  if (n.wants_output(2) && !n.output(2, v)) return false;
  const int64_t batch = n.dims(q)[0], queries = n.dims(q)[2], keys = n.dims(k)[2];
  OnePassForm form;
  form.scale = n.attr_float("scale", 0);
  if (!n.has_attr("scale")) form.scale = 1 / std::sqrt(static_cast<double>(n.dims(q)[3]));
  form.softcap = n.attr_float("softcap", 0);
  form.in_float64 = n.attr_int("softmax_precision", 0) == 11;
  const bool causal = n.attr_int("is_causal", 0) != 0;
  const int64_t left = n.attr_int("left_window_size", -1), right = n.attr_int("right_window_size", -1);
  const int64_t mode = n.attr_int("qk_matmul_output_mode", 0);
  if (left < -1 || right < -1) return n.refuse("a window size below -1");
  if (mode < 0 || mode > 3) return n.refuse("qk_matmul_output_mode {} is not known", mode);

  // From opset 24 on, causality counts the keys before the query block; Attention-23 starts at the first key.
  const bool one_pass = fits_one_pass(form) && !n.wants_output(3);
  AttentionBias bias(n, t, batch, queries, keys);
  if (const ValueId rows = past_key == kAbsent ? kAbsent : bounded_rows(n, past_key); rows != kAbsent) {
    bias.set_offset(n.broadcast(n.reshape(rows, {1}), {batch}));
  } else if (past_key != kAbsent) {
    bias.set_offset(n.dims(past_key)[2]);
  } else if (valid != kAbsent) {
    const ValueId count = n.int64(queries);
    bias.set_offset(n.sub(n.cast(valid, DType::kInt64), count));
  } else {
    bias.set_offset(int64_t{0});
  }
  if (mask != kAbsent && n.dtype(mask) == DType::kBool) bias.allow(mask);
  if (mask != kAbsent && n.dtype(mask) != DType::kBool) bias.add(mask);
  // One pass needs no bias where the last query attends to the last key that exists.
  const bool to_the_end =
      valid != kAbsent || (fresh == queries && (past_key != kAbsent || existing == kAbsent));
  const bool ends = one_pass && to_the_end && (causal || right == 0);
  if (ends)
    form.causal = true, form.window = left + 1;
  else if (causal)
    bias.limit(false, 0, true, 0);
  if (!ends && (left >= 0 || right >= 0)) bias.limit(left >= 0, left, right >= 0, right);
  if (valid != kAbsent && one_pass)
    form.lengths = n.reshape(n.cast(valid, DType::kInt64), {batch});
  else if (valid != kAbsent)
    bias.limit_to_valid(n.cast(valid, DType::kInt64));
  if (existing != kAbsent && one_pass) form.lengths = n.broadcast(n.reshape(existing, {1}), {batch});
  form.bias = bias.sum();
  AttentionScores s{};
  const ValueId y = one_pass ? one_pass_attention(n, q, k, v, form) : attention(n, q, k, v, form, &s);
  if (y < 0) return false;
  const ValueId shown = mode == 0 ? s.scaled : mode == 1 ? s.capped : mode == 2 ? s.biased : s.weights;
  if (n.wants_output(3) && !n.output(3, shown)) return false;
  return n.output(0, three_d ? heads_together(n, y) : y);
}

// RotaryEmbedding-23: x [B, H, S, D] or [B, S, H * D].
bool rotary(NodeLowering& n, ValueId x, ValueId cos, ValueId sin, ValueId positions, int64_t rotary_dim) {
  const Dims original = n.dims(x);
  const int64_t heads = n.attr_int("num_heads", 0);
  const bool interleaved = n.attr_int("interleaved", 0) != 0;
  const bool flat = original.size() == 3;
  if (!flat && original.size() != 4) return n.refuse_shapes("X has rank {}, not 3 or 4", original.size());
  if (rotary_dim != 0 && n.rank(cos) > 0 && n.dims(cos).back() != rotary_dim / 2)
    return n.refuse_shapes("rotary_embedding_dim is {}, but the tables {} rotate {}", rotary_dim,
                           to_string(n.dims(cos)), 2 * n.dims(cos).back());
  if (flat) {
    int64_t count = heads;
    if (count == 0 && n.rank(cos) >= 2 && rotary_dim == 0 && n.dims(cos).back() > 0)
      count = original[2] / 2 / n.dims(cos).back();
    if (count < 1 || original[2] % count != 0)
      return n.refuse_shapes("X {} cannot be split into {} heads", to_string(original), count);
    x = n.reshape(x, {original[0], original[1], count, original[2] / count});
  }
  return n.output(0, n.reshape(rotated(n, x, cos, sin, positions, interleaved, flat ? 2 : 1), original));
}

bool lower_rotary(NodeLowering& n) {
  return rotary(n, n.input(0), n.input(1), n.input(2), n.input(3), n.attr_int("rotary_embedding_dim", 0));
}

// com.microsoft: input, position_ids, cos_cache, sin_cache; a single position counts up from there.
bool lower_microsoft_rotary(NodeLowering& n) {
  n.ignore_attr("is_packed_batching");
  if (n.attr_float("scale", 1) != 1) return n.refuse("scale is not supported");
  const ValueId x = n.input(0);
  const Dims d = n.dims(x);
  if (d.size() < 3) return n.refuse_shapes("X has rank {}", d.size());
  const int64_t batch = d[0], length = d.size() == 4 ? d[2] : d[1];
  ValueId positions = n.cast(n.input(1), DType::kInt64);
  if (n.size(positions) == 1) {
    std::vector<int64_t> counts(static_cast<size_t>(length));
    for (int64_t i = 0; i < length; ++i) counts[static_cast<size_t>(i)] = i;
    const ValueId row = n.add_constant(Constant::of<int64_t>(DType::kInt64, {1, length}, counts));
    positions = n.add(n.reshape(positions, {1, 1}), row);
    positions = n.broadcast(positions, {batch, length});
  }
  return rotary(n, x, n.input(2), n.input(3), positions, n.attr_int("rotary_embedding_dim", 0));
}

}  // namespace

std::span<const OnnxOperator> attention_rules() {
  constexpr uint32_t kKeysAndMask = 0b111110;  // keys, values, mask, past keys, past values
  static constexpr OnnxOperator kRules[] = {
      {"Attention", 23, lower_attention, "F F F m F F", kSumsProducts, "", kKeysAndMask},
      {"RotaryEmbedding", 23, lower_rotary, "F F F i", kSumsProducts},
      {"RotaryEmbedding", 1, lower_microsoft_rotary, "F i F F", kSumsProducts, kMicrosoft},
  };
  return kRules;
}

}  // namespace sinter::convert
