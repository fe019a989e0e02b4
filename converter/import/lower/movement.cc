// Operators that put elements elsewhere: concat, gather, scatter, transpose; and those whose result's length
// depends on data.
#include <algorithm>
#include <limits>

#include "converter/import/lengths/bounded.h"
#include "converter/import/lower.h"
#include "converter/import/lower/attention_parts.h"
#include "converter/import/lower/common.h"
#include "converter/import/lower/quantized_table.h"
#include "converter/ir/integer_range.h"
#include "converter/ir/recipe.h"
#include "converter/ir/strided_writes.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

bool lower_transpose(NodeLowering& n) {
  const ValueId x = n.input(0);
  const int64_t rank = n.rank(x);
  std::vector<int64_t> perm;
  for (int64_t i = rank; i-- > 0;) perm.push_back(i);
  perm = n.attr_ints("perm", perm);
  if (static_cast<int64_t>(perm.size()) != rank)
    return n.refuse_shapes("perm [{}] does not fit {}", fmt::join(perm, ","), to_string(n.dims(x)));
  if (!n.normalize_axes(&perm, rank)) return false;
  // A product of a transposed weight reads the weight as it is: it transposes it back.
  if (const ConstantPtr c = n.constant(x); c && perm == std::vector<int64_t>{1, 0} && !c->is_lazy() &&
                                           !c->recipe() && !c->wide() && !is_sub_byte(c->dtype()) &&
                                           c->byte_size() >= kLazyResultBytes) {
    Graph& graph = n.parent().graph();
    const Dims turned{c->dims()[1], c->dims()[0]};
    const ConstantPtr later = computed_later(c->dtype(), turned, TransposeAttrs{IntList{1, 0}}, {c});
    return n.output(0, graph.add_constant(later, graph.value(x).name));
  }
  return n.output(0, n.transpose(x, perm));
}

bool lower_concat(NodeLowering& n) {
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < n.input_count(); ++i)
    if (n.has_input(i)) inputs.push_back(n.input(i));
  if (!n.has_attr("axis") && n.opset() >= 4) return n.refuse("has no attribute axis");
  // Shape arithmetic of some exporters joins scalars with vectors: a scalar is a vector of one.
  bool vectors = false;
  for (const ValueId v : inputs) vectors |= n.rank(v) == 1;
  for (ValueId& v : inputs) {
    if (n.rank(v) > 0 || !vectors) continue;
    n.warn("joins a scalar with vectors; the scalar is read as a vector of one element");
    v = n.reshape(v, {1});
  }
  int64_t axis = n.attr_int("axis", 1);
  if (!n.normalize_axis(&axis, n.rank(inputs[0]))) return false;
  if (inputs.size() == 1) return n.output(0, inputs[0]);
  for (size_t i = 1; i < inputs.size(); ++i) {
    if (n.rank(inputs[i]) != n.rank(inputs[0]))
      return n.refuse_shapes("inputs {} and {} have different ranks", to_string(n.dims(inputs[0])),
                             to_string(n.dims(inputs[i])));
  }
  if (inputs.size() == 2 && axis == 2 && n.parent().context().caches.count(inputs[0]) != 0)
    return n.output(0, appended_to_cache(n, inputs[0], inputs[1]));
  return n.output(0, joined(n, inputs, axis));
}

constexpr int64_t kAnyLength = std::numeric_limits<int64_t>::max();  // whoever reads the indices checks them

// Indices as the kernels take them; constant ones are checked against the axis now.
ValueId indices_for(NodeLowering& n, ValueId indices, int64_t length) {
  if (indices < 0) return indices;
  const DType t = n.dtype(indices);
  if (!is_integer(t)) return n.refuse("indices of type {}", dtype_name(t));
  const ConstantPtr c = length != kAnyLength ? n.constant(indices) : nullptr;
  const auto range = c ? integer_range(*c) : std::nullopt;
  if (c && !(range && range->low >= -length && range->high < length))
    for (const int64_t i : c->as_int64s())
      if (i < -length || i >= length) return n.refuse_shapes("index {} is outside an axis of {}", i, length);
  return t == DType::kInt32 || t == DType::kInt64 ? indices : n.cast(indices, DType::kInt64);
}

bool lower_gather(NodeLowering& n) {
  const ValueId x = n.input(0);
  int64_t axis = n.attr_int("axis", 0);
  if (!n.normalize_axis(&axis, n.rank(x))) return false;
  const ValueId indices = indices_for(n, n.input(1), n.dims(x)[static_cast<size_t>(axis)]);
  if (indices == kUnknown) return false;
  // One known index is a slice.
  const bool open = !n.parent().lengths().known(n.parent().lengths().of_axis(x, axis));
  if (const ConstantPtr c = n.constant(indices); c && c->size() == 1 && !open) {
    const int64_t length = n.dims(x)[static_cast<size_t>(axis)], i = c->as_int64s()[0];
    Dims d = n.dims(x);
    d.erase(d.begin() + axis);
    d.insert(d.begin() + axis, static_cast<size_t>(n.rank(indices)), 1);
    const ValueId one = n.slice(x, axis, i < 0 ? i + length : i, 1);
    if (!Bounded(n).is_bounded(x)) return n.output(0, n.reshape(one, d));
    std::vector<LengthId> all = n.parent().lengths().of_axes(x);
    all.erase(all.begin() + axis);
    all.insert(all.begin() + axis, static_cast<size_t>(n.rank(indices)), n.parent().lengths().constant(1));
    return n.output(0, Bounded(n).reshaped(one, all));
  }
  if (const ValueId y = open ? kAbsent : gather_dequantized(n, x, axis, indices); y != kAbsent)
    return n.output(0, y);
  return n.output(0, n.emit(GatherAttrs{axis}, {x, indices}));
}

bool lower_gather_elements(NodeLowering& n) {
  const ValueId x = n.input(0);
  int64_t axis = n.attr_int("axis", 0);
  if (!n.normalize_axis(&axis, n.rank(x))) return false;
  return n.output(0, n.emit(GatherElementsAttrs{axis},
                            {x, indices_for(n, n.input(1), n.dims(x)[static_cast<size_t>(axis)])}));
}

bool lower_gather_nd(NodeLowering& n) {
  const int64_t batch = n.attr_int("batch_dims", 0);
  return n.output(0, n.emit(GatherNdAttrs{batch}, {n.input(0), indices_for(n, n.input(1), kAnyLength)}));
}

std::optional<int64_t> scatter_reduction(NodeLowering& n) {
  return n.attr_choice<int64_t>("reduction", "none",
                                {{"none", 0}, {"add", 1}, {"mul", 2}, {"max", 3}, {"min", 4}});
}

// Returns the operand where it is constant, or repeats a constant; else null.
ConstantPtr repeated_constant(NodeLowering& n, ValueId v) {
  if (const ConstantPtr c = n.constant(v)) return c;
  const Node* node = n.parent().lengths().producer(v);
  // A single number has the same place everywhere.
  const Node* turned = node != nullptr && node->as<TransposeAttrs>() != nullptr
                           ? n.parent().lengths().producer(node->inputs[0])
                           : nullptr;
  if (turned != nullptr && turned->as<BroadcastAttrs>() != nullptr && n.size(turned->inputs[0]) == 1)
    node = turned;
  const auto* broadcast = node != nullptr ? node->as<BroadcastAttrs>() : nullptr;
  const ConstantPtr c = broadcast != nullptr ? n.constant(node->inputs[0]) : nullptr;
  if (c && c->size() == 1) return broadcast_later(c->reshaped({}), n.dims(v));
  return c ? computed_later(c->dtype(), n.dims(v), *broadcast, {c}) : nullptr;
}

// Constants in some rows of one; kAbsent where it is something else.
ValueId written_rows(NodeLowering& n, ValueId x, ValueId indices, ValueId updates) {
  const ConstantPtr at = n.constant(indices), rows = n.constant(updates);
  const ConstantPtr data = at && rows && !Bounded(n).is_bounded(x) ? repeated_constant(n, x) : nullptr;
  const ConstantPtr c = data ? with_rows(data, at, rows) : nullptr;
  return c ? n.add_constant(c) : kAbsent;
}

bool lower_scatter_elements(NodeLowering& n) {
  const ValueId x = n.input(0);
  int64_t axis = n.attr_int("axis", 0);
  if (!n.normalize_axis(&axis, n.rank(x))) return false;
  const auto reduction = scatter_reduction(n);
  if (!reduction) return false;
  if (*reduction == 0 && n.rank(x) == 1)
    if (const ValueId y = written_rows(n, x, n.input(1), n.input(2)); y != kAbsent) return n.output(0, y);
  return n.output(0,
                  n.emit(ScatterElementsAttrs{axis, *reduction},
                         {x, indices_for(n, n.input(1), n.dims(x)[static_cast<size_t>(axis)]), n.input(2)}));
}

bool lower_scatter_nd(NodeLowering& n) {
  const ValueId x = n.input(0);
  const auto reduction = scatter_reduction(n);
  if (!reduction) return false;
  if (*reduction == 0)
    if (const ValueId y = written_rows(n, x, n.input(1), n.input(2)); y != kAbsent) return n.output(0, y);
  return n.output(
      0, n.emit(ScatterNdAttrs{*reduction}, {x, indices_for(n, n.input(1), kAnyLength), n.input(2)}));
}

bool lower_tensor_scatter(NodeLowering& n) {
  const ValueId past = n.input(0);
  int64_t axis = n.attr_int("axis", -2);
  if (!n.normalize_axis(&axis, n.rank(past))) return false;
  const std::string mode = n.attr_string("mode", "linear");
  if (mode != "linear" && mode != "circular") return n.refuse("mode is '{}'", mode);
  const bool circular = mode == "circular";
  if (!n.has_input(2)) return n.output(0, n.emit(CacheUpdateAttrs{axis, circular}, {past, n.input(1)}));
  return n.output(0, circular ? n.emit(CacheUpdateAttrs{axis, 1}, {past, n.input(1), n.input(2)})
                              : written_to_cache(n, past, n.input(1), n.input(2), axis));
}

bool lower_reverse_sequence(NodeLowering& n) {
  const ValueId x = n.input(0);
  int64_t time = n.attr_int("time_axis", 0), batch = n.attr_int("batch_axis", 1);
  if (!n.normalize_axis(&time, n.rank(x)) || !n.normalize_axis(&batch, n.rank(x))) return false;
  return n.output(0, n.emit(ReverseSequenceAttrs{time, batch}, {x, n.input(1)}));
}

// ---- lengths that depend on data

bool lower_non_zero(NodeLowering& n) {
  const std::vector<ValueId> r = n.emit_many(NonZeroAttrs{}, {n.input(0)}, 2);
  return n.output(0, bounded(n, r[0], 1, r[1]));
}

bool lower_compress(NodeLowering& n) {
  ValueId x = n.input(0), condition = n.input(1);
  int64_t axis = 0;
  if (n.has_attr("axis")) {
    axis = n.attr_int("axis", 0);
    if (!n.normalize_axis(&axis, n.rank(x))) return false;
  } else {
    x = n.reshape(x, {n.size(x)});
  }
  if (x < 0) return false;
  if (n.rank(condition) != 1) return n.refuse("condition must have one dim, not {}", n.rank(condition));
  Bounded b(n);
  const int64_t length = std::min(n.size(condition), n.dims(x)[static_cast<size_t>(axis)]);
  condition = b.cut(b.filled(condition, 0), 0, length);
  const std::vector<ValueId> r = n.emit_padded(NonZeroAttrs{}, {condition}, {true, true});
  ValueId index = n.reshape(r[0], {length});
  if (n.constant(r[1]) && n.constant(index))
    index = n.slice(index, 0, 0, n.constant(r[1])->as_int64s()[0]);
  else
    index = bounded(n, index, 0, r[1]);
  return n.output(0, n.emit(GatherAttrs{axis}, {x, index}));
}

bool lower_unique(NodeLowering& n) {
  UniqueAttrs a;
  a.sorted = n.attr_int("sorted", 1);
  int64_t axis = 0;
  if (n.has_attr("axis")) {
    axis = n.attr_int("axis", 0);
    if (!n.normalize_axis(&axis, n.rank(n.input(0)))) return false;
    a.axis = axis;
  }
  const std::vector<ValueId> r = n.emit_many(a, {n.input(0)}, 5);
  if (r[0] == kUnknown) return false;
  n.output(0, bounded(n, r[0], axis, r[4]));
  n.output(1, bounded(n, r[1], 0, r[4]));
  n.output(2, r[2]);
  return n.output(3, bounded(n, r[3], 0, r[4]));
}

// com.microsoft: in the order of first occurrence; the distinct elements, where each element is among them,
// how often each occurs.
bool lower_microsoft_unique(NodeLowering& n) {
  const ValueId x = n.input(0);
  if (n.rank(x) != 1) return n.refuse_shapes("its input must have rank 1, not {}", n.rank(x));
  UniqueAttrs a;
  a.sorted = 0;
  const std::vector<ValueId> r = n.emit_many(a, {x}, 5);
  if (r[0] == kUnknown) return false;
  n.output(0, bounded(n, r[0], 0, r[4]));
  n.output(1, r[2]);
  return n.output(2, bounded(n, r[3], 0, r[4]));
}

}  // namespace

ValueId joined(NodeLowering& n, std::vector<ValueId> parts, int64_t axis) {
  const ValueId whole = parts.size() == 1 ? parts[0] : n.emit(ConcatAttrs{axis}, std::move(parts));
  return n.refused() ? kUnknown : whole;
}

std::span<const OnnxOperator> movement_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"Transpose", 1, lower_transpose, "", kTakesBounded | kLinear},
      {"Concat", 1, lower_concat, "A+", kTakesBounded | kLinear},
      {"Gather", 1, lower_gather, "* i", kTakesBounded | kLinear | kTwoInputs},
      {"GatherElements", 11, lower_gather_elements, "* i", kTakesBounded | kTwoInputs},
      {"GatherND", 11, lower_gather_nd, "* i", kTakesBounded | kTwoInputs},
      {"GatherND", 1, lower_gather_nd, "* i", kTakesBounded | kTwoInputs, kMicrosoft},
      {"Scatter", 9, lower_scatter_elements, "A i A", kTakesBounded | kThreeInputs},
      {"ScatterElements", 11, lower_scatter_elements, "A i A", kTakesBounded | kThreeInputs},
      {"ScatterND", 11, lower_scatter_nd, "A i A", kTakesBounded | kThreeInputs},
      {"TensorScatter", 24, lower_tensor_scatter, "A a i", kTwoInputs},
      {"ReverseSequence", 10, lower_reverse_sequence, "* i", kNoTraits},
      {"NonZero", 9, lower_non_zero, "", kTakesBounded},
      {"Compress", 9, lower_compress, "* b", kTakesBounded | kTwoInputs},
      {"Unique", 11, lower_unique, "", kTakesBounded},
      {"Unique", 1, lower_microsoft_unique, "", kTakesBounded, kMicrosoft},
  };
  return kRules;
}

}  // namespace sinter::convert
