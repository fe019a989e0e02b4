// NodeExport: an operation of the graph while it becomes ONNX nodes, and the rows that write operations.
//
// Each operation of schemas/ops.def has a function write_row() with its attributes, in the file of its
// family:
//
//   bool write_row(NodeExport& n, const AbsAttrs&) { return n.unary("Abs"); }
//
// It asks for its operands as tensors whose axes have an order (axes.h), adds nodes and declares the order in
// which the results have theirs. Without an ONNX form it refuses the operation, with the reason. A new
// operation does not link before it has a row.
#pragma once

#include <string>
#include <vector>

#include "converter/export/scope.h"

namespace sinter::convert {

// A node that has been added, for its attributes.
class OnnxNode {
 public:
  explicit OnnxNode(onnx_pb::NodeProto* proto) : proto_(proto) {}
  OnnxNode& set(const char* name, int64_t value);
  OnnxNode& set_float(const char* name, double value);
  OnnxNode& set(const char* name, const std::string& text);
  OnnxNode& set(const char* name, const std::vector<std::string>& texts);
  OnnxNode& set_ints(const char* name, const std::vector<int64_t>& values);
  OnnxNode& set_ints(const char* name, const IntList& values) {
    return set_ints(name, std::vector<int64_t>(values.begin(), values.end()));
  }
  OnnxNode& set_floats(const char* name, const FloatList& values);
  onnx_pb::GraphProto* graph(const char* name);
  onnx_pb::NodeProto* proto() { return proto_; }

 private:
  onnx_pb::NodeProto* proto_;
};

class NodeExport {
 public:
  NodeExport(Scope& scope, const Node& node) : scope_(scope), node_(node) {}

  Scope& scope() { return scope_; }
  const Graph& graph() const { return scope_.graph(); }
  const Node& node() const { return node_; }
  const OnnxExport& options() const { return scope_.parts().options(); }
  int opset() const { return options().opset; }

  // ---- operands and results
  bool has(size_t i) const { return i < node_.inputs.size() && node_.inputs[i] != kAbsent; }
  bool wants(size_t i) const { return i < node_.outputs.size() && node_.outputs[i] != kAbsent; }
  const Value& value(size_t i) const { return graph().value(node_.inputs[i]); }
  DType dtype(size_t i) const { return value(i).dtype; }
  const Dims& dims(size_t i) const { return value(i).dims; }
  size_t rank(size_t i) const { return dims(i).size(); }
  ConstantPtr constant(size_t i) const { return has(i) ? value(i).constant : nullptr; }
  const Value& result_value(size_t i = 0) const { return graph().value(node_.outputs[i]); }
  // Returns the tensor of an operand; "" if it is absent. Without axes: in the value's order.
  std::string in(size_t i, const Axes& axes) { return has(i) ? scope_.tensor(node_.inputs[i], axes) : ""; }
  std::string in(size_t i) { return has(i) ? scope_.tensor(node_.inputs[i]) : ""; }
  // Returns the name of the tensor that a result is written to; "" if nothing reads it.
  std::string out(size_t i, const Axes& axes) {
    return wants(i) ? scope_.result(node_.outputs[i], axes) : "";
  }
  std::string out(size_t i = 0) { return wants(i) ? out(i, same_axes(result_value(i).dims.size())) : ""; }
  // Returns out(0), or the tensor before a Clip that done() adds.
  std::string clamped_out(const Axes& axes, double lowest, double highest);
  std::string clamped_out(double lowest, double highest) {
    return clamped_out(same_axes(result_value().dims.size()), lowest, highest);
  }
  // Returns the order in which the fewest of these operands have to be moved. Those of lower rank broadcast.
  Axes common_axes(const std::vector<size_t>& operands) const;
  Axes axes_of(size_t operand) const { return common_axes({operand}); }
  // Returns an operand that broadcasts with a result whose axes have this order.
  std::string broadcast_in(size_t i, const Axes& axes);

  // ---- nodes
  OnnxNode add(const char* op, const std::vector<std::string>& inputs,
               const std::vector<std::string>& outputs);
  OnnxNode add_microsoft(const char* op, const std::vector<std::string>& inputs,
                         const std::vector<std::string>& outputs);
  // Adds a node whose result is another node's operand, and returns that tensor.
  std::string step(const char* op, const std::vector<std::string>& inputs);
  std::string cast(const std::string& x, DType to);
  std::string reshaped(const std::string& x, const Dims& dims);
  std::string transposed(const std::string& x, const std::vector<int64_t>& perm);
  // Adds a reduction over these axes, which are an attribute before opset 18, but not of ReduceSum.
  void reduce(const std::string& op, const std::string& x, const std::vector<int64_t>& axes, bool keepdims,
              const std::string& y);
  std::string scalar(DType dtype, double value) { return scope_.parts().scalar(dtype, value); }
  std::string ints(const std::vector<int64_t>& values) { return scope_.parts().ints(values); }
  std::string temporary() { return scope_.parts().unique(label() + "_part"); }
  // Returns a name for what belongs to the node.
  std::string label() const { return node_.name.empty() ? op_name(node_.op()) : node_.name; }
  // Adds the Clip of clamped_out(). Returns true.
  bool done();
  // The whole of an elementwise operation.
  bool unary(const char* op);
  bool binary(const char* op, double lowest = -kInfinity, double highest = kInfinity);
  // Files the refusal. Returns false.
  bool refuse(const std::string& reason, const std::string& remedy = {});
  // Whether Relu takes the result's type.
  bool has_relu() const { return opset() >= 14 || is_float(result_value().dtype); }
  // Adds a Reshape.
  void reshape(const std::string& x, const Dims& dims, const std::string& y);
  // Refuses the operation where the model's opset is older; returns whether it is not.
  bool needs_opset(int opset, const std::string& what);

 private:
  Scope& scope_;
  const Node& node_;
  struct Clip {
    std::string from, to;
    double lowest = -kInfinity, highest = kInfinity;
  };
  Clip clip_;
};

// Writes the operation with its row. False: it is refused.
bool write_operation(NodeExport& n);

#define SINTER_OP(name, ...) bool write_row(NodeExport& n, const name##Attrs& a);
#include "schemas/ops.def"
#undef SINTER_OP

}  // namespace sinter::convert
