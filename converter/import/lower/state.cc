// Operators of opset 27 that carry a state from call to call, and DeformConv: taken apart into what the
// device has.
#include <algorithm>
#include <cmath>

#include "converter/import/lower/common.h"
#include "converter/import/lower/spatial.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

ValueId zeros(NodeLowering& n, DType t, const Dims& dims) { return n.broadcast(n.scalar(t, 0), dims); }

// CausalConvWithState-27: the past, (k - 1) * dilation positions, before the input, then a depthwise
// convolution without pads. com.microsoft adds dilation and values with the channels last, on any number of
// axes.
bool lower_causal_conv(NodeLowering& n) {
  ValueId x = n.input(0);
  const ValueId w = n.input(1);
  const std::string activation = n.attr_string("activation", "none");
  const int64_t dilation = n.attr_int("dilation", 1), window = n.attr_int("state_window", 0);
  const bool last = n.attr_int("channels_last", 0) != 0;
  if (n.attr_int("ndim", 1) != 1) return n.refuse("ndim is {}; 1 is supported", n.attr_int("ndim", 1));
  if (window != 0) return n.refuse("state_window {} is not supported", window);
  const Dims given = n.dims(x), wd = n.dims(w);
  // [B, C, L] from here on.
  const auto first = [&](ValueId v) {
    if (!last || v < 0 || n.rank(v) < 3) return v;
    const Dims d = n.dims(v);
    return n.transpose(n.reshape(v, {d[0], d[1], element_count({d.begin() + 2, d.end()})}), {0, 2, 1});
  };
  const auto as_given = [&](ValueId v) {
    if (!last || v < 0) return v;
    Dims d = given;
    d[1] = n.dims(v)[2];
    return n.reshape(n.transpose(v, {0, 2, 1}), d);
  };
  x = first(x);
  const Dims d = n.dims(x);
  if (d.size() != 3 || wd.size() != 3 || wd[0] != d[1] || wd[1] != 1 || wd[2] < 1 || dilation < 1 ||
      dilation > 1 << 20)
    return n.refuse_shapes("input {}, weight {} and dilation {} do not fit", to_string(given), to_string(wd),
                           dilation);
  if (activation != "none" && activation != "silu" && activation != "swish")
    return n.refuse("activation '{}' is not supported", activation);
  const DType t = n.dtype(x);
  const int64_t state = (wd[2] - 1) * dilation;
  ValueId all = x;
  if (state > 0) {
    const ValueId past = n.has_input(3) ? first(n.input(3)) : zeros(n, t, {d[0], d[1], state});
    if (past >= 0 && n.dims(past) != Dims{d[0], d[1], state})
      return n.refuse_shapes("past_state {} does not hold {} positions", to_string(n.dims(n.input(3))),
                             state);
    all = n.emit(ConcatAttrs{2}, {past, x});
  }
  std::vector<ValueId> operands{n.to_channels_last(all), n.reshape(n.transpose(w, {2, 0, 1}), {wd[2], d[1]})};
  if (n.has_input(2)) operands.push_back(n.input(2));
  DepthwiseConvAttrs a;
  a.strides = {1}, a.dilations = {dilation}, a.pads = {0, 0};
  ValueId y = n.to_channels_first(n.emit(a, operands));
  if (activation != "none") y = n.emit(SiluAttrs{1}, {y});
  if (n.wants_output(1) && !n.output(1, as_given(n.slice(all, 2, d[2], state)))) return false;
  return n.output(0, as_given(y));
}

// LinearAttention-27, one step after the other: state [B, H, K, V], at each position decayed, then given the
// key's outer product with the value (or with what the value adds to what the state already answers).
bool lower_linear_attention(NodeLowering& n) {
  constexpr int64_t kMostSteps = 256;
  const int64_t q_heads = n.attr_int("q_num_heads", 0), heads = n.attr_int("kv_num_heads", 0);
  const std::string rule = n.attr_string("update_rule", "gated_delta");
  double scale = n.attr_float("scale", 0);
  n.ignore_attr("chunk_size");
  if (const int64_t window = n.attr_int("state_window", 0); window != 0)
    return n.refuse("state_window {} is not supported", window);
  const bool gated = rule == "gated" || rule == "gated_delta",
             delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear") return n.refuse("update_rule '{}' is not known", rule);
  if (!n.has_input(2)) return n.refuse("needs query, key and value");
  const Dims qd = n.dims(n.input(0)), kd = n.dims(n.input(1)), vd = n.dims(n.input(2));
  if (qd.size() != 3 || kd.size() != 3 || vd.size() != 3 || heads < 1 || q_heads < heads ||
      q_heads % heads != 0 || qd[2] % q_heads != 0 || kd[2] % heads != 0 || vd[2] % heads != 0 ||
      kd[1] != qd[1] || vd[1] != qd[1])
    return n.refuse_shapes("query {}, key {} and value {} do not fit {} and {} heads", to_string(qd),
                           to_string(kd), to_string(vd), q_heads, heads);
  if (gated != n.has_input(4) || delta != n.has_input(5))
    return n.refuse_shapes("decay or beta does not fit update_rule {}", rule);
  // Numbers for each position: one for each head, or for all of its keys (decay), or one for all heads.
  const auto fits = [&](size_t i, int64_t most) {
    const Dims d = n.dims(n.input(i));
    return d.size() == 3 && d[0] == qd[0] && d[1] == qd[1] && (d[2] == 1 || d[2] == heads || d[2] == most);
  };
  if ((gated && !fits(4, kd[2])) || (delta && !fits(5, heads)))
    return n.refuse_shapes("decay {} or beta {} does not fit key {} and {} heads",
                           gated ? to_string(n.dims(n.input(4))) : "[]",
                           delta ? to_string(n.dims(n.input(5))) : "[]", to_string(kd), heads);
  const int64_t batch = qd[0], steps = qd[1], group = q_heads / heads, k_size = kd[2] / heads,
                v_size = vd[2] / heads;
  if (steps < 1 || steps > kMostSteps)
    return n.refuse("{} positions; 1 to {} are supported", steps, kMostSteps);
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(k_size));
  const DType t = n.dtype(n.input(0)), wide = t == DType::kFloat64 ? t : DType::kFloat32;
  const auto widened = [&](size_t i) { return n.cast(n.input(i), wide); };
  const ValueId q = n.mul(widened(0), n.scalar(wide, scale)), k = widened(1), v = widened(2);
  const ValueId decay = gated ? n.emit(ExpAttrs{}, {widened(4)}) : kAbsent,
                beta = delta ? widened(5) : kAbsent;
  ValueId state = n.has_input(3) ? widened(3) : zeros(n, wide, {batch, heads, k_size, v_size});
  std::vector<ValueId> outputs;
  for (int64_t i = 0; i < steps && !n.refused(); ++i) {
    const auto at = [&](ValueId x, Dims dims) { return n.reshape(n.slice(x, 1, i, 1), std::move(dims)); };
    // Per head, or one for all.
    const auto factor = [&](ValueId x) {
      return Dims{batch, std::min(n.dims(x)[2], heads), n.dims(x)[2] > heads ? k_size : 1, 1};
    };
    if (gated) state = n.mul(state, at(decay, factor(decay)));
    ValueId value = at(v, {batch, heads, 1, v_size});
    if (delta) {
      const ValueId known = n.emit(MatMulAttrs{}, {at(k, {batch, heads, 1, k_size}), state});
      value = n.mul(n.sub(value, known), at(beta, factor(beta)));
    }
    state = n.add(state, n.mul(at(k, {batch, heads, k_size, 1}), value));
    const ValueId y = n.emit(MatMulAttrs{}, {at(q, {batch, heads, group, k_size}), state});
    outputs.push_back(n.reshape(y, {batch, 1, q_heads * v_size}));
  }
  if (n.wants_output(1) && !n.output(1, n.cast(state, n.has_input(3) ? n.dtype(n.input(3)) : t)))
    return false;
  return n.output(0, n.cast(joined(n, outputs, 1), t));
}

// DeformConv-19, 2-D: every kernel cell samples the input at its offset; the samples are multiplied with the
// weights in a 1 x 1 convolution.
bool lower_deform_conv(NodeLowering& n) {
  if (!n.has_input(2)) return n.refuse("needs three inputs");
  const ValueId x = n.input(0), w = n.input(1);
  const Dims d = n.dims(x), wd = n.dims(w), od = n.dims(n.input(2));
  if (d.size() != 4 || wd.size() != 4 || od.size() != 4) return n.refuse("only 2-D images are supported");
  const std::vector<int64_t> strides = n.attr_ints("strides", {1, 1}),
                             dilations = n.attr_ints("dilations", {1, 1}),
                             pads = n.attr_ints("pads", {0, 0, 0, 0}),
                             kernel = n.attr_ints("kernel_shape", {wd[2], wd[3]});
  const int64_t group = n.attr_int("group", 1), offset_groups = n.attr_int("offset_group", 1);
  const int64_t cells = wd[2] * wd[3], rows = od[2], columns = od[3], channels = d[1];
  if (strides.size() != 2 || dilations.size() != 2 || pads.size() != 4 ||
      kernel != std::vector<int64_t>{wd[2], wd[3]} || group < 1 || offset_groups < 1 ||
      channels % group != 0 || channels % offset_groups != 0 || wd[0] % group != 0 ||
      wd[1] != channels / group || od[0] != d[0] || od[1] % offset_groups != 0 ||
      od[1] / offset_groups != cells * 2 || d[2] < 1 || d[3] < 1)
    return n.refuse_shapes("X {}, W {} and offsets {} do not fit", to_string(d), to_string(wd),
                           to_string(od));
  constexpr int64_t kMostPlaces = 1 << 24;
  if (!within_reach(n, {kernel, strides, dilations, pads})) return false;
  if (cells > kMostPlaces || (cells > 0 && rows > kMostPlaces / cells) ||
      (cells * rows > 0 && columns > kMostPlaces / (cells * rows)))
    return n.refuse_shapes("{} x {} places of {} cells are too many", rows, columns, cells);
  const DType t = n.dtype(x);
  // Where each cell samples without offset: [cells * rows, columns] for y and x.
  std::vector<double> places[2];
  for (int64_t cell = 0; cell < cells; ++cell)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        places[0].push_back(static_cast<double>(i * strides[0] - pads[0] + cell / wd[3] * dilations[0]));
        places[1].push_back(static_cast<double>(j * strides[1] - pads[1] + cell % wd[3] * dilations[1]));
      }
  ValueId base[2];
  for (int axis = 0; axis < 2; ++axis)
    base[axis] = n.cast(n.add_constant(Constant::of<double>(DType::kFloat64, {1, cells * rows, columns},
                                                            std::span<const double>(places[axis]))),
                        t);
  std::vector<ValueId> sampled;
  for (int64_t g = 0; g < offset_groups; ++g) {
    const ValueId offsets =
        n.reshape(n.slice(n.input(2), 1, g * cells * 2, cells * 2), {d[0], cells, 2, rows, columns});
    ValueId normal[2];
    for (int axis = 0; axis < 2; ++axis) {
      const ValueId own = n.reshape(n.slice(offsets, 2, axis, 1), {d[0], cells * rows, columns});
      // (2 p + 1) / size - 1 is pixel p where corners are not aligned.
      const auto size = static_cast<double>(d[static_cast<size_t>(2 + axis)]);
      normal[axis] = n.add(n.mul(n.add(own, base[axis]), n.scalar(t, 2 / size)), n.scalar(t, 1 / size - 1));
    }
    const ValueId grid = n.emit(ConcatAttrs{3}, {n.unsqueeze(normal[1], 3), n.unsqueeze(normal[0], 3)});
    const int64_t width = channels / offset_groups;
    GridSampleAttrs a;
    a.mode = static_cast<int64_t>(SampleMode::kLinear),
    a.padding_mode = static_cast<int64_t>(SamplePadding::kZeros);
    ValueId y = n.emit(a, {n.to_channels_last(n.slice(x, 1, g * width, width)), grid});
    if (n.has_input(4))
      y = n.mul(y, n.reshape(n.slice(n.input(4), 1, g * cells, cells), {d[0], cells * rows, columns, 1}));
    sampled.push_back(y);
  }
  ValueId y = sampled.size() == 1 ? sampled[0] : n.emit(ConcatAttrs{3}, sampled);
  // [N, cells, rows, columns, C] -> [N, rows, columns, C * cells]: channels are in the groups' order.
  y = n.transpose(n.reshape(y, {d[0], cells, rows, columns, channels}), {0, 2, 3, 4, 1});
  std::vector<ValueId> operands{n.reshape(y, {d[0], rows, columns, channels * cells}),
                                n.reshape(w, {wd[0], 1, 1, wd[1] * cells})};
  if (n.has_input(3)) operands.push_back(n.input(3));
  ConvAttrs conv;
  conv.strides = {1, 1}, conv.dilations = {1, 1}, conv.pads = {0, 0, 0, 0}, conv.group = group;
  return n.output(0, n.to_channels_first(n.emit(conv, operands)));
}

}  // namespace

std::span<const OnnxOperator> state_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"CausalConvWithState", 27, lower_causal_conv, "F F F F", kSumsProducts},
      {"LinearAttention", 27, lower_linear_attention, "F F F F F F", kSumsProducts},
      {"CausalConvWithState", 1, lower_causal_conv, "F F F F", kSumsProducts, kMicrosoft},
      {"LinearAttention", 1, lower_linear_attention, "F F F F F F", kSumsProducts, kMicrosoft},
      {"DeformConv", 19, lower_deform_conv, "F F F F F", kSumsProducts},
  };
  return kRules;
}

}  // namespace sinter::convert
