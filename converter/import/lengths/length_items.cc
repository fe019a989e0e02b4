// Lengths: the elements of small integer values, through shape arithmetic.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "converter/import/lengths/lengths.h"
#include "converter/import/lower.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

bool followed(DType t) { return t == DType::kInt64 || t == DType::kInt32 || t == DType::kBool; }

}  // namespace

const Node* Lengths::producer(ValueId v) {
  const Graph& graph = owner_.graph();
  indexed_ = std::min(indexed_, graph.nodes.size());
  for (; indexed_ < graph.nodes.size(); ++indexed_)
    for (const ValueId out : graph.nodes[indexed_].outputs) producers_[out] = indexed_;
  const auto it = producers_.find(v);
  if (it == producers_.end() || it->second >= graph.nodes.size()) return nullptr;
  const Node& node = graph.nodes[it->second];
  const bool is = std::find(node.outputs.begin(), node.outputs.end(), v) != node.outputs.end();
  return is ? &node : nullptr;
}

std::vector<LengthId> Lengths::element_symbols(ValueId v) {
  const Value value = owner_.graph().value(v);
  const int64_t size = element_count(value.dims);
  const auto proven = integer_range(owner_.graph(), v);
  const IntegerRange range =
      proven ? *proven
             : IntegerRange{std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  ValueId flat = v;
  if (value.dtype != DType::kInt64) {
    flat = emit(CastAttrs{static_cast<int64_t>(DType::kInt64), 1}, {flat});
    const std::string name = value.name.empty() ? fmt::format("value {}", v) : value.name;
    owner_.graph().value(flat).name = fmt::format("{} as lengths", name);
    owner_.ledger().add({owner_.graph().value(flat).name,
                         "",
                         "",
                         value.dtype,
                         DType::kInt64,
                         TypeRule::kOpCompute,
                         "lengths are computed in int64",
                         TypeEffect::kCast,
                         {}});
  }
  if (value.dims.size() > 1) flat = emit(ViewAttrs{IntList{size}, -1}, {flat});
  std::vector<LengthId> all;
  for (int64_t i = 0; i < size; ++i) {
    const ValueId one = size == 1 ? flat : emit(SliceAttrs{IntList{i}, IntList{1}, IntList{1}}, {flat});
    all.push_back(symbol(value.dims.empty() ? flat : emit(ViewAttrs{IntList{}, -1}, {one}), range));
  }
  return all;
}

std::optional<std::vector<LengthId>> Lengths::items(ValueId v) {
  if (v < 0) return std::nullopt;
  if (const auto it = items_.find(v); it != items_.end()) return it->second;
  const Value& value = owner_.graph().value(v);
  if (!followed(value.dtype) || !value.bounded_dims.empty() || element_count(value.dims) > kMostItems)
    return std::nullopt;
  std::optional<std::vector<LengthId>> all;
  if (value.constant) {
    all.emplace();
    for (const int64_t x : value.constant->as_int64s()) all->push_back(constant(x));
  } else {
    all = computed_items(v);
    const auto type = range_of_type(owner_.graph().value(v).dtype);
    // Numbers beyond the type have wrapped.
    const bool fits = all && std::all_of(all->begin(), all->end(), [&](LengthId id) {
                        return !type || (type->low <= range(id).low && range(id).high <= type->high);
                      });
    if (!fits && owner_.graph().value(v).dtype == DType::kBool) return std::nullopt;  // not a length
    if (!fits) all = element_symbols(v);
  }
  items_[v] = *all;
  return all;
}

bool Lengths::computed(ValueId v) {
  if (owner_.graph().value(v).constant || items_.contains(v) || producer(v) != nullptr) return true;
  return owner_.captures_computed(v);
}

std::optional<std::vector<int64_t>> Lengths::known_items(ValueId v) {
  // Nothing is proven of an input, and asking would enter its elements as lengths.
  if (v < 0 || !computed(v)) return std::nullopt;
  const auto all = items(v);
  if (!all) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const LengthId id : *all) {
    const auto number = known(id);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

std::optional<std::vector<LengthId>> Lengths::computed_items(ValueId v) {
  const Node* node = producer(v);
  if (node == nullptr) return owner_.captured_items(v);
  if (!node->bodies.empty()) return std::nullopt;
  const Node copy = *node;  // what is emitted meanwhile moves the nodes
  return items_of(copy, v);
}

std::optional<std::vector<LengthId>> Lengths::items_of(const Node& node, ValueId v) {
  const auto size = static_cast<size_t>(element_count(owner_.graph().value(v).dims));
  std::vector<std::vector<LengthId>> in;
  for (const ValueId id : node.inputs) {
    const auto one = items(id);
    if (!one) return std::nullopt;
    in.push_back(*one);
  }
  // Elements of operands that have all of them, or one for all.
  const auto at = [&](size_t operand, size_t i) { return in[operand][in[operand].size() == 1 ? 0 : i]; };
  const auto each = [&](auto f) -> std::optional<std::vector<LengthId>> {
    for (const auto& operand : in)
      if (operand.size() != size && operand.size() != 1) return std::nullopt;
    std::vector<LengthId> all;
    for (size_t i = 0; i < size; ++i) all.push_back(f(i));
    return all;
  };
  const auto pairwise = [&](LengthFn fn) {
    return each([&](size_t i) { return combine(fn, at(0, i), at(1, i)); });
  };
  const auto fold = [&](LengthFn fn) {
    std::vector<LengthId> all{in[0].empty() ? constant(fn == LengthFn::kMul ? 1 : 0) : in[0][0]};
    for (size_t i = 1; i < in[0].size(); ++i) all[0] = combine(fn, all[0], in[0][i]);
    return all;
  };
  switch (node.op()) {
    case Op::kView:
      return node.as<ViewAttrs>()->dtype < 0 ? std::optional(in[0]) : std::nullopt;
    case Op::kCopy:
      return in[0];
    case Op::kCast:
      if (owner_.graph().value(v).dtype != DType::kBool) return in[0];
      return each(
          [&](size_t i) { return sub(constant(1), combine(LengthFn::kEqual, in[0][i], constant(0))); });
    case Op::kBroadcast:
      return in[0].size() == 1 ? std::optional(std::vector<LengthId>(size, in[0][0])) : std::nullopt;
    case Op::kSlice: {
      const auto* a = node.as<SliceAttrs>();
      if (a->starts.size() != 1) return std::nullopt;
      std::vector<LengthId> all;
      for (size_t i = 0; i < size; ++i)
        all.push_back(in[0][static_cast<size_t>(a->starts[0] + static_cast<int64_t>(i) * a->steps[0])]);
      return all;
    }
    case Op::kConcat: {
      if (owner_.graph().value(v).dims.size() != 1) return std::nullopt;
      std::vector<LengthId> all;
      for (const auto& operand : in) all.insert(all.end(), operand.begin(), operand.end());
      return all;
    }
    case Op::kGather: {
      if (owner_.graph().value(node.inputs[0]).dims.size() != 1) return std::nullopt;
      std::vector<LengthId> all;
      for (const LengthId id : in[1]) {
        auto i = known(id);
        const auto length = static_cast<int64_t>(in[0].size());
        if (i && *i < 0) *i += length;
        if (!i || *i < 0 || *i >= length) return std::nullopt;
        all.push_back(in[0][static_cast<size_t>(*i)]);
      }
      return all;
    }
    case Op::kAdd:
      return pairwise(LengthFn::kAdd);
    case Op::kSub:
      return pairwise(LengthFn::kSub);
    case Op::kMul:
      return pairwise(LengthFn::kMul);
    case Op::kDiv:
      return pairwise(LengthFn::kDiv);
    case Op::kMin:
      return pairwise(LengthFn::kMin);
    case Op::kMax:
      return pairwise(LengthFn::kMax);
    case Op::kMod:
      for (const auto& operand : in)
        for (const LengthId id : operand)
          if (range(id).low < 0) return std::nullopt;
      return pairwise(LengthFn::kMod);
    case Op::kNeg:
      return each([&](size_t i) { return sub(constant(0), in[0][i]); });
    case Op::kBitNot:
      if (owner_.graph().value(v).dtype != DType::kBool) return std::nullopt;
      return each([&](size_t i) { return sub(constant(1), in[0][i]); });
    case Op::kBitwise: {
      const auto fn = static_cast<BitwiseFn>(node.as<BitwiseAttrs>()->fn);
      if (owner_.graph().value(v).dtype != DType::kBool) return std::nullopt;
      if (fn == BitwiseFn::kAnd) return pairwise(LengthFn::kMin);
      return fn == BitwiseFn::kOr ? pairwise(LengthFn::kMax) : std::nullopt;
    }
    case Op::kCompare: {
      const auto fn = static_cast<CompareFn>(node.as<CompareAttrs>()->fn);
      const auto no = [&](LengthId id) { return sub(constant(1), id); };
      return each([&](size_t i) {
        const LengthId a = at(0, i), b = at(1, i);
        switch (fn) {
          case CompareFn::kEqual:
            return combine(LengthFn::kEqual, a, b);
          case CompareFn::kNotEqual:
            return no(combine(LengthFn::kEqual, a, b));
          case CompareFn::kLess:
            return combine(LengthFn::kLess, a, b);
          case CompareFn::kGreater:
            return combine(LengthFn::kLess, b, a);
          case CompareFn::kLessOrEqual:
            return no(combine(LengthFn::kLess, b, a));
          default:
            return no(combine(LengthFn::kLess, a, b));
        }
      });
    }
    case Op::kWhere:
      for (const LengthId id : in[0])
        if (!known(id)) return std::nullopt;
      return each([&](size_t i) { return *known(at(0, i)) != 0 ? at(1, i) : at(2, i); });
    case Op::kReduce: {
      if (size != 1) return std::nullopt;
      switch (static_cast<ReduceFn>(node.as<ReduceAttrs>()->fn)) {
        case ReduceFn::kSum:
          return fold(LengthFn::kAdd);
        case ReduceFn::kProd:
          return fold(LengthFn::kMul);
        case ReduceFn::kMin:
          return in[0].empty() ? std::nullopt : std::optional(fold(LengthFn::kMin));
        case ReduceFn::kMax:
          return in[0].empty() ? std::nullopt : std::optional(fold(LengthFn::kMax));
        default:
          return std::nullopt;
      }
    }
    default:
      return std::nullopt;
  }
}

}  // namespace sinter::convert
