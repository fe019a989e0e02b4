// Lengths that depend on data, as expressions: what is proven about them at conversion, and which value holds
// each at run time.
//
// An expression is a constant, a symbol (an int64 scalar of the graph with a proven range), or a function of
// two others. Equal expressions have equal ids, so that two axes of one length are recognised. Shape
// arithmetic of a model is followed element by element: `items` gives the elements of a small integer value.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "converter/ir/graph.h"
#include "converter/ir/integer_range.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {

class GraphLowering;
using LengthId = int32_t;  // of one graph's Lengths

enum class LengthFn : uint8_t {
  kConstant,
  kSymbol,
  kAdd,
  kSub,
  kMul,
  kDiv,  // towards zero; by zero: 0
  kMod,  // of non-negative numbers
  kMin,
  kMax,
  // Truths are 1 and 0.
  kEqual,
  kLess
};

// Returns the function of two lengths that an operation computes; nullopt: it computes none.
std::optional<LengthFn> length_function(Op op);

class Lengths {
 public:
  // Values of more elements are not followed.
  static constexpr int64_t kMostItems = 64;
  // No length is proven to be shorter: its maximum is not known.
  static constexpr int64_t kNoMaximum = int64_t{1} << 40;

  explicit Lengths(GraphLowering& owner) : owner_(owner) {}

  LengthId constant(int64_t number);
  // Returns the length that an int64 scalar of the graph holds, which is within `range` whenever it matters.
  LengthId symbol(ValueId scalar, IntegerRange range);
  // Returns the length of the dimension `name`, which callers give in a scalar.
  LengthId given(ValueId scalar, IntegerRange range, const std::string& name);
  // Returns the names of the given lengths that a length follows from.
  std::set<std::string> given_names(LengthId id) const;
  // Returns the remedy where an operation needs a fixed size.
  std::string fixing_advice(LengthId id) const;
  // States that a symbol follows from the given lengths of these names.
  void inherit_names(LengthId symbol, const std::set<std::string>& names);
  LengthId combine(LengthFn fn, LengthId a, LengthId b);
  LengthId add(LengthId a, LengthId b) { return combine(LengthFn::kAdd, a, b); }
  LengthId sub(LengthId a, LengthId b) { return combine(LengthFn::kSub, a, b); }
  LengthId mul(LengthId a, LengthId b) { return combine(LengthFn::kMul, a, b); }
  LengthId div(LengthId a, LengthId b) { return combine(LengthFn::kDiv, a, b); }
  LengthId min(LengthId a, LengthId b) { return combine(LengthFn::kMin, a, b); }
  LengthId max(LengthId a, LengthId b) { return combine(LengthFn::kMax, a, b); }

  IntegerRange range(LengthId id) const { return terms_[static_cast<size_t>(id)].range; }
  int64_t high(LengthId id) const { return range(id).high; }
  // Returns the number, where only one is possible.
  std::optional<int64_t> known(LengthId id) const;
  // Returns whether `a` is at most `b` for all data.
  bool never_above(LengthId a, LengthId b) const;
  // States the size that a length should have: a slice from a running start to a constant behind it has
  // `size` elements but near the end. Operations that need a fixed size take that one, and the run fails
  // where it is not met.
  void expect_size(LengthId id, int64_t size) { expected_[id] = size; }
  // Returns the number of a length if all that it is made of is as expected.
  std::optional<int64_t> expected(LengthId id) const;
  // States that `fixed` is `bounded` where its lengths are as expected, and fails the run elsewhere.
  void give_fixed_form(ValueId bounded, ValueId fixed) { fixed_[bounded] = fixed; }
  ValueId fixed_form(ValueId bounded) const;
  // States that each element of a bounded value of integers or truths is this number, padding aside.
  void give_uniform(ValueId bounded, int64_t number) { uniform_[bounded] = number; }
  std::optional<int64_t> uniform(ValueId bounded) const;
  // Returns the int64 scalar that holds the length; emits the operations that compute it the first time.
  ValueId value(LengthId id);

  // Returns the length of an axis of a value.
  LengthId of_axis(ValueId v, int64_t axis);
  std::vector<LengthId> of_axes(ValueId v);
  // Returns the elements of an integer value or a truth in row-major order; nullopt for other types, for
  // values of more than kMostItems elements and for bounded ones.
  std::optional<std::vector<LengthId>> items(ValueId v);
  // Returns whether the value is constant or computed: nothing is proven of a value that is given at run
  // time.
  bool computed(ValueId v);
  // Returns all elements, where each is known.
  std::optional<std::vector<int64_t>> known_items(ValueId v);
  // States that `v` holds these elements.
  void define(ValueId v, std::vector<LengthId> items) { items_[v] = std::move(items); }
  // Returns a one-dimensional int64 value that holds the lengths.
  ValueId vector(const std::vector<LengthId>& lengths);

  // Returns the node that gives the value; null: none does.
  const Node* producer(ValueId v);

 private:
  struct Term {
    LengthFn fn;
    LengthId a, b;
    int64_t number;  // the number of a constant, or the id of a symbol's value
    IntegerRange range;
  };
  struct Shifted {
    LengthId base;
    int64_t more;
  };
  Shifted shifted(LengthId id) const;
  LengthId add_term(Term term);
  std::optional<LengthId> simplified(LengthFn fn, LengthId a, LengthId b);
  std::optional<std::vector<LengthId>> computed_items(ValueId v);
  std::vector<LengthId> element_symbols(ValueId v);
  std::optional<std::vector<LengthId>> items_of(const Node& node, ValueId v);
  std::optional<std::vector<LengthId>> reduced_items(ReduceFn reduction, const std::vector<LengthId>& in);
  // Returns an element that an operation computes from one element of each operand.
  std::optional<LengthId> computed_item(const Node& node, DType result, const std::vector<LengthId>& in);
  ValueId emit(OpAttrs attrs, std::vector<ValueId> inputs);

  GraphLowering& owner_;
  std::vector<Term> terms_;
  std::map<std::tuple<LengthFn, LengthId, LengthId, int64_t>, LengthId> known_terms_;
  std::unordered_map<LengthId, std::set<std::string>> names_;  // by symbol
  std::unordered_map<LengthId, ValueId> values_;
  std::unordered_map<LengthId, int64_t> expected_;
  std::unordered_map<ValueId, int64_t> uniform_;
  std::unordered_map<ValueId, ValueId> fixed_;
  std::unordered_map<ValueId, std::vector<LengthId>> items_;
  std::unordered_map<ValueId, size_t> producers_;
  size_t indexed_ = 0;  // producers_ has the results of the first nodes of the graph, this many
};

}  // namespace sinter::convert
