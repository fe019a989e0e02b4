// Builder: appends nodes to a graph, inferring types and shapes and folding what is constant.
#pragma once

#include <string>
#include <vector>

#include "converter/ir/graph.h"
#include "runtime/core/status.h"

namespace sinter::convert {

// dtype and dims of each output of an operation, by the kernels' own inference. Control ops are not for this.
struct ValueFact {
  DType dtype = DType::kNone;
  Dims dims;
  ConstantPtr constant = {};  // of an operand, if it is known: the rule of a custom operator may read it
};
Status infer_outputs(const OpAttrs& attrs, const std::vector<ValueFact>& inputs, size_t output_count,
                     const std::vector<bool>& wanted, std::vector<ValueFact>* outputs);

// Runs the reference kernel on constants (absent operands: null). float16 and bfloat16 are computed in
// float32 and rounded to their own type. One constant per output, with its recipe (recipe.h) if it is much
// larger than what it comes from.
Status evaluate(const OpAttrs& attrs, const std::vector<ConstantPtr>& inputs, size_t output_count,
                std::vector<ConstantPtr>* outputs, bool recipes = true);
// The same, of an operation with one output; null: it failed.
ConstantPtr evaluated(const OpAttrs& attrs, const std::vector<ConstantPtr>& inputs, bool recipes = true);

class Builder {
 public:
  // Names and origins that new nodes get.
  struct Origin {
    std::string name, op_type;
  };
  explicit Builder(Graph& graph) : graph_(&graph) {}
  Graph& graph() { return *graph_; }
  void set_origin(Origin origin) { origin_ = std::move(origin); }
  // Where emitted nodes go: at the end, or (for passes) collected apart from the graph's list.
  void set_target(std::vector<Node>* target) { target_ = target; }
  // Largest result that folding may keep in memory and file beyond what its inputs took, in bytes; widened
  // weights apart.
  static constexpr size_t kFoldSlack = 64 << 10;

  // Appends one operation. On success `results` has output_count ids (all used). Constant results need no
  // node.
  Status emit(OpAttrs attrs, std::vector<ValueId> inputs, size_t output_count, std::vector<ValueId>* results);
  // With outputs that are not used (kAbsent in results).
  Status emit(OpAttrs attrs, std::vector<ValueId> inputs, const std::vector<bool>& wanted,
              std::vector<ValueId>* results);

 private:
  Graph* graph_;
  Origin origin_;
  std::vector<Node>* target_ = nullptr;
};

}  // namespace sinter::convert
