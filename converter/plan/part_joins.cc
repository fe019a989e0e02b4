#include "converter/plan/part_joins.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "converter/ir/builder.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

class Parting {
 public:
  Parting(Graph& graph, Parted& parted) : graph_(graph), parted_(parted) {}

  void keep(const Node& node, size_t index) {
    nodes_.push_back(node);
    parted_.origin.push_back(index);
  }

  void part_concat(const Node& node, const std::vector<bool>& fits) {
    from_ = &node;
    std::vector<ValueId> parts;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Dims dims = graph_.value(node.inputs[i]).dims;
      if (element_count(dims) > 0) parts.push_back(fits[i] ? node.inputs[i] : spread(node.inputs[i], dims));
    }
    join(node.as<ConcatAttrs>()->axis, std::move(parts), node.outputs[0]);
  }

  void part_pad(const Node& node) {
    const auto& pad = *node.as<PadAttrs>();
    const auto mode = static_cast<PadMode>(pad.mode);
    const Dims whole = graph_.value(node.outputs[0]).dims;
    const size_t rank = whole.size();
    from_ = &node;
    ValueId fill = node.inputs.size() > 1 ? node.inputs[1] : kAbsent;
    if (fill < 0 && mode == PadMode::kConstant) fill = zero(graph_.value(node.outputs[0]).dtype);
    ValueId inner = node.inputs[0];
    for (size_t axis = rank; axis-- > 0;) {
      const int64_t begin = pad.pads[static_cast<int>(axis)], end = pad.pads[static_cast<int>(rank + axis)];
      if (begin == 0 && end == 0) continue;
      const auto border = [&](int64_t count, bool behind) {
        return mode == PadMode::kConstant ? filled(fill, inner, axis, count)
                                          : shown(mode, inner, axis, count, behind);
      };
      std::vector<ValueId> parts;
      if (begin > 0) parts.push_back(border(begin, false));
      parts.push_back(inner);
      if (end > 0) parts.push_back(border(end, true));
      Dims dims = graph_.value(inner).dims;
      dims[axis] += begin + end;
      const ValueId out =
          dims == whole ? node.outputs[0] : graph_.add_value({}, graph_.value(inner).dtype, dims);
      join(static_cast<int64_t>(axis), std::move(parts), out);
      inner = out;
    }
  }

  void finish() { graph_.nodes = std::move(nodes_); }

 private:
  ValueId emit(OpAttrs attrs, ValueId operand) {
    std::vector<ValueFact> facts;
    const Value& in = graph_.value(operand);
    if (!infer_outputs(attrs, {{in.dtype, in.dims}}, 1, {true}, &facts).ok())
      throw std::logic_error("a part of a join cannot be inferred");
    const ValueId out = graph_.add_value({}, facts[0].dtype, facts[0].dims);
    add(std::move(attrs), {operand}, out);
    return out;
  }
  void join(int64_t axis, std::vector<ValueId> parts, ValueId out) {
    add(ConcatAttrs{axis}, std::move(parts), out);
    parted_.whole.push_back(out);
  }
  void add(OpAttrs attrs, std::vector<ValueId> operands, ValueId out) {
    nodes_.push_back({std::move(attrs), std::move(operands), {out}, from_->name, from_->origin, {}});
    parted_.origin.push_back(Parted::kNew);
  }

  // A step that copies: unlike that of a Copy, its result is never placed on its operand.
  ValueId spread(ValueId operand, const Dims& dims) { return emit(BroadcastAttrs{IntList(dims)}, operand); }
  // `count` planes along `axis` beside `inner`.
  ValueId filled(ValueId fill, ValueId inner, size_t axis, int64_t count) {
    Dims dims = graph_.value(inner).dims;
    dims[axis] = count;
    return spread(fill, dims);
  }
  ValueId shown(PadMode mode, ValueId inner, size_t axis, int64_t count, bool behind) {
    const Dims dims = graph_.value(inner).dims;
    const int64_t n = dims[axis];
    SliceAttrs window{IntList(Dims(dims.size(), 0)), IntList(Dims(dims.size(), 1)), IntList(dims)};
    const int i = static_cast<int>(axis);
    Dims border = dims;
    border[axis] = count;
    window.sizes[i] = count;
    switch (mode) {
      case PadMode::kEdge:
        window.starts[i] = behind ? n - 1 : 0;
        window.sizes[i] = 1;
        break;
      case PadMode::kWrap:
        window.starts[i] = behind ? 0 : n - count;
        break;
      default:
        window.starts[i] = behind ? n - 2 : count;
        window.steps[i] = -1;
    }
    const ValueId planes = emit(window, inner);
    // A window that is read in place has to be copied.
    return mode == PadMode::kReflect && count > 1 ? planes : spread(planes, border);
  }
  ValueId zero(DType dtype) {
    return graph_.add_constant(Constant::owned(dtype, {}, Bytes(byte_width(dtype))));
  }

  Graph& graph_;
  Parted& parted_;
  std::vector<Node> nodes_;
  const Node* from_ = nullptr;  // the step that is taken apart
};

}  // namespace

bool can_part(const Graph& graph, const Node& node) {
  const auto* pad = node.as<PadAttrs>();
  if (pad == nullptr) return node.op() == Op::kConcat;
  const auto mode = static_cast<PadMode>(pad->mode);
  if (mode == PadMode::kConstant || mode == PadMode::kEdge) return true;
  const Dims& dims = graph.value(node.inputs[0]).dims;
  for (int i = 0; i < static_cast<int>(dims.size()); ++i) {
    const int64_t most = dims[static_cast<size_t>(i)] - (mode == PadMode::kReflect ? 1 : 0);
    if (std::max(pad->pads[i], pad->pads[i + static_cast<int>(dims.size())]) > most) return false;
  }
  return true;
}

Parted part_joins(const Graph& graph, const std::vector<PartialJoin>& joins) {
  Parted parted;
  auto copy = std::make_shared<Graph>(graph);
  Parting parting(*copy, parted);
  std::vector<const PartialJoin*> by_node(graph.nodes.size());
  for (const PartialJoin& join : joins) by_node[join.node] = &join;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (by_node[n] == nullptr)
      parting.keep(node, n);
    else if (node.op() == Op::kPad)
      parting.part_pad(node);
    else
      parting.part_concat(node, by_node[n]->fits);
  }
  parting.finish();
  parted.graph = std::move(copy);
  return parted;
}

}  // namespace sinter::convert
