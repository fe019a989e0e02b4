#include "converter/passes/proofs/expert_rows.h"

#include <algorithm>

#include "converter/flow/element_map.h"
#include "converter/ir/op_traits.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

constexpr int kFollowed = 24;
constexpr int64_t kMostFollowed = int64_t{1} << 24;  // values of more elements are not followed

bool is_wide_integer(DType t) { return t == DType::kInt32 || t == DType::kInt64; }

bool compares(Editor& e, int n, CompareFn fn) {
  return n >= 0 && e.node(n).as<CompareAttrs>()->fn == static_cast<int64_t>(fn);
}

// ElementRun is some elements of a value, by their places in row-major order.
struct ElementRun {
  ValueId of = kAbsent;
  std::vector<int64_t> at;
  bool is_column = false;  // the elements are the first column, and others are not known to be like it
};

// FoundIndices are indices that follow from the places that a NonZero of two axes has found, each from one.
struct FoundIndices {
  int found = -1;               // -1: from no NonZero
  std::vector<int64_t> values;  // for each place the index; or one for all
};

// Returns `count` numbers first, first + step, ...
std::vector<int64_t> steps(int64_t count, int64_t first = 0, int64_t step = 1) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(first + i * step);
  return numbers;
}

// RowProver follows the elements of NonZero's operand to the TopK whose choices they stand for, and those of
// an index to NonZero's results.
class RowProver {
 public:
  explicit RowProver(Editor& e) : e_(e) {}

  std::optional<FoundIndices> indices(ValueId index) {
    const int64_t columns = dims(index).size() == 2 ? dims(index)[1] : 1;
    if (columns == 0) return std::nullopt;
    auto all =
        indices({index, steps(element_count(dims(index)) / columns, 0, columns), columns > 1}, kFollowed);
    return all && all->found >= 0 ? all : std::nullopt;
  }

  // Returns the rows that a NonZero finds; nullopt: not those of one expert.
  std::optional<ExpertRows> rows_of(int found) {
    const ValueId mask = e_.node(found).inputs[0];
    if (dims(mask).size() != 2 || !e_.value(mask).bounded_dims.empty()) return std::nullopt;
    const int64_t count = element_count(dims(mask));
    if (count == 0 || count > kMostFollowed) return std::nullopt;
    const auto compared = test({mask, steps(count)});
    const auto routes = compared ? routes_of(e_, compared->places.of) : std::nullopt;
    if (!routes || routes->index != compared->places.of || routes->rows() != count || compared->number < 0 ||
        compared->number >= routes->experts)
      return std::nullopt;
    std::vector<bool> taken(static_cast<size_t>(count));
    for (const int64_t at : compared->places.at) taken[static_cast<size_t>(at)] = true;
    if (std::count(taken.begin(), taken.end(), false) > 0) return std::nullopt;
    return ExpertRows{found, compared->number, compared->places.at, *routes, kAbsent};
  }

 private:
  struct Test {
    ElementRun places;
    int64_t number = 0;
  };
  const Dims& dims(ValueId id) const { return e_.value(id).dims; }

  std::optional<ElementRun> operand(int n, size_t i, const ElementRun& x) {
    const ElementSources sources(e_.graph(), e_.node(n));
    ElementRun run{e_.node(n).inputs[i], {}, x.is_column};
    if (x.is_column) {
      const auto map = element_map(e_.graph(), e_.node(n), i);
      if (!map || map->is_flat) return std::nullopt;
      const int columns = map->following(1);
      run.is_column = columns >= 0 && map->axes[static_cast<size_t>(columns)].step != 0;
      if (run.is_column && columns != 1) return std::nullopt;
    }
    for (const int64_t place : x.at) {
      const auto from = sources.place_in(i, place);
      if (!from) return std::nullopt;
      run.at.push_back(*from);
    }
    return run;
  }

  // Returns the x of Where(x < 0, x + length, x), an index that may count from the end; kAbsent: something
  // else.
  ValueId never_below(const Node& choice) {
    const int less = e_.made_by<CompareAttrs>(choice.inputs[0]);
    const bool below = compares(e_, less, CompareFn::kLess) && e_.node(less).inputs[0] == choice.inputs[2] &&
                       number_of(e_, e_.node(less).inputs[1]) == 0.0;
    return below && dims(choice.inputs[2]) == dims(choice.outputs[0]) ? choice.inputs[2] : kAbsent;
  }

  // Returns the elements that integers or truths come from by operations that move them.
  ElementRun source(ElementRun x) {
    for (int steps = 0; steps < kFollowed; ++steps) {
      const int n = e_.producer(x.of);
      if (n < 0) return x;
      const Node& node = e_.node(n);
      std::optional<ElementRun> next;
      if (moves_by_attributes(node.attrs)) {
        next = operand(n, 0, x);
      } else if (node.op() == Op::kCast && is_wide_integer(e_.value(x.of).dtype) &&
                 is_wide_integer(e_.value(node.inputs[0]).dtype)) {
        next = ElementRun{node.inputs[0], x.at, x.is_column};
      } else if (node.op() == Op::kWhere) {
        const ValueId same = never_below(node);
        if (same >= 0 && is_place(e_, same)) next = ElementRun{same, x.at, x.is_column};
      }
      if (!next) return x;
      x = *next;
    }
    return x;
  }

  // Returns the places of a TopK that elements of NonZero's operand compare with one number; nullopt: they do
  // something else.
  std::optional<Test> test(ElementRun x) {
    x = source(x);
    if (const int cast = e_.made_by<CastAttrs>(x.of); cast >= 0 && e_.value(x.of).dtype == DType::kBool &&
                                                      e_.value(e_.node(cast).inputs[0]).dtype != DType::kBool)
      x = source({e_.node(cast).inputs[0], x.at, x.is_column});
    if (const int hot = e_.made_by<WhereAttrs>(x.of); hot >= 0) {
      const auto on = number_of(e_, e_.node(hot).inputs[1]), off = number_of(e_, e_.node(hot).inputs[2]);
      const auto condition = operand(hot, 0, x);
      if (!on || !off || *on == 0 || *off != 0 || !condition) return std::nullopt;
      x = source(*condition);
    }
    const int equal = e_.made_by<CompareAttrs>(x.of);
    if (!compares(e_, equal, CompareFn::kEqual)) return std::nullopt;
    const auto left = operand(equal, 0, x), right = operand(equal, 1, x);
    if (!left || !right) return std::nullopt;
    ElementRun sides[] = {source(*left), source(*right)};
    for (size_t side = 0; side < 2; ++side)
      if (const auto numbers = constant_numbers(sides[1 - side]); !numbers.empty())
        return numbers == steps(static_cast<int64_t>(numbers.size()), numbers[0], 0)
                   ? std::optional(Test{sides[side], numbers[0]})
                   : std::nullopt;
    return std::nullopt;
  }

  // Returns whether truths, one for each row, are true for the rows that a NonZero has found and for no
  // others.
  bool is_used(ElementRun mask, int found) {
    mask = source(mask);
    const int less = e_.made_by<CompareAttrs>(mask.of);
    if (!compares(e_, less, CompareFn::kLess) || e_.node(less).inputs[1] != e_.node(found).outputs[1])
      return false;
    const auto counts = operand(less, 0, mask);
    return counts && !counts->is_column &&
           constant_numbers(*counts) == steps(dims(e_.node(found).outputs[0])[1]);
  }

  // Returns the numbers of some elements of a constant; empty: it is not one of integers.
  std::vector<int64_t> constant_numbers(const ElementRun& x) const {
    const ConstantPtr& c = e_.value(x.of).constant;
    std::vector<int64_t> numbers;
    if (!c || !is_integer(c->dtype()) || c->size() > kMostFollowed) return numbers;
    const std::vector<int64_t> all = c->as_int64s();
    for (const int64_t at : x.at) numbers.push_back(all[static_cast<size_t>(at)]);
    return numbers;
  }

  std::optional<FoundIndices> indices(const ElementRun& x, int depth) {
    if (depth == 0 || !is_integer(e_.value(x.of).dtype)) return std::nullopt;
    if (const auto number = number_of(e_, x.of)) return FoundIndices{-1, {static_cast<int64_t>(*number)}};
    const int n = e_.producer(x.of);
    if (n < 0) return std::nullopt;
    const Node& node = e_.node(n);
    const auto operand_indices = [&](size_t i) {
      const auto next = operand(n, i, x);
      return next ? indices(*next, depth - 1) : std::nullopt;
    };
    if (moves_by_attributes(node.attrs) || node.op() == Op::kCast) return operand_indices(0);
    if (node.op() == Op::kNonZero && node.outputs[0] == x.of && dims(x.of)[0] == 2) {
      // One row of the result has the places along one axis.
      const int64_t rows = dims(x.of)[1], axis = rows > 0 && !x.at.empty() ? x.at[0] / rows : 2;
      if (axis > 1 || x.is_column || x.at != steps(rows, axis * rows)) return std::nullopt;
      const int64_t width = dims(node.inputs[0])[1];
      FoundIndices r{n, steps(rows)};
      for (int64_t& value : r.values) value = axis == 0 ? value / width : value % width;
      return r;
    }
    if (unclamped(node.as<MulAttrs>()) || unclamped(node.as<AddAttrs>())) {
      auto a = operand_indices(0), b = a ? operand_indices(1) : std::nullopt;
      if (!b || (a->found >= 0 && b->found >= 0 && a->found != b->found)) return std::nullopt;
      if (a->found < 0) std::swap(a, b);
      for (size_t i = 0; i < a->values.size(); ++i) {
        const int64_t other = b->values[b->values.size() == 1 ? 0 : i];
        a->values[i] = node.op() == Op::kMul ? a->values[i] * other : a->values[i] + other;
      }
      return a;
    }
    if (node.op() != Op::kWhere) return std::nullopt;
    // Padding is filled; an index from the end is one that is negative.
    if (never_below(node) >= 0) {
      const auto r = operand_indices(2);
      const bool below =
          r && std::any_of(r->values.begin(), r->values.end(), [](int64_t i) { return i < 0; });
      return below ? std::nullopt : r;
    }
    const auto r = operand_indices(1);
    const auto mask = operand(n, 0, x);
    const bool filled =
        r && r->found >= 0 && mask && number_of(e_, node.inputs[2]) && is_used(*mask, r->found);
    return filled ? r : std::nullopt;
  }

  Editor& e_;
};

Names named(const FoundIndices& index, const ExpertRows& rows) {
  std::vector<int64_t> tokens = rows.choice;
  for (int64_t& token : tokens) token /= rows.routes.choices;
  return index.values == tokens        ? Names::kTokens
         : index.values == rows.choice ? Names::kChoices
                                       : Names::kNothing;
}

}  // namespace

std::optional<double> number_of(Editor& e, ValueId id) {
  if (id < 0 || !e.value(id).constant || e.value(id).constant->size() < 1 ||
      e.value(id).constant->size() > kMostFollowed)
    return std::nullopt;
  const std::vector<double> all = e.value(id).constant->as_doubles();
  return std::all_of(all.begin(), all.end(), [&](double d) { return d == all[0]; }) ? std::optional(all[0])
                                                                                    : std::nullopt;
}

std::optional<ExpertRows> rows_of_tokens(Editor& e, ValueId index) {
  RowProver prover(e);
  const auto all = prover.indices(index);
  auto rows = all ? prover.rows_of(all->found) : std::nullopt;
  return rows && named(*all, *rows) == Names::kTokens ? rows : std::nullopt;
}

Names named_by(Editor& e, ValueId index, const ExpertRows& rows) {
  const auto all = RowProver(e).indices(index);
  return all && all->found == rows.found ? named(*all, rows) : Names::kNothing;
}

}  // namespace sinter::convert
