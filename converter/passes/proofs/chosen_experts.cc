#include "converter/passes/proofs/chosen_experts.h"

#include <algorithm>

#include "converter/ir/encoded_attrs.h"
#include "converter/ir/op_traits.h"
#include "converter/ir/recipe.h"
#include "runtime/core/narrow_weights.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {

ConstantPtr narrow_or_float_weights(const ConstantPtr& c) {
  if (c->dtype() == DType::kFloat32 && c->recipe() && std::holds_alternative<CastAttrs>(c->recipe()->attrs) &&
      is_narrow_weight(c->recipe()->inputs[0]->dtype()) && !c->recipe()->inputs[0]->recipe())
    return c->recipe()->inputs[0];
  return c->dtype() == DType::kFloat32 || is_narrow_weight(c->dtype()) ? c : nullptr;
}

bool is_place(Editor& e, ValueId id) {
  for (int n = e.producer(id); n >= 0; n = e.producer(e.node(n).inputs[0])) {
    const Node& node = e.node(n);
    if (node.op() == Op::kTopK) return node.outputs.size() > 1 && node.outputs[1] == id;
    if (node.op() == Op::kArgReduce) return true;
    const bool moves = node.op() == Op::kView || node.op() == Op::kTranspose || node.op() == Op::kSlice ||
                       node.op() == Op::kCast;
    if (!moves || !is_integer(e.value(id).dtype)) return false;
    id = node.inputs[0];
  }
  return false;
}

std::optional<Routes> routes_of(Editor& e, ValueId id) {
  for (int n; (n = e.made_by<CastAttrs>(id)) >= 0 && is_integer(e.value(id).dtype);) id = e.node(n).inputs[0];
  const int top = e.made_by<TopKAttrs>(id);
  if (top < 0 || e.node(top).outputs.size() < 2 || e.node(top).outputs[1] != id) return std::nullopt;
  const Dims &from = e.value(e.node(top).inputs[0]).dims, &to = e.value(id).dims;
  if (to.size() != 2 || e.node(top).as<TopKAttrs>()->axis != 1 || !e.value(id).bounded_dims.empty())
    return std::nullopt;
  const Routes r{id, to[0], to[1], from[1]};
  return r.rows() > 0 ? std::optional(r) : std::nullopt;
}

ChosenExperts::ChosenExperts(Editor& e, int n, const Routes& routes, bool joined, Leaf leaf)
    : e_(e), n_(n), routes_(routes), joined_(joined), leaf_(std::move(leaf)) {}

int64_t ChosenExperts::columns(ValueId id) {
  const int64_t all = element_count(e_.value(id).dims),
                rows = joined_ ? routes_.experts * routes_.tokens : routes_.rows();
  return all % rows == 0 ? all / rows : 0;
}

ValueId ChosenExperts::view(ValueId id, const Dims& to) {
  return id < 0 || e_.value(id).dims == to ? id : e_.insert(n_, ViewAttrs{IntList(to), -1}, {id});
}

ValueId ChosenExperts::repeated(ValueId x, int64_t columns) {
  x = view(x, {routes_.tokens, 1, columns});
  if (x >= 0) x = e_.insert(n_, BroadcastAttrs{IntList{routes_.tokens, routes_.choices, columns}}, {x});
  return view(x, {routes_.rows(), columns});
}

ValueId ChosenExperts::sum(ValueId rows) {
  if (rows < 0) return rows;
  const Dims d = e_.value(rows).dims;
  rows = view(rows, {routes_.tokens, routes_.choices, d[1]});
  return rows < 0 ? rows
                  : e_.insert(n_, ReduceAttrs{static_cast<int64_t>(ReduceFn::kSum), IntList{1}, 0}, {rows});
}

ValueId ChosenExperts::expert() {
  if (expert_ != kAbsent) return expert_;
  ValueId id = routes_.index;
  if (e_.value(id).dtype != DType::kInt64)
    id = e_.insert(n_, CastAttrs{static_cast<int64_t>(DType::kInt64), 1}, {id});
  return expert_ = view(id, {routes_.rows()});
}

ChosenExperts::Values ChosenExperts::inputs(const Values& values, size_t i) {
  Values result;
  for (const ValueId id : values) result.push_back(e_.node(e_.producer(id)).inputs[i]);
  return result;
}

ValueId ChosenExperts::rows(const Values& values) {
  const auto [at, fresh] = known_.emplace(values, kAbsent);
  if (fresh) {
    const ValueId y = leaf_(values);
    known_[values] = y != kAbsent ? y : computed(values);
  }
  return known_[values];
}

ValueId ChosenExperts::computed(const Values& values) {
  const int first = e_.producer(values[0]);
  if (first < 0 || columns(values[0]) == 0) return kAbsent;
  const Op op = e_.node(first).op();
  const EncodedAttrs attrs = encode_attrs(e_.node(first).attrs);
  for (const ValueId id : values) {
    const int n = e_.producer(id);
    if (n < 0 || e_.node(n).op() != op || e_.node(n).outputs.size() != 1 ||
        e_.node(n).inputs.size() != e_.node(first).inputs.size() ||
        !(encode_attrs(e_.node(n).attrs) == attrs) || e_.value(id).dims != e_.value(values[0]).dims ||
        e_.value(id).dtype != e_.value(values[0]).dtype)
      return kAbsent;
  }
  switch (op) {
    case Op::kView:
      // Rows stay rows: columns() of both are the same.
      return e_.node(first).as<ViewAttrs>()->dtype < 0 ? rows(inputs(values, 0)) : kAbsent;
    case Op::kCopy:
      return rows(inputs(values, 0));
    case Op::kSlice:
    case Op::kConcat:
      return along_columns(values);
    case Op::kMatMul:
    case Op::kFullyConnected:
      return product(values);
    case Op::kLowBitFullyConnected:
      return low_bit_product(values);
    default:
      return is_elementwise(op) ? elementwise(values) : kAbsent;
  }
}

std::vector<ConstantPtr> ChosenExperts::constants(const Values& values) {
  std::vector<ConstantPtr> all;
  for (const ValueId id : values) {
    if (id < 0 || !e_.value(id).constant || e_.value(id).dims != e_.value(values[0]).dims ||
        e_.value(id).dtype != e_.value(values[0]).dtype)
      return {};
    all.push_back(e_.value(id).constant);
  }
  return all;
}

ConstantPtr ChosenExperts::stacked(const Values& values) {
  std::vector<ConstantPtr> all = constants(values);
  if (all.empty()) return nullptr;
  if (joined_) return all[0]->dims().empty() || all[0]->dims()[0] != routes_.experts ? nullptr : all[0];
  if (std::all_of(all.begin(), all.end(), [&](const ConstantPtr& c) {
        return narrow_or_float_weights(c) != nullptr &&
               narrow_or_float_weights(c)->dtype() == narrow_or_float_weights(all[0])->dtype();
      }))
    for (ConstantPtr& c : all) c = narrow_or_float_weights(c);
  for (ConstantPtr& c : all) {
    Dims d = c->dims();
    d.insert(d.begin(), 1);
    c = evaluated(ViewAttrs{IntList(d), -1}, {c});
    if (!c) return nullptr;
  }
  return all.size() == 1 ? all[0] : evaluated(ConcatAttrs{0}, all);
}

ValueId ChosenExperts::of_experts(ConstantPtr table, int64_t columns) {
  if (!table || table->size() != routes_.experts * columns || expert() < 0) return kAbsent;
  const ConstantPtr flat = evaluated(ViewAttrs{IntList{routes_.experts, columns}, -1}, {table});
  return flat ? e_.insert(n_, GatherAttrs{0}, {e_.constant(flat), expert()}) : kAbsent;
}

ValueId ChosenExperts::operand(const Values& values, const Dims& result, int64_t width) {
  const Value& v = e_.value(values[0]);
  const int64_t last = v.dims.empty() ? 1 : v.dims.back();
  if (v.constant) {
    if (constants(values).empty() || (last != width && last != 1)) return kAbsent;
    const bool same = std::all_of(values.begin(), values.end(), [&](ValueId id) { return id == values[0]; });
    if (same && v.constant->size() == 1) return view(values[0], {1, 1});
    if (joined_ && v.dims.size() == result.size() && v.dims[0] == routes_.experts &&
        v.constant->size() == routes_.experts * last)
      return of_experts(v.constant, last);
    if (v.constant->size() != last) return kAbsent;
    if (same)
      return joined_ && v.dims.size() == result.size() && v.dims[0] != 1 ? kAbsent
                                                                         : view(values[0], {1, last});
    return of_experts(stacked(values), last);
  }
  // The rows have as many columns, or one.
  if (v.dims != result && !(v.dims.size() == result.size() && last == 1 &&
                            std::equal(v.dims.begin(), v.dims.end() - 1, result.begin())))
    return kAbsent;
  return rows(values);
}

ValueId ChosenExperts::elementwise(const Values& values) {
  const Node node = e_.node(e_.producer(values[0]));
  const Dims result = e_.value(values[0]).dims;
  // The last axis is the columns.
  if (result.empty() || result.back() != columns(values[0])) {
    if (columns(values[0]) != 1) return kAbsent;
  }
  std::vector<ValueId> operands;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    operands.push_back(operand(inputs(values, i), result, columns(values[0])));
    if (operands.back() < 0) return kAbsent;
  }
  return e_.insert(n_, node.attrs, operands);
}

ValueId ChosenExperts::along_columns(const Values& values) {
  const Node node = e_.node(e_.producer(values[0]));
  const Dims result = e_.value(values[0]).dims;
  if (result.empty() || result.back() != columns(values[0])) return kAbsent;
  const auto last = static_cast<int>(result.size()) - 1;
  if (const auto* join = node.as<ConcatAttrs>()) {
    if (join->axis != last) return kAbsent;
    std::vector<ValueId> parts;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Values part = inputs(values, i);
      if (columns(part[0]) != e_.value(part[0]).dims.back()) return kAbsent;
      parts.push_back(rows(part));
      if (parts.back() < 0) return kAbsent;
    }
    return e_.insert(n_, ConcatAttrs{1}, parts);
  }
  const SliceAttrs& a = *node.as<SliceAttrs>();
  const Dims& from = e_.value(node.inputs[0]).dims;
  for (int i = 0; i < last; ++i)
    if (a.starts[i] != 0 || a.steps[i] != 1 || a.sizes[i] != from[static_cast<size_t>(i)]) return kAbsent;
  const ValueId x = rows(inputs(values, 0));
  if (x < 0) return kAbsent;
  return e_.insert(n_,
                   SliceAttrs{IntList{0, a.starts[last]}, IntList{1, a.steps[last]},
                              IntList{routes_.rows(), a.sizes[last]}},
                   {x});
}

ValueId ChosenExperts::apply(ValueId x, ConstantPtr weights, const std::string& name, ConstantPtr bias) {
  if (x < 0 || !weights || expert() < 0 || e_.value(x).dtype != DType::kFloat32 ||
      weights->dims().size() != 3 || weights->dims()[2] != e_.value(x).dims[1] ||
      !narrow_or_float_weights(weights))
    return kAbsent;
  const ValueId w = e_.graph().add_constant(narrow_or_float_weights(weights), name);
  std::vector<ValueId> operands{x, expert(), w};
  if (bias) {
    operands.resize(5, kAbsent);
    operands.push_back(e_.constant(bias));
  }
  return e_.insert(n_, ExpertFullyConnectedAttrs{}, operands);
}

ValueId ChosenExperts::product(const Values& values) {
  const Node node = e_.node(e_.producer(values[0]));
  const Values x = inputs(values, 0), w = inputs(values, 1);
  ConstantPtr weights = stacked(w), bias;
  if (!weights) return kAbsent;
  bool turned = false;  // [depth, columns]
  if (const auto* a = node.as<FullyConnectedAttrs>()) {
    if (a->act_min != -kInfinity || a->act_max != kInfinity) return kAbsent;
    if (node.inputs.size() > 2 && node.inputs[2] != kAbsent && !(bias = stacked(inputs(values, 2))))
      return kAbsent;
  } else {
    const auto& m = *node.as<MatMulAttrs>();
    if (m.transpose_a != 0) return kAbsent;
    turned = m.transpose_b == 0;
  }
  Dims d = weights->dims();
  if (joined_ && d.size() > 3 && element_count(d) == d[0] * d[d.size() - 1] * d[d.size() - 2]) {
    d = {d[0], d[d.size() - 2], d[d.size() - 1]};
    weights = evaluated(ViewAttrs{IntList(d), -1}, {weights});
  }
  if (!weights || d.size() != 3) return kAbsent;
  const Dims result = e_.value(values[0]).dims, given = e_.value(x[0]).dims;
  const int64_t depth = turned ? d[1] : d[2], width = turned ? d[2] : d[1];
  if (result.back() != width || given.back() != depth || columns(values[0]) != width) return kAbsent;
  ValueId rows_of_x;
  if (joined_ && result[0] == routes_.experts && element_count(given) == routes_.tokens * depth &&
      (given.size() < result.size() || given[0] == 1)) {
    rows_of_x = repeated(x[0], depth);  // all of them for each expert
  } else {
    if (joined_ && (given.size() != result.size() || given[0] != routes_.experts)) return kAbsent;
    rows_of_x = rows(x);
  }
  if (turned)
    weights = evaluated(TransposeAttrs{IntList{0, 2, 1}},
                        {narrow_or_float_weights(weights) ? narrow_or_float_weights(weights) : weights});
  return apply(rows_of_x, weights, e_.value(w[0]).name, bias);
}

ValueId ChosenExperts::low_bit_product(const Values& values) {
  const Node node = e_.node(e_.producer(values[0]));
  const auto& a = *node.as<LowBitFullyConnectedAttrs>();
  if (joined_ || a.bits != 0 || a.act_min != -kInfinity || a.act_max != kInfinity) return kAbsent;
  // Operands: x, weights, scales, zeros?, bias?, table?; those of experts have zeros, bias and table in the
  // same order.
  const ValueId x = rows(inputs(values, 0));
  if (x < 0 || expert() < 0 || e_.value(x).dtype != DType::kFloat32) return kAbsent;
  std::vector<ValueId> operands{x, expert()};
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    const Values each = inputs(values, i);
    if (each[0] == kAbsent) {
      if (std::any_of(each.begin(), each.end(), [](ValueId id) { return id != kAbsent; })) return kAbsent;
      operands.push_back(kAbsent);
      continue;
    }
    if (i == 5) {  // one table for all
      const std::vector<ConstantPtr> tables = constants(each);
      for (const ConstantPtr& t : tables)
        if (t->as_doubles() != tables[0]->as_doubles()) return kAbsent;
      if (tables.empty()) return kAbsent;
      operands.push_back(each[0]);
      continue;
    }
    const ConstantPtr all = stacked(each);
    if (!all) return kAbsent;
    operands.push_back(e_.graph().add_constant(all, e_.value(each[0]).name));
  }
  return e_.insert(n_, ExpertFullyConnectedAttrs{a.block_size, 0}, operands);
}

}  // namespace sinter::convert
