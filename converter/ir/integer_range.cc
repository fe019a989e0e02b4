#include "converter/ir/integer_range.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <unordered_map>
#include <vector>

#include "converter/ir/op_traits.h"
#include "converter/ir/recipe.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

constexpr int kDepth = 16, kConstantDepth = 48;
constexpr int64_t kMostLookedAt = 65536;

using Range = std::optional<IntegerRange>;

bool inside(IntegerRange inner, IntegerRange outer) {
  return outer.low <= inner.low && inner.high <= outer.high;
}

IntegerRange hull(IntegerRange a, IntegerRange b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

Range added(IntegerRange a, IntegerRange b) {
  IntegerRange r;
  if (__builtin_add_overflow(a.low, b.low, &r.low) || __builtin_add_overflow(a.high, b.high, &r.high))
    return std::nullopt;
  return r;
}
Range negated(IntegerRange a) {
  if (a.low == INT64_MIN) return std::nullopt;
  return IntegerRange{-a.high, -a.low};
}
Range multiplied(IntegerRange a, IntegerRange b) {
  std::array<int64_t, 4> corners{};
  size_t i = 0;
  for (const int64_t x : {a.low, a.high})
    for (const int64_t y : {b.low, b.high})
      if (__builtin_mul_overflow(x, y, &corners[i++])) return std::nullopt;
  const auto [low, high] = std::minmax_element(corners.begin(), corners.end());
  return IntegerRange{*low, *high};
}

constexpr Range kTrue = IntegerRange{1, 1}, kFalse = IntegerRange{0, 0}, kEither = IntegerRange{0, 1};

Range compared(CompareFn fn, IntegerRange a, IntegerRange b) {
  switch (fn) {
    case CompareFn::kLess:
      return a.high < b.low ? kTrue : a.low >= b.high ? kFalse : kEither;
    case CompareFn::kLessOrEqual:
      return a.high <= b.low ? kTrue : a.low > b.high ? kFalse : kEither;
    case CompareFn::kGreater:
      return compared(CompareFn::kLess, b, a);
    case CompareFn::kGreaterOrEqual:
      return compared(CompareFn::kLessOrEqual, b, a);
    case CompareFn::kEqual:
      return a.high < b.low || b.high < a.low ? kFalse : kEither;
    case CompareFn::kNotEqual:
      return a.high < b.low || b.high < a.low ? kTrue : kEither;
  }
  return kEither;
}

Range of_bits(BitwiseFn fn, IntegerRange a, IntegerRange b) {
  switch (fn) {
    case BitwiseFn::kAnd:
      if (a.low < 0 && b.low < 0) return std::nullopt;
      return IntegerRange{0, a.low < 0 ? b.high : b.low < 0 ? a.high : std::min(a.high, b.high)};
    case BitwiseFn::kShiftRight:
      if (a.low < 0 || b.low < 0 || b.low > 62) return std::nullopt;
      return IntegerRange{0, a.high >> b.low};
    default:
      return std::nullopt;
  }
}

// The operands and the result of an operation.
struct Operands {
  size_t count = 0;
  std::function<Range(size_t)> range;
  std::function<const Dims&(size_t)> dims;
  std::function<DType(size_t)> dtype;
  std::function<const Dims&()> result_dims;
};

Range any_of(const Operands& in, size_t first) {
  Range all = in.range(first);
  for (size_t i = first + 1; i < in.count && all; ++i) {
    const Range one = in.range(i);
    all = one ? Range(hull(*all, *one)) : std::nullopt;
  }
  return all;
}

// Returns the range of a result before it wraps.
Range computed(const OpAttrs& attrs, const Operands& in) {
  const auto both = [&](const auto& combine) -> Range {
    const Range a = in.range(0), b = in.range(1);
    return a && b ? Range(combine(*a, *b)) : std::nullopt;
  };
  if (moves_one(attrs)) return in.range(0);
  switch (op_of(attrs)) {
    case Op::kCast:
    case Op::kCheckLength:
      return in.range(0);
    case Op::kConcat:
    case Op::kMin:
    case Op::kMax:
      return any_of(in, 0);
    case Op::kWhere: {
      const Range condition = in.range(0);
      if (!condition || condition->low != condition->high) return any_of(in, 1);
      return in.range(condition->low != 0 ? 1 : 2);
    }
    case Op::kCompare:
      return both([&](IntegerRange a, IntegerRange b) {
        return compared(static_cast<CompareFn>(std::get<CompareAttrs>(attrs).fn), a, b);
      });
    case Op::kBitwise:
      return both([&](IntegerRange a, IntegerRange b) {
        return of_bits(static_cast<BitwiseFn>(std::get<BitwiseAttrs>(attrs).fn), a, b);
      });
    case Op::kAdd:
      return both(added);
    case Op::kSub:
      return both([](IntegerRange a, IntegerRange b) -> Range {
        const Range minus = negated(b);
        return minus ? added(a, *minus) : std::nullopt;
      });
    case Op::kMul:
      return both(multiplied);
    case Op::kNeg: {
      const Range a = in.range(0);
      return a ? negated(*a) : a;
    }
    case Op::kAbs: {
      const Range a = in.range(0), minus = a ? negated(*a) : a;
      return minus ? Range(IntegerRange{0, std::max(a->high, minus->high)}) : std::nullopt;
    }
    case Op::kClamp: {
      Range a = in.range(0);
      const auto& clamp = std::get<ClampAttrs>(attrs);
      constexpr double kExact = 9e15;
      if (a && clamp.min > -kExact && clamp.min < kExact)
        a->low = std::max(a->low, static_cast<int64_t>(clamp.min)), a->high = std::max(a->high, a->low);
      if (a && clamp.max > -kExact && clamp.max < kExact)
        a->high = std::min(a->high, static_cast<int64_t>(clamp.max)), a->low = std::min(a->low, a->high);
      return a;
    }
    // The results are positions along an axis.
    case Op::kArgReduce:
    case Op::kTopK:
    case Op::kNonZero: {
      int64_t longest = 1;
      for (const int64_t d : in.dims(0)) longest = std::max(longest, d);
      const IntegerRange positions{0, longest};
      if (op_of(attrs) != Op::kTopK || is_float(in.dtype(0))) return positions;
      const Range values = in.range(0);
      return values ? Range(hull(positions, *values)) : std::nullopt;
    }
    case Op::kReduce: {
      const auto fn = static_cast<ReduceFn>(std::get<ReduceAttrs>(attrs).fn);
      const Range a = in.range(0);
      if (!a || fn == ReduceFn::kMax || fn == ReduceFn::kMin) return a;
      if (fn != ReduceFn::kSum) return std::nullopt;
      const int64_t before = element_count(in.dims(0));
      const int64_t after = std::max<int64_t>(element_count(in.result_dims()), 1);
      return multiplied(*a, {0, std::max<int64_t>(before / after, 1)});
    }
    default:
      return std::nullopt;
  }
}

Range within(const Range& made, const Range& all) { return made && inside(*made, *all) ? made : all; }

// The ranges of computed constants, each found once although constants may share operands.
class ConstantRanges {
 public:
  Range of(const Constant& c, int depth = kConstantDepth) {
    const auto [at, fresh] = known_.emplace(&c, range_of_integers(c.dtype()));
    if (!fresh || !at->second || c.size() == 0) return at->second;
    const Range all = at->second;
    return known_[&c] = looked_at(c) ? of_items(c) : within(of_recipe(c, depth), all);
  }

 private:
  static bool looked_at(const Constant& c) { return c.size() <= kMostLookedAt && !is_sub_byte(c.dtype()); }
  static Range of_items(const Constant& c) {
    const std::vector<int64_t> items = c.as_int64s();
    const auto [low, high] = std::minmax_element(items.begin(), items.end());
    return IntegerRange{*low, *high};
  }
  Range of_recipe(const Constant& c, int depth) {
    const Recipe* by = c.computed_by() ? c.computed_by().get() : c.recipe().get();
    if (by == nullptr || depth == 0) return std::nullopt;
    const auto& inputs = by->inputs;
    return computed(
        by->attrs,
        {inputs.size(), [&](size_t i) { return inputs[i] ? of(*inputs[i], depth - 1) : std::nullopt; },
         [&](size_t i) -> const Dims& { return inputs[i]->dims(); },
         [&](size_t i) { return inputs[i]->dtype(); }, [&]() -> const Dims& { return c.dims(); }});
  }

  std::unordered_map<const Constant*, Range> known_;
};

class Prover {
 public:
  explicit Prover(const Graph& graph) : graph_(graph), producer_(graph.values.size(), nullptr) {
    for (const Node& node : graph.nodes)
      for (const ValueId out : node.outputs)
        if (out >= 0) producer_[static_cast<size_t>(out)] = &node;
  }

  Range of(ValueId id, int depth = kDepth) const {
    if (id < 0) return std::nullopt;
    const Value& value = graph_.value(id);
    const Range all = range_of_type(value.dtype);
    if (!all) return std::nullopt;
    if (value.constant) return integer_range(*value.constant);
    const Node* node = producer_[static_cast<size_t>(id)];
    if (node == nullptr || depth == 0) return all;
    const std::vector<ValueId>& inputs = node->inputs;
    const Operands in{inputs.size(), [&](size_t i) { return of(inputs[i], depth - 1); },
                      [&](size_t i) -> const Dims& { return graph_.value(inputs[i]).dims; },
                      [&](size_t i) { return graph_.value(inputs[i]).dtype; },
                      [&]() -> const Dims& { return graph_.value(node->outputs[0]).dims; }};
    return within(computed(node->attrs, in), all);
  }

  bool is_whole(ValueId id, int depth) const {
    if (id < 0) return false;
    const Value& value = graph_.value(id);
    if (!is_float(value.dtype)) return value.dtype != DType::kNone;
    if (value.constant) return holds_whole_numbers(*value.constant);
    const Node* node = producer_[static_cast<size_t>(id)];
    if (node == nullptr || depth == 0) return false;
    const auto operands = [&](size_t first, size_t count) {
      for (size_t i = first; i < first + count; ++i)
        if (!is_whole(node->inputs[i], depth - 1)) return false;
      return true;
    };
    if (moves_one(node->attrs)) return operands(0, 1);
    switch (node->op()) {
      case Op::kRound:
      case Op::kSign:
        return true;
      case Op::kCast:
      case Op::kNeg:
      case Op::kAbs:
        return operands(0, 1);
      case Op::kWhere:
        return operands(1, 2);
      case Op::kAdd:
      case Op::kSub:
      case Op::kMul:
      case Op::kMin:
      case Op::kMax:
      case Op::kConcat:
        return operands(0, node->inputs.size());
      case Op::kClamp: {
        const auto& clamp = std::get<ClampAttrs>(node->attrs);
        return std::trunc(clamp.min) == clamp.min && std::trunc(clamp.max) == clamp.max && operands(0, 1);
      }
      default:
        return false;
    }
  }

 private:
  static bool holds_whole_numbers(const Constant& c) {
    if (c.size() > kMostLookedAt) return false;
    const std::vector<double> items = c.as_doubles();
    return std::all_of(items.begin(), items.end(), [](double v) { return std::trunc(v) == v; });
  }

  const Graph& graph_;
  std::vector<const Node*> producer_;
};

}  // namespace

std::optional<IntegerRange> range_of_integers(DType t) {
  if (t == DType::kBool) return IntegerRange{0, 1};
  if (t == DType::kInt64) return IntegerRange{INT64_MIN, INT64_MAX};
  const bool sub_byte = is_sub_byte(t) && t != DType::kFloat4E2M1;
  if ((!is_integer(t) && !sub_byte) || t == DType::kUint64) return std::nullopt;
  const int64_t span = int64_t{1} << bit_width(t);
  const bool has_sign = is_signed_integer(t) || t == DType::kInt4 || t == DType::kInt2;
  return has_sign ? IntegerRange{-span / 2, span / 2 - 1} : IntegerRange{0, span - 1};
}

std::optional<IntegerRange> range_of_type(DType t) {
  return is_sub_byte(t) ? std::nullopt : range_of_integers(t);
}

std::optional<IntegerRange> integer_range(const Graph& graph, ValueId id) { return Prover(graph).of(id); }
bool is_whole(const Graph& graph, ValueId id) {
  constexpr int kWholeDepth = 8;
  return Prover(graph).is_whole(id, kWholeDepth);
}
std::optional<IntegerRange> integer_range(const Constant& constant) { return ConstantRanges().of(constant); }

bool holds_range(DType t, IntegerRange range) {
  if (t == DType::kUint64) return range.low >= 0;
  if (const auto all = range_of_type(t)) return inside(range, *all);
  const int bits = t == DType::kFloat64    ? 53
                   : t == DType::kFloat32  ? 24
                   : t == DType::kFloat16  ? 11
                   : t == DType::kBFloat16 ? 8
                                           : 0;
  const int64_t most = int64_t{1} << bits;
  return bits != 0 && inside(range, {-most, most});
}

}  // namespace sinter::convert
