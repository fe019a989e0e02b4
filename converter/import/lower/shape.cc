// Shape questions, and operators that only give elements another shape.
#include <algorithm>
#include <cmath>
#include <limits>

#include "converter/import/lengths/bounded.h"
#include "converter/import/lower.h"
#include "converter/import/lower/common.h"
#include "runtime/core/checked.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

// Lengths that are known.
Dims dims_of(const Lengths& lengths, const std::vector<LengthId>& all) {
  Dims dims;
  for (const LengthId id : all) dims.push_back(lengths.high(id));
  return dims;
}

bool lower_shape(NodeLowering& n) {
  const ValueId x = n.input(0);
  const auto rank = n.rank(x);
  int64_t start = n.attr_int("start", 0), end = n.attr_int("end", rank);
  if (start < 0) start += rank;
  if (end < 0) end += rank;
  start = std::clamp<int64_t>(start, 0, rank), end = std::clamp<int64_t>(end, start, rank);
  const std::vector<LengthId> all = Bounded(n).of_axes(x);
  return n.output(0, n.parent().lengths().vector({all.begin() + start, all.begin() + end}));
}

bool lower_size(NodeLowering& n) {
  const ValueId x = n.input(0);
  Lengths& lengths = n.parent().lengths();
  LengthId size = lengths.constant(1);
  for (const LengthId length : lengths.of_axes(x)) size = lengths.mul(size, length);
  return n.output(0, lengths.value(size));
}

bool lower_identity(NodeLowering& n) { return n.output(0, n.input(0)); }

// Returns whether nothing is proven of an item: a run gives it, the model does not compute it from lengths.
bool is_given(const Lengths& lengths, LengthId item) {
  return lengths.range(item).low <= std::numeric_limits<int32_t>::min();
}

// Elements that are planned for a value without elements whose shape a run gives.
constexpr double kEmptyElements = 1 << 16;

// An item of a shape that a run gives: `open`, which is 1 where the item is -1, and the item with a 1 for
// that and the copied length for a 0.
struct GivenDim {
  LengthId dim, open;
};
GivenDim given_dim(Bounded& b, LengthId item, std::optional<LengthId> copied, int64_t most) {
  Lengths& lengths = b.lengths();
  const LengthId one = lengths.constant(1);
  // Checked, not only proven: an axis beside one of 0 elements has no other limit.
  const IntegerRange all = lengths.range(item);
  item = b.check(LengthRule::kWithin, item, lengths.add(item, one), lengths.constant(most + 1),
                 {std::max<int64_t>(-1, all.low), std::min(most, all.high)});
  const LengthId open = lengths.combine(LengthFn::kEqual, item, lengths.constant(-1));
  LengthId dim = lengths.add(item, lengths.add(open, open));
  if (copied)
    dim =
        lengths.add(dim, lengths.mul(lengths.combine(LengthFn::kEqual, item, lengths.constant(0)), *copied));
  return {lengths.max(dim, lengths.constant(0)), open};
}

// A shape that depends on data, or that a bounded value takes.
bool reshape_bounded(NodeLowering& n, ValueId x, std::vector<LengthId> shape, bool allow_zero) {
  Bounded b(n);
  Lengths& lengths = b.lengths();
  const std::vector<LengthId> from = b.of_axes(x);
  LengthId whole = lengths.constant(1), others = lengths.constant(1);
  for (const LengthId length : from) whole = lengths.mul(whole, length);
  // No axis of the result is longer: of the elements that x has, or would have with a 1 for each 0.
  int64_t most = 1;
  for (const LengthId length : from)
    if (!checked_mul(most, std::max<int64_t>(lengths.high(length), 1), &most)) most = Lengths::kNoMaximum;
  // Axes beside one of 0 elements can have any length: those that together need little memory.
  if (lengths.known(whole) == 0)
    most = std::max(most,
                    static_cast<int64_t>(std::pow(kEmptyElements, 1.0 / static_cast<double>(shape.size()))));
  std::vector<std::pair<size_t, LengthId>> open;  // axes that may be -1, and whether they are
  for (size_t i = 0; i < shape.size(); ++i) {
    const auto known = lengths.known(shape[i]);
    const auto copied = !allow_zero && i < from.size() ? std::optional(from[i]) : std::nullopt;
    if (known == 0 && !allow_zero) {
      if (!copied) return n.refuse_shapes("its shape copies dim {} of {}", i, to_string(n.dims(x)));
      shape[i] = *copied;
    }
    if (known == -1) {
      if (!open.empty() && lengths.known(open.front().second) == 1)
        return n.refuse_shapes("its shape leaves two dims open");
      shape[i] = lengths.constant(1);
      open.insert(open.begin(), {i, shape[i]});
      continue;
    }
    if (!known && is_given(lengths, shape[i])) {
      const GivenDim given = given_dim(b, shape[i], copied, most);
      shape[i] = given.dim;
      if (lengths.known(given.open) != 0) open.emplace_back(i, given.open);
    }
    if (!known) shape[i] = lengths.min(shape[i], lengths.constant(most));
    others = lengths.mul(others, shape[i]);
  }
  for (const auto& [axis, is_open] : open) {
    const LengthId length =
        lengths.min(lengths.div(whole, others), lengths.constant(std::max<int64_t>(lengths.high(whole), 0)));
    if (lengths.known(is_open) == 1) {
      shape[axis] = length;
      continue;
    }
    const LengthId more = lengths.mul(is_open, lengths.sub(length, lengths.constant(1)));
    const LengthId dim = lengths.max(lengths.add(shape[axis], more), lengths.constant(0));
    shape[axis] = lengths.min(dim, lengths.constant(most));
  }
  return n.output(0, b.reshaped(x, shape));
}

// Reshape-1 has the shape as attribute.
bool lower_reshape(NodeLowering& n) {
  ignore_legacy(n);
  const ValueId x = n.input(0);
  std::vector<int64_t> shape;
  if (n.has_attr("shape") && !n.has_input(1)) {
    shape = n.attr_ints("shape");
  } else {
    if (!n.has_input(1)) return n.refuse("has no shape");
    Lengths& lengths = n.parent().lengths();
    if (const auto items = lengths.items(n.input(1)); items && !lengths.known_items(n.input(1)))
      return reshape_bounded(n, x, *items, n.attr_int("allowzero", 0) != 0);
    const auto items = n.constant_ints(1);
    if (!items) return false;
    shape = *items;
  }
  const bool allow_zero = n.attr_int("allowzero", 0) != 0;
  if (Bounded(n).is_bounded(x)) {
    std::vector<LengthId> items;
    for (const int64_t dim : shape) items.push_back(n.parent().lengths().constant(dim));
    return reshape_bounded(n, x, items, allow_zero);
  }
  const Dims d = n.dims(x);
  int64_t known = 1;
  int open = -1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && !allow_zero) {
      if (i >= d.size())
        return n.refuse_shapes("shape [{}] copies dim {} of {}", fmt::join(shape, ","), i, to_string(d));
      shape[i] = d[i];
    }
    if (shape[i] == -1) {
      if (open >= 0) return n.refuse_shapes("shape [{}] leaves two dims open", fmt::join(shape, ","));
      open = static_cast<int>(i);
    } else if (shape[i] < 0 || !checked_mul(known, shape[i], &known)) {
      return n.refuse_shapes("shape [{}] is impossible", fmt::join(shape, ","));
    }
  }
  const int64_t size = n.size(x);
  if (open >= 0) {
    if (known == 0 ? size != 0 : size % known != 0)
      return n.refuse_shapes("{} elements of {} do not fit shape [{}]", size, to_string(d),
                             fmt::join(shape, ","));
    shape[static_cast<size_t>(open)] = known == 0 ? 0 : size / known;
  } else if (known != size) {
    return n.refuse_shapes("{} elements of {} do not fit shape [{}]", size, to_string(d),
                           fmt::join(shape, ","));
  }
  return n.output(0, n.reshape(x, shape));
}

// Does the file declare a result of this rank? Only for what no standard operator gives.
bool declares_rank(NodeLowering& n, size_t rank) {
  const std::string& name = n.node().outputs[0];
  const ImportedGraph& source = n.parent().source();
  for (const auto* list : {&source.value_info, &source.outputs})
    for (const ImportedValueInfo& claim : *list)
      if (claim.name == name) return claim.has_shape && claim.dims.size() == rank;
  return false;
}

// An axis that is not 1 is an error in ONNX. In torch it stays, and torch's newer exporter writes such a
// node; it declares the result's shape, too.
bool lower_squeeze(NodeLowering& n) {
  const ValueId x = n.input(0);
  const Dims d = n.dims(x);
  std::vector<int64_t> axes;
  if (!read_axes(n, 1, n.rank(x), &axes)) return false;
  const bool given = n.has_attr("axes") || n.has_input(1);
  Bounded b(n);
  const std::vector<LengthId> from = b.of_axes(x);
  std::vector<LengthId> out;
  std::vector<size_t> kept;  // named axes that are not 1
  for (size_t i = 0; i < d.size(); ++i) {
    const bool named = std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end();
    const bool open = !b.lengths().known(from[i]);
    if (!given && open)
      return n.refuse_advising("name the axes to remove",
                               "dimension {} of {} is bounded (at most {}) and may be 1", i, to_string(d),
                               d[i]);
    const bool keep = named && d[i] != 1 && !open;
    if (keep) kept.push_back(i);
    if (keep || (given ? !named : d[i] != 1)) out.push_back(from[i]);
  }
  if (!kept.empty() && !declares_rank(n, out.size()))
    return n.refuse_shapes("axis {} of {} is not 1", kept[0], to_string(d));
  if (!kept.empty())
    n.warn("axis {} of {} is not 1 and stays, as the declared shape of '{}' has it", fmt::join(kept, ", "),
           to_string(d), n.node().outputs[0]);
  return n.output(0, b.is_bounded(x) ? b.reshaped(x, out) : n.reshape(x, dims_of(b.lengths(), out)));
}

bool lower_unsqueeze(NodeLowering& n) {
  const ValueId x = n.input(0);
  std::vector<int64_t> axes;
  if (n.has_attr("axes")) {
    axes = n.attr_ints("axes");
  } else {
    if (!n.has_input(1)) return n.refuse("has no axes");
    const auto items = n.constant_ints(1);
    if (!items) return false;
    axes = *items;
  }
  const Dims d = n.dims(x);
  const auto rank = static_cast<int64_t>(d.size() + axes.size());
  if (!n.normalize_axes(&axes, rank)) return false;
  Bounded b(n);
  const std::vector<LengthId> from = b.of_axes(x);
  std::vector<LengthId> out;
  size_t next = 0;
  for (int64_t i = 0; i < rank; ++i)
    out.push_back(std::find(axes.begin(), axes.end(), i) != axes.end() ? b.lengths().constant(1)
                                                                       : from[next++]);
  return n.output(0, b.is_bounded(x) ? b.reshaped(x, out) : n.reshape(x, dims_of(b.lengths(), out)));
}

// com.microsoft: a new axis of one at a place of the result.
bool lower_expand_dims(NodeLowering& n) {
  auto axis = n.constant_int(1);
  if (!axis || !n.normalize_axis(&*axis, n.rank(n.input(0)) + 1)) return false;
  return n.output(0, n.unsqueeze(n.input(0), *axis));
}

bool lower_flatten(NodeLowering& n) {
  const ValueId x = n.input(0);
  int64_t axis = n.attr_int("axis", 1);
  const int64_t rank = n.rank(x);
  if (axis < -rank || axis > rank)
    return n.refuse_shapes("axis {} does not exist in a value of rank {}", axis, rank);
  if (axis < 0) axis += rank;
  return n.output(0, flatten_to_2d(n, x, axis));
}

bool lower_expand(NodeLowering& n) {
  const ValueId x = n.input(0);
  Bounded b(n);
  Lengths& lengths = b.lengths();
  const auto shape = lengths.items(n.input(1));
  if (!shape) return n.constant_ints(1).has_value();
  const std::vector<LengthId> from = b.of_axes(x);
  const Dims d = n.dims(x);
  std::vector<LengthId> out = *shape;
  if (out.size() < from.size()) out.insert(out.begin(), from.size() - out.size(), lengths.constant(1));
  Dims dims;
  for (size_t i = 0; i < out.size(); ++i) {
    const bool own = i + from.size() >= out.size();
    const size_t axis = own ? i + from.size() - out.size() : 0;
    if (own && lengths.known(out[i]) == 1) {
      out[i] = from[axis];
    } else if (own && lengths.known(from[axis]) != 1) {
      const auto a = lengths.known(from[axis]), o = lengths.known(out[i]);
      if (a && o && *a != *o) return n.refuse_shapes("{} does not broadcast with its shape", to_string(d));
      if (is_given(lengths, out[i])) {  // may be 1, which repeats nothing
        const LengthId one = lengths.constant(1);
        const LengthId repeats_none = lengths.combine(LengthFn::kEqual, out[i], one);
        out[i] = lengths.add(out[i], lengths.mul(repeats_none, lengths.sub(from[axis], one)));
      }
      out[i] = b.equal(from[axis], out[i]);
    } else {
      const auto most = b.with_maximum(out[i]);
      if (!most) return false;
      out[i] = *most;
    }
    dims.push_back(own && d[axis] != 1 ? d[axis] : lengths.high(out[i]));
    if (dims.back() < 0) return n.refuse_shapes("a dimension of {}", dims.back());
  }
  if (!b.is_bounded(x) && lengths.known_items(n.input(1))) return n.output(0, n.broadcast(x, dims));
  const ValueId y = n.emit_padded(BroadcastAttrs{int_list(dims)}, {x}, {true})[0];
  return n.output(0, b.with_lengths(y, out));
}

// An inference drops nothing; since opset 12 its mask is all ones.
bool lower_dropout(NodeLowering& n) {
  ignore_legacy(n);
  for (const char* a : {"ratio", "is_test", "seed"}) n.ignore_attr(a);
  const ValueId x = n.input(0);
  const bool has_ratio = n.has_input(1);
  if (n.has_input(2)) {
    const auto training = n.constant_int(2);
    if (!training) return false;
    const auto ratio = has_ratio ? n.constant_double(1) : std::optional<double>(0.5);
    if (!ratio) return false;
    if (*training != 0 && *ratio != 0)
      return n.refuse("training mode drops elements at random; export the model for inference");
  }
  if (n.wants_output(1)) {
    const DType t = n.opset() < 10 ? n.dtype(x) : DType::kBool;
    // Before opset 12 an inference mask has no meaning; onnxruntime gives zeros.
    Bounded b(n);
    n.output(1, b.with_lengths(n.broadcast(n.scalar(t, n.opset() < 12 ? 0 : 1), n.dims(x)), b.of_axes(x)));
  }
  return n.output(0, x);
}

}  // namespace

std::span<const OnnxOperator> shape_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"Shape", 1, lower_shape, "", kTakesBounded},
      {"Size", 1, lower_size, "", kTakesBounded},
      {"Identity", 1, lower_identity, "", kTakesBounded | kLinear | kTakesSequence},
      {"Reshape", 1, lower_reshape, "* i", kTakesBounded | kLinear},
      {"Squeeze", 1, lower_squeeze, "* i", kTakesBounded | kLinear},
      {"Unsqueeze", 1, lower_unsqueeze, "* i", kTakesBounded | kLinear},
      {"ExpandDims", 1, lower_expand_dims, "* i", kTakesBounded | kTwoInputs, kMicrosoft},
      {"Flatten", 1, lower_flatten, "", kTakesBounded | kLinear},
      {"Expand", 8, lower_expand, "* i", kTakesBounded | kLinear | kTwoInputs},
      {"Dropout", 1, lower_dropout, "", kTakesBounded},
  };
  return kRules;
}

}  // namespace sinter::convert
