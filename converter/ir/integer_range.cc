#include "converter/ir/integer_range.h"

#include <algorithm>
#include <array>
#include <vector>

#include "converter/ir/op_traits.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

constexpr int kDepth = 16;
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
    if (value.constant) {
      if (value.constant->size() == 0 || value.constant->size() > kMostLookedAt) return all;
      const std::vector<int64_t> items = value.constant->as_int64s();
      const auto [low, high] = std::minmax_element(items.begin(), items.end());
      return IntegerRange{*low, *high};
    }
    const Node* node = producer_[static_cast<size_t>(id)];
    if (node == nullptr || depth == 0) return all;
    // Numbers beyond the type have wrapped.
    const Range made = computed(*node, depth - 1);
    return made && inside(*made, *all) ? made : all;
  }

 private:
  Range computed(const Node& node, int depth) const {
    const auto in = [&](size_t i) { return of(node.inputs[i], depth); };
    const auto both = [&](const auto& combine) -> Range {
      const Range a = in(0), b = in(1);
      return a && b ? Range(combine(*a, *b)) : std::nullopt;
    };
    if (moves_one(node.attrs)) return in(0);
    switch (node.op()) {
      case Op::kCast:
      case Op::kCheckLength:
        return in(0);
      case Op::kConcat:
      case Op::kMin:
      case Op::kMax:
        return any_of(node, 0, depth);
      case Op::kWhere:
        return any_of(node, 1, depth);
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
        const Range a = in(0);
        return a ? negated(*a) : a;
      }
      case Op::kAbs: {
        const Range a = in(0), minus = a ? negated(*a) : a;
        return minus ? Range(IntegerRange{0, std::max(a->high, minus->high)}) : std::nullopt;
      }
      case Op::kClamp: {
        Range a = in(0);
        const auto* clamp = node.as<ClampAttrs>();
        constexpr double kExact = 9e15;
        if (a && clamp->min > -kExact && clamp->min < kExact)
          a->low = std::max(a->low, static_cast<int64_t>(clamp->min)), a->high = std::max(a->high, a->low);
        if (a && clamp->max > -kExact && clamp->max < kExact)
          a->high = std::min(a->high, static_cast<int64_t>(clamp->max)), a->low = std::min(a->low, a->high);
        return a;
      }
      // Positions along an axis.
      case Op::kArgReduce:
      case Op::kTopK:
      case Op::kNonZero: {
        int64_t longest = 1;
        for (const int64_t d : graph_.value(node.inputs[0]).dims) longest = std::max(longest, d);
        const IntegerRange positions{0, longest};
        if (node.op() != Op::kTopK || is_float(graph_.value(node.inputs[0]).dtype)) return positions;
        const Range values = in(0);
        return values ? Range(hull(positions, *values)) : std::nullopt;
      }
      case Op::kReduce: {
        const auto fn = static_cast<ReduceFn>(node.as<ReduceAttrs>()->fn);
        const Range a = in(0);
        if (!a || fn == ReduceFn::kMax || fn == ReduceFn::kMin) return a;
        if (fn != ReduceFn::kSum) return std::nullopt;
        const int64_t before = element_count(graph_.value(node.inputs[0]).dims);
        const int64_t after = std::max<int64_t>(element_count(graph_.value(node.outputs[0]).dims), 1);
        return multiplied(*a, {0, std::max<int64_t>(before / after, 1)});
      }
      default:
        return std::nullopt;
    }
  }

  Range any_of(const Node& node, size_t first, int depth) const {
    Range all = of(node.inputs[first], depth);
    for (size_t i = first + 1; i < node.inputs.size() && all; ++i) {
      const Range one = of(node.inputs[i], depth);
      all = one ? Range(hull(*all, *one)) : std::nullopt;
    }
    return all;
  }

  const Graph& graph_;
  std::vector<const Node*> producer_;
};

}  // namespace

std::optional<IntegerRange> range_of_type(DType t) {
  if (t == DType::kBool) return IntegerRange{0, 1};
  if (!is_integer(t) || t == DType::kUint64) return std::nullopt;
  if (t == DType::kInt64) return IntegerRange{INT64_MIN, INT64_MAX};
  const int64_t span = int64_t{1} << bit_width(t);
  return is_signed_integer(t) ? IntegerRange{-span / 2, span / 2 - 1} : IntegerRange{0, span - 1};
}

std::optional<IntegerRange> integer_range(const Graph& graph, ValueId id) { return Prover(graph).of(id); }

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
