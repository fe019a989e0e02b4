// Small fused operators of decoders, of com.microsoft: a gated sum, a gated norm, and rotations by position.
#include <algorithm>
#include <cmath>

#include "converter/import/lower/attention_parts.h"
#include "converter/import/lower/common.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

// X [..., heads * C], scale [C], gate as X: each head normalized by itself, times the gate's activation.
bool lower_gated_rms_norm(NodeLowering& n) {
  const double epsilon = n.attr_float("epsilon", static_cast<double>(1e-5f));
  const std::string activation = n.attr_string("activation", "silu");
  const Dims d = n.dims(n.input(0)), sd = n.dims(n.input(1));
  if (d.empty() || sd.size() != 1 || sd[0] < 1 || d.back() % sd[0] != 0 || n.dims(n.input(2)) != d)
    return n.refuse_shapes("X {}, scale {} and gate {} do not fit", to_string(d), to_string(sd),
                           to_string(n.dims(n.input(2))));
  Dims heads(d.begin(), d.end() - 1);
  heads.insert(heads.end(), {d.back() / sd[0], sd[0]});
  const auto axis = static_cast<int64_t>(heads.size()) - 1;
  const ValueId y =
      n.reshape(n.emit(RmsNormAttrs{axis, epsilon}, {n.reshape(n.input(0), heads), n.input(1)}), d);
  const ValueId gate = n.input(2);
  if (activation == "sigmoid") return n.output(0, n.mul(y, n.emit(SigmoidAttrs{}, {gate})));
  if (activation != "silu" && activation != "swish")
    return n.refuse("activation '{}' is not supported", activation);
  return n.output(0, n.mul(y, n.emit(SiluAttrs{1}, {gate})));
}

// emb [B, S, D], q and q_rot, k and k_rot [B, H, S, D], where the model has rotated the halves: products with
// the angles' cosines and sines.
bool lower_gemma_rotary(NodeLowering& n) {
  if (!n.has_input(4)) return n.refuse("needs five inputs");
  const ValueId angles = n.unsqueeze(n.input(0), 1);
  // Rounded to the type of the queries, as the operator defines it.
  const auto table = [&](TrigFn fn) {
    return n.cast(n.emit(TrigAttrs{static_cast<int64_t>(fn)}, {angles}), n.dtype(n.input(1)));
  };
  const ValueId cos = table(TrigFn::kCos), sin = table(TrigFn::kSin);
  for (size_t i = 0; i < 2; ++i) {
    const ValueId x = n.input(1 + 2 * i), turned = n.input(2 + 2 * i);
    if (n.dims(x).size() != 4 || n.dims(x) != n.dims(turned))
      return n.refuse_shapes("{} and its rotated copy {} do not fit", to_string(n.dims(x)),
                             to_string(n.dims(turned)));
    const ValueId across = n.mul(turned, sin), y = n.add(n.mul(x, cos), across);
    if (y >= 0 && n.dims(y) != n.dims(x))
      return n.refuse_shapes("emb {} does not fit {}", to_string(n.dims(n.input(0))), to_string(n.dims(x)));
    if (n.wants_output(i) && !n.output(i, y)) return false;
  }
  return true;
}

// The positions of each pair of a head: 0 by time, 1 by height, 2 by width.
std::vector<int64_t> streams_of(const std::vector<int64_t>& section, bool interleaved) {
  std::vector<int64_t> streams;
  if (!interleaved) {
    for (int64_t s = 0; s < 3; ++s)
      streams.insert(streams.end(), static_cast<size_t>(section[static_cast<size_t>(s)]), s);
    return streams;
  }
  for (int64_t i = 0; i < section[0] + section[1] + section[2]; ++i) {
    const int64_t s = i % 3;
    streams.push_back(s != 0 && i < 3 * section[static_cast<size_t>(s)] ? s : 0);
  }
  return streams;
}

// input [B, S, H * D] or [B, H, S, D], positions [3, B, S], cos and sin [positions, pairs].
bool lower_m_rotary(NodeLowering& n) {
  n.ignore_attr("is_packed_batching");
  if (n.attr_float("scale", 1) != 1) return n.refuse("scale is not supported");
  if (!n.has_input(3)) return n.refuse("needs four inputs");
  const std::vector<int64_t> section = n.attr_ints("mrope_section");
  const int64_t layout = n.attr_int("mrope_layout", 0), rotary = n.attr_int("rotary_embedding_dim", 0),
                given_heads = n.attr_int("num_heads", 0);
  const Dims d = n.dims(n.input(0)), pd = n.dims(n.input(1)), td = n.dims(n.input(2));
  if (d.size() != 3 && d.size() != 4)
    return n.refuse_shapes("input {} does not have 3 or 4 axes", to_string(d));
  const bool flat = d.size() == 3;
  const int64_t length = flat ? d[1] : d[2];
  if (pd != Dims{3, d[0], length} || td.size() != 2 || n.dims(n.input(3)) != td)
    return n.refuse_shapes("position_ids {} and tables {} and {} do not fit input {}", to_string(pd),
                           to_string(td), to_string(n.dims(n.input(3))), to_string(d));
  const int64_t pairs = td[1];
  bool fits = section.size() == 3 && (layout == 0 || layout == 1) && (rotary == 0 || rotary == 2 * pairs);
  int64_t sum = 0;
  for (const int64_t s : section) fits = fits && s >= 0 && s <= pairs, sum += fits ? s : 0;
  if (!fits || sum != pairs)
    return n.refuse_shapes(
        "mrope_section [{}], mrope_layout {} and rotary_embedding_dim {} do not fit tables of {} pairs",
        fmt::join(section, ","), layout, rotary, pairs);
  ValueId x = n.input(0);
  if (flat) {
    const int64_t heads = given_heads > 0 ? given_heads : pairs > 0 && rotary == 0 ? d[2] / 2 / pairs : 0;
    if (heads < 1 || d[2] % heads != 0)
      return n.refuse_shapes("input {} cannot be split into {} heads", to_string(d), heads);
    x = n.reshape(x, {d[0], d[1], heads, d[2] / heads});
  }
  // The rows of the three streams side by side, of which each pair takes its own.
  std::vector<int64_t> picks = streams_of(section, layout == 1);
  for (int64_t i = 0; i < pairs; ++i)
    picks[static_cast<size_t>(i)] = picks[static_cast<size_t>(i)] * pairs + i;
  const ValueId pick = n.int64s(picks), positions = n.transpose(n.cast(n.input(1), DType::kInt64), {1, 2, 0});
  const auto table = [&](ValueId rows) {
    const ValueId all = n.reshape(n.emit(GatherAttrs{0}, {rows, positions}), {d[0], length, 3 * pairs});
    return n.emit(GatherAttrs{2}, {all, pick});
  };
  const bool interleaved = n.attr_int("interleaved", 0) != 0;
  return n.output(
      0,
      n.reshape(rotated(n, x, table(n.input(2)), table(n.input(3)), kAbsent, interleaved, flat ? 2 : 1), d));
}

// x + y * gate, with a gate for each row, [.., 1]; or one that is the sigmoid of gate [.., K] times weights
// [K, 1].
bool lower_gated_add(NodeLowering& n) {
  const ValueId x = n.input(0), y = n.input(1), weights = n.input(3);
  ValueId gate = n.input(2);
  const Dims d = n.dims(x), g = n.dims(gate), w = n.dims(weights);
  const int64_t width = g.empty() ? 0 : g.back();
  if (d.empty() || n.dims(y) != d || g.size() != d.size() || !std::equal(d.begin(), d.end() - 1, g.begin()) ||
      (weights == kAbsent ? width != 1 : w != Dims{width, 1}))
    return n.refuse_shapes("X {}, Y {}, gate {}{} do not fit", to_string(d), to_string(n.dims(y)),
                           to_string(g), weights == kAbsent ? "" : " and gate_weight " + to_string(w));
  if (weights != kAbsent) gate = n.emit(SigmoidAttrs{}, {matrix_product(n, gate, weights)});
  return n.output(0, n.add(x, n.mul(y, gate)));
}

}  // namespace

std::span<const OnnxOperator> decoder_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"GatedAdd", 1, lower_gated_add, "F F F F", kThreeInputs, kMicrosoft},
      {"GatedRMSNorm", 1, lower_gated_rms_norm, "F F F", kThreeInputs, kMicrosoft},
      {"GemmaRotaryEmbedding", 1, lower_gemma_rotary, "* F F F F", kNoTraits, kMicrosoft},
      {"MRotaryEmbedding", 1, lower_m_rotary, "F i F F", kNoTraits, kMicrosoft},
  };
  return kRules;
}

}  // namespace sinter::convert
