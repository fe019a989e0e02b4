// The edits that make an ONNX model well typed. Names and places are those of the file; types are ONNX's
// numbers.
#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "converter/ir/constant.h"
#include "converter/repair/signatures.h"

namespace sinter::convert {

enum class EditKind {
  kCast,         // a Cast is inserted behind a value
  kRetyped,      // the data of an initializer or Constant is stored in another type
  kCloned,       // an initializer gets a copy of another type
  kDeclared,     // a declared type is corrected
  kLeftOut,      // an optional operand is left out
  kSorted,       // a graph's nodes are put in order
  kCopied,       // a call gets a copy of its function
  kOperatorSet,  // the version of an imported operator set is raised
};
const char* edit_name(EditKind kind);

// An edit as people read it. `node` and `op` are the (first) reader for which it is made.
struct Edit {
  EditKind kind{};
  std::string value, node, op;
  OnnxType before = 0, after = 0;
  std::string rule, reason;
  std::string made;  // the name of the new value or function; may be empty
};
nlohmann::json to_json(const Edit& edit);
// Returns "'x' at node 'add' (Add): float16 -> float32, Cast inserted as 'x_float32' [promote.float]: ...".
std::string to_line(const Edit& edit);

struct NewCast {
  std::string input, output, name;
  OnnxType to = 0;
  bool operator==(const NewCast&) const = default;
};

// The tensor of an initializer, or of the attribute `value`, in another type.
struct NewTensor {
  std::string name;
  ConstantPtr data;
  bool operator==(const NewTensor& b) const { return name == b.name && data->dtype() == b.data->dtype(); }
};

struct NodeEdits {
  std::map<size_t, std::string> inputs, outputs;  // new names; "" leaves an operand out
  std::string op_type;                            // of a call, whose function is a copy; empty: stays
  std::optional<NewTensor> value;                 // of Constant, ConstantOfShape
  std::vector<NewCast> after;                     // behind the node
  bool operator==(const NodeEdits&) const = default;
};

struct GraphEdits {
  std::vector<NewCast> first;                // before all nodes
  std::vector<size_t> order;                 // the places of its nodes in order; empty: as they are
  std::map<std::string, NewTensor> retyped;  // initializers by name
  std::map<std::string, std::vector<NewTensor>> clones;
  std::map<std::string, OnnxType> inputs, infos;  // declared types, by name
  std::map<size_t, OnnxType> outputs;
  std::map<size_t, std::string> output_names;  // of a body, or a function
  bool operator==(const GraphEdits&) const = default;
};

// The edits of the main graph, or of a function, with those of the bodies in it.
struct RootEdits {
  std::map<size_t, NodeEdits> nodes;         // by the number in ImportedNode::place
  std::map<std::string, GraphEdits> graphs;  // by body_key(); "" is the root
  bool operator==(const RootEdits&) const = default;
};
// Returns the key of a node's n-th body.
std::string body_key(size_t place, size_t n);

struct ModelEdits {
  RootEdits main;
  struct Function {
    std::string name;  // the function's own for the first variant
    RootEdits edits;
  };
  std::map<size_t, std::vector<Function>> functions;  // by number: variants, for different calls
  std::optional<int64_t> opset;                       // of ai.onnx
  int64_t cast_opset = 0;                             // in force for Casts of the main graph
  std::vector<Edit> list;

  bool empty() const { return list.empty(); }
};

}  // namespace sinter::convert
