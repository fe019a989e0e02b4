// Rotary embeddings whose pairs are neighbours (and the written-out product for halves), part of
// recognise-rope. Three forms, for the pairs (a, b) of x:
//   matrix    F[..., 0] a + F[..., 1] b, with a matrix F of 2 by 2 numbers per pair that must be a rotation
//   stacked   x cos + stack(-b, a) sin, with cosines and sines that must come in equal pairs
//   product   stack(a cos - b sin, a sin + b cos); with Concat instead of stack for halves, also of any a and
//   b
#include "converter/passes/passes.h"
#include "converter/passes/pattern.h"
#include "converter/passes/proofs/equal_elements.h"

namespace sinter::convert {
namespace {

class RecognisePairRope {
 public:
  explicit RecognisePairRope(Graph& graph) : e_(graph) {}

  int run() {
    Capture a, b, cos, sin, difference;
    const Pattern sum = commuted<AddAttrs>(commuted<MulAttrs>(a, cos), commuted<MulAttrs>(b, sin));
    const auto rotation = [&](bool views) {
      const Pattern less = op<SubAttrs>(commuted<MulAttrs>(a, cos), commuted<MulAttrs>(b, sin));
      const Pattern more = commuted<AddAttrs>(commuted<MulAttrs>(a, sin), commuted<MulAttrs>(b, cos));
      return op<ConcatAttrs>(views ? seen(difference(less)) : difference(less), views ? seen(more) : more);
    };
    const Pattern stacked_halves = rotation(true), joined_halves = rotation(false);
    return e_.sweep([&](int n) {
      const ValueId y = e_.result(n);
      if (y < 0 || !is_wide_float(e_.value(y).dtype) || !e_.value(y).bounded_dims.empty()) return;
      const std::vector<ValueId> inputs = e_.node(n).inputs;
      if (e_.node(n).as<AddAttrs>() != nullptr) {
        sum.match(e_, y, [&] {
          return inputs[0] != inputs[1] && (matrix(n, a, cos, b, sin) || stacked(n, a, cos, b, sin));
        });
      } else if (joins_rows(n)) {
        const bool stack = is_stack(n);
        (stack ? stacked_halves : joined_halves).match(e_, y, [&] {
          return product(n, dims(difference), a, cos, b, sin, stack);
        });
      }
    });
  }

 private:
  // Elements of `root` in row-major order: every second one, or one half of each of its rows.
  struct Part {
    ValueId root = kAbsent;
    int64_t which = 0;
    bool neighbours = false;
    bool operator==(const Part& o) const {
      return root == o.root && which == o.which && neighbours == o.neighbours;
    }
    Part other() const { return {root, 1 - which, neighbours}; }
  };

  const Dims& dims(ValueId id) const { return e_.value(id).dims; }
  ValueId bare(ValueId id) {
    for (int n; (n = e_.made_by<ViewAttrs>(id)) >= 0 && e_.node(n).as<ViewAttrs>()->dtype < 0;)
      id = e_.node(n).inputs[0];
    return id;
  }

  Part part(ValueId id) {
    const int n = e_.made_by<SliceAttrs>(bare(id));
    if (n < 0) return {};
    const ValueId from = e_.node(n).inputs[0];
    const auto& a = *e_.node(n).as<SliceAttrs>();
    const size_t last = dims(from).size() - 1;
    if (dims(from).empty() || dims(from)[last] % 2 != 0 || !e_.value(from).bounded_dims.empty()) return {};
    const int64_t half = dims(from)[last] / 2, start = a.starts[last];
    for (size_t i = 0; i < last; ++i)
      if (a.starts[i] != 0 || a.steps[i] != 1 || a.sizes[i] != dims(from)[i]) return {};
    if (a.sizes[last] != half) return {};
    if (start <= 1 && (half == 1 || a.steps[last] == 2)) return {bare(from), start, true};
    // Halves of the rows depend on the rows' length: no View may be between.
    if (a.steps[last] == 1 && start % half == 0 && id == e_.node(n).outputs[0])
      return {from, start / half, false};
    return {};
  }

  // The shape, seen with any other dims.
  Pattern seen(const Pattern& shape) {
    return Pattern::Match([this, shape](Editor& e, ValueId id, const Pattern::Then& then) {
      return shape.match(e, bare(id), then);
    });
  }

  ValueId view(int n, ValueId id, const Dims& to) {
    return id < 0 || dims(id) == to ? id : e_.insert(n, ViewAttrs{.dims = IntList(to)}, {id});
  }
  // Every second element along the last axis.
  ValueId every_second(int n, ValueId id, int64_t first) {
    Dims sizes = dims(id), starts(sizes.size(), 0), steps(sizes.size(), 1);
    sizes.back() /= 2, starts.back() = first, steps.back() = 2;
    return e_.insert(n, SliceAttrs{IntList(starts), IntList(steps), IntList(sizes)}, {id});
  }

  // Node n becomes the rotation of `root`, whose rows are the last one or two axes of the result.
  bool turn(int n, ValueId root, const Dims& rows, ValueId cos, ValueId sin, bool neighbours) {
    const Dims to = dims(e_.node(n).outputs[0]);
    const ValueId x = view(n, root, rows);
    if (x < 0 || cos < 0 || sin < 0) return false;
    RopeAttrs a;
    a.interleaved = neighbours ? 1 : 0;
    if (rows == to) {
      e_.replace(n, a, {x, cos, sin});
      return true;
    }
    const ValueId y = e_.insert(n, a, {x, cos, sin});
    if (y < 0) return false;
    e_.replace(n, ViewAttrs{.dims = IntList(to)}, {y});
    return true;
  }

  // f a + g b, of pairs along the last axis.
  bool matrix(int n, ValueId a, ValueId f, ValueId b, ValueId g) {
    Dims one = dims(e_.node(n).outputs[0]);
    if (one.size() < 2 || one.back() != 2 || dims(f).empty() || dims(f).back() != 2 || dims(f) != dims(g))
      return false;
    one.back() = 1;
    const Part pa = part(a);
    if (!pa.neighbours || pa.which != 0 || !(part(b) == pa.other()) || dims(a) != one || dims(b) != one)
      return false;
    if (!equal_elements(e_, every_second_of(e_, f, 0), every_second_of(e_, g, 1)) ||
        !equal_elements(e_, every_second_of(e_, f, 1), every_second_of(e_, g, 0, true)))
      return false;
    Dims rows(one.begin(), one.end() - 1), pairs(dims(f).begin(), dims(f).end() - 1);
    rows.back() *= 2;
    const ValueId cos = view(n, every_second(n, f, 0), pairs), sin = view(n, every_second(n, f, 1), pairs);
    return turn(n, pa.root, rows, cos, sin, true);
  }

  // x cos + rotated sin.
  bool stacked(int n, ValueId x, ValueId cos, ValueId rotated, ValueId sin) {
    const Dims& rows = dims(e_.node(n).outputs[0]);
    if (rows.empty() || dims(x) != rows || dims(rotated) != rows || rows.back() % 2 != 0) return false;
    const int join = e_.made_by<ConcatAttrs>(bare(rotated));
    if (join < 0 || !is_stack(join)) return false;
    const int negated = e_.made_by<NegAttrs>(bare(e_.node(join).inputs[0]));
    if (negated < 0) return false;
    const Part a = part(e_.node(join).inputs[1]);
    if (!a.neighbours || a.which != 0 || a.root != bare(x) ||
        !(part(e_.node(negated).inputs[0]) == a.other()))
      return false;
    for (const ValueId id : {cos, sin})
      if (dims(id).empty() || dims(id).back() != rows.back() ||
          !equal_elements(e_, every_second_of(e_, id, 0), every_second_of(e_, id, 1)))
        return false;
    const ValueId half_cos = every_second(n, cos, 0), half_sin = every_second(n, sin, 0);
    return turn(n, x, Dims(rows), half_cos, half_sin, true);
  }

  // Concat of two alike along the last axis; is_stack: which has 2 elements then.
  bool joins_rows(int n) {
    const Node& node = e_.node(n);
    return node.as<ConcatAttrs>() != nullptr && node.inputs.size() == 2 &&
           dims(node.inputs[0]) == dims(node.inputs[1]) &&
           node.as<ConcatAttrs>()->axis + 1 == static_cast<int64_t>(dims(node.outputs[0]).size());
  }
  bool is_stack(int n) { return joins_rows(n) && dims(e_.result(n)).back() == 2; }

  // stack(a cos - b sin, a sin + b cos), or their join; `half` are the dims of either.
  bool product(int n, Dims half, ValueId a, ValueId cos, ValueId b, ValueId sin, bool stack) {
    if (half.empty() || dims(a) != half || dims(b) != half || dims(cos).empty() || dims(sin).empty())
      return false;
    const Part pa = part(a);
    const bool parts = pa.root >= 0 && pa.which == 0 && part(b) == pa.other() && pa.neighbours == stack;
    if (stack && !parts) return false;
    half.back() *= 2;
    // Whatever a and b are, they are the halves of their join.
    const ValueId joined = parts ? pa.root : e_.insert(n, *e_.node(n).as<ConcatAttrs>(), {a, b});
    return turn(n, joined, half, cos, sin, stack);
  }

  Editor e_;
};

}  // namespace

int recognise_pair_rope(Graph& graph) { return RecognisePairRope(graph).run(); }

}  // namespace sinter::convert
