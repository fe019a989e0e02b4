// The operations that may compute in a type of 16 bits where the user prefers that (rules compute.float16 and
// compute.bfloat16), and why the others may not.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "converter/ir/graph.h"
#include "converter/passes/global/half_type.h"
#include "converter/passes/pass.h"

namespace sinter::convert {

// An operation that is two where HalfType::composed: SiLU (x * sigmoid(x)), or arithmetic that clamps its
// result. `second` reads the first's result, behind x for SiLU; without a `first`, it is one.
struct HalfSplit {
  std::optional<OpAttrs> first;
  OpAttrs second;
};
HalfSplit split_for(const HalfType& type, const Node& node);

// Operand i stays float32 where the operation computes in the type: Attention's bias, Rope's cosines and
// sines.
bool stays_float32(Op op, size_t i);

class HalfRules {
 public:
  HalfRules(const HalfType& type, const Graph& graph, const AcceptCall& accept, const Reached& reached);

  // Whether node n computes what the model has in the type, or, where nothing in the model is of that type,
  // in float32.
  bool concerns(int n) const;
  // Empty: node n may compute in the type. Else why it does not.
  std::string refusal(int n) const;
  // A sum or product of node n is not proven to stay in the type's range.
  bool unproven(int n) const { return !(sums_[static_cast<size_t>(n)] <= type_.largest); }
  // Every element of a constant is one of the type.
  bool exact(const Constant& c) const;

 private:
  struct Origins {
    std::set<std::string> values, nodes;
    bool empty() const { return values.empty() && nodes.empty(); }
    bool has(const Graph& graph, const Node& node) const;
  };
  void find_origins();
  void find_wide();
  bool accepts(const Node& node) const;  // in the type
  double rounded(double v) const;
  std::string refusal_of_operands(const Node& node) const;
  std::string refusal_of_constant(const Node& node, size_t operand) const;

  const HalfType& type_;
  const Graph& graph_;
  AcceptCall accept_;
  const Reached& reached_;
  Origins half_, other_;             // in the model of the type; of another one than float32
  std::vector<double> sums_;         // per node: no larger magnitude is added up
  std::vector<const char*> wide_;    // per value: why what leads to it is not rounded, or null
  std::vector<bool> from_integers_;  // per value: made of integers of more than 8 bits by moves and functions
};

}  // namespace sinter::convert
