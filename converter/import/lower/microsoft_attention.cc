// com.microsoft's Attention, QAttention, MultiHeadAttention and their forms for one decoded token, taken
// apart into projections and Attention.
//
// A masked key gets `mask_filter_value` added to its score, a finite number, and a key beyond a causal query
// the lowest float32. So a query of which every key is masked still has weights: those of its scores where
// they survive the filter (-10000), equal ones where it swallows them (-3.4e38).
#include "converter/import/lower/microsoft_attention.h"

#include <cmath>

#include "converter/import/lengths/bounded.h"
#include "converter/import/lower/common.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

// A filter from here on swallows every score that it is added to.
constexpr double kSwallows = -1e30;

ValueId both(NodeLowering& n, ValueId a, ValueId b) {
  return a == kAbsent ? b : n.bitwise(BitwiseFn::kAnd, {a, b});
}
struct KeyCounts {
  int64_t batch, queries, past, keys;  // keys: past ones included
};

// Which keys a mask keeps: bool, broadcastable to [B, H, S, T]. Masks of rank 2 to 4 keep a key where they
// are positive: [B, T], [B, S, T], or one that broadcasts to [B, H, S, T], or [B, 1, N, N] for sequences of
// up to N. Masks of rank 1 hold ends: [B], [2 B] with starts behind them, or [3 B + 2] with cumulated
// lengths.
ValueId kept_keys(NodeLowering& n, ValueId mask, const KeyCounts& l) {
  if (mask < 0) return kUnknown;
  const Dims d = n.dims(mask);
  const DType t = n.dtype(mask);
  if (is_float(t))
    return n.refuse_advising("give the mask as integers or truth values, or as the attention bias",
                             "a mask of {}", to_string(t, d));
  if (d.size() == 1 && (d[0] == l.batch || d[0] == 2 * l.batch || d[0] == 3 * l.batch + 2)) {
    const ValueId position = n.reshape(index_row(n, l.keys), {1, 1, 1, l.keys});
    const auto edge = [&](int64_t first) {
      return n.reshape(n.slice(n.cast(mask, DType::kInt64), 0, first, l.batch), {l.batch, 1, 1, 1});
    };
    ValueId keep = n.compare(CompareFn::kLess, {position, edge(0)});
    if (d[0] == 2 * l.batch)
      keep = both(n, keep, n.compare(CompareFn::kGreaterOrEqual, {position, edge(l.batch)}));
    return keep;
  }
  ValueId v = mask;
  if (d.size() == 2 && d[1] == l.keys) {
    v = n.reshape(v, {d[0], 1, 1, d[1]});
  } else if (d.size() == 3 && d[2] == l.keys) {
    v = n.reshape(v, {d[0], 1, d[1], d[2]});
  } else if (d.size() == 4 && d[3] != l.keys && d[2] == d[3] && d[3] > l.keys) {
    v = n.slice(n.slice(v, 2, l.past, l.queries), 3, 0, l.keys);
  } else if (d.size() != 4 || d[3] != l.keys) {
    return n.refuse_shapes("a mask of {} does not fit {} sequences of {} queries and {} keys", to_string(d),
                           l.batch, l.queries, l.keys);
  }
  return t == DType::kBool ? v : n.compare(CompareFn::kGreater, {v, n.scalar(t, 0)});
}

// Query i attends to key j if j <= past + i; the last query attends to all of them. Constant, [1, 1, S, T].
ValueId causal_keys(NodeLowering& n, const KeyCounts& l) {
  const ValueId past = n.int64(l.past);
  ValueId last = n.add(n.reshape(index_row(n, l.queries), {1, 1, l.queries, 1}), past);
  if (l.past + l.queries < l.keys) {
    const ValueId before = n.slice(last, 2, 0, l.queries - 1);
    last = n.emit(ConcatAttrs{2}, {before, n.reshape(n.int64(l.keys), {1, 1, 1, 1})});
  }
  return n.compare(CompareFn::kLessOrEqual, {n.reshape(index_row(n, l.keys), {1, 1, 1, l.keys}), last});
}

double lowest(DType t) {
  switch (t) {
    case DType::kFloat16:
      return -65504;
    case DType::kBFloat16:
      return -0x1.FEp127;
    default:
      return -0x1.FFFFFEp127;
  }
}

// A mask or a bias of fewer keys than the cache has room for; the others do not exist.
ValueId up_to_room(NodeLowering& n, ValueId v, int64_t keys) {
  if (v < 0) return v;
  Dims d = n.dims(v);
  if (d.size() < 2 || d.back() >= keys || (d.size() > 2 && d.back() == 1)) return v;
  d.back() = keys - d.back();
  return n.emit(ConcatAttrs{static_cast<int64_t>(d.size()) - 1},
                {v, n.broadcast(n.scalar(n.dtype(v), 0), d)});
}

}  // namespace

ValueId attend(NodeLowering& n, MicrosoftAttention h) {
  const double filter = n.attr_float("mask_filter_value", -10000);
  bool causal = n.attr_int("unidirectional", 0) != 0;
  double scale = n.attr_float("scale", 0);
  if (h.q < 0 || h.k < 0 || h.v < 0) return kUnknown;
  if (n.rank(h.q) != 4 || n.rank(h.k) != 4)
    return n.refuse_shapes("queries {} and keys {} do not fit", to_string(n.dims(h.q)),
                           to_string(n.dims(h.k)));
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(n.dims(h.q)[3]));
  if (std::isnan(filter)) return n.refuse("mask_filter_value is not a number");
  const KeyCounts l{n.dims(h.q)[0], n.dims(h.q)[2], h.past, n.dims(h.k)[2]};
  const DType result = n.dtype(h.q);
  DType t = result;
  ValueId lengths = kAbsent;
  if (h.past_rows != kAbsent) {
    h.mask = up_to_room(n, h.mask, l.keys), h.bias = up_to_room(n, h.bias, l.keys);
    const ValueId queries = n.int64(l.queries);
    lengths = n.broadcast(n.reshape(n.add(n.cast(h.past_rows, DType::kInt64), queries), {1}), {l.batch});
  }
  auto rule = AttentionRule::kHides;
  ValueId bias = h.bias, keep = h.mask == kAbsent ? kAbsent : kept_keys(n, h.mask, l);
  if (keep == kUnknown) return kUnknown;
  // Attention's own causality hides keys, which is what the lowest number does unless all others are as low.
  const bool swallows = filter <= kSwallows;
  ValueId allowed = kAbsent;
  if (causal && lengths == kAbsent && ((keep != kAbsent && swallows) || l.keys != l.past + l.queries)) {
    allowed = causal_keys(n, l);
    causal = false;
  }
  if (keep != kAbsent && swallows && allowed != kAbsent) keep = both(n, keep, allowed), allowed = kAbsent;
  if (keep != kAbsent) {
    // Numbers that 16 bits cannot hold are added in float32, or replace the score.
    const bool fits = filter >= lowest(t) || std::isinf(filter);
    if (bias != kAbsent && t != DType::kFloat64) t = DType::kFloat32;
    if (!fits && bias == kAbsent) rule = AttentionRule::kReplaces;
    ValueId mask = n.emit(
        WhereAttrs{},
        {keep, n.scalar(t, 0), n.scalar(t, std::isinf(filter) ? filter : std::max(filter, lowest(t)))});
    // A filter that the scores survive only costs them digits where all keys are masked.
    if (!swallows && std::isfinite(filter))
      mask = n.sub(mask, n.reduce(ReduceFn::kMax, IntList{3}, 1, {mask}));
    // Two lowest numbers are one again.
    bias = bias == kAbsent ? mask
                           : n.emit(AddAttrs{std::isinf(filter) ? -kInfinity : lowest(t), kInfinity},
                                    {n.cast(bias, t), mask});
  }
  if (allowed != kAbsent) {
    bias = n.where({allowed, bias == kAbsent ? n.scalar(t, 0) : bias, n.scalar(t, -kInfinity)});
    rule = AttentionRule::kHides;
  }
  std::vector<ValueId> operands{n.cast(h.q, t), n.cast(h.k, t), n.cast(h.v, t)};
  // A bias is not rounded to 16 bits.
  if (bias != kAbsent || lengths != kAbsent)
    operands.push_back(bias == kAbsent ? kAbsent : n.cast(bias, t == DType::kFloat64 ? t : DType::kFloat32));
  if (lengths != kAbsent) operands.push_back(lengths);
  // `lengths` leaves out the room of a cache beyond its rows.
  const AttentionAttrs attrs{scale, causal, static_cast<int64_t>(rule)};
  const ValueId y = lengths == kAbsent ? n.emit(attrs, operands) : n.emit_padded(attrs, operands, {true})[0];
  return heads_together(n, n.cast(y, result));
}

namespace {

struct SelfAttention {
  ValueId x, weights, bias, mask, past, attention_bias, past_length = kAbsent;
};
bool self_attention(NodeLowering& n, const SelfAttention& in) {
  const int64_t heads = n.attr_int("num_heads", 0);
  std::vector<int64_t> sizes = n.attr_ints("qkv_hidden_sizes");
  const bool rotary = n.attr_int("do_rotary", 0) != 0,
             share = n.attr_int("past_present_share_buffer", 0) != 0;
  if (!rotary) n.ignore_attr("rotary_embedding_dim");
  if (in.x < 0 || in.weights < 0) return false;
  if (share && (in.past == kAbsent || in.past_length == kAbsent))
    return n.refuse("past_present_share_buffer needs past and past_sequence_length");
  if (n.rank(in.x) != 3 || n.rank(in.weights) != 2 || heads < 1)
    return n.refuse_shapes("needs an input of rank 3, a weight matrix and num_heads");
  const int64_t width = n.dims(in.weights)[1];
  if (sizes.empty()) sizes.assign(3, width / 3);
  for (const int64_t size : sizes)
    if (size < 0 || size > width) return n.refuse("qkv_hidden_sizes [{}] do not fit", fmt::join(sizes, ","));
  if (sizes.size() != 3 || sizes[0] + sizes[1] + sizes[2] != width || sizes[0] != sizes[1] ||
      sizes[0] % heads != 0 || sizes[2] % heads != 0)
    return n.refuse_shapes("weights {} do not split into q, k and v of {} heads",
                           to_string(n.dims(in.weights)), heads);
  ValueId all = matrix_product(n, in.x, in.weights);
  if (in.bias != kAbsent) all = n.add(all, in.bias);
  if (all < 0) return false;
  MicrosoftAttention h{heads_apart(n, n.slice(all, 2, 0, sizes[0]), heads),
                       heads_apart(n, n.slice(all, 2, sizes[0], sizes[1]), heads),
                       heads_apart(n, n.slice(all, 2, sizes[0] + sizes[1], sizes[2]), heads), in.mask,
                       in.attention_bias};
  Caches past{kAbsent, kAbsent};
  if (in.past != kAbsent) {
    if (n.rank(in.past) != 5) return n.refuse_shapes("past has rank {}, not 5", n.rank(in.past));
    const Dims d(n.dims(in.past).begin() + 1, n.dims(in.past).end());
    past = {n.reshape(n.slice(in.past, 0, 0, 1), d), n.reshape(n.slice(in.past, 0, 1, 1), d)};
  }
  const ValueId count = share ? in.past_length : kAbsent;
  if (rotary) rotate_by_position(n, h, past, count);
  Caches present{h.k, h.v};
  if (in.past != kAbsent) present = append(n, h, past, count);
  if (n.wants_output(1) &&
      !n.output(1, n.emit(ConcatAttrs{0}, {n.unsqueeze(present.keys, 0), n.unsqueeze(present.values, 0)})))
    return false;
  return n.output(0, attend(n, h));
}

// Attention: x [B, S, C], weights [C, q + k + v], bias, mask?, past?, attention bias?, length of the past?
bool lower_microsoft_attention(NodeLowering& n) {
  return self_attention(n,
                        {n.input(0), n.input(1), n.input(2), n.input(3), n.input(4), n.input(5), n.input(6)});
}

// Beam search inside the model picks other rows of the caches; without it there is one beam.
bool one_beam(NodeLowering& n, size_t width, size_t indirection) {
  const ConstantPtr beams = n.has_input(width) ? n.constant(n.input(width)) : nullptr;
  const bool one = beams && beams->size() == 1 && beams->as_int64s()[0] == 1;
  if ((n.has_input(width) || n.has_input(indirection)) && !one)
    return n.refuse_advising("export the decoder without beam search, or give beam_width 1 with --const",
                             "beam_width and cache_indirection of more than one beam are not supported");
  return true;
}

// DecoderMaskedSelfAttention: as Attention, for one token; beams?, indirection? behind.
bool lower_decoder_self_attention(NodeLowering& n) {
  if (!n.has_input(4)) return n.refuse("needs an input, weights, a bias and a past");
  if (n.rank(n.input(0)) == 3 && n.dims(n.input(0))[1] != 1)
    return n.refuse_shapes("{} tokens; it takes one", n.dims(n.input(0))[1]);
  return one_beam(n, 7, 8) && lower_microsoft_attention(n);
}
// QAttention: x, weights, bias, scale of x, of the weights (for each column, or one), mask?, zero point of
// x?, of the weights?, past?
bool lower_q_attention(NodeLowering& n) {
  if (!n.has_input(4)) return n.refuse("needs five inputs");
  const bool columns = n.size(n.input(4)) > 1 || (n.has_input(7) && n.size(n.input(7)) > 1);
  const DType type = n.dtype(n.input(n.has_input(2) ? 2 : 3));  // that of the result as well
  const ValueId x = dequantize(n, n.input(0), n.input(3), n.input(6), 0, 0, type),
                w = dequantize(n, n.input(1), n.input(4), n.input(7), columns ? 1 : 0, 0, type);
  return self_attention(n, {x, w, n.input(2), n.input(5), n.input(8), kAbsent});
}

// The places of operands in MultiHeadAttention and in its form for one token.
struct MultiHeadInputs {
  size_t bias, mask, attention_bias, past, past_length;
};

// query [B, S, C], key and value [B, T, C] or [B, H, T, D], or key and value as one [B, T, H, 2, D], or all
// three as [B, S, H, 3, D]; bias [q + k + v]?, mask?, attention bias?, past key?, past value?, length of the
// past?
bool multi_head_attention(NodeLowering& n, const ValueId (&given)[3], const MultiHeadInputs& at) {
  const int64_t heads = n.attr_int("num_heads", 0);
  const bool share = n.has_input(at.past_length);
  const auto [query, key, value] = given;
  if (query == kAbsent || heads < 1 || (key == kAbsent && value != kAbsent))
    return n.refuse("needs a query, num_heads, and a key where there is a value");
  ValueId parts[3] = {query, key, value};
  if (value == kAbsent) {
    const int64_t first = key == kAbsent ? 0 : 1;
    const ValueId packed = parts[first];
    const Dims d = n.dims(packed);
    if (d.size() != 5 || d[2] != heads || d[3] != 3 - first)
      return n.refuse_shapes("{} does not hold {} for {} heads", to_string(d),
                             first == 0 ? "queries, keys and values" : "keys and values", heads);
    for (int64_t i = first; i < 3; ++i)
      parts[i] = n.reshape(n.slice(packed, 3, i - first, 1), {d[0], d[1], heads * d[4]});
  }
  const ValueId bias = n.input(at.bias);
  int64_t start = 0;
  for (ValueId& p : parts) {
    const Dims d = n.dims(p);
    if (d.size() == 4) {
      start += d[1] * d[3];
      continue;
    }
    if (d.size() != 3) return n.refuse_shapes("{} does not split into {} heads", to_string(d), heads);
    if (bias != kAbsent) {
      if (n.rank(bias) != 1 || start + d[2] > n.size(bias))
        return n.refuse_shapes("a bias of {} does not fit queries, keys and values", to_string(n.dims(bias)));
      p = n.add(p, n.slice(bias, 0, start, d[2]));
    }
    start += d[2];
    p = heads_apart(n, p, heads);
  }
  MicrosoftAttention h{parts[0], parts[1], parts[2], n.input(at.mask), n.input(at.attention_bias)};
  if (n.has_input(at.past) != n.has_input(at.past + 1))
    return n.refuse("past_key and past_value belong together");
  if (share && !n.has_input(at.past)) return n.refuse("past_sequence_length without past_key and past_value");
  Caches present{h.k, h.v};
  if (n.has_input(at.past))
    present = append(n, h, {n.input(at.past), n.input(at.past + 1)}, n.input(at.past_length));
  for (const size_t i : {at.mask, at.attention_bias, at.past, at.past + 1})
    if (const ValueId v = n.input(i); v >= 0 && h.past_rows == kAbsent && Bounded(n).is_bounded(v))
      return n.refuse_advising("give the dimension one size with --dim, or a decoder --max-context N",
                               "operand '{}' has a length that each run gives, but past_key and past_value "
                               "are not caches that the session keeps",
                               n.node().inputs[i]);
  if (n.wants_output(1) && !n.output(1, present.keys)) return false;
  if (n.wants_output(2) && !n.output(2, present.values)) return false;
  return n.output(0, attend(n, h));
}

bool lower_multi_head_attention(NodeLowering& n) {
  if (n.has_input(9)) return n.refuse("cache_indirection is not supported");
  return multi_head_attention(n, {n.input(0), n.input(1), n.input(2)}, {3, 4, 5, 6, 8});
}

// DecoderMaskedMultiHeadAttention: query, key?, value?, mask?, attention bias?, past key?, past value?,
// length of the past?, beams?, indirection?, bias?. Without key and value the query holds all three, [B, 1, q
// + k + v].
bool lower_decoder_multi_head_attention(NodeLowering& n) {
  const bool share = n.attr_int("past_present_share_buffer", 0) != 0;
  if (share != n.has_input(7) && n.has_input(5))
    return n.refuse("past_present_share_buffer and past_sequence_length belong together");
  if (n.attr_int("output_qk", 0) != 0 && n.wants_output(3)) return n.refuse("output_qk is not supported");
  if (!one_beam(n, 8, 9)) return false;
  ValueId parts[3] = {n.input(0), n.input(1), n.input(2)};
  const Dims d = n.dims(parts[0]);
  if (d.size() != 3 || d[1] != 1) return n.refuse_shapes("a query of {}; it takes one token", to_string(d));
  if (parts[1] == kAbsent && parts[2] == kAbsent) {
    if (d[2] % 3 != 0) return n.refuse_shapes("{} does not hold queries, keys and values", to_string(d));
    for (int64_t i = 0; i < 3; ++i) parts[i] = n.slice(n.input(0), 2, i * (d[2] / 3), d[2] / 3);
  }
  return multi_head_attention(n, parts, {10, 3, 4, 5, 7});
}

}  // namespace

std::span<const OnnxOperator> microsoft_attention_rules() {
  // Mask, bias, past keys and values: bounded where --max-context keeps the caches.
  static constexpr uint32_t kOfContext = 1u << 4 | 1u << 5 | 1u << 6 | 1u << 7;
  static constexpr OnnxOperator kRules[] = {
      {"Attention", 1, lower_microsoft_attention, "F F F * F F", kSumsProducts | kTwoInputs, kMicrosoft},
      {"QAttention", 1, lower_q_attention, "* * F F F * * * F", kSumsProducts, kMicrosoft},
      {"MultiHeadAttention", 1, lower_multi_head_attention, "F F F F * F F F", kSumsProducts, kMicrosoft,
       kOfContext},
      {"DecoderMaskedSelfAttention", 1, lower_decoder_self_attention, "F F F * F F", kSumsProducts,
       kMicrosoft},
      {"DecoderMaskedMultiHeadAttention", 1, lower_decoder_multi_head_attention, "F F F * F F F * * * F",
       kSumsProducts, kMicrosoft},
  };
  return kRules;
}

}  // namespace sinter::convert
