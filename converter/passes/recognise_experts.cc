// recognise-experts: products whose weights are matrices of a constant that a TopK chooses become
// ExpertFullyConnected, which reads the matrices where they are.
//
// y = MatMul(x, w) or MatMul(w, x), with w = Gather(table [experts, rows, columns], index), in which the
// matrices may be transposed, and those of several indices joined row by row.
#include <algorithm>

#include "converter/ir/recipe.h"
#include "converter/passes/editor.h"
#include "converter/passes/pass.h"
#include "runtime/core/narrow_weights.h"

namespace sinter::convert {
namespace {

// The weights of a product.
struct Chosen {
  ValueId table = kAbsent, index = kAbsent;
  bool swapped = false;  // the last two axes, after the Gather
  Dims batch;            // axes in front of the matrices
  int64_t joined = 1;    // matrices whose rows are joined in one
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

  // Whether a value has no negative numbers, as places that an operation found.
  bool is_place(ValueId id) {
    for (int n = e_.producer(id); n >= 0; n = e_.producer(e_.node(n).inputs[0])) {
      const Node& node = e_.node(n);
      if (node.op() == Op::kTopK) return node.outputs.size() > 1 && node.outputs[1] == id;
      if (node.op() == Op::kArgReduce) return true;
      const bool moves = node.op() == Op::kView || node.op() == Op::kTranspose || node.op() == Op::kSlice ||
                         node.op() == Op::kCast;
      if (!moves || !is_integer(e_.value(id).dtype)) return false;
      id = node.inputs[0];
    }
    return false;
  }

  std::optional<Chosen> chosen(ValueId id) {
    Chosen c;
    Dims viewed;
    int n = e_.producer(id);
    if (const auto* t = n >= 0 ? e_.node(n).as<TransposeAttrs>() : nullptr) {
      const auto rank = static_cast<int64_t>(dims(id).size());
      for (int64_t i = 0; i < rank; ++i) {
        const int64_t from = i + 2 < rank ? i : i + 2 == rank ? rank - 1 : rank - 2;
        if (t->perm[static_cast<size_t>(i)] != from) return std::nullopt;
      }
      c.swapped = true, id = e_.node(n).inputs[0], n = e_.producer(id);
    }
    if (const auto* v = n >= 0 ? e_.node(n).as<ViewAttrs>() : nullptr) {
      if (v->dtype >= 0) return std::nullopt;
      viewed = dims(id), id = e_.node(n).inputs[0], n = e_.producer(id);
    }
    const auto* gather = n >= 0 ? e_.node(n).as<GatherAttrs>() : nullptr;
    if (gather == nullptr || gather->axis != 0) return std::nullopt;
    c.table = e_.node(n).inputs[0], c.index = e_.node(n).inputs[1];
    if (!e_.graph().is_constant(c.table) || dims(c.table).size() != 3 || !is_place(c.index))
      return std::nullopt;
    if (viewed.empty()) viewed = dims(id);
    if (viewed.size() < 2 || viewed.back() != dims(c.table)[2]) return std::nullopt;
    c.batch.assign(viewed.begin(), viewed.end() - 2);
    const int64_t rows = dims(c.table)[1], all = viewed[viewed.size() - 2];
    if (rows == 0 || all % rows != 0 || element_count(dims(c.index)) == 0) return std::nullopt;
    c.joined = all / rows;
    return c;
  }

  // The table as [experts, columns, depth], narrow where it is.
  ValueId weights(ValueId table, bool turned) {
    ConstantPtr c = e_.value(table).constant;
    if (c->dtype() == DType::kFloat32 && c->recipe() &&
        std::holds_alternative<CastAttrs>(c->recipe()->attrs) &&
        is_narrow_weight(c->recipe()->inputs[0]->dtype()) && !c->recipe()->inputs[0]->recipe())
      c = c->recipe()->inputs[0];
    if (c->dtype() != DType::kFloat32 && !is_narrow_weight(c->dtype())) return kAbsent;
    if (turned) {
      std::vector<ConstantPtr> results;
      if (!evaluate(TransposeAttrs{IntList{0, 2, 1}}, {c}, 1, &results).ok()) return kAbsent;
      c = results[0];
    }
    return c == e_.value(table).constant ? table : e_.graph().add_constant(c, e_.value(table).name);
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
    // As stored, are matrices [depth, columns]?
    const bool flips = c->swapped != ((side == 0 ? a.transpose_a : a.transpose_b) != 0);
    const bool turned = side == 1 ? !flips : flips;
    const Dims& table = dims(c->table);
    const int64_t depth = table[turned ? 1 : 2];
    const Dims given = dims(x);
    if (given.size() < 2 || (turned && c->joined != 1)) return false;
    // Rows of x for each matrix: [..., rows, depth], or [..., depth, 1].
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
    const auto list = [](const Dims& d) { return IntList(std::span<const int64_t>(d)); };
    const ValueId w = weights(c->table, turned);
    if (w == kAbsent) return false;
    ValueId all = e_.insert(n, ViewAttrs{list(one)}, {x});
    if (one != spread) all = e_.insert(n, BroadcastAttrs{list(spread)}, {all});
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
    e_.replace(n, ViewAttrs{list(whole)}, {product});
    return true;
  }

  Editor e_;
};

}  // namespace

int recognise_experts(Graph& graph) { return ExpertRecogniser(graph).run(); }

}  // namespace sinter::convert
