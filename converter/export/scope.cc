#include "converter/export/scope.h"

#include <algorithm>
#include <stdexcept>

#include "converter/export/rows.h"
#include "converter/import/read/onnx.pb.h"
#include "converter/ir/recipe.h"

namespace sinter::convert {
namespace {

void set_int(onnx_pb::NodeProto* node, const char* name, int64_t value) {
  auto* a = node->add_attribute();
  a->set_name(name), a->set_type(onnx_pb::AttributeProto::INT), a->set_i(value);
}

void set_ints(onnx_pb::NodeProto* node, const char* name, const std::vector<int64_t>& values) {
  auto* a = node->add_attribute();
  a->set_name(name), a->set_type(onnx_pb::AttributeProto::INTS);
  for (const int64_t v : values) a->add_ints(v);
}

}  // namespace

Scope::Scope(ModelParts& parts, const Graph& graph, onnx_pb::GraphProto* proto)
    : parts_(parts), graph_(graph), proto_(proto), uses_(graph) {
  for (const ValueId id : graph.outputs) outputs_[id] = graph.value(id).name;
  for (const Node& node : graph.nodes) ++node_names_[node.name];
}

void Scope::name_outputs(const std::vector<std::string>& names) {
  outputs_.clear();
  for (size_t i = 0; i < names.size(); ++i) outputs_[graph_.outputs[i]] = names[i];
}

onnx_pb::NodeProto* Scope::add(const char* op, const std::string& name,
                               const std::vector<std::string>& inputs,
                               const std::vector<std::string>& outputs) {
  onnx_pb::NodeProto* node = proto_->add_node();
  node->set_op_type(op);
  node->set_name(name);
  for (const std::string& x : inputs) node->add_input(x);
  while (node->input_size() > 0 && node->input(node->input_size() - 1).empty())
    node->mutable_input()->RemoveLast();
  for (const std::string& y : outputs) node->add_output(y);
  while (node->output_size() > 0 && node->output(node->output_size() - 1).empty())
    node->mutable_output()->RemoveLast();
  return node;
}

void Scope::describe(const std::string& name, DType dtype, const Dims& dims) {
  auto* info = proto_->add_value_info();
  info->set_name(name);
  set_tensor_type(dtype, dims, info->mutable_type());
}

std::string Scope::named(ValueId id, const Axes& axes, bool* found) {
  // The value and those to which nodes pass the tensor on.
  std::vector<Form> forms{{graph_.value(id).name, axes}};
  std::vector<ValueId> ids{id};
  for (size_t i = 0; i < ids.size(); ++i)
    for (const int reader : uses_.readers[static_cast<size_t>(ids[i])]) {
      if (reader < 0 || !passes_tensor_on(graph_, graph_.nodes[static_cast<size_t>(reader)])) continue;
      const Node& node = graph_.nodes[static_cast<size_t>(reader)];
      ids.push_back(node.outputs[0]);
      forms.push_back({graph_.value(ids.back()).name, axes_behind(graph_, node, forms[i].axes)});
    }
  *found = true;
  for (size_t i = 0; i < ids.size(); ++i) {
    const Dims& dims = graph_.value(ids[i]).dims;
    const auto output = outputs_.find(ids[i]);
    if (output == outputs_.end() || !same_tensor(dims, forms[i].axes, same_axes(dims.size()))) continue;
    const std::string name = output->second;
    outputs_.erase(output);
    return name;
  }
  *found = false;
  for (size_t i = 0; i < ids.size(); ++i) {
    const Value& v = graph_.value(ids[i]);
    if (same_tensor(v.dims, forms[i].axes, natural_axes(v))) return forms[i].name;
  }
  return {};
}

std::string Scope::name_for(ValueId id, const Axes& axes) {
  bool is_output = false;
  const std::string name = named(id, axes, &is_output);
  if (is_output) return name;
  const Value& v = graph_.value(id);
  const std::string made = parts_.unique(!name.empty()    ? name
                                         : v.name.empty() ? v.name
                                                          : v.name + "_reordered");
  describe(made, v.dtype, tensor_dims(v.dims, axes));
  return made;
}

std::string Scope::result(ValueId id, const Axes& axes) {
  if (id == kAbsent) return {};
  std::string name = name_for(id, axes);
  enter(id, {name, axes});
  return name;
}

std::string Scope::tensor(ValueId id, const Axes& axes) {
  const Value& v = graph_.value(id);
  if (v.constant) return constant_tensor(id, axes);
  const std::vector<Form> have = forms_[id];
  if (have.empty()) throw std::logic_error("export: no tensor holds the value '" + v.name + "'");
  for (const Form& form : have)
    if (same_tensor(v.dims, form.axes, axes)) return form.name;
  const auto passed = passed_on_.find(id);
  const bool own_node = passed != passed_on_.end() && node_names_[passed->second] == 1;
  const auto node_name = [&](const std::string& tensor) { return own_node ? passed->second : tensor; };
  std::string from = have[0].name;
  Axes order = have[0].axes;
  for (const Form& form : have)
    if (same_bytes(v.dims, form.axes, axes)) from = form.name, order = form.axes;
  if (!same_bytes(v.dims, order, axes)) {
    const auto is_long = [&](int a) { return a >= 0 && v.dims[static_cast<size_t>(a)] != 1; };
    Axes to = axes;
    if (axes.size() != order.size()) {
      std::erase_if(to, [&](int a) { return !is_long(a); });
      to.resize(order.size(), -1);
    }
    const bool last = same_tensor(v.dims, to, axes);
    const std::string name = last ? result(id, to) : parts_.unique(v.name + "_reordered");
    set_ints(add("Transpose", last ? node_name(name) : name, {from}, {name}), "perm",
             permutation(v.dims, order, to));
    if (last) return name;
    from = name;
  }
  const Dims dims = tensor_dims(v.dims, axes);
  std::string name = result(id, axes);
  onnx_pb::NodeProto* node = add("Reshape", node_name(name), {from, parts_.ints(dims)}, {name});
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) set_int(node, "allowzero", 1);
  return name;
}

std::string Scope::constant_tensor(ValueId id, const Axes& axes) {
  const Value& v = graph_.value(id);
  const std::string name = from_recipe(v.constant, axes, v.name);
  return name.empty() ? parts_.initializer(v.constant, axes, v.name) : name;
}

// A weight that the model has in a narrower type stays in it.
std::string Scope::from_recipe(const ConstantPtr& constant, const Axes& axes, const std::string& name) {
  const Recipe* recipe = constant->recipe().get();
  if (recipe == nullptr) return {};
  const auto* dequantize = std::get_if<DequantizeAttrs>(&recipe->attrs);
  if (std::get_if<CastAttrs>(&recipe->attrs) == nullptr && dequantize == nullptr) return {};
  const ConstantPtr& x = recipe->inputs[0];
  if (x->dims() != constant->dims() || is_sub_byte(x->dtype())) return {};
  if (dequantize != nullptr &&
      (dequantize->block_size > 0 || recipe->inputs[1]->dtype() != constant->dtype()))
    return {};
  const std::string held = parts_.initializer(x, axes, name);
  std::string& known = from_recipes_[held];
  if (!known.empty()) return known;
  known = parts_.unique(held + "_wide");
  describe(known, constant->dtype(), tensor_dims(constant->dims(), axes));
  std::vector<std::string> inputs{held};
  for (size_t i = 1; i < recipe->inputs.size(); ++i)
    inputs.push_back(recipe->inputs[i] == nullptr
                         ? ""
                         : parts_.initializer(recipe->inputs[i], held + (i == 1 ? "_scale" : "_zero_point")));
  onnx_pb::NodeProto* node = add(dequantize != nullptr ? "DequantizeLinear" : "Cast", known, inputs, {known});
  if (dequantize == nullptr)
    set_int(node, "to", onnx_type(constant->dtype()));
  else if (recipe->inputs[1]->size() > 1 || !recipe->inputs[1]->dims().empty())
    set_int(node, "axis", position_of(axes, dequantize->axis));
  return known;
}

void Scope::pass_on(const Node& node) {
  const ValueId to = node.outputs[0];
  for (const Form& form : std::vector<Form>(forms_[node.inputs[0]]))
    enter(to, {form.name, axes_behind(graph_, node, form.axes)});
  passed_on_[to] = node.name;
}

bool Scope::write_node(const Node& node) {
  if (passes_tensor_on(graph_, node) && !graph_.is_constant(node.inputs[0])) {
    pass_on(node);
    return true;
  }
  NodeExport n(*this, node);
  return write_operation(n);
}

bool Scope::write_nodes() {
  bool whole = true;
  for (const Node& node : graph_.nodes) {
    const bool written = write_node(node);
    whole &= written;
    // So that a refused node does not hide the faults of those behind it.
    for (const ValueId id : node.outputs)
      if (!written && id >= 0 && forms_[id].empty()) result(id, same_axes(graph_.value(id).dims.size()));
  }
  return whole;
}

void Scope::write_outputs(const std::vector<std::string>& names) {
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string from = tensor(graph_.outputs[i]);
    if (from != names[i]) add("Identity", names[i] + "_copy", {from}, {names[i]});
  }
}

}  // namespace sinter::convert
