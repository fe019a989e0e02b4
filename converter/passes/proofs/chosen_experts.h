// ChosenExperts computes what all experts compute, for the rows of chosen experts alone.
//
// Models write a mixture of experts without an operation for it: each expert is applied to the rows that
// chose it, or all of them to all rows. Either way a row of an expert's result depends on one row of its
// operands, so that the same operations can be applied to one row for each choice, with the weights of its
// expert. The walk asks what an operation becomes for these rows, which the map of elements does not say.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "converter/passes/editor.h"

namespace sinter::convert {

// Routes are a TopK's places [tokens, choices] among the experts.
struct Routes {
  ValueId index = kAbsent;
  int64_t tokens = 0, choices = 0, experts = 0;
  int64_t rows() const { return tokens * choices; }
};

// Returns whether an operation finds this value as places along an axis, which are never negative.
bool is_place(Editor& e, ValueId id);
// Returns the places [tokens, choices] that a TopK finds along the last axis, if `id` is them, cast or not.
std::optional<Routes> routes_of(Editor& e, ValueId id);

// Returns the narrow constant that a weight is widened from, or the weight; null: a product does not take its
// type.
ConstantPtr narrow_or_float_weights(const ConstantPtr& c);

class ChosenExperts {
 public:
  // Values are one value of each expert; or one value with the experts along its first axis.
  using Values = std::vector<ValueId>;
  // Leaf returns the rows of values that experts do not compute, [rows, columns] in the order of the places;
  // kAbsent: the values are computed from others.
  using Leaf = std::function<ValueId(const Values&)>;

  // Everything is inserted before node n.
  ChosenExperts(Editor& e, int n, const Routes& routes, bool joined, Leaf leaf);

  // Returns [rows, columns]; kAbsent: experts are not applied row by row, or by operations that are not
  // known.
  ValueId rows(const Values& values);
  // Returns [tokens, columns], the sum over a token's choices.
  ValueId sum(ValueId rows);

  ValueId view(ValueId id, const Dims& to);
  // Returns the rows of x [tokens, columns], each for all choices of its token.
  ValueId repeated(ValueId x, int64_t columns);

 private:
  ValueId computed(const Values& values);
  ValueId elementwise(const Values& values);
  ValueId operand(const Values& values, const Dims& result, int64_t width);
  ValueId product(const Values& values);
  ValueId low_bit_product(const Values& values);
  ValueId apply(ValueId x, ConstantPtr weights, const std::string& name, ConstantPtr bias);
  ValueId along_columns(const Values& values);
  Values inputs(const Values& values, size_t i);
  int64_t columns(ValueId id);
  ValueId expert();
  std::vector<ConstantPtr> constants(const Values& values);
  // Returns one constant of all experts, [experts, dims...]; null: they have none of one type and size.
  ConstantPtr stacked(const Values& values);
  // Returns for each row the numbers of its expert.
  ValueId of_experts(ConstantPtr table, int64_t columns);

  Editor& e_;
  int n_;
  Routes routes_;
  bool joined_;
  Leaf leaf_;
  ValueId expert_ = kAbsent;
  std::map<Values, ValueId> known_;
};

}  // namespace sinter::convert
