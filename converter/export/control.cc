// Rows of operations with bodies. Bodies read values of the graph around them by their names.
#include "converter/export/rows.h"
#include "converter/import/read/onnx.pb.h"

namespace sinter::convert {
namespace {

// Writes a body whose first inputs are the graph's parameters; the others are the values behind operand
// `first`. False: refused.
bool write_body(NodeExport& n, size_t index, size_t parameters, size_t first, onnx_pb::GraphProto* proto) {
  const Graph& body = *n.node().bodies[index];
  ModelParts& parts = n.scope().parts();
  Scope scope(parts, body, proto);
  proto->set_name(body.name.empty() ? n.label() + "_body" : body.name);
  const auto port = [&](ValueId id, const std::string& name, onnx_pb::ValueInfoProto* info) {
    info->set_name(name);
    set_tensor_type(body.value(id).dtype, body.value(id).dims, info->mutable_type());
  };
  for (size_t i = 0; i < body.inputs.size(); ++i) {
    const ValueId id = body.inputs[i];
    if (i < parameters) {
      const std::string name = parts.unique(body.value(id).name);
      port(id, name, proto->add_input());
      scope.enter(id, {name, same_axes(body.value(id).dims.size())});
      continue;
    }
    const ValueId outside = n.node().inputs[first + i - parameters];
    if (n.graph().is_constant(outside))
      scope.enter(id, {n.scope().tensor(outside), same_axes(body.value(id).dims.size())});
    for (const Scope::Form& form : std::vector<Scope::Form>(n.scope().forms(outside))) scope.enter(id, form);
  }
  std::vector<std::string> outputs;
  for (const ValueId id : body.outputs) {
    outputs.push_back(parts.unique(body.value(id).name, "result"));
    port(id, outputs.back(), proto->add_output());
  }
  scope.name_outputs(outputs);
  if (!scope.write_nodes()) return false;
  scope.write_outputs(outputs);
  return true;
}

}  // namespace

bool write_row(NodeExport& n, const IfAttrs&) {
  const std::string condition = n.in(0);
  std::vector<std::string> outputs;
  for (size_t i = 0; i < n.node().outputs.size(); ++i)
    outputs.push_back(n.wants(i) ? n.out(i) : n.temporary());
  OnnxNode node = n.add("If", {condition}, outputs);
  const bool then = write_body(n, 0, 0, 1, node.graph("then_branch"));
  return write_body(n, 1, 0, 1, node.graph("else_branch")) && then;
}

bool write_row(NodeExport& n, const LoopAttrs& a) {
  const auto carried = static_cast<size_t>(a.carried);
  const size_t results = n.node().outputs.size() - 1;  // the last output counts trips
  if (n.wants(results))
    return n.refuse("its results depend on the number of trips, which ONNX's Loop does not give",
                    "let the loop run a constant number of times");
  std::vector<std::string> inputs, outputs;
  for (size_t i = 0; i < 2 + carried; ++i) inputs.push_back(n.in(i));
  for (size_t i = 0; i < results; ++i) outputs.push_back(n.wants(i) ? n.out(i) : n.temporary());
  OnnxNode node = n.add("Loop", inputs, outputs);
  return write_body(n, 0, 2 + carried, 2 + carried, node.graph("body"));
}

}  // namespace sinter::convert
