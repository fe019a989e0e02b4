// Builder: appends nodes to a graph, infers their types and shapes, and folds operations on constants.
#pragma once

#include <string>
#include <vector>

#include "converter/ir/graph.h"
#include "runtime/core/status.h"

namespace sinter::convert {

// The type and dims of a value, as the kernels' own inference takes and gives them (not for control ops).
struct ValueFact {
  DType dtype = DType::kNone;
  Dims dims;
  ConstantPtr constant = {};  // an operand's constant, which the rule of a custom operator may read
};
Status infer_outputs(const OpAttrs& attrs, const std::vector<ValueFact>& inputs, size_t output_count,
                     const std::vector<bool>& wanted, std::vector<ValueFact>* outputs);

// Runs the reference kernel on constants (absent operands: null), in float32 for narrower floats, and gives a
// constant per output, with its recipe (recipe.h) if it is much larger than its sources.
Status evaluate(const OpAttrs& attrs, const std::vector<ConstantPtr>& inputs, size_t output_count,
                std::vector<ConstantPtr>* outputs, bool recipes = true);
// Returns the constant of an operation with one output; null if it failed.
ConstantPtr evaluated(const OpAttrs& attrs, const std::vector<ConstantPtr>& inputs, bool recipes = true);

class Builder {
 public:
  // The name and origin that new nodes get.
  struct Origin {
    std::string name, op_type;
  };
  explicit Builder(Graph& graph) : graph_(&graph) {}
  Graph& graph() { return *graph_; }
  void set_origin(Origin origin) { origin_ = std::move(origin); }
  // Sets the list of emitted nodes: the graph's own, or (for passes) one apart from it.
  void set_target(std::vector<Node>* target) { target_ = target; }
  // The bytes by which a folded result may be larger than its inputs; widened weights have no limit.
  static constexpr size_t kFoldSlack = 64 << 10;

  // Appends one operation; constant results need no node. `results` gets output_count ids, all used.
  Status emit(OpAttrs attrs, std::vector<ValueId> inputs, size_t output_count, std::vector<ValueId>* results);
  // Appends one operation whose unwanted outputs are not used (kAbsent in results).
  Status emit(OpAttrs attrs, std::vector<ValueId> inputs, const std::vector<bool>& wanted,
              std::vector<ValueId>* results);

 private:
  Graph* graph_;
  Origin origin_;
  std::vector<Node>* target_ = nullptr;
};

}  // namespace sinter::convert
