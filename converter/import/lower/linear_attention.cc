// LinearAttention, of opset 27 and of com.microsoft, what computes its decay and its rate, and GatedDeltaNet:
// the same recurrence with a state that is stored the other way round.
#include <algorithm>
#include <cmath>

#include "converter/import/lower/common.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

// The type of the state of operands of type t.
DType state_type(DType t) { return t == DType::kFloat16 || t == DType::kBFloat16 ? DType::kFloat32 : t; }

struct Rule {
  LinearAttentionRule code = LinearAttentionRule::kLinear;
  bool decays = false, corrects = false;
};
std::optional<Rule> rule_of(NodeLowering& n) {
  return n.attr_choice<Rule>("update_rule", "gated_delta",
                             {{"linear", {}},
                              {"gated", {LinearAttentionRule::kGated, true, false}},
                              {"delta", {LinearAttentionRule::kDelta, false, true}},
                              {"gated_delta", {LinearAttentionRule::kGatedDelta, true, true}}});
}

// Operands of the row: q, k, v [batch, tokens, heads, size], state [batch, heads, key size, value size].
struct Recurrence {
  ValueId q = kUnknown, k = kUnknown, v = kUnknown, state = kAbsent, decay = kAbsent, beta = kAbsent;
  double scale = 0;  // 0: 1 / sqrt of the keys' size
  int64_t window = 0;
};
// The output and the state, both kUnknown where an operand or an attribute was refused.
std::vector<ValueId> recur(NodeLowering& n, const Recurrence& r, const Rule& rule) {
  if (r.q < 0 || r.k < 0 || r.v < 0) return {kUnknown, kUnknown};
  const double scale = r.scale != 0 ? r.scale : 1 / std::sqrt(static_cast<double>(n.dims(r.q).back()));
  std::vector<ValueId> operands{
      r.q, r.k, r.v, r.state, rule.decays ? r.decay : kAbsent, rule.corrects ? r.beta : kAbsent};
  while (operands.back() == kAbsent) operands.pop_back();
  return n.emit_many(LinearAttentionAttrs{scale, static_cast<int64_t>(rule.code), r.window}, operands, 2);
}

// Keys of fewer heads than the values: neighbouring heads share them.
ValueId repeated_heads(NodeLowering& n, ValueId v, int64_t heads) {
  const Dims d = n.dims(v);
  if (v < 0 || d[2] == heads) return v;
  const ValueId apart =
      n.broadcast(n.reshape(v, {d[0], d[1], d[2], 1, d[3]}), {d[0], d[1], d[2], heads / d[2], d[3]});
  return n.reshape(apart, {d[0], d[1], heads, d[3]});
}

// query, key, value [batch, tokens, heads * size], past state?, decay?, beta? -> output, state. With a window
// of W, the states have W slots, the last of which is the newest.
bool lower_linear_attention(NodeLowering& n) {
  const int64_t q_heads = n.attr_int("q_num_heads", 0), heads = n.attr_int("kv_num_heads", 0),
                window = n.attr_int("state_window", 0);
  n.ignore_attr("chunk_size");
  const auto rule = rule_of(n);
  if (!rule) return false;
  if (window < 0 || window > kMostStateSlots)
    return n.refuse("state_window is {}, not 0 to {}", window, kMostStateSlots);
  const Dims qd = n.dims(n.input(0)), kd = n.dims(n.input(1)), vd = n.dims(n.input(2));
  const bool split = qd.size() == 3 && kd.size() == 3 && vd.size() == 3 && heads >= 1 && q_heads >= 1 &&
                     qd[2] >= q_heads && qd[2] % q_heads == 0 && vd[2] % heads == 0;
  const int64_t size = split ? qd[2] / q_heads : 1, k_heads = split ? kd[2] / size : 0;
  if (!split || kd[2] % size != 0 || k_heads < 1 || heads % k_heads != 0 || kd[0] != qd[0] ||
      kd[1] != qd[1] || vd[0] != qd[0] || vd[1] != qd[1] || (q_heads % heads != 0 && heads % q_heads != 0))
    return n.refuse_shapes("query {}, key {} and value {} do not fit {} and {} heads", to_string(qd),
                           to_string(kd), to_string(vd), q_heads, heads);
  if (rule->decays != n.has_input(4) || rule->corrects != n.has_input(5))
    return n.refuse_shapes("decay or beta does not fit update_rule {}", n.attr_string("update_rule", ""));
  const int64_t batch = qd[0], tokens = qd[1];
  const auto fits = [&](size_t i, int64_t most) {
    const Dims d = n.dims(n.input(i));
    return d.size() == 3 && d[0] == batch && d[1] == tokens && (d[2] == 1 || d[2] == heads || d[2] == most);
  };
  if ((rule->decays && !fits(4, heads * size)) || (rule->corrects && !fits(5, heads)))
    return n.refuse_shapes("decay {} or beta {} does not fit key {} and {} heads",
                           rule->decays ? to_string(n.dims(n.input(4))) : "[]",
                           rule->corrects ? to_string(n.dims(n.input(5))) : "[]", to_string(kd), heads);
  Recurrence r;
  r.q = n.reshape(n.input(0), {batch, tokens, q_heads, size});
  r.k = repeated_heads(n, n.reshape(n.input(1), {batch, tokens, k_heads, size}), heads);
  r.v = n.reshape(n.input(2), {batch, tokens, heads, vd[2] / heads});
  r.scale = n.attr_float("scale", 0), r.window = window;
  if (rule->decays) {
    const int64_t each = n.dims(n.input(4))[2];
    r.decay =
        n.reshape(n.input(4), {batch, tokens, each < heads ? 1 : heads, each < heads ? 1 : each / heads});
    if (each < heads) r.decay = n.broadcast(r.decay, {batch, tokens, heads, 1});
  }
  if (rule->corrects) r.beta = n.input(5);
  const DType t = n.dtype(n.input(0));
  DType kept = t;
  if (n.has_input(3)) {
    kept = n.dtype(n.input(3));
    r.state = n.cast(n.input(3), state_type(t));
    if (window > 0) {
      Dims d = n.dims(r.state);
      if (d.size() != 5 || d[0] != window)
        return n.refuse_shapes("past_state {} does not have the {} slots of state_window", to_string(d),
                               window);
      d.erase(d.begin());
      r.state = n.reshape(n.slice(r.state, 0, window - 1, 1), d);
    }
  }
  const std::vector<ValueId> results = recur(n, r, *rule);
  if (results[0] < 0) return false;
  if (n.wants_output(1) && !n.output(1, n.cast(results[1], kept))) return false;
  const Dims d = n.dims(results[0]);
  return n.output(0, n.reshape(results[0], {batch, tokens, d[2] * d[3]}));
}

// decay = decay_scale * softplus(a + dt_bias), beta = sigmoid(b); all in the type of the widest operand.
bool lower_linear_attention_gate(NodeLowering& n) {
  const DType inner = n.inner_type(), t = n.dtype(n.input(0));
  const auto wide = [&](size_t i) { return n.cast(n.input(i), inner); };
  const ValueId y = n.mul(n.emit(SoftplusAttrs{}, {n.add(wide(0), wide(1))}), wide(2));
  if (y >= 0 && n.dims(y) != n.dims(n.input(0)))
    return n.refuse_shapes("dt_bias or decay_scale does not fit a {}", to_string(n.dims(n.input(0))));
  if (n.wants_output(1)) {
    if (!n.has_input(3)) return n.refuse("beta without b");
    if (!n.output(1, n.cast(n.emit(SigmoidAttrs{}, {wide(3)}), t))) return false;
  } else {
    (void)n.has_input(3);
  }
  return n.output(0, n.cast(y, t));
}

// The sizes of a GatedDeltaNet's operands.
struct DeltaNet {
  Dims query;
  size_t lead = 0;  // axes of the query before its heads, or before all of the row
  int64_t batch = 0, heads = 0, v_size = 0, k_size = 0;
  int64_t all = 0, tokens = 0;  // of all sequences, and of each
};

std::optional<DeltaNet> delta_net(NodeLowering& n) {
  const Dims state = n.dims(n.input(6));
  DeltaNet net;
  net.query = n.dims(n.input(0));
  const size_t own = n.has_input(1) ? 2 : 1;  // axes of a token
  if (state.size() != 4) {
    n.refuse_shapes("initial_state {} needs four axes", to_string(state));
  } else if (n.has_input(1) != n.has_input(2)) {
    n.refuse("key and value belong together");
  } else if (net.query.size() < own + 1 || net.query.size() > own + 2) {
    n.refuse_shapes("query {} does not fit", to_string(net.query));
  } else {
    net.lead = net.query.size() - own;
    net.batch = state[0], net.heads = state[1], net.v_size = state[2], net.k_size = state[3];
    net.all = element_count({net.query.begin(), net.query.begin() + static_cast<int64_t>(net.lead)});
    if (const auto tokens = uniform_length(n, 3, net.batch, net.all)) return net.tokens = *tokens, net;
  }
  return std::nullopt;
}

// Queries, keys and values, all of them in one row of the query, or apart.
bool read_delta_rows(NodeLowering& n, const DeltaNet& net, Recurrence* r) {
  const Dims& qd = net.query;
  if (!n.has_input(1)) {
    const int64_t rest = qd.back() - net.heads * net.v_size;
    const int64_t q_heads = net.k_size > 0 ? rest / (2 * net.k_size) : 0;
    if (rest <= 0 || q_heads < 1 || rest != 2 * q_heads * net.k_size)
      return n.refuse_shapes("query {} does not hold queries, keys and values for initial_state {}",
                             to_string(qd), to_string(n.dims(n.input(6))));
    const ValueId rows = n.reshape(n.input(0), {net.batch, net.tokens, qd.back()});
    const auto part = [&](int64_t start, int64_t count, int64_t size) {
      return n.reshape(n.slice(rows, 2, start, count * size), {net.batch, net.tokens, count, size});
    };
    r->q = part(0, q_heads, net.k_size), r->k = part(q_heads * net.k_size, q_heads, net.k_size);
    r->v = part(2 * q_heads * net.k_size, net.heads, net.v_size);
  } else {
    const auto rows = [&](size_t i) -> ValueId {
      const Dims d = n.dims(n.input(i));
      if (d.size() != qd.size() || !std::equal(d.begin(), d.end() - 2, qd.begin()))
        return n.refuse_shapes("query {} and operand {} {} differ in tokens", to_string(qd), i, to_string(d));
      return n.reshape(n.input(i), {net.batch, net.tokens, d[net.lead], d[net.lead + 1]});
    };
    r->q = rows(0), r->k = rows(1), r->v = rows(2);
    if (r->k < 0 || r->v < 0) return false;
  }
  const int64_t q_heads = n.dims(r->q)[2];
  if (q_heads < 1 || net.heads % q_heads != 0 || n.dims(r->k)[2] != q_heads || n.dims(r->v)[2] != net.heads)
    return n.refuse_shapes("{} query heads, key {} and value {} do not fit {} heads", q_heads,
                           to_string(n.dims(r->k)), to_string(n.dims(r->v)), net.heads);
  r->k = repeated_heads(n, r->k, net.heads);
  return true;
}

// The decay of the state and the rate of its correction.
bool read_delta_rates(NodeLowering& n, const DeltaNet& net, const Rule& rule, Recurrence* r) {
  const DType t = n.dtype(n.input(0));
  const auto rate = [&](size_t i) -> ValueId {
    const int64_t count = n.size(n.input(i)), per_head = net.all * net.heads;
    const int64_t each = per_head > 0 ? count / per_head : 1;
    if (count != per_head * each || (each != 1 && (i != 4 || each != net.k_size)))
      return n.refuse_shapes("{} {} does not fit {} tokens and {} heads", i == 4 ? "decay" : "beta",
                             to_string(n.dims(n.input(i))), net.all, net.heads);
    return n.reshape(n.input(i), {net.batch, net.tokens, net.heads, each});
  };
  const std::string gate = n.attr_string("gate_activation", "none"),
                    pace = n.attr_string("beta_activation", "none");
  if ((gate != "none" && gate != "qwen") || (pace != "none" && pace != "sigmoid"))
    return n.refuse("gate_activation '{}' or beta_activation '{}' is not known", gate, pace);
  if ((gate == "qwen") != n.has_input(7) || (gate == "qwen") != n.has_input(8))
    return n.refuse("a_log and dt_bias belong to gate_activation 'qwen'");
  const bool has_decay = n.has_input(4), has_beta = n.has_input(5);
  if (rule.decays && !has_decay) return n.refuse("decay is missing");
  if (rule.corrects && !has_beta) return n.refuse("beta is missing");
  if (rule.decays) {
    r->decay = rate(4);
    if (gate == "qwen") {
      const DType inner = state_type(t);
      const auto by_head = [&](size_t i) {
        return n.reshape(n.cast(n.input(i), inner), {1, 1, n.size(n.input(i)), 1});
      };
      const ValueId amount = n.emit(NegAttrs{}, {n.emit(ExpAttrs{}, {by_head(7)})});
      r->decay = n.mul(n.emit(SoftplusAttrs{}, {n.add(n.cast(r->decay, inner), by_head(8))}), amount);
    }
    r->decay = n.cast(r->decay, t);
  }
  if (rule.corrects) {
    r->beta = rate(5);
    if (pace == "sigmoid") r->beta = n.emit(SigmoidAttrs{}, {r->beta});
    r->beta = n.reshape(n.cast(r->beta, t), {net.batch, net.tokens, net.heads});
  }
  return true;
}

// query, key?, value? [tokens, heads, size] or [batch, tokens, heads, size], or all of them as one row a
// token; bounds of sequences?, decay?, beta?, state? [batch, heads, value size, key size], a_log?, dt_bias?
bool lower_gated_delta_net(NodeLowering& n) {
  const auto rule = rule_of(n);
  if (!rule) return false;
  n.ignore_attr("chunk_size");
  if (n.attr_int("state_update_capacity", 0) != 0 || n.has_input(9) || n.wants_output(2))
    return n.refuse("state_update_capacity, capture_count and state_update are not supported");
  (void)n.has_input(10);
  if (n.attr_int("qk_l2_norm", 0) != 0)
    return n.refuse_advising(
        "normalize queries and keys by operators of their own",
        "qk_l2_norm is not supported, as the operator does not define what is added to a length");
  if (!n.has_input(6)) return n.refuse("needs a query and initial_state");
  const auto net = delta_net(n);
  Recurrence r;
  if (!net || !read_delta_rows(n, *net, &r) || !read_delta_rates(n, *net, *rule, &r)) return false;
  const DType kept = n.dtype(n.input(6));
  r.state = n.transpose(n.cast(n.input(6), state_type(n.dtype(n.input(0)))), {0, 1, 3, 2});
  r.scale = n.attr_float("scale", 0);
  const std::vector<ValueId> results = recur(n, r, *rule);
  if (results[0] < 0) return false;
  if (n.wants_output(1) && !n.output(1, n.cast(n.transpose(results[1], {0, 1, 3, 2}), kept))) return false;
  Dims d(net->query.begin(), net->query.begin() + static_cast<int64_t>(net->lead));
  d.insert(d.end(), {net->heads, net->v_size});
  return n.output(0, n.reshape(results[0], d));
}

}  // namespace

std::span<const OnnxOperator> linear_attention_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"LinearAttention", 27, lower_linear_attention, "F F F * F F", kSumsProducts | kThreeInputs},
      {"LinearAttention", 1, lower_linear_attention, "F F F * F F", kSumsProducts | kThreeInputs, kMicrosoft},
      {"LinearAttentionGate", 1, lower_linear_attention_gate, "F p p F", kThreeInputs, kMicrosoft},
      {"GatedDeltaNet", 1, lower_gated_delta_net, "F F F i * * * * * i i", kSumsProducts, kMicrosoft},
  };
  return kRules;
}

}  // namespace sinter::convert
