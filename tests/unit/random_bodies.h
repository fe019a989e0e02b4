// Random graphs with loops and branches in one another, for tests of planning and of running.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

#include "converter/ir/builder.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {

class RandomBodies {
 public:
  explicit RandomBodies(std::minstd_rand& random) : random_(random) {}

  // Inputs "x" and "y" of [8, 8] and "q", a bool; bodies `depth` deep.
  std::shared_ptr<Graph> make(int depth) {
    auto g = std::make_shared<Graph>();
    Known known{{input(*g, DType::kFloat32, {8, 8}, "x"), input(*g, DType::kFloat32, {8, 8}, "y")},
                input(*g, DType::kBool, {}, "q")};
    grow(*g, known, 3);
    control(*g, known, depth);
    grow(*g, known, 3);
    g->outputs = {emit(*g, NegAttrs{}, {known.values.back()}), emit(*g, TanhAttrs{}, {some(known)})};
    g->value(g->outputs[0]).name = "a", g->value(g->outputs[1]).name = "b";
    return g;
  }

 private:
  struct Known {
    std::vector<ValueId> values;
    ValueId condition;
  };

  static ValueId input(Graph& g, DType dtype, Dims dims, const char* name = "") {
    g.inputs.push_back(g.add_value(name, dtype, std::move(dims)));
    return g.inputs.back();
  }
  static ValueId emit(Graph& g, OpAttrs attrs, std::vector<ValueId> operands) {
    Builder builder(g);
    std::vector<ValueId> out;
    EXPECT_TRUE(builder.emit(std::move(attrs), std::move(operands), 1, &out).ok());
    return out.back();
  }
  unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }
  ValueId some(const Known& known) { return known.values[below(static_cast<unsigned>(known.values.size()))]; }

  void grow(Graph& g, Known& known, int steps) {
    for (int n = 0; n < steps; ++n) {
      const ValueId a = some(known), b = some(known);
      switch (below(7)) {
        case 0:
          known.values.push_back(emit(g, AbsAttrs{}, {a}));
          break;
        case 1:
          known.values.push_back(emit(g, AddAttrs{}, {a, b}));
          break;
        case 2:
          known.values.push_back(emit(g, ViewAttrs{IntList{8, 8}, -1}, {a}));
          break;
        case 3:
          known.values.push_back(emit(g, TransposeAttrs{IntList{1, 0}}, {a}));
          break;
        case 4:
          known.values.push_back(emit(g, CopyAttrs{}, {a}));
          break;
        case 5: {
          const ValueId half = emit(g, SliceAttrs{IntList{2, 0}, IntList{1, 1}, IntList{4, 8}}, {a});
          known.values.push_back(emit(g, ConcatAttrs{0}, {half, half}));
          break;
        }
        default:
          known.values.push_back(emit(g, TanhAttrs{}, {emit(g, MatMulAttrs{}, {a, b})}));
      }
    }
  }
  // Whether the first element of a value is positive.
  ValueId compared(Graph& g, ValueId v) {
    const ValueId first = emit(g, SliceAttrs{IntList{0, 0}, IntList{1, 1}, IntList{1, 1}}, {v});
    const ValueId zero = g.add_constant(Constant::scalar(DType::kFloat32, 0));
    return emit(g, CompareAttrs{static_cast<int64_t>(CompareFn::kGreater)},
                {emit(g, ViewAttrs{IntList{}, -1}, {first}), zero});
  }
  ValueId condition(Graph& g, const Known& known) {
    const unsigned kind = below(3);
    return kind == 0   ? known.condition
           : kind == 1 ? compared(g, some(known))
                       : g.add_constant(Constant::scalar_int(DType::kBool, 1));
  }
  void control(Graph& g, Known& known, int depth) {
    if (below(3) == 0)
      branch(g, known, depth);
    else
      loop(g, known, depth);
  }

  void loop(Graph& g, Known& outer, int depth) {
    constexpr int64_t kMost = 3;
    auto body = std::make_shared<Graph>();
    const ValueId iteration = input(*body, DType::kInt64, {});
    const ValueId holds = input(*body, DType::kBool, {});
    Known known;
    known.condition = holds;
    for (int i = 0; i < 4; ++i) known.values.push_back(input(*body, DType::kFloat32, {8, 8}));
    const std::vector<ValueId> given(body->inputs.begin() + 2, body->inputs.end());
    if (below(2) == 0) known.condition = input(*body, DType::kBool, {});
    if (below(2) == 0) {
      const ValueId row = emit(*body, GatherAttrs{0}, {some(known), iteration});
      known.values.push_back(emit(*body, AddAttrs{}, {some(known), row}));
    }
    grow(*body, known, 4);
    if (depth > 1) control(*body, known, depth - 1);
    grow(*body, known, 3);
    // Copies: two parameters cannot be exchanged, nor one value be two results in place. At times as they
    // were.
    const ValueId first = below(4) == 0 ? given[0] : emit(*body, CopyAttrs{}, {some(known)});
    const ValueId second = below(4) == 0 ? given[2] : emit(*body, CopyAttrs{}, {known.values.back()});
    body->outputs = {condition(*body, known), first, second, some(known)};
    std::vector<ValueId> operands{
        below(3) == 0 ? kAbsent : g.add_constant(Constant::scalar_int(DType::kInt64, below(kMost + 1))),
        below(2) == 0 ? kAbsent : condition(g, outer)};
    for (int i = 0; i < 4; ++i) {
      const std::vector<float> all(64, 0.25f);
      operands.push_back(i < 2 && below(5) == 0 ? g.add_constant(Constant::of<float>(
                                                      DType::kFloat32, {8, 8}, std::span<const float>(all)))
                                                : some(outer));
    }
    if (body->inputs.size() > 6) operands.push_back(outer.condition);
    const std::vector<ValueId> out{
        g.add_value("", DType::kFloat32, {8, 8}), g.add_value("", DType::kFloat32, {8, 8}),
        below(3) == 0 ? kAbsent : g.add_value("", DType::kFloat32, {kMost, 8, 8}), kAbsent};
    g.nodes.push_back({LoopAttrs{kMost, 2}, operands, out, "loop", "", {body}});
    outer.values.insert(outer.values.end(), out.begin(), out.begin() + 2);
    if (out[2] < 0) return;
    const ValueId last =
        emit(g, SliceAttrs{IntList{kMost - 1, 0, 0}, IntList{1, 1, 1}, IntList{1, 8, 8}}, {out[2]});
    outer.values.push_back(emit(g, ViewAttrs{IntList{8, 8}, -1}, {last}));
  }

  void branch(Graph& g, Known& outer, int depth) {
    std::vector<std::shared_ptr<Graph>> bodies;
    for (int b = 0; b < 2; ++b) {
      auto body = std::make_shared<Graph>();
      Known known;
      for (int i = 0; i < 2; ++i) known.values.push_back(input(*body, DType::kFloat32, {8, 8}));
      known.condition = input(*body, DType::kBool, {});
      const ValueId taken = known.values[0];
      grow(*body, known, static_cast<int>(below(4)));
      if (depth > 1 && below(2) == 0) control(*body, known, depth - 1);
      body->outputs = {below(4) == 0 ? taken : emit(*body, CopyAttrs{}, {known.values.back()}),
                       emit(*body, CopyAttrs{}, {some(known)})};
      bodies.push_back(std::move(body));
    }
    const std::vector<ValueId> out{g.add_value("", DType::kFloat32, {8, 8}),
                                   g.add_value("", DType::kFloat32, {8, 8})};
    const ValueId chosen = condition(g, outer);
    g.nodes.push_back(
        {IfAttrs{}, {chosen, some(outer), some(outer), outer.condition}, out, "if", "", bodies});
    outer.values.insert(outer.values.end(), out.begin(), out.end());
  }

  std::minstd_rand& random_;
};

}  // namespace sinter::convert
