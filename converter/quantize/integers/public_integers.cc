#include "converter/quantize/integers/public_integers.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "converter/diagnostics/errors.h"
#include "converter/ir/builder.h"
#include "converter/ir/op_traits.h"
#include "converter/ir/quant_params.h"
#include "converter/passes/editor.h"
#include "converter/passes/integers/byte_tables.h"

namespace sinter::convert {
namespace {

constexpr const char *kInputFlag = "--input-type", *kOutputFlag = "--output-type";

std::string flag_text(const char* flag, const PortType& t) {
  return fmt::format("{} {}{}{}", flag, t.port, t.port.empty() ? "" : "=", dtype_name(t.type));
}

// The inputs or the outputs of a graph, and what the flags want of them.
class Ports {
 public:
  Ports(const Graph& graph, const PublicTypes& types, bool inputs)
      : graph_(graph),
        types_(inputs ? types.inputs : types.outputs),
        remedy_(types.remedy),
        flag_(inputs ? kInputFlag : kOutputFlag),
        kind_(inputs ? "input" : "output") {
    for (const ValueId id : inputs ? graph.inputs : graph.outputs) {
      if (id < 0) continue;
      const bool state = (inputs ? graph.state_read(id) : graph.state_written(id)) != nullptr;
      (state ? states_ : names_).push_back(graph.value(id).name);
      if (state) continue;
      unnamed_ |= graph.value(id).dtype == DType::kFloat32;
    }
  }

  // The entry for a port; null: it stays as it is. Entries without a name are for float32.
  const PortType* wanted(ValueId id) const {
    const PortType* found = nullptr;
    for (const PortType& t : types_) {
      if (t.port == graph_.value(id).name) return &t;
      if (t.port.empty() && graph_.value(id).dtype == DType::kFloat32) found = &t;
    }
    return found;
  }

  // Throws UsageError where an entry has no port.
  void check_names() const {
    for (const PortType& t : types_) {
      if (t.port.empty() && !unnamed_)
        throw UsageError(
            fmt::format("{}: the model has no {} of float32; leave the flag out", text(t), kind_));
      if (std::find(states_.begin(), states_.end(), t.port) != states_.end())
        throw UsageError(
            fmt::format("{}: this {} is a state, which the session keeps in the type that it computes with; "
                        "leave the flag out, or convert without the option that makes it a state (--state, "
                        "--max-context)",
                        text(t), kind_));
      if (!t.port.empty() && std::find(names_.begin(), names_.end(), t.port) == names_.end())
        throw UsageError(fmt::format("{}: the model has no {} of this name; it has '{}'", text(t), kind_,
                                     fmt::join(names_, "', '")));
    }
  }

  // Refuses a port whose type is not float32, or whose size is not one.
  void check(const PortType& t, ValueId id) const {
    const Value& v = graph_.value(id);
    if (v.dtype != DType::kFloat32) refuse(t, id, fmt::format("is {} in the model", dtype_name(v.dtype)));
    if (!v.bounded_dims.empty()) refuse(t, id, "has a dimension with a range of sizes");
    if (element_count(v.dims) == 0) refuse(t, id, "does not have any elements");
  }

  [[noreturn]] void refuse(const PortType& t, ValueId id, const std::string& why) const {
    const std::string rest =
        t.port.empty() && names_.size() > 1
            ? fmt::format("name other {}s by {} NAME={}", kind_, flag_, dtype_name(t.type))
            : std::string("leave the flag out");
    throw UsageError(fmt::format("{}: {} '{}' {}; {}{}", text(t), kind_, graph_.value(id).name, why,
                                 remedy_.empty() ? "" : remedy_ + ", or ", rest));
  }

 private:
  std::string text(const PortType& t) const { return flag_text(flag_, t); }

  const Graph& graph_;
  const std::vector<PortType>& types_;
  const std::string& remedy_;
  const char *flag_, *kind_;
  std::vector<std::string> names_, states_;
  bool unnamed_ = false;
};

void describe(Value& value, const QuantParams& params) {
  value.scale = params.scale, value.zero_point = params.zero_point;
}

// The nodes that only move what they alone read, from an input on, and the Quantize of the same parameters
// behind them; no Quantize: something reads it in float32.
struct Rounding {
  std::vector<ValueId> moved;
  std::vector<int> quantizers;
  std::optional<QuantParams> params;
};
Rounding rounding_of(const Graph& graph, const Uses& uses, ValueId input) {
  Rounding found;
  found.moved.push_back(input);
  for (;;) {
    const auto& readers = uses.readers[static_cast<size_t>(found.moved.back())];
    if (readers.size() != 1 || readers[0] < 0) break;
    const Node& node = graph.nodes[static_cast<size_t>(readers[0])];
    if (!moves_each_once(node.attrs)) break;
    found.moved.push_back(node.outputs[0]);
  }
  for (const int r : uses.readers[static_cast<size_t>(found.moved.back())]) {
    const Node* node = r < 0 ? nullptr : &graph.nodes[static_cast<size_t>(r)];
    const auto params =
        node == nullptr || node->as<QuantizeAttrs>() == nullptr ? std::nullopt : quant_params(graph, *node);
    if (!params || (found.params && !(*found.params == *params)) || graph.is_output(node->outputs[0]))
      return {};
    found.params = params;
    found.quantizers.push_back(r);
  }
  return found;
}

// Whether a node gives its operand as it is.
bool keeps_all(const Graph& graph, const Node& node) {
  return (node.as<ViewAttrs>() != nullptr || node.as<CopyAttrs>() != nullptr) &&
         graph.value(node.inputs[0]).dims == graph.value(node.outputs[0]).dims &&
         graph.value(node.inputs[0]).dtype == graph.value(node.outputs[0]).dtype;
}

// Readers of an input's integers read these themselves.
void drop_views(Graph& graph, ValueId id) {
  for (const Node& node : graph.nodes)
    if (!node.inputs.empty() && node.inputs[0] == id && keeps_all(graph, node) &&
        !graph.is_output(node.outputs[0]))
      replace_uses(graph, node.outputs[0], id);
}

void give_inputs(Graph& graph, const PublicTypes& types) {
  const Ports ports(graph, types, true);
  ports.check_names();
  const Uses uses(graph);
  std::vector<bool> gone(graph.nodes.size());
  for (const ValueId id : graph.inputs) {
    const PortType* t = id < 0 ? nullptr : ports.wanted(id);
    if (t == nullptr) continue;
    if (graph.state_read(id) != nullptr) continue;
    ports.check(*t, id);
    const Rounding found = rounding_of(graph, uses, id);
    if (!found.params || found.params->type != t->type)
      ports.refuse(*t, id, fmt::format("is not rounded to {} by all that reads it", dtype_name(t->type)));
    for (const ValueId moved : found.moved)
      graph.value(moved).dtype = t->type, describe(graph.value(moved), *found.params);
    for (const int n : found.quantizers) {
      gone[static_cast<size_t>(n)] = true;
      replace_uses(graph, graph.nodes[static_cast<size_t>(n)].outputs[0], found.moved.back());
    }
    drop_views(graph, found.moved.back());
  }
  size_t n = 0;
  std::erase_if(graph.nodes, [&](const Node&) { return gone[n++]; });
}

ValueId emitted(Graph& graph, OpAttrs attrs, ValueId q, const Node& origin, ValueId operand = kAbsent) {
  Builder builder(graph);
  builder.set_origin({origin.name, origin.origin});
  std::vector<ValueId> results, inputs{q};
  if (operand >= 0) inputs.push_back(operand);
  if (!builder.emit(std::move(attrs), inputs, 1, &results).ok())
    throw std::logic_error("integers cannot be handed out");
  return results[0];
}

// uint8 integers, 128 more than those of `q`.
ValueId unsigned_integers(Graph& graph, ValueId q, const Node& origin) {
  std::vector<uint8_t> bytes(256);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i);
  const ValueId table = graph.add_constant(Constant::of<uint8_t>(DType::kUint8, {256}, bytes), "");
  return emitted(graph, LutAttrs{}, q, origin, table);
}

// The integers that `q` only views or copies.
ValueId made_integers(const Graph& graph, const Uses& uses, ValueId q) {
  for (;;) {
    const int p = uses.producer[static_cast<size_t>(q)];
    if (p < 0 || !keeps_all(graph, graph.nodes[static_cast<size_t>(p)])) return q;
    const ValueId from = graph.nodes[static_cast<size_t>(p)].inputs[0];
    if (graph.is_constant(from)) return q;
    q = from;
  }
}

// The ONNX node that makes an output, for messages; else the operation.
std::string maker_text(const std::string& output, const Node& maker, const NodeFates& fates) {
  for (const NodeFate& fate : fates.all())
    if (std::find(fate.outputs.begin(), fate.outputs.end(), output) != fate.outputs.end())
      return fmt::format("{} '{}'", fate.op, fate.node);
  return fmt::format("{} '{}'", op_info(maker.op())->name, maker.name);
}

void give_outputs(Graph& graph, const PublicTypes& types, const NodeFates& fates) {
  const Ports ports(graph, types, false);
  ports.check_names();
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const ValueId y = graph.outputs[i];
    const PortType* t = y < 0 ? nullptr : ports.wanted(y);
    if (t == nullptr || graph.value(y).dtype == t->type) continue;
    if (graph.state_written(y) != nullptr) continue;
    ports.check(*t, y);
    const Uses uses(graph);
    const int p = uses.producer[static_cast<size_t>(y)];
    if (p < 0) ports.refuse(*t, y, "is an input or a constant");
    const Node maker = graph.nodes[static_cast<size_t>(p)];
    std::optional<QuantParams> params =
        maker.as<DequantizeAttrs>() != nullptr ? quant_params(graph, maker) : std::nullopt;
    const bool flips = params && params->type == DType::kInt8 && t->type == DType::kUint8;
    if (!params || (params->type != t->type && !flips) || graph.is_constant(maker.inputs[0]))
      ports.refuse(*t, y,
                   fmt::format("is computed by {} in {}", maker_text(graph.value(y).name, maker, fates),
                               dtype_name(params ? params->type : graph.value(y).dtype)));
    ValueId q = made_integers(graph, uses, maker.inputs[0]);
    if (!flips && (graph.is_output(q) || uses.producer[static_cast<size_t>(q)] < 0))
      q = emitted(graph, CopyAttrs{}, q, maker);
    if (flips) q = unsigned_integers(graph, q, maker), params->zero_point += kToUnsigned;
    describe(graph.value(q), *params);
    std::swap(graph.value(q).name, graph.value(y).name);
    graph.value(q).order = graph.value(y).order;
    graph.outputs[i] = q;
  }
}

// A View of `id` in its own shape, which is in no function of several operations.
ValueId view_of(Graph& graph, ValueId id, Builder::Origin origin, bool first) {
  std::vector<Node> nodes;
  Builder builder(graph);
  builder.set_origin(std::move(origin));
  builder.set_target(&nodes);
  std::vector<ValueId> view;
  if (!builder.emit(ViewAttrs{IntList(graph.value(id).dims), -1}, {id}, 1, &view).ok())
    throw std::logic_error("an input or output cannot be viewed");
  graph.nodes.insert(first ? graph.nodes.begin() : graph.nodes.end(), std::move(nodes[0]));
  return view[0];
}

}  // namespace

std::string PublicTypes::byte_flags() const {
  std::vector<std::string> flags;
  for (const PortType& t : inputs) flags.push_back(flag_text(kInputFlag, t));
  for (const PortType& t : outputs)
    if (t.type != DType::kFloat32) flags.push_back(flag_text(kOutputFlag, t));
  return fmt::format("{}", fmt::join(flags, " and "));
}

std::set<ValueId> mark_integer_ports(Graph& graph, const PublicTypes& types) {
  std::set<ValueId> marked;
  const auto to_mark = [&](const Ports& ports, ValueId id, bool is_state) {
    const PortType* t = id < 0 || is_state ? nullptr : ports.wanted(id);
    return t != nullptr && t->type != DType::kFloat32 && graph.value(id).dtype == DType::kFloat32 &&
           !graph.is_constant(id) && graph.value(id).bounded_dims.empty();
  };
  const Ports inputs(graph, types, true), outputs(graph, types, false);
  for (const ValueId x : graph.inputs) {
    if (!to_mark(inputs, x, graph.state_read(x) != nullptr)) continue;
    const ValueId view = view_of(graph, x, {graph.value(x).name, "input"}, true);
    replace_uses(graph, x, view);
    graph.nodes.front().inputs[0] = x;
    marked.insert(view);
  }
  const Uses uses(graph);
  const auto copied = [&](ValueId id) {
    const int p = uses.producer[static_cast<size_t>(id)];
    const bool copies = p >= 0 && graph.nodes[static_cast<size_t>(p)].as<CopyAttrs>() != nullptr;
    const ValueId from = copies ? graph.nodes[static_cast<size_t>(p)].inputs[0] : id;
    return graph.is_constant(from) ? id : from;
  };
  for (ValueId& y : graph.outputs) {
    if (!to_mark(outputs, y, graph.state_written(y) != nullptr)) continue;
    // No run shows the range of a Copy, which is not made.
    const ValueId view = view_of(graph, copied(y), {graph.value(y).name, "output"}, false);
    graph.value(view).order = graph.value(y).order;
    std::swap(graph.value(view).name, graph.value(y).name);
    y = view;
    marked.insert(view);
  }
  return marked;
}

void give_public_types(Graph& graph, const PublicTypes& types, const NodeFates& fates) {
  give_inputs(graph, types);
  give_outputs(graph, types, fates);
  remove_dead_nodes(graph);
  until_stable(graph, join_tables);
}

}  // namespace sinter::convert
