// What may be computed in float16 where the user prefers that (rule compute.float16), and why the rest may
// not.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "converter/ir/graph.h"
#include "converter/passes/pass.h"

namespace sinter::convert {

inline constexpr double kLargestFloat16 = 65504;

// Operations that are two in float16: SiLU (x * sigmoid(x)), and arithmetic that clamps its result. `second`
// reads the first's result, behind x for SiLU; without a `first`, none does.
struct Float16Split {
  std::optional<OpAttrs> first;
  OpAttrs second;
};
Float16Split split_for_float16(const Node& node);

class Float16Rules {
 public:
  Float16Rules(const Graph& graph, const AcceptCall& accept, const Reached& reached);

  // Whether node n computes what the model has in float16, or, where nothing in the model is float16, in
  // float32.
  bool concerns(int n) const;
  // Empty: node n may compute in float16. Else why it does not.
  std::string refusal(int n) const;
  // A sum or product of node n is not proven to stay below 65504 in magnitude.
  bool unproven(int n) const { return !(largest_[static_cast<size_t>(n)] <= kLargestFloat16); }
  // Every element of a constant is one of float16.
  static bool exact(const Constant& c);

 private:
  struct Origins {
    std::set<std::string> values, nodes;
    bool empty() const { return values.empty() && nodes.empty(); }
    bool has(const Graph& graph, const Node& node) const;
  };
  void find_origins();
  void find_bounds();
  void find_wide();
  bool accepts(const Node& node) const;  // in float16
  double bound(ValueId id) const { return id < 0 ? 0 : bounds_[static_cast<size_t>(id)]; }
  double product_bound(const Node& node) const;
  std::string refusal_of_operands(const Node& node) const;
  std::string refusal_of_constant(const Node& node, size_t operand) const;

  const Graph& graph_;
  AcceptCall accept_;
  const Reached& reached_;
  Origins half_, other_;             // float16 in the model; bfloat16 or float64
  std::vector<double> bounds_;       // per value: no element is larger in magnitude, NaN aside
  std::vector<double> largest_;      // per node: nor is what it adds up before it clamps
  std::vector<const char*> wide_;    // per value: why what leads to it is not rounded to float16, or null
  std::vector<bool> from_integers_;  // per value: made of integers of more than 8 bits by moves and functions
};

}  // namespace sinter::convert
