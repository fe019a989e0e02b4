// ImportedModel: the contents of an ONNX file, decoded but not yet checked. No protobuf beyond the reader.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "converter/ir/constant.h"
#include "runtime/core/dtype.h"

namespace sinter::convert {

// ONNX's number of an element type (TensorProto.DataType) and ours. kNone: strings, complex and unknown ones.
DType dtype_from_onnx(int64_t number);
int64_t dtype_to_onnx(DType dtype);
// "float16", "string", "complex64", "type 77".
std::string onnx_type_name(int64_t number);

struct ImportedTensor {
  std::string name;
  int64_t onnx_type = 0;
  DType dtype = DType::kNone;  // kNone: strings, or a type that Sinter does not have
  Dims dims;
  ConstantPtr data;                  // null for strings, or where `problem` has a reason
  std::vector<std::string> strings;  // string tensors
  std::string problem;               // why the data cannot be used; empty: it can
  bool external = false;             // the data is in another file
};

struct ImportedGraph;

struct ImportedAttribute {
  enum class Kind {
    kNone,
    kFloat,
    kInt,
    kString,
    kTensor,
    kGraph,
    kFloats,
    kInts,
    kStrings,
    kTensors,
    kGraphs,
    kOther,  // types, sparse lists: nothing that Sinter reads
  };
  std::string name;
  Kind kind = Kind::kNone;
  float f = 0;
  int64_t i = 0;
  std::string s;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
  std::vector<ImportedTensor> tensors;                 // kTensor: one; sparse ones are given dense
  std::vector<std::shared_ptr<ImportedGraph>> graphs;  // kGraph: one
  std::string reference;  // inside a function: the function's attribute to use here
};
const char* kind_name(ImportedAttribute::Kind kind);

struct ImportedNode {
  std::string domain;  // "" for ai.onnx
  std::string op_type;
  std::string name;  // never empty: made up where the model gives none
  std::string overload;
  std::vector<std::string> inputs, outputs;  // "" where an optional one is left out
  std::vector<ImportedAttribute> attributes;
  int opset = 0;  // version of `domain` that is in force
  // The node's number in the file, counted from 0 in the main graph ("12") or in a function ("f2:12"), nodes
  // of bodies included; in an inlined function behind the calls' ("12/f2:3"). Empty: the file has no such
  // node.
  std::string place;

  const ImportedAttribute* find(const std::string& attribute) const {
    for (const ImportedAttribute& a : attributes)
      if (a.name == attribute) return &a;
    return nullptr;
  }
};
// "Conv", "com.microsoft:Gelu"
std::string qualified_op(const ImportedNode& node);

// One dimension as declared: fixed (value >= 0), named, or unknown.
struct ImportedDim {
  int64_t value = -1;
  std::string symbol;
};

struct ImportedValueInfo {
  std::string name;
  int64_t onnx_type = 0;
  DType dtype = DType::kNone;
  bool has_shape = false;
  std::vector<ImportedDim> dims;
  std::string other;  // "sequence", "map", ...: not a tensor; "" for tensors
};

struct ImportedGraph {
  std::string name;
  std::vector<ImportedValueInfo> inputs;  // without those that an initializer of the same name defines
  std::vector<ImportedValueInfo> initialized_inputs;  // these
  std::vector<ImportedValueInfo> outputs;
  std::vector<ImportedValueInfo> value_info;
  std::vector<ImportedTensor> initializers;
  std::vector<ImportedNode> nodes;  // after import: in an order in which every input exists
};

// Calls `visit` with the graph and every branch and loop body in it.
template <class Visit>
void each_graph(const ImportedGraph& graph, const Visit& visit) {
  visit(graph);
  for (const ImportedNode& node : graph.nodes)
    for (const ImportedAttribute& a : node.attributes)
      for (const auto& body : a.graphs) each_graph(*body, visit);
}

struct ImportedFunction {
  std::string domain, name, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<std::string> attributes;  // without default
  std::vector<ImportedAttribute> attribute_defaults;
  std::vector<ImportedNode> nodes;
  std::map<std::string, int64_t> opsets;
};

struct ImportedModel {
  int64_t ir_version = 0;
  std::string producer, domain, doc;
  int64_t version = 0;                           // of the model itself
  std::map<std::string, std::string> node_docs;  // by node
  std::map<std::string, int64_t> opsets;         // by domain, "" for ai.onnx
  std::map<std::string, std::string> metadata;
  ImportedGraph graph;
  std::vector<ImportedFunction> functions;
  std::vector<std::filesystem::path> external_files;  // whose data its tensors use
};

}  // namespace sinter::convert
