#include <algorithm>
#include <set>

#include "converter/import/lower/control.h"

namespace sinter::convert {

bool never_stops(const ImportedGraph& body) {
  std::string name = body.outputs[0].name;
  for (size_t hops = 0; hops <= body.nodes.size(); ++hops) {
    if (name == body.inputs[1].name) return true;
    for (const ImportedTensor& t : body.initializers)
      if (t.name == name) return t.data && t.data->size() == 1 && t.data->as_int64s()[0] != 0;
    const auto maker = std::find_if(body.nodes.begin(), body.nodes.end(), [&](const ImportedNode& node) {
      return std::find(node.outputs.begin(), node.outputs.end(), name) != node.outputs.end();
    });
    if (maker == body.nodes.end()) return false;
    if (maker->op_type == "Constant") {
      const ImportedAttribute* value = maker->find("value");
      return value && !value->tensors.empty() && value->tensors[0].data &&
             value->tensors[0].data->size() == 1 && value->tensors[0].data->as_int64s()[0] != 0;
    }
    if (maker->op_type == "Cast") {
      const ImportedAttribute* to = maker->find("to");  // another type may turn what is not 0 into 0
      if (to == nullptr || dtype_from_onnx(to->i) != DType::kBool) return false;
    } else if (maker->op_type != "Identity") {
      return false;
    }
    name = maker->inputs.empty() ? std::string() : maker->inputs[0];
  }
  return false;
}

bool condition_folds(NodeLowering& n, const ImportedGraph& body, const std::vector<ValueId>& carried) {
  std::set<std::string> own, steady;
  for (const ImportedValueInfo& in : body.inputs) own.insert(in.name);
  for (const ImportedNode& node : body.nodes) own.insert(node.outputs.begin(), node.outputs.end());
  for (size_t i = 0; i < carried.size(); ++i)
    if (n.constant(carried[i])) steady.insert(body.inputs[2 + i].name);
  for (;;) {
    std::set<std::string> known = steady;
    known.insert({body.inputs[0].name, body.inputs[1].name, ""});
    for (const ImportedTensor& t : body.initializers) known.insert(t.name);
    const auto is_known = [&](const std::string& name) {
      return known.count(name) != 0 || (own.count(name) == 0 && n.constant(n.parent().lookup(name)));
    };
    for (const ImportedNode& node : body.nodes) {
      const bool measures =
          node.op_type == "Shape" || node.op_type == "Size" || node.op_type == "SequenceLength";
      const bool plain = std::all_of(node.attributes.begin(), node.attributes.end(),
                                     [](const ImportedAttribute& a) { return a.graphs.empty(); });
      if (measures || (plain && std::all_of(node.inputs.begin(), node.inputs.end(), is_known)))
        known.insert(node.outputs.begin(), node.outputs.end());
    }
    bool changed = false;
    for (size_t i = 0; i < carried.size(); ++i)
      if (!is_known(body.outputs[1 + i].name)) changed |= steady.erase(body.inputs[2 + i].name) != 0;
    if (!changed) return is_known(body.outputs[0].name);
  }
}

}  // namespace sinter::convert
