// recognise-attention: softmax(scale * q k' + bias) v, written as two products and a softmax, becomes
// Attention.
//
// Attention gives zeros where every key is hidden by a bias of -inf, the products give NaN; so the bias must
// be one that is known to be finite (a constant, or something multiplied by a finite constant).
#include <cmath>

#include "converter/passes/editor.h"
#include "converter/passes/pass.h"

namespace sinter::convert {
namespace {

bool finite_constant(const Editor& e, ValueId id) {
  if (id < 0 || e.value(id).constant == nullptr || e.value(id).constant->size() > 65536) return false;
  for (const double v : e.value(id).constant->as_doubles())
    if (!std::isfinite(v)) return false;
  return true;
}

bool finite(Editor& e, ValueId id) {
  if (finite_constant(e, id)) return true;
  const int n = e.made_by<MulAttrs>(id);
  return n >= 0 && (finite_constant(e, e.node(n).inputs[0]) || finite_constant(e, e.node(n).inputs[1]));
}

// A matrix product, perhaps scaled.
bool is_product(Editor& e, ValueId id) {
  if (e.made_by<MatMulAttrs>(id) >= 0) return true;
  const int n = e.producer(id);
  if (n < 0 || (e.node(n).op() != Op::kMul && e.node(n).op() != Op::kDiv)) return false;
  return e.made_by<MatMulAttrs>(e.node(n).inputs[0]) >= 0 || e.made_by<MatMulAttrs>(e.node(n).inputs[1]) >= 0;
}

// The other operands, found upwards from the product with the values.
struct Scores {
  ValueId q = kAbsent, k = kAbsent, bias = kAbsent;
  double scale = 1;
  bool k_is_transposed = false;  // k is [B, H, D, N]
};

std::optional<Scores> scores(Editor& e, ValueId id) {
  Scores s;
  for (int steps = 0; steps < 3; ++steps) {
    const int n = e.producer(id);
    if (n < 0 || !e.single_read(id) || !e.value(id).extents.empty()) return std::nullopt;
    const Node& node = e.node(n);
    if (const auto* mm = node.as<MatMulAttrs>()) {
      if (mm->transpose_a != 0) return std::nullopt;
      s.q = node.inputs[0], s.k = node.inputs[1], s.k_is_transposed = mm->transpose_b == 0;
      return s;
    }
    const bool untouched = s.scale == 1;
    if (unclamped(node.as<AddAttrs>()) && s.bias == kAbsent && untouched) {
      size_t side = 0;  // of the scores
      while (side < 2 && !(is_product(e, node.inputs[side]) && finite(e, node.inputs[1 - side]) &&
                           same_dims(e.graph(), node.inputs[side], id)))
        ++side;
      if (side == 2) return std::nullopt;
      s.bias = node.inputs[1 - side];
      id = node.inputs[side];
      continue;
    }
    const bool mul = unclamped(node.as<MulAttrs>()), div = unclamped(node.as<DivAttrs>());
    if ((!mul && !div) || !untouched) return std::nullopt;
    const size_t side = mul && e.uniform(node.inputs[0]) ? 1 : 0;
    const auto c = e.uniform(node.inputs[1 - side]);
    if (!c || !(*c > 0) || !std::isfinite(1 / *c) || !same_dims(e.graph(), node.inputs[side], id))
      return std::nullopt;
    s.scale = mul ? *c : 1 / *c;
    id = node.inputs[side];
  }
  return std::nullopt;
}

void match(Editor& e, int n) {
  const auto* product = e.node(n).as<MatMulAttrs>();
  if (product == nullptr || product->transpose_a != 0 || product->transpose_b != 0) return;
  const ValueId p = e.node(n).inputs[0], v = e.node(n).inputs[1];
  const int softmax = e.made_by<SoftmaxAttrs>(p);
  if (softmax < 0 || !e.single_read(p) || e.value(p).dims.size() != 4 || e.value(p).dtype != DType::kFloat32)
    return;
  if (e.node(softmax).as<SoftmaxAttrs>()->axis != 3 || e.node(softmax).as<SoftmaxAttrs>()->log != 0) return;
  auto s = scores(e, e.node(softmax).inputs[0]);
  if (!s) return;
  for (const ValueId id : {s->q, s->k, v}) {
    const Value& operand = e.value(id);
    if (operand.dims.size() != 4 || operand.dims[0] != e.value(p).dims[0] ||
        operand.dims[1] != e.value(p).dims[1] || !operand.extents.empty())
      return;
  }
  if (s->bias >= 0 && (e.value(s->bias).dims.size() > 4 || !e.value(s->bias).extents.empty())) return;
  if (s->k_is_transposed) s->k = e.insert(n, TransposeAttrs{{0, 1, 3, 2}}, {s->k});
  if (s->k < 0) return;
  std::vector<ValueId> inputs{s->q, s->k, v};
  if (s->bias >= 0) inputs.push_back(s->bias);
  e.replace(n, AttentionAttrs{s->scale, 0}, inputs);
}

}  // namespace

int recognise_attention(Graph& graph) {
  Editor e(graph);
  for (int n = 0; n < e.size(); ++n) match(e, n);
  return e.commit();
}

}  // namespace sinter::convert
