#include "converter/export/rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "converter/import/read/onnx.pb.h"
#include "converter/ir/op_traits.h"

namespace sinter::convert {
namespace {

onnx_pb::AttributeProto* attribute(onnx_pb::NodeProto* node, const char* name,
                                   onnx_pb::AttributeProto::AttributeType type) {
  onnx_pb::AttributeProto* a = node->add_attribute();
  a->set_name(name), a->set_type(type);
  return a;
}

std::string bounded_name(const Graph& graph, const Node& node) {
  for (const auto* list : {&node.inputs, &node.outputs})
    for (const ValueId id : *list)
      if (id >= 0 && !graph.value(id).bounded_dims.empty()) return graph.value(id).name;
  return {};
}

}  // namespace

OnnxNode& OnnxNode::set(const char* name, int64_t value) {
  attribute(proto_, name, onnx_pb::AttributeProto::INT)->set_i(value);
  return *this;
}

OnnxNode& OnnxNode::set_float(const char* name, double value) {
  attribute(proto_, name, onnx_pb::AttributeProto::FLOAT)->set_f(static_cast<float>(value));
  return *this;
}

OnnxNode& OnnxNode::set(const char* name, const std::string& text) {
  attribute(proto_, name, onnx_pb::AttributeProto::STRING)->set_s(text);
  return *this;
}

OnnxNode& OnnxNode::set(const char* name, const std::vector<std::string>& texts) {
  onnx_pb::AttributeProto* a = attribute(proto_, name, onnx_pb::AttributeProto::STRINGS);
  for (const std::string& text : texts) a->add_strings(text);
  return *this;
}

OnnxNode& OnnxNode::set_ints(const char* name, const std::vector<int64_t>& values) {
  onnx_pb::AttributeProto* a = attribute(proto_, name, onnx_pb::AttributeProto::INTS);
  for (const int64_t v : values) a->add_ints(v);
  return *this;
}

OnnxNode& OnnxNode::set_floats(const char* name, const FloatList& values) {
  onnx_pb::AttributeProto* a = attribute(proto_, name, onnx_pb::AttributeProto::FLOATS);
  for (const double v : values) a->add_floats(static_cast<float>(v));
  return *this;
}

onnx_pb::GraphProto* OnnxNode::graph(const char* name) {
  return attribute(proto_, name, onnx_pb::AttributeProto::GRAPH)->mutable_g();
}

std::string NodeExport::clamped_out(const Axes& axes, double lowest, double highest) {
  if (lowest == -kInfinity && highest == kInfinity) return out(0, axes);
  clip_ = {temporary(), out(0, axes), lowest, highest};
  return clip_.from;
}

Axes NodeExport::common_axes(const std::vector<size_t>& operands) const {
  const size_t full = [&] {
    size_t most = 0;
    for (const size_t i : operands) most = std::max(most, rank(i));
    return most;
  }();
  const auto own = [&](size_t i) { return scope_.forms(node_.inputs[i]); };
  Axes best = same_axes(full);
  int fewest = -1;
  for (const size_t i : operands) {
    if (rank(i) != full || constant(i)) continue;
    for (const Scope::Form& form : own(i)) {
      const Axes axes = as_permutation(form.axes, full);
      if (axes.empty() && full > 0) continue;
      int moved = 0;
      for (const size_t j : operands) {
        if (constant(j)) continue;
        const Axes wanted = broadcast_axes(axes, rank(j));
        const std::vector<Scope::Form> forms = own(j);
        moved += std::none_of(forms.begin(), forms.end(),
                              [&](const Scope::Form& f) { return same_bytes(dims(j), f.axes, wanted); });
      }
      if (fewest >= 0 && moved >= fewest) continue;
      fewest = moved, best = axes;
    }
  }
  return best;
}

std::string NodeExport::broadcast_in(size_t i, const Axes& axes) {
  if (!has(i)) return {};
  const size_t own = rank(i);
  const bool one = std::all_of(dims(i).begin(), dims(i).end(), [](int64_t d) { return d == 1; });
  // Leading axes of length 1 need not be written.
  if (one || (own < axes.size() && axes == same_axes(axes.size()))) return in(i);
  return in(i, broadcast_axes(axes, own));
}

OnnxNode NodeExport::add(const char* op, const std::vector<std::string>& inputs,
                         const std::vector<std::string>& outputs) {
  return OnnxNode(scope_.add(op, label(), inputs, outputs));
}

OnnxNode NodeExport::add_microsoft(const char* op, const std::vector<std::string>& inputs,
                                   const std::vector<std::string>& outputs) {
  OnnxNode node = add(op, inputs, outputs);
  node.proto()->set_domain("com.microsoft");
  scope_.parts().uses_microsoft = true;
  return node;
}

std::string NodeExport::step(const char* op, const std::vector<std::string>& inputs) {
  std::string result = temporary();
  add(op, inputs, {result});
  return result;
}

std::string NodeExport::cast(const std::string& x, DType to) {
  std::string result = temporary();
  add("Cast", {x}, {result}).set("to", static_cast<int64_t>(onnx_type(to)));
  return result;
}

std::string NodeExport::reshaped(const std::string& x, const Dims& to) {
  std::string result = temporary();
  reshape(x, to, result);
  return result;
}

void NodeExport::reshape(const std::string& x, const Dims& to, const std::string& y) {
  OnnxNode node = add("Reshape", {x, ints(to)}, {y});
  if (std::find(to.begin(), to.end(), 0) == to.end() || !needs_opset(14, "Reshape to no elements")) return;
  node.set("allowzero", int64_t{1});
}

std::string NodeExport::transposed(const std::string& x, const std::vector<int64_t>& perm) {
  std::string result = temporary();
  add("Transpose", {x}, {result}).set_ints("perm", perm);
  return result;
}

void NodeExport::reduce(const std::string& op, const std::string& x, const std::vector<int64_t>& axes,
                        bool keepdims, const std::string& y) {
  const bool as_input = opset() >= 18 || op == "ReduceSum";
  OnnxNode node = add(op.c_str(), {x, as_input ? ints(axes) : ""}, {y});
  if (!as_input) node.set_ints("axes", axes);
  if (!keepdims) node.set("keepdims", int64_t{0});
}

bool NodeExport::done() {
  if (clip_.to.empty()) return true;
  const DType type = result_value().dtype;
  if (clip_.lowest == 0 && clip_.highest == kInfinity && has_relu())
    add("Relu", {clip_.from}, {clip_.to});
  else
    add("Clip",
        {clip_.from, clip_.lowest == -kInfinity ? "" : scalar(type, clip_.lowest),
         clip_.highest == kInfinity ? "" : scalar(type, clip_.highest)},
        {clip_.to});
  return true;
}

bool NodeExport::unary(const char* op) {
  const Axes axes = axes_of(0);
  const std::string x = in(0, axes);
  add(op, {x}, {out(0, axes)});
  return true;
}

bool NodeExport::binary(const char* op, double lowest, double highest) {
  const DType type = dtype(0);
  const std::string_view narrow[] = {"Add", "Sub", "Mul", "Div"};
  if (is_integer(type) && bit_width(type) < 32 && std::ranges::find(narrow, op) != std::end(narrow) &&
      !needs_opset(14, fmt::format("{} of {}", op, dtype_name(type))))
    return false;
  const Axes axes = common_axes({0, 1});
  const std::string a = broadcast_in(0, axes), b = broadcast_in(1, axes);
  add(op, {a, b}, {clamped_out(axes, lowest, highest)});
  return done();
}

bool NodeExport::refuse(const std::string& reason, const std::string& remedy) {
  scope_.parts().diagnostics().refuse(label(), node_.origin.empty() ? op_name(node_.op()) : node_.origin,
                                      reason, remedy);
  return false;
}

bool NodeExport::needs_opset(int version, const std::string& what) {
  if (opset() >= version) return true;
  return refuse(fmt::format("{} is written from opset {} on, and the model's is {}", what, version, opset()),
                fmt::format("give --opset {}", version));
}

bool write_operation(NodeExport& n) {
  if (const std::string name = bounded_name(n.graph(), n.node()); !name.empty())
    return n.refuse(
        fmt::format("the length of '{}' depends on data; Sinter computes it at its greatest length, which is "
                    "another shape than ONNX's",
                    name),
        "make the length constant in the model, or keep this part of the model out of it");
  for (const ValueId id : n.node().inputs) {
    const DType type = id < 0 ? DType::kNone : n.graph().value(id).dtype;
    if ((is_float8(type) || is_sub_byte(type)) && has_traits(n.node().op(), kMovement))
      return n.refuse(fmt::format("ONNX's operators that move elements take no {}", dtype_name(type)),
                      "move elements of another type in the model");
  }
  return std::visit(
      [&](const auto& attrs) {
        if constexpr (std::is_same_v<std::decay_t<decltype(attrs)>, std::monostate>)
          return n.refuse("the operation is unknown");
        else
          return write_row(n, attrs);
      },
      n.node().attrs);
}

}  // namespace sinter::convert
