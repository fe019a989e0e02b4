#include "converter/import/lower/stack.h"

#include <algorithm>

#include "converter/import/lengths/bounded.h"
#include "converter/import/lower.h"
#include "converter/import/lower/common.h"
#include "converter/import/lower/control.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

// Returns the place that the position points at among `count`, or `end` where it is absent; held within 0 to
// `most`. nullopt: refused.
std::optional<LengthId> place(NodeLowering& n, ValueId position, LengthId count, LengthId end,
                              LengthId most) {
  if (position == kAbsent) return end;
  Bounded b(n);
  Lengths& lengths = b.lengths();
  const auto items = lengths.items(position);
  if (!items || items->size() != 1) {
    n.refuse("its position is not one integer");
    return std::nullopt;
  }
  const LengthId given = items->front();
  const LengthId below = lengths.combine(LengthFn::kLess, given, lengths.constant(0));
  const LengthId at = lengths.add(given, lengths.mul(below, count));
  return b.check(LengthRule::kWithin, at, at, most, {0, std::max<int64_t>(lengths.high(most), 0)});
}

// `count` tensors from `start` on.
ValueId part(Bounded& b, ValueId stack, LengthId start, LengthId count) {
  return b.section(stack, 0, start, 1, count);
}

bool refuse_bounded_tensors(NodeLowering& n) {
  return n.refuse_advising("pad the tensors to one length in the model",
                           "the tensors of a sequence whose number depends on data must have one shape, and "
                           "theirs depends on data");
}

}  // namespace

ValueId stack_of(NodeLowering& n, size_t i, bool wanted) {
  if (const ValueId stack = n.parent().stack(n.input(i)); stack != kAbsent) return stack;
  const std::vector<ValueId>* items = wanted ? n.sequence(i) : nullptr;
  return items != nullptr ? stacked(n, std::vector(*items)) : kAbsent;
}

ValueId stacked(NodeLowering& n, const std::vector<ValueId>& items) {
  if (items.empty()) return n.refuse("the shape of the tensors of an empty sequence is unknown");
  std::vector<ValueId> all = items;
  for (const ValueId item : items) {
    if (item < 0) return kUnknown;
    if (!n.parent().graph().value(item).bounded_dims.empty()) return refuse_bounded_tensors(n), kUnknown;
    if (n.dims(item) != n.dims(items[0]))
      return n.refuse_shapes(
          "the tensors of a sequence whose number or position depends on data must have "
          "one shape, and there are {} and {}",
          to_string(n.dims(items[0])), to_string(n.dims(item)));
  }
  return n.settle_tensors(&all) ? stack(n, all) : kUnknown;
}

ValueId empty_stack(NodeLowering& n, const ValueFact& tensor) {
  Dims dims = tensor.dims;
  dims.insert(dims.begin(), 0);
  return n.broadcast(n.scalar(tensor.dtype, 0), dims);
}

void to_stack(NodeLowering& n, ValueId* result, const Dims& like) {
  if (!is_sequence(*result)) return;
  const std::vector<ValueId>* items = n.parent().sequence(*result);
  if (items == nullptr)
    *result = n.parent().stack(*result);
  else if (!items->empty() || like.empty())
    *result = stacked(n, std::vector(*items));
  else
    *result = empty_stack(n, {DType::kFloat32, {like.begin() + 1, like.end()}});
}

// Sequences that start empty take the shape that the tensors of the first trip have.
bool stack_carried(NodeLowering& n, const ImportedGraph& source, PlannedLoop* loop) {
  const size_t count = loop->carried.size();
  std::vector<bool> empty(count);
  loop->stacked.assign(count, false), loop->may_grow = true;
  for (size_t i = 0; i < count; ++i) {
    ValueId& v = loop->carried[i];
    if (!is_sequence(v)) continue;
    loop->stacked[i] = true;
    const std::vector<ValueId>* items = n.parent().sequence(v);
    empty[i] = items != nullptr && items->empty();
    if (empty[i]) continue;
    v = items != nullptr ? stacked(n, std::vector(*items)) : n.parent().stack(v);
    if (v < 0) return false;
  }
  if (std::find(empty.begin(), empty.end(), true) == empty.end()) return true;
  std::vector<GraphLowering::Parameter> parameters{{loop->names[0], {DType::kInt64, {}}},
                                                   {loop->names[1], {DType::kBool, {}}}};
  for (size_t i = 0; i < count; ++i)
    parameters.push_back(
        {loop->names[2 + i], empty[i] ? ValueFact{DType::kFloat32, {}}
                                      : ValueFact{n.dtype(loop->carried[i]), n.dims(loop->carried[i])}});
  std::vector<std::optional<ValueFact>> tensors(count);
  Diagnostics trial;
  const size_t decided = n.parent().ledger().size();
  (void)n.parent().lower_body(
      source, parameters, trial,
      [&](GraphLowering& body) {
        for (size_t i = 0; i < count; ++i)
          if (loop->stacked[i])
            body.define(loop->names[2 + i],
                        empty[i] ? body.add_sequence({}) : body.add_stack(body.graph().inputs[2 + i]));
      },
      [&](GraphLowering& body) {
        for (size_t i = 0; i < count; ++i) {
          const ValueId result = body.graph().outputs[1 + i];
          const std::vector<ValueId>* items = body.sequence(result);
          if (items == nullptr || items->empty() || items->front() < 0) continue;
          const Value& v = body.graph().value(items->front());
          tensors[i] = ValueFact{v.dtype, v.dims};
        }
      });
  n.parent().ledger().rewind(decided);
  for (size_t i = 0; i < count; ++i) {
    if (!empty[i]) continue;
    if (!tensors[i])
      return n.refuse_advising("start the sequence with a tensor of the common shape",
                               "carries a sequence that starts empty ('{}'), and its body does not determine "
                               "the shape of its tensors",
                               loop->names[2 + i]);
    loop->carried[i] = empty_stack(n, *tensors[i]);
  }
  return true;
}

bool stack_at(NodeLowering& n, ValueId stack, ValueId position) {
  if (stack < 0) return false;
  if (n.size(position) != 1) return n.refuse("its position has {} elements, not one", n.size(position));
  const ValueId at = n.reshape(n.cast(position, DType::kInt64), {});
  return n.output(0, n.emit(GatherAttrs{0}, {stack, at}));
}

bool stack_insert(NodeLowering& n, ValueId stack, ValueId tensor, ValueId position) {
  if (stack < 0) return false;
  if (tensor < 0) return n.refuse("has no tensor to insert");
  if (!n.parent().graph().value(tensor).bounded_dims.empty()) return refuse_bounded_tensors(n);
  Dims dims = n.dims(stack);
  dims.erase(dims.begin());
  if (n.dims(tensor) != dims)
    return n.refuse_shapes(
        "a tensor {} does not fit a sequence of {}, whose number of tensors depends on data",
        to_string(n.dims(tensor)), to_string(dims));
  std::vector<ValueId> both{stack, tensor};
  if (!n.settle_tensors(&both)) return false;
  stack = both[0];
  Bounded b(n);
  const ValueId one = n.unsqueeze(both[1], 0);
  const LengthId count = b.lengths().of_axis(stack, 0);
  if (position == kAbsent) return n.output(0, n.parent().add_stack(b.concatenated({stack, one}, 0)));
  const auto at = place(n, position, count, count, count);
  if (!at) return false;
  const ValueId head = part(b, stack, b.lengths().constant(0), *at),
                tail = part(b, stack, *at, b.lengths().sub(count, *at));
  return n.output(0, n.parent().add_stack(b.concatenated({head, one, tail}, 0)));
}

bool stack_erase(NodeLowering& n, ValueId stack, ValueId position) {
  if (stack < 0) return false;
  Bounded b(n);
  Lengths& lengths = b.lengths();
  const LengthId count = lengths.of_axis(stack, 0), one = lengths.constant(1), last = lengths.sub(count, one);
  const auto at = place(n, position, count, last, last);
  if (!at) return false;
  const LengthId held =
      position == kAbsent ? b.check(LengthRule::kWithin, *at, one, count, {0, lengths.high(last)}) : *at;
  const ValueId head = part(b, stack, lengths.constant(0), held),
                tail = part(b, stack, lengths.add(held, one), lengths.sub(last, held));
  return n.output(0, n.parent().add_stack(b.concatenated({head, tail}, 0)));
}

bool stack_joined(NodeLowering& n, ValueId stack, int64_t axis, bool new_axis) {
  if (stack < 0) return false;
  const int64_t rank = n.rank(stack);
  if (!n.normalize_axis(&axis, new_axis ? rank : rank - 1)) return false;
  std::vector<int64_t> perm;
  for (int64_t i = 1; i < rank; ++i) perm.push_back(i);
  perm.insert(perm.begin() + axis, 0);
  const ValueId y = n.transpose(stack, perm);
  if (y < 0 || new_axis) return n.output(0, y);
  Bounded b(n);
  std::vector<LengthId> all = b.of_axes(y);
  const auto at = static_cast<size_t>(axis);
  all[at] = b.lengths().mul(all[at], all[at + 1]);
  all.erase(all.begin() + axis + 1);
  return n.output(0, b.reshaped(y, all));
}

bool stack_split(NodeLowering& n, ValueId x, int64_t axis, bool keepdims) {
  int64_t part_size = 1;
  const bool given = n.has_input(1);
  if (given && n.rank(n.input(1)) > 0)
    return n.refuse(
        "sizes of parts are given for an axis whose length depends on data; parts of one element are "
        "supported");
  if (given) {
    const auto size = n.constant_int(1);
    if (!size) return false;
    part_size = *size;
  }
  if (part_size != 1)
    return n.refuse("parts of {} of an axis whose length depends on data; parts of one element are supported",
                    part_size);
  std::vector<int64_t> perm{axis};
  for (int64_t i = 0; i < n.rank(x); ++i)
    if (i != axis) perm.push_back(i);
  ValueId y = n.transpose(x, perm);
  if (y < 0) return false;
  Bounded b(n);
  std::vector<LengthId> all = b.of_axes(y);
  for (size_t i = 1; i < all.size(); ++i)
    if (!b.lengths().known(all[i])) return refuse_bounded_tensors(n);
  if (keepdims) {
    all.insert(all.begin() + axis + 1, b.lengths().constant(1));
    y = b.reshaped(y, all);
  }
  return n.output(0, n.parent().add_stack(y));
}

}  // namespace sinter::convert
