// Scope: a graph or body while it is written, with the tensors that hold its values.
//
// A value may be held by several tensors with different orders of axes. Operations take the order that they
// need; where no tensor has it, a Transpose or Reshape is written. Transpose and View operations that only
// concern the order of axes write nothing themselves: the result's tensor is the operand's until an operation
// needs another one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "converter/export/model_parts.h"

namespace sinter::onnx_pb {
class NodeProto;
}

namespace sinter::convert {

class Scope {
 public:
  // A tensor that holds a value.
  struct Form {
    std::string name;
    Axes axes;
  };

  Scope(ModelParts& parts, const Graph& graph, onnx_pb::GraphProto* proto);
  ModelParts& parts() { return parts_; }
  const Graph& graph() const { return graph_; }
  const Uses& uses() const { return uses_; }

  // Enters a tensor that exists: an input of the graph, or one of an enclosing graph.
  void enter(ValueId id, Form form) { forms_[id].push_back(std::move(form)); }
  // Returns the tensors that hold a value and can be reordered without another node; none of a constant.
  const std::vector<Form>& forms(ValueId id) { return forms_[id]; }
  // Returns the tensor that holds the value in this order, which may take a node.
  std::string tensor(ValueId id, const Axes& axes);
  std::string tensor(ValueId id) { return tensor(id, same_axes(graph_.value(id).dims.size())); }
  // Returns the name of a new tensor that holds the value: the value's, if its axes have their order.
  std::string result(ValueId id, const Axes& axes);
  // Adds a node to the graph. finish_nodes() gives nodes of one name different ones.
  onnx_pb::NodeProto* add(const char* op, const std::string& name, const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs);
  // Gives the graph's outputs names, which are reserved; without it they have the values'.
  void name_outputs(const std::vector<std::string>& names);
  // Writes all nodes, then nodes for outputs that are not there under their names. False: refused.
  bool write_nodes();
  void write_outputs(const std::vector<std::string>& names);

 private:
  bool write_node(const Node& node);
  std::string constant_tensor(ValueId id, const Axes& axes);
  std::string from_recipe(const ConstantPtr& constant, const Axes& axes, const std::string& name);
  std::string name_for(ValueId id, const Axes& axes);
  std::string named(ValueId id, const Axes& axes, bool* found);
  void pass_on(const Node& node);
  void describe(const std::string& name, DType dtype, const Dims& dims);

  ModelParts& parts_;
  const Graph& graph_;
  onnx_pb::GraphProto* proto_;
  Uses uses_;
  std::map<ValueId, std::vector<Form>> forms_;
  std::map<ValueId, std::string> passed_on_;  // the name of the node that writes nothing itself
  std::map<std::string, int> node_names_;     // how many nodes have a name
  std::map<std::string, std::string> from_recipes_;
  std::map<ValueId, std::string> outputs_;  // whose names no tensor has yet
};

}  // namespace sinter::convert
