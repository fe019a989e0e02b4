// Lengths::items follows the elements of small integer values through shape arithmetic.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "converter/flow/element_map.h"
#include "converter/import/lengths/lengths.h"
#include "converter/import/lower.h"
#include "converter/ir/op_traits.h"
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
    if (!fits && owner_.graph().value(v).dtype == DType::kBool)
      return std::nullopt;  // a truth is not a length
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
  // Nothing is proven of an input, and items() would enter its elements as lengths.
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
  const Node copy = *node;  // nodes that are emitted meanwhile move the others
  return items_of(copy, v);
}

std::optional<std::vector<LengthId>> Lengths::items_of(const Node& node, ValueId v) {
  std::vector<std::vector<LengthId>> in;
  for (const ValueId id : node.inputs) {
    const auto one = items(id);
    if (!one) return std::nullopt;
    in.push_back(*one);
  }
  const Value& value = owner_.graph().value(v);
  const int64_t size = element_count(value.dims);
  if (const auto* reduce = node.as<ReduceAttrs>())
    return size == 1 ? reduced_items(static_cast<ReduceFn>(reduce->fn), in[0]) : std::nullopt;
  const ElementSources sources(owner_.graph(), node);
  const auto index = [&](int64_t place) { return known(in[1][static_cast<size_t>(place)]); };
  std::vector<LengthId> all, read;
  for (int64_t i = 0; i < size; ++i) {
    std::optional<LengthId> item;
    if (const auto from = sources.of(i, index)) {
      item = in[from->operand][static_cast<size_t>(from->place)];
    } else if (is_elementwise(node.op())) {
      read.clear();
      for (size_t k = 0; k < in.size(); ++k)
        read.push_back(in[k][static_cast<size_t>(*sources.place_in(k, i))]);
      item = computed_item(node, value.dtype, read);
    }
    if (!item) return std::nullopt;
    all.push_back(*item);
  }
  return all;
}

std::optional<std::vector<LengthId>> Lengths::reduced_items(ReduceFn reduction,
                                                            const std::vector<LengthId>& in) {
  static constexpr std::pair<ReduceFn, LengthFn> kFolds[] = {{ReduceFn::kSum, LengthFn::kAdd},
                                                             {ReduceFn::kProd, LengthFn::kMul},
                                                             {ReduceFn::kMin, LengthFn::kMin},
                                                             {ReduceFn::kMax, LengthFn::kMax}};
  for (const auto& [of, fn] : kFolds) {
    if (of != reduction) continue;
    if (in.empty() && (fn == LengthFn::kMin || fn == LengthFn::kMax)) return std::nullopt;
    LengthId all = in.empty() ? constant(fn == LengthFn::kMul ? 1 : 0) : in[0];
    for (size_t i = 1; i < in.size(); ++i) all = combine(fn, all, in[i]);
    return std::vector<LengthId>{all};
  }
  return std::nullopt;
}

std::optional<LengthId> Lengths::computed_item(const Node& node, DType result,
                                               const std::vector<LengthId>& in) {
  const auto no = [&](LengthId id) { return sub(constant(1), id); };
  const auto is_less = [&](size_t a, size_t b) { return combine(LengthFn::kLess, in[a], in[b]); };
  const bool truth = result == DType::kBool;
  if (const auto fn = length_function(node.op())) {
    if (fn == LengthFn::kMod && (range(in[0]).low < 0 || range(in[1]).low < 0)) return std::nullopt;
    return combine(*fn, in[0], in[1]);
  }
  switch (node.op()) {
    case Op::kCast:
      return truth ? no(combine(LengthFn::kEqual, in[0], constant(0))) : in[0];
    case Op::kNeg:
      return sub(constant(0), in[0]);
    case Op::kBitNot:
      return truth ? std::optional(no(in[0])) : std::nullopt;
    case Op::kBitwise: {
      const auto fn = static_cast<BitwiseFn>(node.as<BitwiseAttrs>()->fn);
      if (!truth || (fn != BitwiseFn::kAnd && fn != BitwiseFn::kOr)) return std::nullopt;
      return fn == BitwiseFn::kAnd ? min(in[0], in[1]) : max(in[0], in[1]);
    }
    case Op::kCompare:
      switch (static_cast<CompareFn>(node.as<CompareAttrs>()->fn)) {
        case CompareFn::kEqual:
          return combine(LengthFn::kEqual, in[0], in[1]);
        case CompareFn::kNotEqual:
          return no(combine(LengthFn::kEqual, in[0], in[1]));
        case CompareFn::kLess:
          return is_less(0, 1);
        case CompareFn::kGreater:
          return is_less(1, 0);
        case CompareFn::kLessOrEqual:
          return no(is_less(1, 0));
        default:
          return no(is_less(0, 1));
      }
    case Op::kWhere:
      if (!known(in[0])) return std::nullopt;
      return *known(in[0]) != 0 ? in[1] : in[2];
    default:
      return std::nullopt;
  }
}

}  // namespace sinter::convert
