// The parts of an ONNX model that all graphs in it share while it is written: names and initializers.
#pragma once

#include <map>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "converter/export/axes.h"
#include "converter/export/onnx_export.h"

namespace sinter::onnx_pb {
class GraphProto;
class ModelProto;
class TypeProto;
}  // namespace sinter::onnx_pb

namespace sinter::convert {

// ONNX's number of an element type.
int onnx_type(DType dtype);
void set_tensor_type(DType dtype, const Dims& dims, onnx_pb::TypeProto* type);

struct Initializer {
  std::string name;
  ConstantPtr data;  // with the tensor's dims
};

class ModelParts {
 public:
  ModelParts(const OnnxExport& options, Diagnostics& diagnostics)
      : options_(options), diagnostics_(diagnostics) {}
  const OnnxExport& options() const { return options_; }
  Diagnostics& diagnostics() { return diagnostics_; }

  // Takes a name that a port must have; unique() never gives it.
  void reserve(const std::string& name) { names_.insert(name); }
  // Returns the name, or the name and a number where it is taken or empty.
  std::string unique(const std::string& name, const char* otherwise = "value");
  std::string unique_node(const std::string& name);

  // Returns the initializer that holds the constant with its axes in this order; a new one has the name or,
  // where it is taken, a similar one.
  std::string initializer(const ConstantPtr& constant, const Axes& axes, const std::string& name);
  std::string initializer(const ConstantPtr& constant, const std::string& name) {
    return initializer(constant, same_axes(constant->dims().size()), name);
  }
  // Returns the initializer of a scalar or of a list, which is there once.
  std::string scalar(DType dtype, double value);
  std::string ints(const std::vector<int64_t>& values);
  const std::vector<Initializer>& initializers() const { return initializers_; }

  // Drops initializers whose names are not listed, and puts the others in the list's order.
  void keep_initializers(const std::vector<std::string>& names);

  // Whether an operator of com.microsoft has been written.
  bool uses_microsoft = false;

 private:
  const OnnxExport& options_;
  Diagnostics& diagnostics_;
  std::unordered_set<std::string> names_, node_names_;
  std::vector<Initializer> initializers_;
  std::map<std::pair<const Constant*, std::pair<Dims, Axes>>, std::string> of_constants_;
  std::map<std::pair<DType, std::string>, std::string> small_;  // by type and text of the values
  std::map<std::string, int> counts_;
};

// Returns the constant with its axes in this order. A large one is computed when it is read.
ConstantPtr reordered(const ConstantPtr& constant, const Axes& axes);

}  // namespace sinter::convert
