// Graph: the converter's typed program of canonical operations. Every value has a dtype and static dims.
//
// Nodes are in execution order. A control node (If, Loop) owns bodies: graphs of their own whose last
// inputs are the captured values, listed at the end of the node's inputs in the same order; nothing reads an
// outer value directly.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "converter/ir/constant.h"
#include "converter/ir/encoded_attrs.h"
#include "converter/ir/ledger.h"
#include "runtime/core/op.h"

namespace sinter::convert {

using ValueId = int32_t;
inline constexpr ValueId kAbsent = -1;  // an optional operand that is not given

// Text and bytes are views; their owner keeps the data alive for as long as a graph has them.
using OpAttrs = std::variant<
#define SINTER_OP(name, ...) name##Attrs,
#include "schemas/ops.def"
#undef SINTER_OP
    std::monostate>;

Op op_of(const OpAttrs& attrs);
// Returns the struct that OpCall::attributes points to.
const void* attrs_pointer(const OpAttrs& attrs);
EncodedAttrs encode_attrs(const OpAttrs& attrs);
// Returns "strides=[1,1] group=1", for display.
std::string to_string(const OpAttrs& attrs);

// A dimension whose length depends on data (docs/shapes.md): `dims[axis]` of its value is the maximum.
struct BoundedDim {
  int axis = 0;
  ValueId length = -1;  // the int64 scalar that holds the length at run time
  bool operator==(const BoundedDim&) const = default;
};

struct Value {
  std::string name;  // the ONNX name where one exists, else made from the node's
  DType dtype = DType::kNone;
  Dims dims;
  ConstantPtr constant;  // the value, if it is known
  std::vector<BoundedDim> bounded_dims;
  // Dim i is axis order[i] of the ONNX value of that name; empty: all axes are in the same order.
  std::vector<int> order = {};
  // An integer q represents the number (q - zero_point) * scale; 0: it does not, or is not known to.
  double scale = 0;
  int64_t zero_point = 0;
  // The type that the model gives it, where the converter computes it in another one; kNone: `dtype`.
  DType model_dtype = DType::kNone;
  // Whether the user requested `dtype` (--prefer-float16, --prefer-bfloat16).
  bool requested = false;
  // Its memory: 0 for host memory, m for the memory of the plan's backend m - 1 (plan/place_memories.h).
  uint8_t memory = 0;
};

struct Graph;

struct Node {
  OpAttrs attrs;
  std::vector<ValueId> inputs, outputs;  // kAbsent where an optional one is not given or not used
  std::string name;                      // the name of the ONNX node that it comes from
  std::string origin;                    // that node's op type
  std::vector<std::shared_ptr<Graph>> bodies;

  Op op() const { return op_of(attrs); }
  // Whether it is a Cast of the model itself, which rounds, and needs no reason.
  bool is_model_cast() const { return op() == Op::kCast && (origin == "Cast" || origin == "CastLike"); }
  template <class A>
  const A* as() const {
    return std::get_if<A>(&attrs);
  }
  template <class A>
  A* as() {
    return std::get_if<A>(&attrs);
  }
};

// The stage of a graph. A later stage allows properties that earlier ones do not; no graph goes back.
enum class Stage : uint8_t {
  kLowered,    // from ONNX: operations of the device, dimensions in ONNX's order
  kRewritten,  // by passes and by quantization: layouts, integers, types that the user requested
  kPlanned,    // for one target: values in memories, steps that prepare constants. Nothing rewrites it
};
const char* stage_name(Stage stage);  // "lowered", "rewritten", "planned"

// An input and an output of an entry graph that are not the caller's: the session keeps the output and begins
// the next run with it as the input. Both have the same type and shape.
struct GraphState {
  size_t input = 0, output = 0;         // indices into Graph::inputs and Graph::outputs
  std::string input_name, output_name;  // their names in the model
  ConstantPtr initial;                  // null: zeros
};

// An input of an entry graph that holds the length of bounded axes of other inputs (--dim NAME=MIN..MAX): an
// int64 scalar, which the session writes before each run.
struct GraphLength {
  size_t input = 0;  // index into Graph::inputs
  std::string name;  // the dimension's name in the ONNX file
  int64_t minimum = 0, maximum = 0;
};

struct Graph {
  std::string name;
  Stage stage = Stage::kLowered;  // a body has the stage of the graph around it
  // The decisions about types so far; bodies share the ledger with the enclosing graph. Never null.
  std::shared_ptr<TypeLedger> ledger = std::make_shared<TypeLedger>();
  std::vector<Value> values;
  std::vector<Node> nodes;
  // Nodes that run once, when a session is created; their results are not in the file (plan/store_weights.h).
  std::vector<Node> prepare;
  std::vector<ValueId> inputs, outputs;
  std::vector<GraphState> states;
  std::vector<GraphLength> lengths;
  // Indices of public inputs and outputs whose memory the plan shares with no other value (--bindable).
  std::vector<size_t> bindable_inputs, bindable_outputs;

  Value& value(ValueId id) { return values[static_cast<size_t>(id)]; }
  const Value& value(ValueId id) const { return values[static_cast<size_t>(id)]; }
  ValueId add_value(std::string value_name, DType dtype, Dims dims);
  ValueId add_constant(ConstantPtr constant, std::string value_name = {});
  bool is_constant(ValueId id) const { return id >= 0 && value(id).constant != nullptr; }
  bool is_input(ValueId id) const;
  bool is_output(ValueId id) const;
  // Return the state whose input, or whose output, the value is; null: none.
  const GraphState* state_read(ValueId id) const;
  const GraphState* state_written(ValueId id) const;
  // Returns the length that the value holds; null if it is not an input that holds one.
  const GraphLength* given_length(ValueId id) const;
  // Enters into the ledger the type in which `reader` gets `read`, and the reason (one sentence).
  void decide(const Value& read, const Node& reader, DType after, TypeRule rule, TypeEffect effect,
              std::string reason);
};

// The producer and the readers of each value; valid until the graph changes. Graph outputs and lengths of
// bounded dimensions count as readers (-1).
struct Uses {
  explicit Uses(const Graph& graph);
  std::vector<int> producer;              // node index, or -1
  std::vector<std::vector<int>> readers;  // node indexes, one for each operand; -1: graph output
  bool single_reader(ValueId id) const { return readers[static_cast<size_t>(id)].size() == 1; }
};

// Makes every reader of `from` (nodes after import, outputs, lengths of bounded dimensions) read `to`.
void replace_uses(Graph& graph, ValueId from, ValueId to);
// Removes nodes whose results have no readers, in bodies too, and control nodes none of whose outputs is
// read. Returns the number of removed nodes.
int remove_dead_nodes(Graph& graph);
// Drops unused values and renumbers the others, in bodies too. Earlier ids become invalid.
void compact_values(Graph& graph);
// Returns the first fault in words; empty if the graph is well formed: ids in range, single producers, order,
// dtypes and dims as inference gives them, bodies that match their nodes, no property of a later stage.
std::string check(const Graph& graph);
// Moves the graph and its bodies on to `stage`. Throws std::logic_error where it is beyond it.
void advance(Graph& graph, Stage stage);
// Throws std::logic_error with `who`, unless the graph is at `stage`.
void require_stage(const Graph& graph, Stage stage, const char* who);
// Returns a readable listing.
std::string dump(const Graph& graph);

}  // namespace sinter::convert
