// CausalConvWithState, of opset 27 and of com.microsoft, and its form for sequences packed one after the
// other: the past before the input, then a depthwise convolution without pads.
#include <algorithm>

#include "converter/import/lower/common.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

constexpr int64_t kMostDilation = int64_t{1} << 20;

// Values are [batch, positions, channels].
struct CausalConv {
  ValueId x = kUnknown, weight = kUnknown, bias = kAbsent;
  ValueId past = kAbsent;  // absent: zeros
  int64_t dilation = 1;
  std::string activation;
};
struct CausalResult {
  ValueId y = kUnknown;
  ValueId all = kUnknown;  // past and input
  int64_t positions = 0, state = 0;
};

CausalResult causal_conv(NodeLowering& n, const CausalConv& c) {
  const Dims d = n.dims(c.x), wd = n.dims(c.weight);
  if (d.size() != 3 || wd.size() != 3 || wd[0] != d[2] || wd[1] != 1 || wd[2] < 1 || c.dilation < 1 ||
      c.dilation > kMostDilation)
    return n.refuse_shapes("{} channels, weight {} and dilation {} do not fit", d.empty() ? 0 : d.back(),
                           to_string(wd), c.dilation),
           CausalResult{};
  if (c.activation != "none" && c.activation != "silu" && c.activation != "swish")
    return n.refuse("activation '{}' is not supported", c.activation), CausalResult{};
  CausalResult r{kUnknown, c.x, d[1], (wd[2] - 1) * c.dilation};
  if (r.state > 0) {
    const Dims held{d[0], r.state, d[2]};
    const ValueId past = c.past != kAbsent ? c.past : n.broadcast(n.scalar(n.dtype(c.x), 0), held);
    if (past >= 0 && n.dims(past) != held)
      return n.refuse_shapes("a past of {} is not {} positions of {} channels", to_string(n.dims(past)),
                             r.state, d[2]),
             CausalResult{};
    r.all = n.emit(ConcatAttrs{1}, {past, c.x});
  }
  std::vector<ValueId> operands{r.all, n.reshape(n.transpose(c.weight, {2, 0, 1}), {wd[2], d[2]})};
  if (c.bias != kAbsent) operands.push_back(c.bias);
  DepthwiseConvAttrs a;
  a.strides = {1}, a.dilations = {c.dilation}, a.pads = {0, 0};
  r.y = n.emit(a, operands);
  if (c.activation != "none") r.y = n.emit(SiluAttrs{1}, {r.y});
  return r;
}

// input, weight [channels, 1, taps], bias?, past? -> output, present. With channels_last any number of axes
// are the channels'. With a window of W, past and present have W slots, the last of which is the newest.
bool lower_causal_conv(NodeLowering& n) {
  const bool last = n.attr_int("channels_last", 0) != 0;
  const int64_t window = n.attr_int("state_window", 0), axes = n.attr_int("ndim", 1);
  if (axes != 1)
    return n.refuse("ndim is {}; 1 is supported, as the operator does not define the edges of other axes",
                    axes);
  if (window < 0 || window > kMostStateSlots)
    return n.refuse("state_window is {}, not 0 to {}", window, kMostStateSlots);
  const Dims given = n.dims(n.input(0));
  if (given.size() < 3 || (!last && given.size() != 3))
    return n.refuse_shapes("input {} needs a batch, positions and channels", to_string(given));
  // [batch, positions, channels] from here on.
  const auto flat = [&](ValueId v) {
    if (v < 0 || n.rank(v) < 3) return v;
    const Dims d = n.dims(v);
    if (!last) return n.transpose(v, {0, 2, 1});
    return n.reshape(v, {d[0], d[1], element_count({d.begin() + 2, d.end()})});
  };
  const auto as_given = [&](ValueId v) {
    if (v < 0) return v;
    if (!last) return n.transpose(v, {0, 2, 1});
    Dims d = given;
    d[1] = n.dims(v)[1];
    return n.reshape(v, d);
  };
  ValueId past = n.input(3);
  if (past != kAbsent && window > 0) {
    Dims d = n.dims(past);
    if (d.empty() || d[0] != window)
      return n.refuse_shapes("past_state {} does not have the {} slots of state_window", to_string(d),
                             window);
    past = n.slice(past, 0, window - 1, 1);
    d.erase(d.begin());
    past = n.reshape(past, d);
  }
  const CausalResult r =
      causal_conv(n, {flat(n.input(0)), n.input(1), n.input(2), past == kAbsent ? kAbsent : flat(past),
                      n.attr_int("dilation", 1), n.attr_string("activation", "none")});
  if (r.y < 0) return false;
  if (n.wants_output(1)) {
    // Returns what the last taps read after the first `count` positions.
    const auto after = [&](int64_t count) { return as_given(n.slice(r.all, 1, count, r.state)); };
    ValueId present = kUnknown;
    if (window == 0) {
      present = after(r.positions);
    } else {
      std::vector<ValueId> slots;
      for (int64_t slot = 0; slot < window; ++slot) {
        const int64_t count = r.positions - window + slot + 1;
        const ValueId state = after(std::max<int64_t>(count, 0));
        // A slot of no position of this call.
        const ValueId held =
            count > 0 || state < 0 ? state : n.broadcast(n.scalar(n.dtype(state), 0), n.dims(state));
        slots.push_back(n.unsqueeze(held, 0));
      }
      present = joined(n, slots, 0);
    }
    if (!n.output(1, present)) return false;
  }
  return n.output(0, as_given(r.y));
}

// input [tokens, channels], weight, cumulative lengths, bias?, state [batch, channels, positions],
// capture_count? -> output, final state, update?
bool lower_packed_causal_conv(NodeLowering& n) {
  if (n.attr_int("state_update_capacity", 0) != 0 || n.has_input(5) || n.wants_output(2))
    return n.refuse("state_update_capacity, capture_count and state_update are not supported");
  if (!n.has_input(4)) return n.refuse("needs five inputs");
  const Dims d = n.dims(n.input(0)), sd = n.dims(n.input(4));
  if (d.size() != 2 || sd.size() != 3 || sd[0] < 1)
    return n.refuse_shapes("input {} and initial_state {} do not fit", to_string(d), to_string(sd));
  const auto length = uniform_length(n, 2, sd[0], d[0]);
  if (!length) return false;
  const CausalResult r = causal_conv(n, {n.reshape(n.input(0), {sd[0], *length, d[1]}), n.input(1),
                                         n.input(3), n.transpose(n.input(4), {0, 2, 1}),
                                         n.attr_int("dilation", 1), n.attr_string("activation", "none")});
  if (r.y < 0) return false;
  if (n.wants_output(1) && !n.output(1, n.transpose(n.slice(r.all, 1, r.positions, r.state), {0, 2, 1})))
    return false;
  return n.output(0, n.reshape(r.y, d));
}

}  // namespace

std::optional<int64_t> uniform_length(NodeLowering& n, size_t operand, int64_t sequences, int64_t tokens) {
  const auto even = [&]() -> std::optional<int64_t> {
    if (sequences >= 1 && tokens % sequences == 0) return tokens / sequences;
    n.refuse_shapes("{} tokens are not {} sequences of one length", tokens, sequences);
    return std::nullopt;
  };
  if (!n.has_input(operand)) return even();
  // One sequence has all tokens, whatever the operand is computed from.
  if (sequences == 1 && n.size(n.input(operand)) == 2) return tokens;
  if (n.constant(n.input(operand)) == nullptr) {
    n.refuse_advising("export it for one sequence, or for sequences of one length with constant bounds",
                      "the bounds of {} sequences that are packed one after the other must be constant",
                      sequences);
    return std::nullopt;
  }
  const auto bounds = n.constant_ints(operand);
  const auto length = even();
  if (!bounds || !length) return std::nullopt;
  bool same = static_cast<int64_t>(bounds->size()) == sequences + 1;
  for (size_t i = 0; i < bounds->size() && same; ++i)
    same = (*bounds)[i] == static_cast<int64_t>(i) * *length;
  if (same) return length;
  n.refuse_advising("export it for sequences of one length",
                    "sequences of different lengths are not supported");
  return std::nullopt;
}

std::span<const OnnxOperator> causal_conv_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"CausalConvWithState", 27, lower_causal_conv, "F F F F", kSumsProducts},
      {"CausalConvWithState", 1, lower_causal_conv, "F F F F", kSumsProducts, kMicrosoft},
      {"VarlenCausalConvWithState", 1, lower_packed_causal_conv, "F F i F F i", kSumsProducts, kMicrosoft},
  };
  return kRules;
}

}  // namespace sinter::convert
