#include "converter/import/lengths.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "converter/import/lower.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();

// Ends beyond int64 are held at its ends.
int64_t saturated(__int128 x) { return static_cast<int64_t>(std::clamp<__int128>(x, kLowest, kHighest)); }

IntegerRange corners(IntegerRange a, IntegerRange b, int64_t (*f)(int64_t, int64_t)) {
  const std::array<int64_t, 4> all = {f(a.low, b.low), f(a.low, b.high), f(a.high, b.low), f(a.high, b.high)};
  const auto [low, high] = std::minmax_element(all.begin(), all.end());
  return {*low, *high};
}

int64_t quotient(int64_t a, int64_t b) { return b == 0 ? 0 : saturated(static_cast<__int128>(a) / b); }

IntegerRange range_of(LengthFn fn, IntegerRange a, IntegerRange b) {
  switch (fn) {
    case LengthFn::kAdd:
      return {saturated(static_cast<__int128>(a.low) + b.low),
              saturated(static_cast<__int128>(a.high) + b.high)};
    case LengthFn::kSub:
      return {saturated(static_cast<__int128>(a.low) - b.high),
              saturated(static_cast<__int128>(a.high) - b.low)};
    case LengthFn::kMul:
      return corners(a, b, [](int64_t x, int64_t y) { return saturated(static_cast<__int128>(x) * y); });
    case LengthFn::kDiv:
      if (b.low >= 1) return corners(a, b, quotient);
      if (a.low >= 0) return {b.low >= 0 ? 0 : saturated(-static_cast<__int128>(a.high)), a.high};
      return {kLowest, kHighest};
    case LengthFn::kMod:
      if (a.low >= 0 && b.low >= 1) return {0, std::min(a.high, b.high - 1)};
      return {kLowest, kHighest};
    case LengthFn::kMin:
      return {std::min(a.low, b.low), std::min(a.high, b.high)};
    case LengthFn::kMax:
      return {std::max(a.low, b.low), std::max(a.high, b.high)};
    case LengthFn::kEqual:
      if (a.low > b.high || b.low > a.high) return {0, 0};
      return {a.low == a.high && b.low == b.high ? 1 : 0, 1};
    case LengthFn::kLess:
      return {a.high < b.low ? 1 : 0, a.low < b.high ? 1 : 0};
    default:
      return {kLowest, kHighest};
  }
}

bool commutes(LengthFn fn) {
  return fn == LengthFn::kAdd || fn == LengthFn::kMul || fn == LengthFn::kMin || fn == LengthFn::kMax ||
         fn == LengthFn::kEqual;
}

bool followed(DType t) { return t == DType::kInt64 || t == DType::kInt32 || t == DType::kBool; }

}  // namespace

LengthId Lengths::add_term(Term term) {
  const auto key = std::make_tuple(term.fn, term.a, term.b, term.number);
  const auto [it, fresh] = known_terms_.emplace(key, static_cast<LengthId>(terms_.size()));
  if (fresh) terms_.push_back(term);
  return it->second;
}

LengthId Lengths::constant(int64_t number) {
  return add_term({LengthFn::kConstant, -1, -1, number, {number, number}});
}

LengthId Lengths::symbol(ValueId scalar, IntegerRange range) {
  if (const ConstantPtr& c = owner_.graph().value(scalar).constant) return constant(c->as_int64s()[0]);
  const LengthId id = add_term({LengthFn::kSymbol, -1, -1, scalar, range});
  values_[id] = scalar;
  items_[scalar] = {id};
  return id;
}

std::optional<int64_t> Lengths::known(LengthId id) const {
  const IntegerRange r = range(id);
  return r.low == r.high ? std::optional(r.low) : std::nullopt;
}

bool Lengths::never_above(LengthId a, LengthId b) const {
  if (a == b || range(a).high <= range(b).low) return true;
  const Term& t = terms_[static_cast<size_t>(a)];
  return t.fn == LengthFn::kMin && (never_above(t.a, b) || never_above(t.b, b));
}

// A constant stands on the right, and constants of a chain of sums or products are joined.
std::optional<LengthId> Lengths::simplified(LengthFn fn, LengthId a, LengthId b) {
  const Term x = terms_[static_cast<size_t>(a)], y = terms_[static_cast<size_t>(b)];
  const auto number = known(b);
  const auto factor = [&](const Term& t) { return t.fn == LengthFn::kMul ? known(t.b) : std::nullopt; };
  switch (fn) {
    case LengthFn::kAdd:
      if (number == 0) return a;
      if (number && x.fn == LengthFn::kAdd && known(x.b))
        return add(x.a, constant(saturated(static_cast<__int128>(*known(x.b)) + *number)));
      if (x.fn == LengthFn::kSub && x.b == b) return x.a;
      return std::nullopt;
    case LengthFn::kSub:
      if (a == b) return constant(0);
      if (number && *number != kLowest) return add(a, constant(-*number));
      if (x.fn == LengthFn::kAdd && x.a == b) return x.b;
      if (x.fn == LengthFn::kAdd && x.b == b) return x.a;
      return std::nullopt;
    case LengthFn::kMul:
      if (number == 1) return a;
      if (number == 0) return b;
      if (number && factor(x))
        return mul(x.a, constant(saturated(static_cast<__int128>(*factor(x)) * *number)));
      // Constants go outwards: (p * 4) * q is (p * q) * 4.
      if (!number && factor(x)) return mul(mul(x.a, b), x.b);
      if (!number && factor(y)) return mul(mul(a, y.a), y.b);
      return std::nullopt;
    case LengthFn::kDiv:
      if (number == 1) return a;
      if (number && *number > 0 && factor(x) && *factor(x) % *number == 0)
        return mul(x.a, constant(*factor(x) / *number));
      // (p * c) / p: the quotient of an empty whole is free.
      if (factor(x) && x.a == b) return x.b;
      if (factor(x) && factor(y) && x.a == y.a && *factor(y) > 0 && *factor(x) % *factor(y) == 0)
        return constant(*factor(x) / *factor(y));
      if (x.fn == LengthFn::kMul && x.a == b) return x.b;
      if (x.fn == LengthFn::kMul && x.b == b) return x.a;
      if (a == b) return constant(1);
      return std::nullopt;
    case LengthFn::kMod:
      if (number && *number > 0 && factor(x) && *factor(x) % *number == 0) return constant(0);
      if (a == b) return constant(0);
      return std::nullopt;
    case LengthFn::kMin:
      if (a == b || x.range.high <= y.range.low) return a;
      if (y.range.high <= x.range.low) return b;
      if (number && x.fn == LengthFn::kMin && known(x.b))
        return min(x.a, constant(std::min(*known(x.b), *number)));
      return std::nullopt;
    case LengthFn::kMax:
      if (a == b || x.range.low >= y.range.high) return a;
      if (y.range.low >= x.range.high) return b;
      return std::nullopt;
    case LengthFn::kEqual:
      return a == b ? std::optional(constant(1)) : std::nullopt;
    case LengthFn::kLess:
      return a == b ? std::optional(constant(0)) : std::nullopt;
    default:
      return std::nullopt;
  }
}

LengthId Lengths::combine(LengthFn fn, LengthId a, LengthId b) {
  if (commutes(fn) && (known(a) || (!known(b) && b < a))) std::swap(a, b);
  const IntegerRange range = range_of(fn, this->range(a), this->range(b));
  if (range.low == range.high) return constant(range.low);
  if (const auto simple = simplified(fn, a, b)) return *simple;
  return add_term({fn, a, b, 0, range});
}

ValueId Lengths::emit(OpAttrs attrs, std::vector<ValueId> inputs) {
  std::vector<ValueId> out;
  const Status status = owner_.builder().emit(std::move(attrs), std::move(inputs), 1, &out);
  return status.ok() ? out[0] : kUnknown;
}

ValueId Lengths::value(LengthId id) {
  if (const auto it = values_.find(id); it != values_.end()) return it->second;
  const Term t = terms_[static_cast<size_t>(id)];
  ValueId v = kUnknown;
  if (const auto number = known(id)) {
    v = owner_.graph().add_constant(Constant::scalar_int(DType::kInt64, *number));
  } else {
    const ValueId a = value(t.a), b = value(t.b);
    const auto truth = [&](CompareFn fn) {
      return emit(WhereAttrs{}, {emit(CompareAttrs{static_cast<int64_t>(fn)}, {a, b}), value(constant(1)),
                                 value(constant(0))});
    };
    switch (t.fn) {
      case LengthFn::kAdd:
        v = emit(AddAttrs{}, {a, b});
        break;
      case LengthFn::kSub:
        v = emit(SubAttrs{}, {a, b});
        break;
      case LengthFn::kMul:
        v = emit(MulAttrs{}, {a, b});
        break;
      case LengthFn::kDiv:
        v = emit(DivAttrs{}, {a, b});
        break;
      case LengthFn::kMod:
        v = emit(ModAttrs{}, {a, b});
        break;
      case LengthFn::kMin:
        v = emit(MinAttrs{}, {a, b});
        break;
      case LengthFn::kMax:
        v = emit(MaxAttrs{}, {a, b});
        break;
      case LengthFn::kEqual:
        v = truth(CompareFn::kEqual);
        break;
      case LengthFn::kLess:
        v = truth(CompareFn::kLess);
        break;
      default:
        break;
    }
  }
  values_[id] = v;
  items_[v] = {id};
  return v;
}

ValueId Lengths::vector(const std::vector<LengthId>& lengths) {
  std::vector<int64_t> numbers;
  for (const LengthId id : lengths)
    if (const auto number = known(id)) numbers.push_back(*number);
  if (numbers.size() == lengths.size()) return owner_.graph().add_constant(Constant::int64s(numbers));
  std::vector<ValueId> parts;
  for (const LengthId id : lengths) parts.push_back(emit(ViewAttrs{IntList{1}, -1}, {value(id)}));
  const ValueId v = parts.size() == 1 ? parts[0] : emit(ConcatAttrs{0}, parts);
  define(v, lengths);
  return v;
}

LengthId Lengths::of_axis(ValueId v, int64_t axis) {
  const Value& value = owner_.graph().value(v);
  for (const auto& [at, count] : value.extents)
    if (at == axis) {
      const auto it = items_.find(count);
      return it != items_.end() ? it->second[0] : symbol(count, {0, value.dims[static_cast<size_t>(axis)]});
    }
  return constant(value.dims[static_cast<size_t>(axis)]);
}

std::vector<LengthId> Lengths::of_axes(ValueId v) {
  std::vector<LengthId> all;
  const auto rank = static_cast<int64_t>(owner_.graph().value(v).dims.size());
  for (int64_t i = 0; i < rank; ++i) all.push_back(of_axis(v, i));
  return all;
}

// ---- the elements of small integer values

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
  const IntegerRange range = proven ? *proven : IntegerRange{kLowest, kHighest};
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
                         "op.compute",
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
  if (!followed(value.dtype) || !value.extents.empty() || element_count(value.dims) > kMostItems)
    return std::nullopt;
  std::optional<std::vector<LengthId>> all;
  if (value.constant) {
    all.emplace();
    for (const int64_t x : value.constant->as_int64s()) all->push_back(constant(x));
  } else {
    all = computed_items(v);
    const auto type = range_of_type(owner_.graph().value(v).dtype);
    // What leaves the type has wrapped.
    const bool fits = all && std::all_of(all->begin(), all->end(), [&](LengthId id) {
                        return !type || (type->low <= range(id).low && range(id).high <= type->high);
                      });
    if (!fits) all = element_symbols(v);
  }
  items_[v] = *all;
  return all;
}

std::optional<std::vector<int64_t>> Lengths::known_items(ValueId v) {
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
