// The effect of each operation on scales of channels; see channel_scales.h. Operations that move elements are
// asked for their map of elements; a View, which has none by axis, has a rule of its own.
#include <algorithm>
#include <numeric>

#include "converter/flow/element_map.h"
#include "converter/ir/op_table.h"
#include "converter/quantize/weights/channel_scales.h"
#include "converter/quantize/weights/product_weights.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {

bool ChannelScales::visit(size_t n) {
  using Scales = ChannelScales;
  using Rule = bool (Scales::*)(const Node&);
  static constexpr OpRow<Rule> kRules[] = {
      {Op::kConv, &Scales::product},
      {Op::kDepthwiseConv, &Scales::product},
      {Op::kConvTranspose, &Scales::product},
      {Op::kFullyConnected, &Scales::product},
      {Op::kMatMul, &Scales::mat_mul},
      {Op::kAttention, &Scales::attention},
      {Op::kLayerNorm, &Scales::norm},
      {Op::kRmsNorm, &Scales::norm},
      {Op::kGroupNorm, &Scales::norm},
      {Op::kClamp, &Scales::clamp},
      {Op::kAbs, &Scales::unary},
      {Op::kNeg, &Scales::unary},
      {Op::kCopy, &Scales::unary},
      {Op::kLeakyRelu, &Scales::unary},
      {Op::kPRelu, &Scales::slopes},
      {Op::kMaxPool, &Scales::pooled},
      {Op::kAvgPool, &Scales::pooled},
      {Op::kResize, &Scales::pooled},
      {Op::kPad, &Scales::pooled},
      {Op::kReduce, &Scales::reduced},
      {Op::kAdd, &Scales::sum},
      {Op::kSub, &Scales::sum},
      {Op::kMul, &Scales::scaled},
      {Op::kDiv, &Scales::scaled},
      {Op::kMin, &Scales::extreme},
      {Op::kMax, &Scales::extreme},
      {Op::kView, &Scales::view},
      {Op::kConcat, &Scales::moved},
      {Op::kSlice, &Scales::moved},
      {Op::kTranspose, &Scales::moved},
      {Op::kTile, &Scales::moved},
      {Op::kBroadcast, &Scales::moved},
      {Op::kGather, &Scales::moved},
      // Operations for which a rule is not worthwhile, and those that scales of channels do not pass.
      {Op::kQAdd, &Scales::no_rule},
      {Op::kQMul, &Scales::no_rule},
      {Op::kQPRelu, &Scales::no_rule},
      {Op::kQAvgPool, &Scales::no_rule},
      {Op::kQResize, &Scales::no_rule},
      {Op::kCheckLength, &Scales::no_rule},
      {WorkKind::kProduct, &Scales::no_rule},
      {WorkKind::kDepthwiseProduct, &Scales::no_rule},
      {WorkKind::kTransposedProduct, &Scales::no_rule},
      {WorkKind::kMatrixProduct, &Scales::no_rule},
      {WorkKind::kAttention, &Scales::no_rule},
      {WorkKind::kScatter, &Scales::no_rule},
      {WorkKind::kConversion, &Scales::no_rule},
      {WorkKind::kLogic, &Scales::no_rule},
      {WorkKind::kCheapFunction, &Scales::no_rule},
      {WorkKind::kFunction, &Scales::no_rule},
      {WorkKind::kReduction, &Scales::no_rule},
      {WorkKind::kNormalization, &Scales::no_rule},
      {WorkKind::kSearch, &Scales::no_rule},
      {WorkKind::kRotation, &Scales::no_rule},
      {WorkKind::kSampling, &Scales::no_rule},
      {WorkKind::kRecurrent, &Scales::no_rule},
      {WorkKind::kTransform, &Scales::no_rule},
      {WorkKind::kCustom, &Scales::no_rule},
      {WorkKind::kControl, &Scales::no_rule},
  };
  static_assert(unanswered(kRules) == Op{}, "this operation needs a rule for scales of channels, or no_rule");
  const Node& node = graph_.nodes[n];
  if (!node.bodies.empty() || node.inputs.empty() || node.outputs.empty() || node.inputs[0] < 0 ||
      !free_value(node.outputs[0]))
    return false;
  return (this->*answer_for(kRules, node.op()))(node);
}

bool ChannelScales::clamp(const Node& node) {
  const auto& a = *node.as<ClampAttrs>();
  return same(node, node.inputs[0]) && bounded(node.outputs[0], a.min, a.max);
}

bool ChannelScales::slopes(const Node& node) {
  return graph_.is_constant(node.inputs[1]) && same(node, node.inputs[0]);
}

bool ChannelScales::product(const Node& node) {
  const auto p = product_weights(graph_, node);
  if (!p) return false;
  const ValueId x = node.inputs[0];
  if (at(x).axis + 1 != static_cast<int>(graph_.value(x).dims.size())) fix(x);
  if (!bounded(node.outputs[0], p->act_min, p->act_max)) fix(node.outputs[0]);
  return true;
}

bool ChannelScales::norm(const Node& node) {
  const ValueId y = node.outputs[0];
  fix(node.inputs[0]);
  for (size_t i = 1; i < node.inputs.size(); ++i)
    if (node.inputs[i] >= 0 &&
        (!graph_.is_constant(node.inputs[i]) || graph_.value(node.inputs[i]).dtype != DType::kFloat32 ||
         graph_.value(node.inputs[i]).constant->size() != at(y).count))
      return false;
  normalized_.push_back(y);
  return true;
}

bool ChannelScales::same(const Node& node, ValueId x) {
  const ValueId y = node.outputs[0];
  if (!free_value(x)) return false;
  if (at(y).axis != at(x).axis) place(y, at(x).axis);
  return tie(x, y);
}

bool ChannelScales::pooled(const Node& node) {
  const ValueId x = node.inputs[0];
  if (!free_value(x)) return false;
  const auto axis = static_cast<size_t>(at(x).axis);
  if (node.as<MaxPoolAttrs>() || node.as<AvgPoolAttrs>())
    return axis + 1 == graph_.value(x).dims.size() && same(node, x);
  if (const auto* pad = node.as<PadAttrs>()) {
    const size_t rank = graph_.value(x).dims.size();
    if (pad->pads[axis] != 0 || pad->pads[rank + axis] != 0) return false;
    if (static_cast<PadMode>(pad->mode) == PadMode::kConstant && node.inputs.size() > 1 &&
        node.inputs[1] >= 0 &&
        !(graph_.is_constant(node.inputs[1]) &&
          graph_.value(node.inputs[1]).constant->as_doubles() == std::vector<double>{0}))
      return false;
    return same(node, x);
  }
  const auto& resize = *node.as<ResizeAttrs>();
  return static_cast<ResizeCoordinates>(resize.coordinates) != ResizeCoordinates::kTfCropAndResize &&
         resize.sizes[axis] == graph_.value(x).dims[axis] && same(node, x);
}

bool ChannelScales::reduced(const Node& node) {
  const auto& a = *node.as<ReduceAttrs>();
  const ValueId x = node.inputs[0], y = node.outputs[0];
  const auto fn = static_cast<ReduceFn>(a.fn);
  if (!free_value(x) || (fn != ReduceFn::kMean && fn != ReduceFn::kSum && fn != ReduceFn::kMax &&
                         fn != ReduceFn::kMin && fn != ReduceFn::kL1))
    return false;
  int axis = at(x).axis, before = 0;
  for (const int64_t reduced : a.axes) {
    if (reduced == axis) return false;
    before += reduced < axis ? 1 : 0;
  }
  if (a.keepdims == 0) axis -= before;
  place(y, axis);
  return tie(x, y);
}

// Ties x's channels to y's, where elements along them meet.
bool ChannelScales::aligned(ValueId x, ValueId y) {
  if (!free_value(x)) return false;
  const auto from_back = [&](ValueId id) {
    return static_cast<int>(graph_.value(id).dims.size()) - at(id).axis;
  };
  return from_back(x) == from_back(y) && tie(x, y);
}

bool ChannelScales::sum(const Node& node) {
  const auto n = static_cast<size_t>(&node - graph_.nodes.data());
  const ValueId y = node.outputs[0];
  for (const ValueId x : node.inputs) {
    if (!free_value(x)) continue;
    place(y, at(x).axis + static_cast<int>(graph_.value(y).dims.size()) -
                 static_cast<int>(graph_.value(x).dims.size()));
    break;
  }
  for (size_t i = 0; i < 2; ++i) {
    const ValueId x = node.inputs[i];
    if (!graph_.is_constant(x)) {
      if (!aligned(x, y)) return false;
      continue;
    }
    const Dims& dims = graph_.value(x).dims;
    const size_t behind = graph_.value(y).dims.size() - static_cast<size_t>(at(y).axis);
    if (dims.size() < behind || dims[dims.size() - behind] != at(y).count) return false;
    addends_.push_back({n, i});
  }
  return std::visit(
      [&](const auto& a) {
        if constexpr (requires { a.act_min; })
          return bounded(y, a.act_min, a.act_max);
        else
          return false;
      },
      node.attrs);
}

// In x * factor and x / factor, the factor keeps its scale.
bool ChannelScales::scaled(const Node& node) {
  const ValueId y = node.outputs[0];
  ValueId x = node.inputs[0], factor = node.inputs[1];
  if (const auto* mul = node.as<MulAttrs>()) {
    const auto gate = [&](ValueId id) {
      if (graph_.is_constant(id) ||
          element_count(graph_.value(id).dims) < element_count(graph_.value(y).dims))
        return true;
      return at(id).first > 0 && root(at(id).first) == 0;  // made by a sigmoid, for example
    };
    if (gate(x) && !gate(factor)) std::swap(x, factor);
    if (gate(x) || !bounded(y, mul->act_min, mul->act_max)) return false;
  } else if (const auto* div = node.as<DivAttrs>(); !bounded(y, div->act_min, div->act_max)) {
    return false;
  }
  if (graph_.is_constant(x) || graph_.value(x).dims != graph_.value(y).dims) return false;
  fix(factor);
  return same(node, x);
}

bool ChannelScales::extreme(const Node& node) {
  const ValueId y = node.outputs[0];
  bool placed = false;
  for (const ValueId x : node.inputs) {
    if (graph_.is_constant(x)) {
      for (const double v : graph_.value(x).constant->as_doubles())
        if (v != 0) return false;
      continue;
    }
    if (!free_value(x) || graph_.value(x).dims != graph_.value(y).dims) return false;
    if (!placed) place(y, at(x).axis), placed = true;
    if (!aligned(x, y)) return false;
  }
  return placed;
}

// Channels of the same elements in one row share a scale if their distance is a multiple of the common
// divisor of both counts.
bool ChannelScales::view(const Node& node) {
  const ValueId x = node.inputs[0], y = node.outputs[0];
  if (!free_value(x) || node.as<ViewAttrs>()->dtype >= 0) return false;
  const Dims &from = graph_.value(x).dims, &to = graph_.value(y).dims;
  if (at(x).axis + 1 == static_cast<int>(from.size())) {
    const int common = std::gcd(at(x).count, at(y).count);
    for (const ValueId id : {x, y})
      for (int i = 0; i < at(id).count; ++i) join(at(id).first + i, at(x).first + i % common);
    return true;
  }
  int64_t inner = 1, behind = 1;
  for (size_t d = static_cast<size_t>(at(x).axis) + 1; d < from.size(); ++d) inner *= from[d];
  for (size_t d = to.size(); d-- > 0; behind *= to[d]) {
    if (behind != inner || to[d] != at(x).count) continue;
    place(y, static_cast<int>(d));
    return tie(x, y);
  }
  return false;
}

bool ChannelScales::moved(const Node& node) {
  const ValueId y = node.outputs[0];
  const size_t operands = selected_operands(node);
  std::vector<AxisSource> sources;
  for (size_t k = 0; k < operands; ++k) {
    const ValueId x = node.inputs[k];
    if (!free_value(x)) return false;
    sources.push_back(element_map(graph_, node, k)->axes[static_cast<size_t>(at(x).axis)]);
    if (sources[k].axis < 0 || sources[k].axis != sources[0].axis) return false;
  }
  place(y, sources[0].axis);
  for (size_t k = 0; k < operands; ++k) {
    const Channels x = at(node.inputs[k]);
    for (int i = 0; i < at(y).count; ++i)
      if (const int64_t entry = sources[k].entry(i, x.count); entry >= 0 && entry < x.count)
        join(at(y).first + i, x.first + static_cast<int>(entry));
  }
  return true;
}

bool ChannelScales::attention(const Node& node) {
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (i != 2) fix(node.inputs[i]);
  const ValueId v = node.inputs[2];
  return free_value(v) && at(v).axis + 1 == static_cast<int>(graph_.value(v).dims.size()) &&
         tie(v, node.outputs[0]);
}

bool ChannelScales::mat_mul(const Node& node) {
  const auto& a = *node.as<MatMulAttrs>();
  fix(node.inputs[0]);
  const ValueId b = node.inputs[1];
  return free_value(b) &&
         at(b).axis == static_cast<int>(graph_.value(b).dims.size()) - (a.transpose_b != 0 ? 2 : 1) &&
         tie(b, node.outputs[0]);
}

}  // namespace sinter::convert
