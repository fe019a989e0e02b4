#include "converter/ir/recipe.h"

#include <algorithm>
#include <set>

#include "converter/ir/builder.h"
#include "converter/ir/integer_range.h"

namespace sinter::convert {
namespace {

bool widening(const OpAttrs& attrs, DType from, DType to) {
  const Op op = op_of(attrs);
  return (op == Op::kCast || op == Op::kDequantize) && bit_width(from) < bit_width(to);
}

bool whole(DType t) { return is_integer(t) || (is_sub_byte(t) && t != DType::kFloat4E2M1); }
bool with_sign(DType t) { return is_signed_integer(t) || t == DType::kInt4 || t == DType::kInt2; }

// Whether every number of `from` is a number of `to`.
bool exact(DType from, DType to) {
  if (whole(from) && whole(to))
    return with_sign(from) ? with_sign(to) && bit_width(from) <= bit_width(to)
                           : bit_width(from) + (with_sign(to) ? 1 : 0) <= bit_width(to);
  if (to == DType::kFloat16 || to == DType::kBFloat16) return whole(from) && bit_width(from) <= 8;
  if (to == DType::kFloat64) return is_float(from) || (bit_width(from) <= 32 && from != DType::kNone);
  if (to != DType::kFloat32) return false;
  return (is_float(from) && from != DType::kFloat64) || bit_width(from) <= 16;
}

// Returns the elements moved by `attrs`; packed ones are unpacked first.
ConstantPtr moved(const OpAttrs& attrs, const ConstantPtr& c) {
  if (!is_sub_byte(c->dtype())) return evaluated(attrs, {c});
  if (op_of(attrs) == Op::kView)
    return c->reshaped([&] {
      const IntList& dims = std::get<ViewAttrs>(attrs).dims;
      return Dims(dims.begin(), dims.end());
    }());
  const DType whole = c->dtype() == DType::kFloat4E2M1                             ? DType::kFloat32
                      : c->dtype() == DType::kUint4 || c->dtype() == DType::kUint2 ? DType::kUint8
                                                                                   : DType::kInt8;
  const ConstantPtr unpacked = evaluated(CastAttrs{static_cast<int64_t>(whole), 1}, {c}, false);
  const ConstantPtr there = unpacked ? evaluated(attrs, {unpacked}, false) : nullptr;
  return there ? evaluated(CastAttrs{static_cast<int64_t>(c->dtype()), 1}, {there}, false) : nullptr;
}

// Whether an operation extracts a number of few bits from a word.
bool masks(const OpAttrs& attrs) {
  const Op op = op_of(attrs);
  return op == Op::kBitwise || op == Op::kDiv || op == Op::kMod || op == Op::kSub;
}

// Adds up all operands, each once.
void count(const std::vector<ConstantPtr>& inputs, std::set<const void*>* seen, Recipe* sum) {
  for (const ConstantPtr& c : inputs) {
    if (!c) continue;
    const Recipe* below = c->recipe().get();
    if (!seen->insert(below ? static_cast<const void*>(below) : c.get()).second) continue;
    if (!below) {
      sum->stored_bytes += c->byte_size();
      continue;
    }
    ++sum->steps;
    count(below->inputs, seen, sum);
  }
}

// Returns the narrowest type for integers from `low` to `high`.
DType narrowest(int64_t low, int64_t high) {
  if (low >= 0)
    return high < 4 ? DType::kUint2 : high < 16 ? DType::kUint4 : high < 256 ? DType::kUint8 : DType::kNone;
  return low >= -8 && high < 8 ? DType::kInt4 : low >= -128 && high < 128 ? DType::kInt8 : DType::kNone;
}

// Returns integers that fit fewer bits, as one of several numbers in a word does, as widened narrow ones.
ConstantPtr narrowed(const OpAttrs& attrs, const std::vector<ConstantPtr>& inputs,
                     const ConstantPtr& result) {
  if (!is_integer(result->dtype()) || result->size() == 0) return result;
  IntegerRange range;
  if (result->computed_by()) {  // its numbers are not computed for this
    const auto proven = integer_range(*result);
    if (!proven) return result;
    range = *proven;
  } else {
    const std::vector<int64_t> items = result->as_int64s();
    const auto [low, high] = std::minmax_element(items.begin(), items.end());
    range = {*low, *high};
    if (result->dtype() == DType::kUint64 && range.low < 0) return result;  // wraps
  }
  const DType narrow = narrowest(range.low, range.high);
  if (narrow == DType::kNone || bit_width(narrow) >= bit_width(result->dtype())) return result;
  const CastAttrs to{static_cast<int64_t>(narrow), 1};
  ConstantPtr leaf;
  if (dense_bytes(narrow, result->dims()) >= kLazyResultBytes)
    leaf = computed_later(narrow, result->dims(), to,
                          {computed_later(result->dtype(), result->dims(), attrs, inputs)});
  else if (!(leaf = evaluated(to, {result}, false)))
    return result;
  return Constant::made(
      result, std::make_shared<const Recipe>(
                  Recipe{CastAttrs{static_cast<int64_t>(result->dtype()), 1}, {leaf}, leaf->byte_size(), 1}));
}

// Whether the bytes are clearly fewer: less than three quarters.
bool fewer(size_t bytes, size_t than) { return 4 * bytes < 3 * than; }

ConstantPtr apply(const OpAttrs& attrs, const std::vector<ConstantPtr>& inputs, const ConstantPtr& result) {
  Recipe recipe{attrs, inputs, 0, 1};
  std::set<const void*> seen;
  count(inputs, &seen, &recipe);
  if (fewer(recipe.stored_bytes, result->byte_size()) && recipe.steps <= kMostRecipeSteps) {
    // Numbers extracted from narrow numbers are narrower still.
    const Recipe* below = inputs[0] ? inputs[0]->recipe().get() : nullptr;
    const bool again =
        masks(attrs) && below && below->steps == 1 && std::holds_alternative<CastAttrs>(below->attrs);
    if (again) {
      ConstantPtr c = narrowed(attrs, inputs, result);
      if (c->recipe() && c->recipe()->stored_bytes <= recipe.stored_bytes) return c;
      if (result->computed_by()) return result;  // its numbers may prove a narrower type
    }
    return Constant::made(result, std::make_shared<const Recipe>(std::move(recipe)));
  }
  return masks(attrs) || recipe.steps > 1 ? narrowed(attrs, inputs, result) : result;
}

// Whether a View divides or joins only axes in front of `axis`, which is `*moved` then.
bool keeps_axes_from(int64_t axis, const Dims& from, const IntList& to, int64_t* moved) {
  const auto behind = static_cast<int64_t>(from.size()) - axis;
  *moved = static_cast<int64_t>(to.size()) - behind;
  return *moved >= 0 && std::equal(from.begin() + axis, from.end(), to.begin() + *moved);
}

// Moves the scales and zero points of a Dequantize with its data, whose dims become `to`, if they can be.
bool view_scales(const Dims& data, const IntList& to, DequantizeAttrs* a, std::vector<ConstantPtr>* inputs) {
  const auto axis = static_cast<std::ptrdiff_t>(a->axis);
  const auto view = [](const ConstantPtr& c, const Dims& dims) {
    return evaluated(ViewAttrs{IntList(std::span<const int64_t>(dims))}, {c}, false);
  };
  if (a->block_size > 0 && !keeps_axes_from(axis, data, to, &a->axis)) return false;
  const bool rows = to.size() == 2 && !data.empty() && to[1] == data.back();
  if (a->block_size == 0 && !rows) return false;
  if (a->block_size == 0) a->axis = axis + 1 == static_cast<std::ptrdiff_t>(data.size()) ? 1 : 0;
  for (size_t i = 1; i < inputs->size(); ++i) {
    ConstantPtr& c = (*inputs)[i];
    if (!c) continue;
    const Dims& own = c->dims();
    if (a->block_size > 0) {
      if (own.size() != data.size() || !std::equal(own.begin(), own.begin() + axis, data.begin()))
        return false;
      Dims dims(to.begin(), to.begin() + a->axis);
      dims.insert(dims.end(), own.begin() + axis, own.end());
      c = view(c, dims);
    } else if (a->axis == 0) {
      if (own != Dims{data[static_cast<size_t>(axis)]}) return false;
      Dims whole(data.begin(), data.end() - 1), along(data.size() - 1, 1);
      along[static_cast<size_t>(axis)] = own[0];
      c = view(c, along);
      if (c) c = evaluated(BroadcastAttrs{IntList(std::span<const int64_t>(whole))}, {c}, false);
      if (c) c = view(c, {to[0]});
    }
    if (!c) return false;
  }
  return true;
}

// Returns a move behind an element-wise widening as a widening of the moved narrow constant.
ConstantPtr move_first(const OpAttrs& attrs, const ConstantPtr& input, const ConstantPtr& result) {
  const Recipe& inner = *input->recipe();
  const auto* transpose = std::get_if<TransposeAttrs>(&attrs);
  const auto* view = std::get_if<ViewAttrs>(&attrs);
  if (!transpose && !(view && view->dtype < 0)) return nullptr;
  std::vector<ConstantPtr> inputs = inner.inputs;
  OpAttrs widen = inner.attrs;
  if (inputs[0]->recipe()) return nullptr;
  if (auto* dequantize = std::get_if<DequantizeAttrs>(&widen)) {
    const bool single = inputs[1]->size() == 1 && dequantize->block_size == 0;
    if (!single && transpose) {
      const auto at = std::find(transpose->perm.begin(), transpose->perm.end(), dequantize->axis);
      if (dequantize->block_size > 0)
        for (size_t i = 1; i < inputs.size(); ++i)
          if (inputs[i] && !(inputs[i] = moved(attrs, inputs[i]))) return nullptr;
      dequantize->axis = at - transpose->perm.begin();
    } else if (!single && !view_scales(inputs[0]->dims(), view->dims, dequantize, &inputs)) {
      return nullptr;
    }
  } else if (!std::holds_alternative<CastAttrs>(widen)) {
    return nullptr;
  }
  inputs[0] = moved(attrs, inputs[0]);
  return inputs[0] ? apply(widen, inputs, result) : nullptr;
}

}  // namespace

bool unpacks(const OpAttrs& attrs, DType result) {
  const Op op = op_of(attrs);
  // Words are repeated, and each copy is shifted by another amount; scales are repeated for their group.
  if (op == Op::kBroadcast || op == Op::kTile)
    return is_float(result) || (is_integer(result) && bit_width(result) <= 32);
  if (op == Op::kGather || op == Op::kGatherNd || op == Op::kGatherElements) return true;
  return masks(attrs) && is_integer(result);
}

bool widens(const OpAttrs& attrs, const std::vector<ConstantPtr>& inputs, DType result) {
  if (unpacks(attrs, result)) return true;
  if (!inputs.empty() && inputs[0] && widening(attrs, inputs[0]->dtype(), result)) return true;
  return std::any_of(inputs.begin(), inputs.end(), [](const ConstantPtr& c) { return c && c->recipe(); });
}

ConstantPtr with_recipe(const OpAttrs& attrs, const std::vector<ConstantPtr>& inputs, ConstantPtr result) {
  if (result->byte_size() < kRecipeBytes || is_sub_byte(result->dtype()) ||
      !widens(attrs, inputs, result->dtype()))
    return result;
  if (inputs.size() == 1 && inputs[0]->recipe()) {
    if (ConstantPtr c = move_first(attrs, inputs[0], result)) return c;
    // A Cast of an exactly widened constant casts the narrow one.
    const Recipe& inner = *inputs[0]->recipe();
    if (std::holds_alternative<CastAttrs>(attrs) && std::holds_alternative<CastAttrs>(inner.attrs) &&
        exact(inner.inputs[0]->dtype(), inputs[0]->dtype()))
      return apply(attrs, inner.inputs, result);
    const auto view = [](const OpAttrs& a) {
      return std::holds_alternative<ViewAttrs>(a) && std::get<ViewAttrs>(a).dtype < 0;
    };
    if (view(attrs) && view(inner.attrs)) return apply(attrs, inner.inputs, result);
  }
  return apply(attrs, inputs, result);
}

}  // namespace sinter::convert
