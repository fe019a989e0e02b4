#include "converter/passes/proofs/attention_scores.h"

#include <algorithm>
#include <cmath>

#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

constexpr double kLowest = -1e30;  // what is added to it leaves no trace in a float32
constexpr int kHidesDepth = 24;

// Scaled is id = operand * factor, or operand / (1 / factor), with a positive number.
struct Scaled {
  ValueId operand = kAbsent;
  double factor = 1;
};
std::optional<Scaled> scaled(Editor& e, ValueId id) {
  const int n = e.producer(id);
  if (n < 0) return std::nullopt;
  const Node& node = e.node(n);
  const bool mul = unclamped(node.as<MulAttrs>()), div = unclamped(node.as<DivAttrs>());
  if (!mul && !div) return std::nullopt;
  const size_t side = mul && e.uniform(node.inputs[0]) ? 1 : 0;
  const auto c = e.uniform(node.inputs[1 - side]);
  if (!c || !(*c > 0) || !std::isfinite(1 / *c) || !same_dims(e.graph(), node.inputs[side], id))
    return std::nullopt;
  return Scaled{node.inputs[side], mul ? *c : 1 / *c};
}

// Capped is cap * tanh(scale / cap * x); x is kAbsent for something else.
struct Capped {
  ValueId x = kAbsent;
  double cap = 0, scale = 1;
};
Capped capped(Editor& e, ValueId id) {
  const auto outer = scaled(e, id);
  const int tanh = outer ? e.made_by<TanhAttrs>(outer->operand) : -1;
  if (tanh < 0 || !e.single_read(outer->operand)) return {};
  const ValueId inside = e.node(tanh).inputs[0];
  const auto inner = scaled(e, inside);
  if (!inner || !e.single_read(inside)) return {inside, outer->factor, outer->factor};
  return {inner->operand, outer->factor, outer->factor * inner->factor};
}

// Returns whether a value is a matrix product, perhaps scaled, perhaps capped.
bool is_scores_product(Editor& e, ValueId id) {
  if (const Capped c = capped(e, id); c.x != kAbsent) id = c.x;
  if (e.made_by<MatMulAttrs>(id) >= 0) return true;
  const int n = e.producer(id);
  if (n < 0 || (e.node(n).op() != Op::kMul && e.node(n).op() != Op::kDiv)) return false;
  return e.made_by<MatMulAttrs>(e.node(n).inputs[0]) >= 0 || e.made_by<MatMulAttrs>(e.node(n).inputs[1]) >= 0;
}

// Takes a number by which all elements of an operand of the product are multiplied into the scale.
void take_scale(Editor& e, ValueId* operand, double* scale) {
  const int n = e.made_by<MulAttrs>(*operand);
  if (n < 0 || !unclamped(e.node(n).as<MulAttrs>())) return;
  const size_t side = e.uniform(e.node(n).inputs[0]) ? 1 : 0;
  const auto c = e.uniform(e.node(n).inputs[1 - side]);
  const double product = *scale * c.value_or(0);
  if (!(product > 0) || !std::isfinite(1 / product) ||
      !same_dims(e.graph(), e.node(n).inputs[side], *operand))
    return;
  *scale = product, *operand = e.node(n).inputs[side];
}

bool all_of_constant(Editor& e, ValueId id, bool (*holds)(double)) {
  constexpr int64_t kMostExamined = 1 << 22;
  const ConstantPtr& c = e.value(id).constant;
  if (!is_float(c->dtype()) || c->size() > kMostExamined) return false;
  const std::vector<double> all = c->as_doubles();
  return std::all_of(all.begin(), all.end(), holds);
}

// Returns whether each element is 0, or so low that it leaves nothing of a score that it is added to. That
// holds for elements wherever they are moved, so that no map of them is needed.
bool only_hides(Editor& e, ValueId id, int depth) {
  if (id < 0 || depth == 0) return false;
  if (e.value(id).constant) return all_of_constant(e, id, [](double c) { return c == 0 || c <= kLowest; });
  const int n = e.producer(id);
  if (n < 0) return false;
  const Node& node = e.node(n);
  const auto& in = node.inputs;
  const auto operand = [&](size_t i) { return only_hides(e, in[i], depth - 1); };
  const auto is_truth = [&](ValueId v) {
    if (e.value(v).constant) return all_of_constant(e, v, [](double c) { return c == 0 || c == 1; });
    const int cast = e.made_by<CastAttrs>(v);
    return cast >= 0 && e.value(e.node(cast).inputs[0]).dtype == DType::kBool;
  };
  switch (node.op()) {
    case Op::kView:
      return node.as<ViewAttrs>()->dtype < 0 && operand(0);
    case Op::kSlice:
    case Op::kBroadcast:
    case Op::kTranspose:
    case Op::kGather:
    case Op::kCopy:
      return operand(0);
    case Op::kWhere:
      return operand(1) && operand(2);
    case Op::kAdd:
      return unclamped(node.as<AddAttrs>()) && operand(0) && operand(1);
    case Op::kMul:
      return unclamped(node.as<MulAttrs>()) &&
             ((operand(0) && is_truth(in[1])) || (operand(1) && is_truth(in[0])));
    case Op::kPad:
      // The fill is zeros, or hides.
      return node.as<PadAttrs>()->mode == 0 && operand(0) &&
             (in.size() < 2 || in[1] == kAbsent || operand(1));
    case Op::kScatterNd:
      return node.as<ScatterNdAttrs>()->reduction == 0 && operand(0) && operand(2);
    default:
      return false;
  }
}

// Returns whether scores come from an operand of a sum or a choice: it is a product, or reads one.
bool leads_to_product(Editor& e, ValueId id) {
  for (int steps = 0; steps < 3; ++steps) {
    if (is_scores_product(e, id)) return true;
    const int n = e.producer(id);
    if (n < 0) return false;
    const Node& node = e.node(n);
    const bool is_term = unclamped(node.as<AddAttrs>()) || node.as<WhereAttrs>() != nullptr;
    if (!is_term) return false;
    ValueId next = kAbsent;
    for (const ValueId in : node.inputs)
      if (e.producer(in) >= 0 && e.single_read(in) && same_dims(e.graph(), in, id) &&
          is_scores_product(e, in))
        next = in;
    if (next == kAbsent) return false;
    id = next;
  }
  return false;
}

}  // namespace

std::optional<Scores> find_scores(Editor& e, ValueId id) {
  Scores s;
  for (int steps = 0; steps < 6; ++steps) {
    const int n = e.producer(id);
    if (n < 0 || !e.single_read(id) || !e.value(id).bounded_dims.empty()) return std::nullopt;
    const Node& node = e.node(n);
    if (const auto* mm = node.as<MatMulAttrs>()) {
      if (mm->transpose_a != 0) return std::nullopt;
      s.q = node.inputs[0], s.k = node.inputs[1], s.k_is_transposed = mm->transpose_b == 0;
      take_scale(e, &s.q, &s.scale), take_scale(e, &s.k, &s.scale);
      std::reverse(s.terms.begin(), s.terms.end());
      return s;
    }
    const bool untouched = s.scale == 1;
    const auto leads = [&](size_t i) {
      return same_dims(e.graph(), node.inputs[i], id) && leads_to_product(e, node.inputs[i]);
    };
    if (unclamped(node.as<AddAttrs>()) && s.cap == 0) {
      const size_t side = leads(0) ? 0 : 1;
      if (!leads(side)) return std::nullopt;
      s.terms.push_back({.bias = node.inputs[1 - side], .factor = s.scale});
      id = node.inputs[side];
      continue;
    }
    if (node.as<WhereAttrs>() != nullptr && s.cap == 0 && untouched) {
      const size_t side = leads(1) ? 1 : 2;
      if (!leads(side)) return std::nullopt;
      const ValueId hidden = node.inputs[3 - side];
      const auto c = e.uniform(hidden);
      if (!c || *c == 0) return std::nullopt;
      s.terms.push_back({.mask = node.inputs[0], .hidden = hidden, .mask_hides = side == 2});
      id = node.inputs[side];
      continue;
    }
    if (const Capped c = capped(e, id); c.x != kAbsent && untouched && s.cap == 0) {
      s.cap = c.cap, s.scale = c.scale, id = c.x;
      continue;
    }
    const auto factor = scaled(e, id);
    if (!factor || (!untouched && s.cap == 0)) return std::nullopt;
    s.scale *= factor->factor;
    id = factor->operand;
  }
  return std::nullopt;
}

ValueId joined_terms(Editor& e, int n, const Scores& s) {
  // A sum in another order is the same if all but one of its terms hide or are 0.
  size_t others = 0;
  for (const ScoreTerm& t : s.terms) {
    const bool is_mask = t.mask != kAbsent;
    if (is_mask ? *e.uniform(t.hidden) <= kLowest : only_hides(e, t.bias, kHidesDepth)) continue;
    if (is_mask || t.factor != 1) return kAbsent;
    ++others;
  }
  if (others > 1) return kAbsent;
  const auto number = [&](double c) { return e.constant(Constant::scalar(DType::kFloat32, c)); };
  ValueId sum = kAbsent;
  for (const ScoreTerm& t : s.terms) {
    if (t.mask != kAbsent) {
      const ValueId kept = sum == kAbsent ? number(0) : sum, hidden = number(*e.uniform(t.hidden));
      sum = e.insert(n, WhereAttrs{}, {t.mask, t.mask_hides ? hidden : kept, t.mask_hides ? kept : hidden});
    } else {
      const ValueId one = t.factor == 1 ? t.bias : e.insert(n, MulAttrs{}, {t.bias, number(t.factor)});
      sum = sum == kAbsent || one < 0 ? one : e.insert(n, AddAttrs{}, {sum, one});
    }
    if (sum < 0) return kAbsent;
  }
  return sum;
}

}  // namespace sinter::convert
