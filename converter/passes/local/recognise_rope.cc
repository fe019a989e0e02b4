// recognise-rope: x cos + rotate(x) sin, where rotate swaps the halves of the last axis and negates one,
// becomes Rope. Exporters give cosines and sines for both halves; that the halves are alike must follow from
// the graph. Pairs of neighbours: recognise_pair_rope.cc; parts of rows: recognise_partial_rope.cc.
#include <map>

#include "converter/passes/editor.h"
#include "converter/passes/passes.h"
#include "converter/passes/proofs/equal_elements.h"

namespace sinter::convert {

namespace {

int64_t last_of(const Dims& dims) { return dims.empty() ? 0 : dims.back(); }

class RecogniseRope {
 public:
  explicit RecogniseRope(Graph& graph) : e_(graph) {}

  int run() {
    for (int n = 0; n < e_.size(); ++n)
      if (unclamped(e_.node(n).as<AddAttrs>())) match(n);
    return e_.commit();
  }

 private:
  // `x`'s elements from `first` on along the last axis, half of them.
  bool is_half(ValueId id, ValueId x, bool second) {
    const int n = e_.made_by<SliceAttrs>(id);
    if (n < 0 || e_.node(n).inputs[0] != x) return false;
    const auto& a = *e_.node(n).as<SliceAttrs>();
    const Dims& dims = e_.value(x).dims;
    for (size_t i = 0; i < dims.size(); ++i) {
      const bool last = i + 1 == dims.size();
      if (a.steps[i] != 1 || a.sizes[i] != (last ? dims[i] / 2 : dims[i]) ||
          a.starts[i] != (last && second ? dims[i] / 2 : 0))
        return false;
    }
    return true;
  }

  // Concat(-second half, first half) of x.
  bool is_rotated(ValueId id, ValueId x) {
    const int n = e_.made_by<ConcatAttrs>(id);
    if (n < 0 || !e_.single_read(id)) return false;
    const Node& node = e_.node(n);
    const Dims& dims = e_.value(x).dims;
    if (node.inputs.size() != 2 || dims.empty() || dims.back() % 2 != 0 ||
        node.as<ConcatAttrs>()->axis + 1 != static_cast<int64_t>(dims.size()))
      return false;
    const int negated = e_.made_by<NegAttrs>(node.inputs[0]);
    return negated >= 0 && is_half(e_.node(negated).inputs[0], x, true) && is_half(node.inputs[1], x, false);
  }

  // Layers share cosines and sines.
  bool halves_alike(ValueId id) {
    const auto [known, fresh] = alike_.emplace(id, false);
    if (fresh) known->second = equal_halves(e_, id);
    return known->second;
  }

  // The first half of each row of cosines or sines, inserted before node n.
  ValueId first_half(int n, ValueId id) {
    Dims sizes = e_.value(id).dims;
    const Dims starts(sizes.size(), 0), steps(sizes.size(), 1);
    sizes.back() /= 2;
    return e_.insert(n, SliceAttrs{IntList(starts), IntList(steps), IntList(sizes)}, {id});
  }

  void match(int n) {
    for (size_t side = 0; side < 2; ++side) {
      const int plain = e_.made_by<MulAttrs>(e_.node(n).inputs[side]),
                rotated = e_.made_by<MulAttrs>(e_.node(n).inputs[1 - side]);
      if (plain < 0 || rotated < 0 || plain == rotated || !unclamped(e_.node(plain).as<MulAttrs>()) ||
          !unclamped(e_.node(rotated).as<MulAttrs>()) || !e_.single_read(e_.node(n).inputs[0]) ||
          !e_.single_read(e_.node(n).inputs[1]))
        continue;
      for (size_t i = 0; i < 2; ++i)
        for (size_t j = 0; j < 2; ++j) {
          const ValueId x = e_.node(plain).inputs[i], cos = e_.node(plain).inputs[1 - i],
                        sin = e_.node(rotated).inputs[1 - j];
          if (is_rotated(e_.node(rotated).inputs[j], x) && turn(n, x, cos, sin)) return;
        }
    }
  }

  bool turn(int n, ValueId x, ValueId cos, ValueId sin) {
    const Value &v = e_.value(x), &y = e_.value(e_.node(n).outputs[0]);
    if (v.dtype != DType::kFloat32 || v.dims != y.dims || !y.bounded_dims.empty()) return false;
    for (const ValueId id : {cos, sin})
      if (last_of(e_.value(id).dims) != v.dims.back() || !halves_alike(id)) return false;
    const ValueId half_cos = first_half(n, cos), half_sin = first_half(n, sin);
    if (half_cos < 0 || half_sin < 0) return false;
    e_.replace(n, RopeAttrs{}, {x, half_cos, half_sin});
    return true;
  }

  Editor e_;
  std::map<ValueId, bool> alike_;
};

}  // namespace

int recognise_rope(Graph& graph) {
  nest_halves(graph);
  int changes = RecogniseRope(graph).run();
  changes += recognise_pair_rope(graph);
  return changes + join_passed(graph);
}

}  // namespace sinter::convert
