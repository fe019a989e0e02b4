// uint8 becomes int8 by moving the zero point by 128: the device computes with signed integers. Values that
// are public or read by others stay uint8, after a table.
#include "converter/ir/op_traits.h"
#include "converter/passes/integers/integer_form.h"

namespace sinter::convert {
namespace {

constexpr int64_t kMove = 128;

// The table from one to the other.
ConstantPtr flipped(DType to) {
  std::vector<uint8_t> bytes(256);
  // From uint8 entry i is that of i, from int8 that of i - 128; both give the same bits.
  for (int i = 0; i < 256; ++i)
    bytes[static_cast<size_t>(i)] = static_cast<uint8_t>(to == DType::kInt8 ? i - kMove : i);
  return Constant::of<uint8_t>(to, {256}, bytes);
}

bool is_flip(const Graph& graph, const Node& node) {
  if (node.as<LutAttrs>() == nullptr || graph.value(node.outputs[0]).dtype != DType::kUint8 ||
      graph.value(node.inputs[0]).dtype != DType::kInt8 || !graph.is_constant(node.inputs[1]))
    return false;
  const auto table = graph.value(node.inputs[1]).constant->as_int64s();
  for (size_t i = 0; i < table.size(); ++i)
    if (table[i] != static_cast<int64_t>(i)) return false;
  return true;
}

}  // namespace

// int8 integers, 128 less than what `id` (uint8) holds.
ValueId IntegerForm::signed_integers(int n, ValueId id) {
  const auto [at, fresh] = signed_.emplace(id, kAbsent);
  if (!fresh) return at->second;
  ValueId result = kAbsent;
  const int p = e.producer(id);
  const size_t moved = p >= 0 && !e.erased(p) ? selected_operands(e.node(p)) : 0;
  if (p >= 0 && !e.erased(p) && is_flip(e.graph(), e.node(p))) {
    result = e.node(p).inputs[0];
  } else if (const auto* clamp = p < 0 || e.erased(p) ? nullptr : e.node(p).as<ClampAttrs>()) {
    const ClampAttrs moved_bounds{clamp->min - kMove, clamp->max - kMove};
    const ValueId x = signed_integers(n, e.node(p).inputs[0]);
    if (x != kAbsent) result = e.insert(n, moved_bounds, {x});
  } else if (moved > 0 && e.node(p).as<PadAttrs>() == nullptr) {
    const Node mover = e.node(p);
    std::vector<ValueId> inputs = mover.inputs;
    bool all = mover.outputs.size() == 1;
    for (size_t i = 0; i < moved; ++i) {
      inputs[i] = signed_integers(n, inputs[i]);
      all = all && inputs[i] != kAbsent;
    }
    if (all) result = e.insert(n, mover.attrs, inputs);
  }
  if (result == kAbsent) result = e.insert(n, LutAttrs{}, {id, e.constant(flipped(DType::kInt8))});
  name_signed(id, result);
  return signed_[id] = result;
}

void IntegerForm::name_signed(ValueId id, ValueId now) {
  if (now == kAbsent || e.value(now).constant || !e.value(now).name.empty() || e.value(id).name.empty())
    return;
  Value& value = e.graph().value(now);
  value.name = e.value(id).name + "." + dtype_name(DType::kInt8);
  value.order = e.value(id).order;
}

bool IntegerForm::make_signed(int n) {
  const Node node = e.node(n);
  const auto params = quant_params(e.graph(), node);
  if (!params || params->type != DType::kUint8) return false;
  const ValueId zero = e.constant(Constant::scalar_int(DType::kInt8, params->zero_point - kMove));
  const ValueId scale = e.constant(Constant::scalar(DType::kFloat32, params->scale));
  if (node.as<DequantizeAttrs>() != nullptr) {
    const ValueId q = signed_integers(n, node.inputs[0]);
    if (q != kAbsent) e.replace(n, DequantizeAttrs{}, {q, scale, zero});
    return q != kAbsent;
  }
  QuantizeAttrs to_int8 = *node.as<QuantizeAttrs>();
  to_int8.axis = 0, to_int8.block_size = 0, to_int8.to = static_cast<int64_t>(DType::kInt8);
  const ValueId q = e.insert(n, to_int8, {node.inputs[0], scale, zero});
  name_signed(node.outputs[0], q);
  if (q != kAbsent) e.replace(n, LutAttrs{}, {q, e.constant(flipped(DType::kUint8))});
  return q != kAbsent;
}

}  // namespace sinter::convert
