// Attention (opset 23 to 28) and RotaryEmbedding, as products, softmax and masks.
#include <cmath>

#include "converter/import/lowering.h"

namespace sinter::convert {
namespace {

ValueId filled(NodeLowering& n, DType t, double value, const Dims& dims) {
  return n.broadcast(n.reshape(n.scalar(t, value), Dims(dims.size(), 1)), dims);
}

// [B, S, heads * D] -> [B, heads, S, D]
ValueId split_heads(NodeLowering& n, ValueId x, int64_t heads) {
  const Dims d = n.dims(x);
  if (heads < 1 || d[2] % heads != 0)
    return n.refuse_shapes("a hidden size of {} cannot be split into {} heads", d[2], heads), kUnknown;
  return n.transpose(n.reshape(x, {d[0], d[1], heads, d[2] / heads}), {0, 2, 1, 3});
}

// Positions of queries and keys, and what may see what.
class Bias {
 public:
  Bias(NodeLowering& n, DType type, int64_t batch, int64_t queries, int64_t keys)
      : n_(n), type_(type), batch_(batch), queries_(queries), keys_(keys) {}

  // offset: valid keys before the query block; one number, or per batch entry.
  void set_offset(int64_t constant) {
    offset_ = n_.add_constant(Constant::of<int64_t>(DType::kInt64, {1, 1, 1, 1}, std::span(&constant, 1)));
  }
  void set_offset(ValueId valid_keys) {
    const int64_t less = -queries_;
    offset_ = n_.add(n_.reshape(valid_keys, {batch_, 1, 1, 1}),
                     n_.scalar(DType::kInt64, static_cast<double>(less)));
  }
  // Keys j with j - (i + offset) <= right and >= -left.
  void limit(bool has_left, int64_t left, bool has_right, int64_t right) {
    const ValueId position = n_.add(range(queries_, {1, 1, queries_, 1}), offset_);
    const ValueId distance = n_.sub(range(keys_, {1, 1, 1, keys_}), position);
    if (has_right)
      allow(n_.emit(CompareAttrs{static_cast<int64_t>(CompareFn::kLessOrEqual)},
                    {distance, n_.scalar(DType::kInt64, static_cast<double>(right))}));
    if (has_left)
      allow(n_.emit(CompareAttrs{static_cast<int64_t>(CompareFn::kGreaterOrEqual)},
                    {distance, n_.scalar(DType::kInt64, static_cast<double>(-left))}));
  }
  void limit_to_valid(ValueId valid_keys) {
    allow(n_.emit(CompareAttrs{static_cast<int64_t>(CompareFn::kLess)},
                  {range(keys_, {1, 1, 1, keys_}), n_.reshape(valid_keys, {batch_, 1, 1, 1})}));
  }
  void allow(ValueId mask) {
    add(n_.emit(WhereAttrs{}, {mask, n_.scalar(type_, 0), n_.scalar(type_, -kInfinity)}));
  }
  void add(ValueId bias) { sum_ = sum_ == kAbsent ? bias : n_.add(sum_, bias); }
  ValueId sum() const { return sum_; }

 private:
  ValueId range(int64_t count, const Dims& dims) {
    std::vector<int64_t> items(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) items[static_cast<size_t>(i)] = i;
    return n_.add_constant(Constant::of<int64_t>(DType::kInt64, dims, items));
  }
  NodeLowering& n_;
  DType type_;
  int64_t batch_, queries_, keys_;
  ValueId offset_ = kAbsent, sum_ = kAbsent;
};

// A mask of fewer keys is continued with "not allowed".
ValueId padded_mask(NodeLowering& n, ValueId mask, int64_t keys) {
  const Dims d = n.dims(mask);
  if (d.empty() || d.back() >= keys || d.back() == 1) return mask;
  Dims more = d;
  more.back() = keys - d.back();
  const bool boolean = n.dtype(mask) == DType::kBool;
  const ValueId fill = filled(n, n.dtype(mask), boolean ? 0 : -kInfinity, more);
  return n.emit(ConcatAttrs{static_cast<int64_t>(d.size()) - 1}, {mask, fill});
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
    q = split_heads(n, q, q_heads), k = split_heads(n, k, kv_heads), v = split_heads(n, v, kv_heads);
  }
  if (q < 0 || k < 0 || v < 0) return false;
  const DType t = n.dtype(q);
  if (past_key != kAbsent) {
    k = n.emit(ConcatAttrs{2}, {past_key, k});
    v = n.emit(ConcatAttrs{2}, {past_value, v});
    if (k < 0 || v < 0) return false;
  }
  if (n.wants_output(1) && !n.output(1, k)) return false;
  if (n.wants_output(2) && !n.output(2, v)) return false;
  const Dims dq = n.dims(q), dk = n.dims(k), dv = n.dims(v);
  const int64_t batch = dq[0], heads = dq[1], queries = dq[2], size = dq[3], groups = dk[1], keys = dk[2];
  if (dk[0] != batch || dv[0] != batch || dk[3] != size || dv[1] != groups || dv[2] != keys || groups < 1 ||
      heads % groups != 0)
    return n.refuse_shapes("Q {}, K {} and V {} do not fit", to_string(dq), to_string(dk), to_string(dv));
  double scale = n.attr_float("scale", 0);
  if (!n.has_attr("scale")) scale = 1 / std::sqrt(static_cast<double>(size));
  const double softcap = n.attr_float("softcap", 0);
  const bool causal = n.attr_int("is_causal", 0) != 0;
  const int64_t left = n.attr_int("left_window_size", -1), right = n.attr_int("right_window_size", -1);
  const int64_t mode = n.attr_int("qk_matmul_output_mode", 0), precision = n.attr_int("softmax_precision", 0);
  if (left < -1 || right < -1) return n.refuse("a window size below -1");
  if (mode < 0 || mode > 3) return n.refuse("qk_matmul_output_mode {} is not known", mode);

  // Heads that share keys become an axis of their own, so that the product broadcasts over it.
  const int64_t shared = heads / groups;
  if (std::isnan(scale)) return n.refuse("scale is not a number");
  const double root = std::sqrt(std::fabs(scale));
  q = n.mul(q, n.scalar(t, scale < 0 ? -root : root));
  k = n.mul(k, n.scalar(t, root));
  if (shared > 1) {
    q = n.reshape(q, {batch, groups, shared, queries, size});
    k = n.reshape(k, {batch, groups, 1, keys, size});
    v = n.reshape(v, {batch, groups, 1, keys, dv[3]});
  }
  ValueId scores = n.reshape(n.emit(MatMulAttrs{0, 1}, {q, k}), {batch, heads, queries, keys});
  ValueId shown = scores;
  if (softcap > 0) {
    // Where the scores over the cap would be denormals, or the type cannot hold the cap: in float64.
    const DType wide = softcap > (t == DType::kFloat16 ? 6e4 : 1e15) ? DType::kFloat64 : t;
    const ValueId cap = n.scalar(wide, softcap);
    scores = n.cast(n.mul(n.emit(TanhAttrs{}, {n.div(n.cast(scores, wide), cap)}), cap), t);
    if (mode == 1) shown = scores;
  }
  // From opset 24 on, causality counts the keys before the query block; Attention-23 starts at the first key.
  Bias bias(n, t, batch, queries, keys);
  if (past_key != kAbsent)
    bias.set_offset(n.dims(past_key)[2]);
  else if (valid != kAbsent)
    bias.set_offset(n.cast(valid, DType::kInt64));
  else
    bias.set_offset(int64_t{0});
  if (mask != kAbsent) {
    const ValueId whole = padded_mask(n, mask, keys);
    if (n.dtype(whole) == DType::kBool)
      bias.allow(whole);
    else
      bias.add(n.cast(whole, t));
  }
  if (causal) bias.limit(false, 0, true, 0);
  if (left >= 0 || right >= 0) bias.limit(left >= 0, left, right >= 0, right);
  if (valid != kAbsent) bias.limit_to_valid(n.cast(valid, DType::kInt64));
  if (bias.sum() != kAbsent) scores = n.add(scores, bias.sum());
  if (mode == 2) shown = scores;
  const bool wide = precision == 11 && t != DType::kFloat64;
  ValueId weights = n.emit(SoftmaxAttrs{3, 0}, {wide ? n.cast(scores, DType::kFloat64) : scores});
  if (wide) weights = n.cast(weights, t);
  if (bias.sum() != kAbsent) {
    // A query that sees no key gives zeros.
    ReduceAttrs best;
    best.fn = static_cast<int64_t>(ReduceFn::kMax);
    best.axes.push(n.rank(bias.sum()) - 1);
    const ValueId blind = n.emit(CompareAttrs{static_cast<int64_t>(CompareFn::kEqual)},
                                 {n.emit(best, {bias.sum()}), n.scalar(t, -kInfinity)});
    const ConstantPtr known = n.constant(blind);
    bool any = true;
    if (known) {
      any = false;
      for (const int64_t b : known->as_int64s()) any |= b != 0;
    }
    if (any) weights = n.emit(WhereAttrs{}, {blind, n.scalar(t, 0), weights});
  }
  if (mode == 3) shown = weights;
  if (n.wants_output(3) && !n.output(3, shown)) return false;
  if (shared > 1) weights = n.reshape(weights, {batch, groups, shared, queries, keys});
  ValueId y = n.reshape(n.emit(MatMulAttrs{}, {weights, v}), {batch, heads, queries, dv[3]});
  if (three_d) y = n.reshape(n.transpose(y, {0, 2, 1, 3}), {batch, queries, heads * dv[3]});
  return n.output(0, y);
}

// RotaryEmbedding-23: x [B, H, S, D] or [B, S, H * D].
bool rotary(NodeLowering& n, ValueId x, ValueId cos, ValueId sin, ValueId positions, int64_t rotary_dim) {
  const Dims original = n.dims(x);
  const int64_t heads = n.attr_int("num_heads", 0);
  RopeAttrs a;
  a.interleaved = n.attr_int("interleaved", 0);
  a.rotary_dim = rotary_dim;
  const bool flat = original.size() == 3;
  if (!flat && original.size() != 4) return n.refuse_shapes("X has rank {}, not 3 or 4", original.size());
  if (flat) {
    int64_t count = heads;
    if (count == 0 && n.rank(cos) >= 2 && rotary_dim == 0 && n.dims(cos).back() > 0)
      count = original[2] / 2 / n.dims(cos).back();
    if (count < 1 || original[2] % count != 0)
      return n.refuse_shapes("X {} cannot be split into {} heads", to_string(original), count);
    x = n.reshape(x, {original[0], original[1], count, original[2] / count});
  }
  if (positions != kAbsent) {
    cos = n.emit(GatherAttrs{0}, {cos, positions});
    sin = n.emit(GatherAttrs{0}, {sin, positions});
  }
  if (cos < 0 || sin < 0) return false;
  if (n.rank(cos) != 3 || n.rank(sin) != 3)
    return n.refuse_shapes("the caches must have rank 3 here, not {}", n.rank(cos));
  const int64_t at = flat ? 2 : 1;  // the heads' axis
  cos = n.unsqueeze(n.cast(cos, n.dtype(x)), at), sin = n.unsqueeze(n.cast(sin, n.dtype(x)), at);
  return n.output(0, n.reshape(n.emit(a, {x, cos, sin}), original));
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
    positions = n.add(n.reshape(positions, {1, 1}),
                      n.add_constant(Constant::of<int64_t>(DType::kInt64, {1, length}, counts)));
    positions = n.broadcast(positions, {batch, length});
  }
  return rotary(n, x, n.input(2), n.input(3), positions, n.attr_int("rotary_embedding_dim", 0));
}

}  // namespace

std::span<const LowerRule> attention_rules() {
  static constexpr LowerRule kRules[] = {
      {"Attention", lower_attention},
      {"RotaryEmbedding", lower_rotary},
      {"RotaryEmbedding", lower_microsoft_rotary, "com.microsoft"},
  };
  return kRules;
}

}  // namespace sinter::convert
