// recognise-low-bit: products whose constant weights come from integers of 2 to 8 bits or small floats with
// scales and zero points per block, or from indices into a small table with scales, keep them so, however the
// model unpacked them (rule unpack.lowbit). Batches of matrices are those of experts.
#include <fmt/format.h>

#include <map>

#include "converter/ir/low_bit_weights.h"
#include "converter/ir/narrow_weights.h"
#include "converter/passes/editor.h"
#include "converter/passes/pass.h"

namespace sinter::convert {
namespace {

// WeightProduct is a product with its constant operand as [outputs, depth].
struct WeightProduct {
  ConstantPtr weights;
  ValueId x = kAbsent, bias = kAbsent;
  double act_min = -kInfinity, act_max = kInfinity;
  bool turned = false;  // the operand itself is [depth, outputs]
};

class LowBitRecogniser {
 public:
  LowBitRecogniser(Graph& graph, int64_t cached) : e_(graph), cached_(cached) {}

  int run() {
    for (int n = 0; n < e_.size(); ++n) {
      if (const auto p = product(n))
        pack(n, *p);
      else if (e_.node(n).op() == Op::kExpertFullyConnected)
        pack_experts(n);
      else if (e_.node(n).op() == Op::kMatMul)
        pack_batch(n);
    }
    return e_.commit();
  }

 private:
  std::optional<WeightProduct> product(int n) {
    const Node& node = e_.node(n);
    const auto* connected = node.as<FullyConnectedAttrs>();
    const auto* matrix = node.as<MatMulAttrs>();
    if ((!connected && !matrix) || !e_.graph().is_constant(node.inputs[1]) ||
        e_.graph().is_constant(node.inputs[0]))
      return std::nullopt;
    const Value& w = e_.value(node.inputs[1]);
    if (w.dtype != DType::kFloat32 || !w.constant->recipe()) return std::nullopt;
    if (connected)
      return WeightProduct{w.constant, node.inputs[0], node.inputs.size() > 2 ? node.inputs[2] : kAbsent,
                           connected->act_min, connected->act_max};
    if (w.dims.size() != 2 || matrix->transpose_a != 0) return std::nullopt;
    if (matrix->transpose_b != 0) return WeightProduct{w.constant, node.inputs[0]};
    std::vector<ConstantPtr> turned;
    if (!evaluate(TransposeAttrs{IntList{1, 0}}, {w.constant}, 1, &turned).ok()) return std::nullopt;
    WeightProduct p{turned[0], node.inputs[0]};
    p.turned = true;
    return p;
  }

  // Returns whether `id` is dequantized, and at most moved then.
  bool dequantized(ValueId id) {
    for (int n = e_.producer(id); n >= 0; n = e_.producer(e_.node(n).inputs[0])) {
      const Op op = e_.node(n).op();
      if (op == Op::kDequantize) return true;
      if (op != Op::kView && op != Op::kTranspose && op != Op::kSlice) return false;
    }
    return false;
  }

  void pack(int n, const WeightProduct& p) {
    const ValueId id = e_.node(n).inputs[1];
    const auto [at, fresh] = known_.emplace(std::pair(id, p.turned), std::nullopt);
    if (fresh) at->second = operands(id, p.weights);
    if (!at->second) return;
    const Operands& o = *at->second;
    ValueId x = p.x;
    // With one scale a row and a quantized x it will be an integer product.
    if (o.block >= e_.value(x).dims.back() + o.padding && o.order == kAbsent && dequantized(x)) return;
    const int64_t last = static_cast<int64_t>(e_.value(x).dims.size()) - 1;
    if (o.order != kAbsent && !along(n, &x, GatherAttrs{last}, {x, o.order})) return;
    if (o.padding > 0) {
      PadAttrs pad;
      for (int64_t i = 0; i < 2 * last + 1; ++i) pad.pads.push(0);
      pad.pads.push(o.padding);
      if (!along(n, &x, pad, {x})) return;
    }
    record(n, id, o);
    e_.replace(n, LowBitFullyConnectedAttrs{o.block, p.act_min, p.act_max, o.format.attribute()},
               without_absent({x, o.weights, o.scales, o.zeros, p.bias, o.table}));
  }

  // Changes the last axis of x.
  bool along(int n, ValueId* x, OpAttrs attrs, std::vector<ValueId> inputs) {
    const ValueId y = e_.insert(n, std::move(attrs), std::move(inputs));
    if (y == kAbsent) return false;
    const int last = static_cast<int>(e_.value(*x).dims.size()) - 1;
    for (const BoundedDim& dim : e_.value(*x).bounded_dims)
      if (dim.axis < last) e_.graph().value(y).bounded_dims.push_back(dim);
    *x = y;
    return true;
  }

  struct Operands {
    ValueId weights = kAbsent, scales = kAbsent, zeros = kAbsent, table = kAbsent, order = kAbsent;
    WeightFormat format;
    int64_t block = 0, padding = 0;
    bool rounded = false;
  };

  // Weights of 8 bits with one scale a row, as quantized networks have them, are faster as floats, which they
  // become when a session is created, as long as those fit a cache.
  bool better_wide(const LowBitWeights& w) const {
    const Constant& weights = *w.weights;
    return w.format.bits == 8 && w.block >= weights.dims()[1] && weights.size() < cached_;
  }

  std::optional<Operands> operands(ValueId id, const ConstantPtr& constant) {
    const auto w = low_bit_weights(constant);
    if (!w || better_wide(*w)) return std::nullopt;
    return added(id, *w);
  }
  // Adds weights as constants of the graph, named after the value that they replace.
  Operands added(ValueId id, const LowBitWeights& w) {
    const std::string name = e_.value(id).name;
    const auto add = [&](const ConstantPtr& c, const char* what) {
      return c ? e_.graph().add_constant(c, name.empty() ? name : name + what) : kAbsent;
    };
    Operands o{add(w.weights, ".packed"),
               add(w.scales, ".scales"),
               add(w.zeros, ".zeros"),
               add(w.table, ".table"),
               kAbsent,
               w.format,
               w.block,
               w.padding,
               w.rounded};
    if (!w.order.empty())
      o.order = add(Constant::of<int32_t>(DType::kInt32, {static_cast<int64_t>(w.order.size())}, w.order),
                    ".order");
    return o;
  }
  static std::vector<ValueId> without_absent(std::vector<ValueId> inputs) {
    while (inputs.back() == kAbsent) inputs.pop_back();
    return inputs;
  }

  // Returns the operands of ExpertFullyConnected for a constant [experts, columns, depth], or, turned,
  // [experts, depth, columns].
  std::optional<Operands> expert_operands(ValueId id, bool turned, bool may_be_wide) {
    const auto [at, fresh] = known_.emplace(std::pair(id, turned), std::nullopt);
    if (!fresh) return at->second;
    ConstantPtr c = e_.value(id).constant;
    if (!c->recipe()) return std::nullopt;
    if (c->dtype() != DType::kFloat32)
      c = evaluated(CastAttrs{static_cast<int64_t>(DType::kFloat32), 1}, {c});
    if (c && turned) c = evaluated(TransposeAttrs{IntList{0, 2, 1}}, {c});
    if (!c) return std::nullopt;
    const Dims dims = c->dims();
    const ConstantPtr rows = evaluated(ViewAttrs{IntList{dims[0] * dims[1], dims[2]}}, {c});
    if (!rows || !rows->recipe()) return std::nullopt;
    auto w = low_bit_weights(rows, false);
    if (!w || !w->order.empty() || w->padding != 0 || (may_be_wide && better_wide(*w))) return std::nullopt;
    const auto of_experts = [&](const ConstantPtr& part) {
      return part ? evaluated(ViewAttrs{IntList{dims[0], dims[1], part->dims()[1]}}, {part}) : nullptr;
    };
    w->weights = w->weights->reshaped(dims);
    const ConstantPtr scales = of_experts(w->scales), zeros = of_experts(w->zeros);
    if (!scales || (w->zeros && !zeros)) return std::nullopt;
    w->scales = scales, w->zeros = zeros;
    at->second = added(id, *w);
    return at->second;
  }

  ExpertFullyConnectedAttrs expert_attrs(const Operands& o) const { return {o.block, 0}; }

  void pack_experts(int n) {
    const std::vector<ValueId> given = e_.node(n).inputs;
    if ((given.size() > 3 && given[3] != kAbsent) || !e_.graph().is_constant(given[2])) return;
    const auto o = expert_operands(given[2], false, false);
    if (!o) return;
    record(n, given[2], *o);
    e_.replace(n, expert_attrs(*o),
               without_absent({given[0], given[1], o->weights, o->scales, o->zeros,
                               given.size() > 5 ? given[5] : kAbsent, o->table}));
  }

  // Packs the matrices of x [batch, rows, depth] times as many matrices.
  void pack_batch(int n) {
    const MatMulAttrs a = *e_.node(n).as<MatMulAttrs>();
    const ValueId x = e_.node(n).inputs[0], w = e_.node(n).inputs[1];
    if (a.transpose_a != 0 || e_.node(n).inputs.size() != 2 || !e_.graph().is_constant(w) ||
        e_.graph().is_constant(x))
      return;
    const Dims given = e_.value(x).dims, weights = e_.value(w).dims;
    if (given.size() != 3 || weights.size() != 3 || given[0] != weights[0] ||
        !e_.value(x).bounded_dims.empty() || e_.value(x).dtype != DType::kFloat32 || dequantized(x))
      return;
    const auto o = expert_operands(w, a.transpose_b == 0, true);
    if (!o) return;
    const int64_t batch = given[0], rows = given[1], columns = weights[a.transpose_b != 0 ? 1 : 2];
    std::vector<int64_t> expert;
    for (int64_t r = 0; r < batch * rows; ++r) expert.push_back(r / rows);
    const ValueId all = e_.insert(n, ViewAttrs{IntList{batch * rows, given[2]}}, {x});
    const ValueId y = e_.insert(n, expert_attrs(*o),
                                without_absent({all, e_.constant(Constant::int64s(expert)), o->weights,
                                                o->scales, o->zeros, kAbsent, o->table}));
    if (y == kAbsent) return;
    record(n, w, *o);
    e_.replace(n, ViewAttrs{IntList{batch, rows, columns}}, {y});
  }

  void record(int n, ValueId id, const Operands& o) {
    const int64_t depth = e_.value(e_.node(n).inputs[0]).dims.back();
    std::string reason = fmt::format("the weights stay packed in {} bits, {} to a scale", int{o.format.bits},
                                     std::min(o.block, depth));
    if (o.table != kAbsent) reason += ", indices into a table";
    if (o.order != kAbsent) reason += ", columns in the order of their groups";
    if (o.rounded) reason += "; the model's roundings to 16 bits during unpacking are omitted";
    e_.graph().decide(e_.value(id), e_.node(n), o.format.type, TypeRule::kUnpackLowbit, TypeEffect::kRetyped,
                      reason);
  }

  Editor e_;
  int64_t cached_;
  std::map<std::pair<ValueId, bool>, std::optional<Operands>> known_;  // by value, and turned or not
};

}  // namespace

int recognise_low_bit(Graph& graph) {
  const auto is_folded = [](const Constant& c) { return c.recipe() != nullptr; };
  return LowBitRecogniser(graph, narrow_layer_elements(graph, is_folded)).run();
}
// Packs small ones too, for tests.
int recognise_any_low_bit(Graph& graph) { return LowBitRecogniser(graph, 0).run(); }

}  // namespace sinter::convert
