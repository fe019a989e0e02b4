// recognise-experts: products whose weights are matrices of a constant that a TopK chooses become
// ExpertFullyConnected, which reads the matrices where they are.
//
// y = MatMul(x, w) or MatMul(w, x), with w = Gather(table [experts, rows, columns], index), in which the
// matrices may be transposed, and those of several indices joined row by row. What is chosen may also be
// packed weights and their scales, which the model unpacks then: it is unpacked here first, if the product
// can keep the result packed. The walk computes the operations on the whole table, which the map of elements
// does not do.
#include <algorithm>

#include "converter/ir/low_bit_weights.h"
#include "converter/passes/editor.h"
#include "converter/passes/passes.h"
#include "converter/passes/proofs/chosen_experts.h"

namespace sinter::convert {

namespace {

// Chosen is the weights of a product.
struct Chosen {
  ConstantPtr table;
  std::string name;  // the name of what is gathered
  ValueId index = kAbsent;
  bool swapped = false;   // the last two axes, after the Gather
  Dims batch;             // axes in front of the matrices
  int64_t joined = 1;     // matrices whose rows are joined in one
  bool unpacked = false;  // by operations behind the Gather
};

class ExpertRecogniser {
 public:
  explicit ExpertRecogniser(Graph& graph) : e_(graph) {}

  int run() {
    for (int n = 0; n < e_.size(); ++n)
      if (e_.node(n).op() == Op::kMatMul && !combine(n, 1)) combine(n, 0);
    return e_.commit();
  }

 private:
  const Dims& dims(ValueId id) const { return e_.value(id).dims; }

  // Returns the index of the Gather that a value comes from by operations that table_of() follows.
  ValueId index_of(ValueId id) {
    constexpr int kMost = 16;
    for (int n = e_.producer(id), i = 0; n >= 0 && i < kMost; n = e_.producer(e_.node(n).inputs[0]), ++i)
      if (e_.node(n).as<GatherAttrs>() != nullptr) return e_.node(n).inputs[1];
    return kAbsent;
  }

  // Returns the constant for which `id` is Gather(constant, index) along axis 0: that of a Gather, or what
  // operations that treat all matrices alike make of several, or of numbers. Null: it comes from something
  // else.
  ConstantPtr table_of(ValueId id, ValueId index) {
    const Value& v = e_.value(id);
    if (v.constant) return v.constant->size() == 1 ? v.constant->reshaped({}) : nullptr;
    const int n = e_.producer(id);
    if (n < 0 || !v.bounded_dims.empty()) return nullptr;
    const Node& node = e_.node(n);
    if (const auto* gather = node.as<GatherAttrs>())
      return gather->axis == 0 && node.inputs[1] == index ? e_.value(node.inputs[0]).constant : nullptr;
    const Dims& places = dims(index);
    const auto axes = static_cast<int64_t>(places.size());
    if (v.dims.size() < places.size() || !std::equal(places.begin(), places.end(), v.dims.begin()))
      return nullptr;
    if (!is_followed(node.op())) return nullptr;
    std::vector<ConstantPtr> inputs;
    for (const ValueId input : node.inputs) {
      ConstantPtr c = input == kAbsent ? nullptr : table_of(input, index);
      if (input != kAbsent && !c) return nullptr;
      // Axes meet from the last on.
      if (c && c->size() != 1 && dims(input).size() != v.dims.size() && node.op() != Op::kView)
        return nullptr;
      inputs.push_back(std::move(c));
    }
    OpAttrs attrs = node.attrs;
    Dims own(v.dims.begin() + axes - 1, v.dims.end());
    own[0] = inputs[0]->dims().empty() ? 1 : inputs[0]->dims()[0];
    if (auto* view = std::get_if<ViewAttrs>(&attrs)) {
      if (view->dtype >= 0) return nullptr;
      view->dims = IntList(own);
    } else if (auto* broadcast = std::get_if<BroadcastAttrs>(&attrs)) {
      broadcast->dims = IntList(own);
    } else if (auto* dequantize = std::get_if<DequantizeAttrs>(&attrs)) {
      dequantize->axis -= axes - 1;
      if (dequantize->axis < 1 && inputs[1]->size() != 1) return nullptr;
      dequantize->axis = std::max<int64_t>(dequantize->axis, 0);
    }
    return evaluated(attrs, inputs);
  }
  static bool is_followed(Op op) {
    return op == Op::kCast || op == Op::kMul || op == Op::kSub || op == Op::kView || op == Op::kBroadcast ||
           op == Op::kDequantize;
  }

  std::optional<Chosen> chosen(ValueId id) {
    Chosen c;
    int n = e_.producer(id);
    if (const auto* t = n >= 0 ? e_.node(n).as<TransposeAttrs>() : nullptr) {
      const auto rank = static_cast<int64_t>(dims(id).size());
      for (int64_t i = 0; i < rank; ++i) {
        const int64_t from = i + 2 < rank ? i : i + 2 == rank ? rank - 1 : rank - 2;
        if (t->perm[static_cast<size_t>(i)] != from) return std::nullopt;
      }
      c.swapped = true, id = e_.node(n).inputs[0], n = e_.producer(id);
    }
    c.index = index_of(id);
    if (c.index == kAbsent || dims(c.index).empty() || !e_.value(c.index).bounded_dims.empty() ||
        !is_place(e_, c.index))
      return std::nullopt;
    const Dims viewed = dims(id);
    c.table = table_of(id, c.index);
    // The outermost View may join axes of the index with rows.
    if (!c.table && e_.node(n).op() == Op::kView) id = e_.node(n).inputs[0], c.table = table_of(id, c.index);
    if (!c.table || c.table->dims().size() != 3 || viewed.size() < 2 || viewed.back() != c.table->dims()[2])
      return std::nullopt;
    c.batch.assign(viewed.begin(), viewed.end() - 2);
    const int64_t rows = c.table->dims()[1], all = viewed[viewed.size() - 2];
    if (rows == 0 || all % rows != 0 || element_count(dims(c.index)) == 0) return std::nullopt;
    c.joined = all / rows;
    for (n = e_.producer(id); e_.node(n).op() != Op::kGather; n = e_.producer(e_.node(n).inputs[0]))
      c.unpacked = true;
    c.name = e_.value(e_.node(n).inputs[0]).name;
    return c;
  }

  // Returns the table as [experts, columns, depth], narrow where it is.
  ConstantPtr weights(const Chosen& chosen, bool turned) {
    ConstantPtr c = narrow_or_float_weights(chosen.table);
    if (c && turned) c = evaluated(TransposeAttrs{IntList{0, 2, 1}}, {c});
    if (!c || !chosen.unpacked) return c;
    // Otherwise all matrices would be unpacked, not only the chosen ones.
    const Dims d = c->dims();
    const ConstantPtr rows = evaluated(ViewAttrs{IntList{d[0] * d[1], d[2]}}, {c});
    const auto packed = rows ? low_bit_weights(rows, false) : std::nullopt;
    return packed && packed->order.empty() && packed->padding == 0 ? c : nullptr;
  }

  bool combine(int n, size_t side) {
    const MatMulAttrs a = *e_.node(n).as<MatMulAttrs>();
    const std::vector<ValueId> inputs = e_.node(n).inputs;
    const ValueId x = inputs[1 - side], y = e_.node(n).outputs[0];
    if (inputs.size() != 2 || e_.value(x).dtype != DType::kFloat32 || e_.value(y).dtype != DType::kFloat32)
      return false;
    for (const ValueId id : {x, y, inputs[side]})
      if (!e_.value(id).bounded_dims.empty()) return false;
    const auto c = chosen(inputs[side]);
    if (!c) return false;
    // Matrices are stored as [depth, columns] where `turned`.
    const bool flips = c->swapped != ((side == 0 ? a.transpose_a : a.transpose_b) != 0);
    const bool turned = side == 1 ? !flips : flips;
    const Dims& table = c->table->dims();
    const int64_t depth = table[turned ? 1 : 2];
    const Dims given = dims(x);
    if (given.size() < 2 || (turned && c->joined != 1)) return false;
    // The rows of x for each matrix are [..., rows, depth], or [..., depth, 1].
    const bool across = (side == 1 ? a.transpose_a : a.transpose_b) != 0;
    int64_t rows = given[given.size() - 2], last = given.back();
    if (across) std::swap(rows, last);
    if (side == 0) std::swap(rows, last);
    if (last != depth || (rows != 1 && (side == 0 || across || c->joined != 1))) return false;
    const Dims outer(given.begin(), given.end() - 2), whole = dims(y);
    if (Dims(whole.begin(), whole.end() - 2) != c->batch || outer.size() > c->batch.size()) return false;
    const int64_t batch = element_count(c->batch), choices = batch * c->joined;
    if (choices != element_count(dims(c->index))) return false;

    // [batch..., joined, rows * depth]
    Dims one(c->batch.size() - outer.size(), 1), spread = c->batch;
    one.insert(one.end(), outer.begin(), outer.end());
    for (size_t i = 0; i < one.size(); ++i)
      if (one[i] != 1 && one[i] != spread[i]) return false;
    one.insert(one.end(), {1, rows * depth}), spread.insert(spread.end(), {c->joined, rows * depth});
    const ConstantPtr matrices = weights(*c, turned);
    if (!matrices) return false;
    const ValueId w = e_.graph().add_constant(matrices, c->name);
    ValueId all = e_.insert(n, ViewAttrs{IntList(one)}, {x});
    if (one != spread) all = e_.insert(n, BroadcastAttrs{IntList(spread)}, {all});
    all = e_.insert(n, ViewAttrs{IntList{choices * rows, depth}}, {all});
    ValueId expert = c->index;
    if (e_.value(expert).dtype != DType::kInt64)
      expert = e_.insert(n, CastAttrs{static_cast<int64_t>(DType::kInt64), 1}, {expert});
    if (rows != 1) {
      expert = e_.insert(n, ViewAttrs{IntList{choices, 1}}, {expert});
      expert = e_.insert(n, BroadcastAttrs{IntList{choices, rows}}, {expert});
    }
    expert = e_.insert(n, ViewAttrs{IntList{choices * rows}}, {expert});
    const ValueId product = e_.insert(n, ExpertFullyConnectedAttrs{}, {all, expert, w});
    if (product == kAbsent) return false;
    e_.replace(n, ViewAttrs{IntList(whole)}, {product});
    return true;
  }

  Editor e_;
};

}  // namespace

int recognise_experts(Graph& graph) {
  int changes = recognise_expert_loops(graph);
  changes += recognise_dense_experts(graph);
  return changes + ExpertRecogniser(graph).run();
}

}  // namespace sinter::convert
