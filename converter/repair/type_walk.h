// The walk over a model's nodes that finds the types which each must read, and the edits for them.
//
// What the lowering has settled (node_types.h) decides; the standard's signatures (signatures.h) are met in
// any case, so that the result is well typed by construction.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "converter/diagnostics/diagnostics.h"
#include "converter/import/node_types.h"
#include "converter/repair/edits.h"
#include "converter/repair/typed_values.h"

namespace sinter::convert {

// What all walks over one model share.
struct WalkContext {
  const ImportedModel& model;  // its functions are not inlined
  const NodeTypesByPlace& types;
  Diagnostics& diagnostics;
  ModelEdits* edits;
  // The types that loops carry, by the node's full place. A walk that has changed one is not the last.
  std::map<std::string, std::vector<OnnxType>> carried = {};
  bool again = false;
};

class RootWalk {
 public:
  // An operand of a function's call.
  struct Argument {
    OnnxType type = 0;
    ConstantPtr constant;
  };

  explicit RootWalk(WalkContext& context, int64_t opset) : context_(context), opset_(opset) {}

  // Types the main graph and enters its edits.
  void main_graph();
  // Types a function for one call; returns the types of its results.
  std::vector<OnnxType> function(const ImportedFunction& f, const std::vector<Argument>& arguments,
                                 std::string call);

  RootEdits& edits() { return edits_; }
  std::vector<Edit>& list() { return list_; }

 private:
  // A node with the types of its operands.
  struct Typed {
    const ImportedNode& node;
    TypedScope& scope;
    const NodeTypes* settled = nullptr;  // null: the lowering has not reached it
    std::vector<OnnxType> has, wants;
    std::vector<ConstantPtr> constants;
    std::vector<TypeRule> rules;
    std::vector<std::string> reasons;
    std::vector<bool> left_out;
    bool conformed = false;  // the standard required another type than was settled
  };

  // type_walk.cc
  void nodes(const std::vector<ImportedNode>& all, TypedScope& scope);
  void node(const ImportedNode& n, TypedScope& scope);
  Typed typed(const ImportedNode& n, TypedScope& scope);
  void decide(Typed& t);
  bool conform(Typed& t, const Signature& signature);
  bool meet(Typed& t, const std::vector<size_t>& members, const TypeSet& set, int version);
  void want(Typed& t, size_t i, OnnxType type, TypeRule rule, std::string reason);
  std::vector<OnnxType> results_of(const Typed& t, const std::optional<Signature>& signature);
  OnnxType free_result(const Typed& t, size_t k, const TypeSet& set);
  void define_results(const Typed& t, const std::vector<OnnxType>& types, bool cast_back);
  void read_operands(Typed& t);
  OnnxType settled_result(const Typed& t, size_t k) const;
  void refuse(const ImportedNode& n, std::string why, std::string remedy);
  std::string full_place(const ImportedNode& n) const { return prefix_ + n.place; }

  // type_bodies.cc
  TypedScope& open_scope(const ImportedGraph& graph, const std::string& key, TypedScope* outer);
  std::vector<OnnxType> body(const ImportedGraph& graph, const std::string& key, TypedScope& outer,
                             const std::vector<OnnxType>& parameters, TypedScope** inner);
  void if_node(Typed& t);
  void loop_node(Typed& t, size_t first_carried, size_t carried, bool is_loop);
  void map_node(Typed& t);
  void call_node(Typed& t, const ImportedFunction& f, size_t number);
  void want_output(TypedScope& scope, size_t output, OnnxType type, const char* reason);
  void main_outputs(TypedScope& scope);

  // choose_edits.cc
  void choose_all();
  void choose(TypedValue& v, TypedScope& scope);
  void choose_output(TypedValue& v, TypedScope& scope, const ValueReader& output);
  bool retypes(const TypedValue& v, OnnxType type) const;
  void correct_declarations(TypedScope& scope);
  std::string fresh(const std::string& wanted);
  void redirect(const ValueReader& reader, const std::string& name);
  void note(EditKind kind, const TypedValue& v, const ValueReader& reader, OnnxType after,
            std::string made = {});
  void collect_names(const std::vector<ImportedNode>& nodes);
  void collect_names(const ImportedGraph& graph);

  WalkContext& context_;
  int64_t opset_;
  std::string prefix_;  // of the places of a function's nodes
  RootEdits edits_;
  std::vector<Edit> list_;
  std::deque<TypedScope> scopes_;
  std::set<std::string> names_;
  TypedScope* main_ = nullptr;
};

// Returns a node's number in its root.
size_t place_number(const ImportedNode& node);
// Returns a constant in another type, as a Cast gives it.
ConstantPtr cast_constant(const ConstantPtr& constant, DType to);

}  // namespace sinter::convert
