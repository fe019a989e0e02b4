// Lowers a whole imported model onto the typed graph: resolves names and dims, walks the nodes in order,
// collects every refusal.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "converter/data/preprocessing.h"
#include "converter/import/lengths/lengths.h"
#include "converter/import/lowering.h"
#include "converter/import/node_types.h"
#include "converter/ir/custom_operators.h"

namespace sinter::convert {

class NodeFates;

// --input-type [INPUT=]uint8: inputs that take bytes, and the preprocessing that is built into the model.
struct ByteInputs {
  std::vector<std::string> inputs;  // empty: all that take a picture,
  std::vector<std::string> others;  // but these
  Preprocessing how;
};

// The size of an input's dimension that the ONNX file leaves open.
struct SettledDim {
  // kDefault: a batch, which becomes 1; kShapes: --shape or --dim of a shape set; kReader: the operator that
  // reads it (cache_sizes.h).
  enum class By : uint8_t { kDefault, kDim, kShape, kShapes, kReader };
  std::string input;
  size_t axis = 0;
  std::string symbol;  // empty: the dimension has no name
  int64_t size = 0;
  By by = By::kDefault;
  int64_t minimum = -1;  // of a range, whose maximum is `size`; -1: one size
};

// --dim NAME=MIN..MAX: the numbers of entries that a dimension of an input may have.
struct DimRange {
  int64_t minimum = 0, maximum = 0;
  bool operator==(const DimRange&) const = default;
};

// Shapes and values that the command line gives.
struct LoweringOptions {
  std::map<std::string, Dims> shapes;            // --shape INPUT=...
  std::map<std::string, int64_t> dims;           // --dim NAME=N
  std::map<std::string, DimRange> ranges;        // --dim NAME=MIN..MAX
  std::map<std::string, ConstantPtr> constants;  // --const NAME=FILE
  std::map<std::string, int64_t> max_trips;      // --max-trips NODE=N
  std::map<std::string, int64_t> bounds;         // --bound NODE=N
  std::map<std::string, DType> keep;             // --keep TENSOR=TYPE
  bool keep_float64 = false;                     // --float64 keep: no rule may narrow one
  // --state OUT=IN: the output is kept by the session and is the input of the next run; `all_states` (--state
  // auto) stands for those that propose_states() finds.
  std::vector<std::pair<std::string, std::string>> states;
  bool all_states = false;
  std::map<std::string, ConstantPtr> initial_states;  // --state-init IN=FILE
  int64_t max_context = 0;                            // --max-context N; 0: not given
  DType kv_cache = DType::kNone;                      // --kv-cache TYPE; kNone: the model's
  std::vector<std::string> bindable;                  // --bindable NAME
  std::optional<ByteInputs> bytes;                    // --input-type
  std::shared_ptr<const CustomOperators> custom_ops;  // --custom-ops; null: none
  // Above 0: a trial that only collects further refusals takes this for every open dimension, for trip
  // counts without a bound and for what grows in a loop.
  int64_t assumed = 0;
  // The operations that one model may cost: every node, loops unrolled and bodies tried again included. Loops
  // in loops multiply; no real model comes near. Functions may expand to twice as many nodes. What folding
  // may compute and keep grows with this and with the model's own constants (FoldingLimits in lower.cc).
  size_t most_operations = 250'000;
};

// --max-context: the values by which operators recognise caches that grow (context.h).
struct ContextValues {
  std::set<ValueId> caches;    // [B, H, N, D]; their axis 2 is bounded by `position`
  ValueId position = kAbsent;  // int64 scalars: rows before this run, and after it
  ValueId next = kAbsent;
  int64_t tokens = 0;  // of this run
};

// A graph body (branch, loop body) lowered into a graph of its own. Its inputs are the given parameters, then
// the captured values; `captures` are the enclosing graph's ids of these, in the same order.
struct LoweredBody {
  std::shared_ptr<Graph> graph;
  std::vector<ValueId> captures;
};

class GraphLowering {
 public:
  GraphLowering(Graph& graph, const ImportedModel& model, const LoweringOptions& options,
                Diagnostics& diagnostics, GraphLowering* outer = nullptr);

  Graph& graph() { return graph_; }
  Builder& builder() { return builder_; }
  Diagnostics& diagnostics() { return diagnostics_; }
  Lengths& lengths() { return lengths_; }
  TypeLedger& ledger() { return *graph_.ledger; }
  const LoweringOptions& options() const { return options_; }
  const ImportedModel& model() const { return model_; }
  // The graph or body whose nodes are being lowered.
  const ImportedGraph& source() const { return sources_.empty() ? model_.graph : *sources_.back(); }

  // The value of a name here: kAbsent for "", kUnknown where its producer was refused. Outer
  // names are captured (constants are taken over as they are).
  ValueId lookup(const std::string& name);
  void define(const std::string& name, ValueId value);
  // The value in the type that --keep gives.
  ValueId kept(const std::string& name, ValueId value);
  // A value that no operator can use (a string); only a reader of it has a problem.
  void define_unusable(const std::string& name, std::string type, std::string why);
  // The fault of such a value; null for others.
  struct Unusable {
    std::string type, why;
  };
  const Unusable* unusable(const std::string& name) const;
  // A sequence of tensors that the lowering holds as a list: whether a name is one (is_sequence), and its
  // items. Null: `value` is not a sequence.
  ValueId add_sequence(std::vector<ValueId> items);
  const std::vector<ValueId>* sequence(ValueId value) const;
  // A sequence whose number of tensors depends on data, all of one shape: they are stacked along a first
  // axis, which is bounded. kAbsent: `value` is none. A stack that was refused remains so.
  ValueId add_stack(ValueId stack);
  ValueId stack(ValueId value) const;
  // The remedy by which a value becomes known at conversion: the inputs of the model that decide it, as
  // arguments of --const, or why that is not possible.
  std::string fixing_advice(ValueId value) const;
  // Refuses results that are sequences: only tensors leave a graph.
  void refuse_sequence(const std::string& name, ValueId value);
  // Lowers initializers and nodes in order.
  void lower_nodes(const ImportedGraph& source);

  // Lowers `source` into a graph of its own with the given parameters as its first inputs. `prologue`
  // (optional) may emit into the body and define further names before the nodes are lowered. Refusals go to
  // `diagnostics`. nullopt: refused.
  struct Parameter {
    std::string name;
    ValueFact fact;
  };
  using Prologue = std::function<void(GraphLowering& body)>;
  // May replace the body's results (its graph's outputs), of which some may be unknown.
  using Epilogue = std::function<void(GraphLowering& body)>;
  std::optional<LoweredBody> lower_body(const ImportedGraph& source, const std::vector<Parameter>& parameters,
                                        Diagnostics& diagnostics, const Prologue& prologue = {},
                                        const Epilogue& epilogue = {});
  // In a body: the enclosing graph's value as one of this graph.
  ValueId capture(ValueId outside, const std::string& name);
  // The elements of a captured value, where the enclosing graph follows them; nullopt otherwise.
  std::optional<std::vector<LengthId>> captured_items(ValueId inside);
  // Returns whether `inside` is captured, and constant or computed where it comes from.
  bool captures_computed(ValueId inside);
  // Lowers `source` right here, in this graph: If with a known condition, Scan and Loop unrolled. Parameters
  // are this graph's values. Results are the source's outputs (kUnknown where refused).
  std::vector<ValueId> inline_body(const ImportedGraph& source, const std::vector<ValueId>& parameters);
  // In a body: lowers nodes of the enclosing graph as if they were there, but for the values of some names.
  // Returns the values of the `wanted` names.
  std::vector<ValueId> lower_behind(const std::map<std::string, ValueId>& given,
                                    const std::vector<const ImportedNode*>& nodes,
                                    const std::vector<std::string>& wanted);
  // Returns whether nodes behind the one that is being lowered may be lowered elsewhere: not in
  // lower_behind().
  bool may_move() const { return !behind_; }
  // Lowers a node of source() before its turn.
  void lower_early(const ImportedNode& node);
  // A node of source() has been lowered elsewhere, and gave these.
  void set_done(const ImportedNode& node) { done_.back().insert(&node); }
  // The cost so far of this graph and of those around and in it.
  struct Cost {
    size_t operations = 0;
    uint64_t computed_before = 0, kept_before = 0;  // bytes of other models' constants
    uint64_t most_computed = 0, most_kept = 0;      // bytes of this one's that folding may compute and keep
    std::string refusal, node, op;  // what exceeds one of these, and where; empty: nothing does
  };
  const Cost& cost() const { return cost_; }
  // The context of the model's main graph; other graphs have no caches.
  const ContextValues& context() const { return context_; }
  void set_context(ContextValues context) { context_ = std::move(context); }
  // Enters what nodes become, those of bodies too, into `fates`.
  void set_fates(NodeFates* fates) { fates_ = fates; }
  // Enters the types of nodes, those of bodies too, into `types`.
  void set_types(NodeTypesByPlace* types) { types_ = types; }

 private:
  void lower_node(const ImportedNode& node);
  void check_folding(const ImportedNode& node);
  void enter_fate(const ImportedNode& node, const std::vector<ValueId>& outputs, size_t nodes_before);
  void enter_types(const NodeLowering& lowering);
  void find_deciders(ValueId value, std::vector<const Value*>* inputs, bool* carried) const;
  bool lookup_here(const std::string& name) const;

  Graph& graph_;
  Builder builder_;
  Lengths lengths_{*this};
  const ImportedModel& model_;
  const LoweringOptions& options_;
  Diagnostics& diagnostics_;
  GraphLowering* outer_;
  Cost own_cost_;
  Cost& cost_;  // the outermost graph's
  NodeFates* fates_ = nullptr;
  NodeTypesByPlace* types_ = nullptr;
  ContextValues context_;
  std::vector<std::unordered_map<std::string, ValueId>> scopes_;
  std::unordered_map<std::string, Unusable> unusable_;
  std::vector<const ImportedGraph*> sources_;
  std::vector<std::set<const ImportedNode*>>
      done_;  // of each source: lowered before their turn, or elsewhere
  bool behind_ = false;
  std::vector<ValueId> captures_;  // the outer graph's ids
  struct Sequence {
    std::vector<ValueId> items;
    ValueId stack = kAbsent;
  };
  std::deque<Sequence> sequences_;
};

// Gives the model's outputs their declared types, or corrects the declarations (rule output.declared).
void settle_output_types(const ImportedGraph& source, GraphLowering& lowering);

// Every value from which `value` is computed, itself included.
std::set<ValueId> ancestors(const Graph& graph, ValueId value);

// Makes every output of the graph a value of its own, by copies: not an input, a constant or another output.
void separate_outputs(Graph& graph);

// Lowers the model's main graph. nullopt: refused; diagnostics hold every reason, those behind open
// dimensions, unbounded loops and growing carried values included. What every node became is entered into
// `fates`, the size of every open dimension into `settled`, every node's types into `types`.
std::optional<Graph> lower_model(const ImportedModel& model, const LoweringOptions& options,
                                 Diagnostics& diagnostics, NodeFates* fates = nullptr,
                                 std::vector<SettledDim>* settled = nullptr,
                                 NodeTypesByPlace* types = nullptr);

}  // namespace sinter::convert
