#include "converter/ir/low_bit_parts.h"

#include <algorithm>
#include <cmath>

#include "converter/ir/builder.h"
#include "converter/ir/op_traits.h"
#include "converter/ir/recipe.h"

namespace sinter::convert {
namespace {

using All = std::vector<LowBitParts>;

constexpr size_t kMostReadings = 4;

bool integer(DType t) { return is_integer(t) || (is_sub_byte(t) && t != DType::kFloat4E2M1); }
// Whether a product with weights of few bits takes these floats.
bool small_float(DType t) {
  const WeightFormat* f = find_weight_format(t, 0, false);
  return f != nullptr && f->kind == CodeKind::kFloat;
}

template <class A>
bool plain(const A& a) {
  return a.act_min == -kInfinity && a.act_max == kInfinity;
}

All parts_of(const ConstantPtr& c);

// Returns the parts of a constant with blocks spread over columns, so that all broadcast to its dims.
All whole_parts_of(const ConstantPtr& c) {
  All all = parts_of(c);
  std::erase_if(all, [](LowBitParts& p) { return !spread_blocks(p); });
  for (LowBitParts& p : all) p.direct = false;
  return all;
}

// Returns a part of the first operand, moved as the operation moves it, and computed when it is read.
ConstantPtr moved(const ConstantPtr& part, const std::shared_ptr<const Recipe>& recipe, const Dims& dims) {
  DType dtype = part->dtype();
  if (is_sub_byte(dtype))
    dtype = dtype == DType::kInt4 || dtype == DType::kInt2 ? DType::kInt8 : DType::kUint8;
  std::vector<ConstantPtr> inputs = recipe->inputs;
  const Dims& from = inputs[0]->dims();
  inputs[0] = part;
  if (part->dtype() != dtype)
    inputs[0] = computed_later(dtype, part->dims(), CastAttrs{static_cast<int64_t>(dtype), 1}, {part});
  inputs[0] = broadcast_later(inputs[0], from);
  return computed_later(dtype, dims, recipe->attrs, std::move(inputs));
}

All moved(const ConstantPtr& c) {
  All result = whole_parts_of(c->recipe()->inputs[0]);
  // float4 is not moved, but may get other dims.
  const bool view = std::holds_alternative<ViewAttrs>(c->recipe()->attrs);
  std::erase_if(result, [&](const LowBitParts& p) {
    return p.q->dtype() == DType::kFloat4E2M1 && !(view && p.q->size() == c->size());
  });
  for (LowBitParts& p : result) {
    p.q = p.q->dtype() == DType::kFloat4E2M1 ? p.q->reshaped(c->dims()) : moved(p.q, c->recipe(), c->dims());
    for (ConstantPtr* part : {&p.z, &p.s})
      if (*part) *part = (*part)->size() == 1 ? (*part)->reshaped({}) : moved(*part, c->recipe(), c->dims());
  }
  return result;
}

// Returns the join of whole parts, under the dims of the result.
ConstantPtr joined(std::vector<ConstantPtr> parts, const std::vector<ConstantPtr>& inputs, DType dtype,
                   const ConcatAttrs& attrs, const Dims& dims) {
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i]->dtype() != dtype)
      parts[i] =
          computed_later(dtype, parts[i]->dims(), CastAttrs{static_cast<int64_t>(dtype), 1}, {parts[i]});
    parts[i] = broadcast_later(parts[i], inputs[i]->dims());
  }
  return computed_later(dtype, dims, attrs, std::move(parts));
}

// Returns the parts of joined slices of weights, if all slices are of one form.
All joined(const ConstantPtr& c) {
  const Recipe& recipe = *c->recipe();
  std::vector<All> slices;
  for (const ConstantPtr& input : recipe.inputs) {
    slices.push_back(whole_parts_of(input));
    std::erase_if(slices.back(), [](const LowBitParts& p) { return small_float(p.q->dtype()); });
  }
  All result;
  for (const LowBitParts& first : slices[0]) {
    LowBitParts sum;
    sum.table = first.table;
    std::vector<ConstantPtr> q, z, s;
    for (const All& slice : slices) {
      const auto same = std::find_if(slice.begin(), slice.end(), [&](const LowBitParts& p) {
        return !p.z == !first.z && !p.s == !first.s && p.table == first.table;
      });
      if (same == slice.end()) break;
      q.push_back(same->q), z.push_back(same->z), s.push_back(same->s);
      if (sum.rounded_to == DType::kNone || same->rounded_to == DType::kBFloat16)
        sum.rounded_to = same->rounded_to;
      sum.written |= same->written, sum.divided |= same->divided;
    }
    if (q.size() != slices.size()) continue;
    const auto all = [&](std::vector<ConstantPtr> parts, DType dtype) {
      return joined(std::move(parts), recipe.inputs, dtype, std::get<ConcatAttrs>(recipe.attrs), c->dims());
    };
    sum.q = all(q, DType::kInt32);
    if (first.z) sum.z = all(z, DType::kFloat32);
    if (first.s) sum.s = all(s, DType::kFloat32);
    result.push_back(std::move(sum));
  }
  return result;
}

// Returns an entry for each of `count` indices of the axis, from entries that `block` indices share.
ConstantPtr per_column(const ConstantPtr& c, int64_t axis, int64_t count, int64_t block) {
  std::vector<int64_t> at;
  for (int64_t k = 0; k < count; ++k) at.push_back(k / block);
  ConstantPtr whole = c;
  if (is_sub_byte(c->dtype()))  // zero points
    whole = evaluated(CastAttrs{static_cast<int64_t>(DType::kInt32), 1}, {c}, false);
  return whole ? evaluated(GatherAttrs{axis}, {whole, Constant::int64s(at)}, false) : nullptr;
}

// Returns a scale or zero point of Dequantize for all of the data's elements.
ConstantPtr along(const ConstantPtr& c, const DequantizeAttrs& a, const Dims& dims) {
  if (!c || c->size() == 1) return c ? c->reshaped({}) : c;
  const auto axis = static_cast<size_t>(a.axis);
  if (axis >= dims.size()) return nullptr;
  if (a.block_size == 0) {
    Dims shape(dims.size(), 1);
    shape[axis] = dims[axis];
    return c->size() == dims[axis] ? c->reshaped(shape) : nullptr;
  }
  return per_column(c, a.axis, dims[axis], a.block_size);
}

All dequantized(const Recipe& recipe, DType to) {
  const auto& a = std::get<DequantizeAttrs>(recipe.attrs);
  const ConstantPtr& x = recipe.inputs[0];
  if (!integer(x->dtype()) && !small_float(x->dtype())) return {};
  const ConstantPtr zero = recipe.inputs.size() > 2 ? recipe.inputs[2] : nullptr;
  LowBitParts p{x, nullptr, nullptr};
  p.direct = to != DType::kFloat64 && recipe.inputs[1]->dtype() != DType::kFloat64;
  if (!is_wide_float(to)) p.rounded_to = to;
  const Dims& dims = x->dims();
  if (a.block_size > 0 && dims.size() == 2 && a.axis == 1) {
    const Dims blocks{dims[0], (dims[1] + a.block_size - 1) / a.block_size};
    if (recipe.inputs[1]->dims() == blocks && (!zero || zero->dims() == blocks)) {
      p.s = recipe.inputs[1], p.z = zero, p.block = a.block_size;
      return {p};
    }
  }
  p.s = along(recipe.inputs[1], a, dims);
  if (!p.s) return {};
  if (p.s->size() == 1 && p.s->as_doubles()[0] == 1) p.s = nullptr;
  if (zero && !(p.z = along(zero, a, dims))) return {};
  return {p};
}

All cast(const Recipe& recipe, DType to) {
  const ConstantPtr& x = recipe.inputs[0];
  if (!integer(x->dtype()) && !is_float(x->dtype())) return {};
  All all = parts_of(x);
  const bool narrows = is_float(x->dtype()) && bit_width(to) < bit_width(x->dtype());
  const bool known =
      is_float(x->dtype()) && (to == DType::kFloat32 || to == DType::kFloat16 || to == DType::kBFloat16);
  for (LowBitParts& p : all)
    p.direct &= known && (!narrows || p.rounded_to == DType::kNone || p.rounded_to == to);
  if (!narrows || is_wide_float(to)) return all;
  for (LowBitParts& p : all) {
    if (p.rounded_to == DType::kNone || to == DType::kBFloat16) p.rounded_to = to;
    p.written |= recipe.written;
  }
  return all;
}

// Returns the parts of a look-up in a small table of floats by integers of any type.
All looked_up(const Recipe& recipe, const Dims& dims) {
  const auto* nd = std::get_if<GatherNdAttrs>(&recipe.attrs);
  if (!std::holds_alternative<GatherAttrs>(recipe.attrs) && (!nd || nd->batch_dims != 0)) return {};
  const ConstantPtr &table = recipe.inputs[0], &places = recipe.inputs[1];
  if (table->dims().size() != 1 || table->size() > kWeightTableSize || !is_float(table->dtype()) ||
      bit_width(table->dtype()) < 16 || !integer(places->dtype()) || places->size() != element_count(dims))
    return {};
  LowBitParts p{places->dims() == dims ? places : places->reshaped(dims), nullptr, nullptr};
  for (const double v : table->as_doubles()) {
    if (!std::isfinite(v) || static_cast<double>(static_cast<float>(v)) != v) return {};
    p.table.push_back(static_cast<float>(v));
  }
  return {p};
}

// Adds q * s - scaled as (q - scaled / s) * s. A quotient next to a whole number was whole before rounding.
void push_divided(ConstantPtr scaled, LowBitParts p, All* result) {
  const auto wide = [](const ConstantPtr& c) {
    return c->dtype() == DType::kFloat32
               ? c
               : evaluated(CastAttrs{static_cast<int64_t>(DType::kFloat32), 1}, {c}, false);
  };
  const ConstantPtr s = wide(p.s);
  scaled = scaled ? wide(scaled) : nullptr;
  const ConstantPtr quotient = s && scaled ? evaluated(DivAttrs{}, {scaled, s}, false) : nullptr;
  if (!quotient) return;
  const LoadedBytes loaded = quotient->load();
  Bytes bytes(loaded.bytes.begin(), loaded.bytes.end());
  const std::span<float> items(reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float));
  for (float& z : items) {
    if (std::isnan(z)) z = 0;  // 0 / 0
    if (std::fabs(z - std::rint(z)) <= std::fabs(z) * 0x1p-22f) z = std::rint(z);
  }
  p.z = Constant::owned(DType::kFloat32, quotient->dims(), std::move(bytes));
  p.divided = true;
  result->push_back(std::move(p));
}

All parts_of(const ConstantPtr& c) {
  if (small_float(c->dtype())) return {{c, nullptr, nullptr}};
  All result;
  if (const Recipe* r = c->recipe().get()) {
    if (moves_one(r->attrs)) {
      result = moved(c);
      for (LowBitParts& p : looked_up(*r, c->dims())) result.push_back(std::move(p));
    } else if (std::holds_alternative<ConcatAttrs>(r->attrs)) {
      result = joined(c);
    } else if (std::holds_alternative<CastAttrs>(r->attrs)) {
      result = cast(*r, c->dtype());
    } else if (std::holds_alternative<DequantizeAttrs>(r->attrs)) {
      result = dequantized(*r, c->dtype());
    } else if (const auto* sub = std::get_if<SubAttrs>(&r->attrs); sub && plain(*sub)) {
      for (LowBitParts& p : whole_parts_of(r->inputs[0]))
        if (!p.table.empty())
          continue;
        else if (!p.z && !p.s)
          result.push_back({p.q, r->inputs[1], nullptr, p.rounded_to, p.written});
        else if (!p.z && !integer(c->dtype()))
          push_divided(r->inputs[1], std::move(p), &result);
    } else if (const auto* add = std::get_if<AddAttrs>(&r->attrs);
               add && plain(*add) && !integer(c->dtype())) {
      for (const size_t side : {0u, 1u})
        for (LowBitParts& p : whole_parts_of(r->inputs[side])) {
          if (!p.table.empty()) continue;
          const ConstantPtr z = p.z ? nullptr : evaluated(NegAttrs{}, {r->inputs[1 - side]}, false);
          if (z && !p.s)
            result.push_back({p.q, z, nullptr, p.rounded_to, p.written});
          else if (z)
            push_divided(z, std::move(p), &result);
        }
    } else if (const auto* mul = std::get_if<MulAttrs>(&r->attrs);
               mul && plain(*mul) && !integer(c->dtype())) {
      for (const size_t side : {0u, 1u})
        for (LowBitParts& p : whole_parts_of(r->inputs[side]))
          if (!p.s) {
            p.s = r->inputs[1 - side];
            if (!p.table.empty()) p.table_scales = p.s;
            result.push_back(std::move(p));
          }
    }
  }
  if (integer(c->dtype())) {
    // The constant itself is simpler than a reading of its recipe without z.
    result.erase(std::remove_if(result.begin(), result.end(), [](const LowBitParts& p) { return !p.z; }),
                 result.end());
    if (result.size() >= kMostReadings) result.resize(kMostReadings - 1);
    result.push_back({c, nullptr, nullptr});
  }
  return result;
}

}  // namespace

std::vector<LowBitParts> low_bit_parts(const ConstantPtr& constant) { return parts_of(constant); }

bool spread_blocks(LowBitParts& parts) {
  if (parts.block == 0) return true;
  const int64_t columns = parts.q->dims()[1];
  for (ConstantPtr* c : {&parts.z, &parts.s})
    if (*c && !(*c = per_column(*c, 1, columns, parts.block))) return false;
  parts.block = 0;
  return true;
}

}  // namespace sinter::convert
