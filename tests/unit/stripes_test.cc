// Steps computed in stripes of rows: the same bits whatever the steps and the cuts, and arenas that fit.
#include "converter/plan/stripes.h"

#include <gtest/gtest.h>

#include <random>

#include "converter/plan/fit_arena.h"
#include "runtime/core/op_enums.h"
#include "tests/unit/evaluate_graph.h"

namespace sinter::convert::testing {
namespace {

// Grows a network of images [1, rows, columns, channels] at random.
class Painter {
 public:
  explicit Painter(unsigned seed) : random_(seed) {
    images_.push_back(sketch.input({1, between(5, 24), between(1, 6), between(1, 4)}));
  }

  Sketch sketch;

  // False where the operation drawn does not go with the image drawn.
  bool step() {
    const ValueId x = one_in(2) ? images_.back() : images_[static_cast<size_t>(between(0, last()))];
    const Dims dims = sketch.graph.value(x).dims;
    const int64_t channels = dims[3];
    switch (between(0, 11)) {
      case 0:
      case 1: {
        const int64_t group = channels % 2 == 0 && one_in(2) ? 2 : 1, out = group * between(1, 3);
        const int64_t rows = between(1, 4), columns = between(1, 3);
        return add(ConvAttrs{strides(), dilations(), pads(4), group},
                   {x, sketch.constant({out, rows, columns, channels / group}), sketch.constant({out})});
      }
      case 2:
        return add(DepthwiseConvAttrs{strides(), dilations(), pads(4)},
                   {x, sketch.constant({between(1, 4), between(1, 3), channels})});
      case 3:
        return add(
            MaxPoolAttrs{{between(1, 4), between(1, 2)}, strides(), dilations(), pads(2), between(0, 1)},
            {x});
      case 4:
        return add(
            AvgPoolAttrs{
                {between(1, 4), between(1, 2)}, strides(), {}, pads(2), between(0, 1), between(0, 1)},
            {x});
      case 5:
        return add(TanhAttrs{}, {x});
      case 6:
        for (const ValueId other : images_)
          if (other != x && sketch.graph.value(other).dims == dims && one_in(2))
            return add(AddAttrs{}, {x, other});
        return add(MulAttrs{}, {beside(dims), x});
      case 7:
        for (const ValueId other : images_)
          if (const Dims& d = sketch.graph.value(other).dims; d[1] == dims[1] && d[2] == dims[2] && one_in(2))
            return add(ConcatAttrs{3}, {other, x});
        return false;
      case 8: {
        const int64_t out = between(1, 4);
        return add(FullyConnectedAttrs{}, {x, sketch.constant({out, channels})});
      }
      case 10: {
        const int64_t group = channels % 2 == 0 && one_in(2) ? 2 : 1, out = group * between(1, 2);
        return add(ConvTransposeAttrs{strides(), dilations(), pads(2), {between(0, 1), 0}, group},
                   {x, sketch.constant({out, between(1, 4), between(1, 3), channels / group})});
      }
      case 9:
        return add(PadAttrs{{0, 0, between(0, 2), 0, 0, 0, between(0, 2), 0}}, {x});
      default:
        return one_in(2) ? add(SoftmaxAttrs{between(2, 3)}, {x}) : add(TransposeAttrs{{0, 2, 1, 3}}, {x});
    }
  }

  int64_t between(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  bool one_in(int64_t n) { return between(1, n) == 1; }
  int64_t last() const { return static_cast<int64_t>(images_.size()) - 1; }
  // Values without readers are outputs.
  void finish() {
    const Uses uses(sketch.graph);
    for (const ValueId id : images_)
      if (uses.readers[static_cast<size_t>(id)].empty() || one_in(8))
        sketch.output(id, "out" + std::to_string(id));
  }

 private:
  bool add(OpAttrs attrs, std::vector<ValueId> operands) {
    Builder builder(sketch.graph);
    builder.set_origin({"step" + std::to_string(images_.size()), ""});
    std::vector<ValueId> result;
    if (!builder.emit(std::move(attrs), std::move(operands), 1, &result).ok()) return false;
    const Dims& dims = sketch.graph.value(result[0]).dims;
    if (element_count(dims) == 0 || element_count(dims) > 4000) return false;
    images_.push_back(result[0]);
    return true;
  }
  // Constants in every form that broadcasts.
  ValueId beside(const Dims& dims) {
    const Dims forms[] = {dims,
                          {dims[1], dims[2], dims[3]},
                          {1, dims[1], 1, 1},
                          {1, 1, dims[2], dims[3]},
                          {1, dims[2], dims[3]},
                          {dims[3]},
                          {}};
    return sketch.constant(forms[between(0, 6)]);
  }
  IntList strides() { return {between(1, 3), between(1, 2)}; }
  IntList dilations() { return {between(1, 2), 1}; }
  IntList pads(int64_t most) { return {between(0, most), between(0, 1), between(0, most), between(0, 1)}; }

  std::mt19937 random_;
  std::vector<ValueId> images_;
};

TEST(Stripes, RandomNetworksKeepTheirBits) {
  int striped = 0, refused = 0, longest = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    Painter p(seed);
    for (int tries = 0; tries < 14; ++tries) p.step();
    p.finish();
    Graph& graph = p.sketch.graph;
    ASSERT_EQ(check(graph), "");
    const auto before = evaluate_graph(graph, p.sketch.feeds);
    const Uses uses(graph);
    std::vector<Striping> stripings;
    std::vector<bool> taken(graph.nodes.size());
    for (size_t n = graph.nodes.size(); n-- > 0;) {
      const std::vector<StripeRegion> regions = regions_ending(graph, uses, n, 6);
      if (regions.empty()) continue;
      const StripeRegion& region =
          regions[static_cast<size_t>(p.between(0, static_cast<int64_t>(regions.size()) - 1))];
      if (std::any_of(region.nodes.begin(), region.nodes.end(), [&](size_t k) { return taken[k]; })) continue;
      auto stripes = cut_stripes(graph, region, p.between(2, 7));
      if (stripes.empty()) continue;
      // Of a transposed convolution that leaves gaps not all rows can be had alone.
      if (Graph probe = graph; !compute_in_stripes(probe, {{region, stripes}})) {
        ++refused;
        continue;
      }
      for (const size_t k : region.nodes) taken[k] = true;
      longest = std::max(longest, static_cast<int>(region.nodes.size()));
      stripings.push_back({region, std::move(stripes)});
    }
    const auto origin = compute_in_stripes(graph, stripings);
    ASSERT_TRUE(origin.has_value());
    EXPECT_EQ(origin->size(), graph.nodes.size());
    ASSERT_EQ(check(graph), "") << dump(graph);
    EXPECT_EQ(evaluate_graph(graph, p.sketch.feeds), before) << dump(graph);
    striped += static_cast<int>(stripings.size());
  }
  EXPECT_GT(striped, 600);
  EXPECT_LT(refused, striped / 20);
  EXPECT_EQ(longest, 6);
}

TEST(Stripes, ValuesReadElsewhereStayWhole) {
  Sketch s;
  const ValueId x = s.input({1, 8, 4, 2});
  const ValueId a = s.emit(TanhAttrs{}, {x}), b = s.emit(AbsAttrs{}, {a}), c = s.emit(NegAttrs{}, {b});
  s.output(c, "c");
  s.output(a, "a");
  const auto regions = regions_ending(s.graph, Uses(s.graph), 2, 10);
  ASSERT_EQ(regions.size(), 2u);
  EXPECT_EQ(regions[0].nodes, (std::vector<size_t>{2}));
  EXPECT_EQ(regions[1].nodes, (std::vector<size_t>{1, 2}));
}

TEST(Stripes, OnlyRowsOfOneImage) {
  Sketch s;
  const ValueId many = s.input({2, 8, 4, 2}), flat = s.input({8, 4}), image = s.input({1, 8, 4, 2});
  const ValueId open = s.input({1, 8, 4, 2});
  s.graph.value(open).bounded_dims = {{1, s.input({})}};
  for (const ValueId id : {many, flat, open}) s.emit(AbsAttrs{}, {id});
  s.emit(SoftmaxAttrs{1}, {image});
  s.emit(ReduceAttrs{0, {1}, 1}, {image});
  s.emit(ConcatAttrs{1}, {image, image});
  s.emit(AddAttrs{}, {image, s.constant({8, 4, 2})});  // rows along another axis
  for (size_t n = 0; n < s.graph.nodes.size(); ++n) EXPECT_FALSE(has_rows(s.graph, s.graph.nodes[n])) << n;
}

// Narrow, wide, narrow, as in MobileNet v2.
Sketch bottlenecks() {
  Sketch s;
  ValueId x = s.input({1, 32, 32, 8});
  const ConvAttrs point{{1, 1}, {1, 1}, {0, 0, 0, 0}};
  for (int i = 0; i < 3; ++i) {
    const ValueId wide = s.emit(point, {x, s.constant({48, 1, 1, 8}), s.constant({48})});
    const ValueId deep =
        s.emit(DepthwiseConvAttrs{{1, 1}, {1, 1}, {1, 1, 1, 1}}, {wide, s.constant({3, 3, 48})});
    x = s.emit(AddAttrs{}, {x, s.emit(point, {deep, s.constant({8, 1, 1, 48}), s.constant({8})})});
  }
  s.output(x);
  return s;
}

uint64_t arena(const FittedPlan& plan) { return plan.model.programs[0].arena_bytes; }

TEST(FitArena, StripesOnlyWhereTheyAreNeeded) {
  Sketch s = bottlenecks();
  PlanOptions options;
  options.thorough = true;
  const FittedPlan ample = plan_to_fit(s.graph, options, UINT64_MAX);
  EXPECT_TRUE(ample.fits);
  EXPECT_TRUE(ample.stripes.empty());
  EXPECT_EQ(ample.extra_work, 0);
  double work = 0;
  for (const uint64_t share : {2, 3, 4}) {
    SCOPED_TRACE(share);
    const FittedPlan plan = plan_to_fit(s.graph, options, arena(ample) / share);
    ASSERT_TRUE(plan.fits) << arena(plan);
    EXPECT_LE(arena(plan), arena(ample) / share);
    EXPECT_EQ(plan.stripes.size(), 3u);
    EXPECT_EQ(check_plan(plan.model), "");
    EXPECT_GE(plan.extra_work, work);  // the tighter, the more is computed twice
    work = plan.extra_work;
    EXPECT_EQ(evaluate_graph(*plan.model.programs[0].graph, s.feeds), evaluate_graph(s.graph, s.feeds));
  }
  EXPECT_GT(work, 0);
  EXPECT_LT(work, 0.5);
}

TEST(FitArena, ReportsTheMinimumThatItFound) {
  Sketch s = bottlenecks();
  const FittedPlan none = plan_to_fit(s.graph, {}, 1000);
  EXPECT_FALSE(none.fits);
  EXPECT_GT(arena(none), 1000u);
  const FittedPlan least = plan_to_fit(s.graph, {}, arena(none));
  EXPECT_TRUE(least.fits);
  EXPECT_LE(arena(least), arena(none));
}

TEST(FitArena, WhatHasNoRowsIsLeftAlone) {
  Sketch s;
  s.output(s.emit(ExpAttrs{}, {s.emit(SoftmaxAttrs{1}, {s.input({4, 1000})})}));
  const FittedPlan plan = plan_to_fit(s.graph, {}, 1000);
  EXPECT_FALSE(plan.fits);
  EXPECT_TRUE(plan.stripes.empty());
}

}  // namespace
}  // namespace sinter::convert::testing
