// Recipes: which folded constants remember what they come from, and that this gives the same bits.
#include "converter/ir/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "converter/ir/builder.h"
#include "converter/passes/pass.h"
#include "converter/plan/planner.h"
#include "converter/plan/store_weights.h"
#include "runtime/core/op_enums.h"
#include "tests/unit/evaluate_graph.h"

namespace sinter::convert {
namespace {

using testing::to;

ConstantPtr random(DType dtype, Dims dims, unsigned seed = 1) {
  std::mt19937 bits(seed);
  Bytes bytes(dense_bytes(dtype, dims));
  // No infinities and NaNs: exponents of all ones need the high bits.
  for (std::byte& b : bytes) b = static_cast<std::byte>(bits() & 0x37);
  return Constant::owned(dtype, std::move(dims), std::move(bytes));
}

ConstantPtr apply(const OpAttrs& attrs, std::vector<ConstantPtr> inputs) {
  std::vector<ConstantPtr> results;
  EXPECT_TRUE(evaluate(attrs, inputs, 1, &results).ok());
  return results.empty() ? nullptr : results[0];
}
TransposeAttrs transposed() {
  TransposeAttrs t;
  t.perm = {1, 0};
  return t;
}

// By the recipe, without anything that was kept.
Bytes recomputed(const ConstantPtr& c) {
  std::vector<ConstantPtr> inputs, results;
  for (const ConstantPtr& i : c->recipe()->inputs) {
    if (!i || !i->recipe()) {
      inputs.push_back(i);
      continue;
    }
    inputs.push_back(Constant::owned(i->dtype(), i->dims(), recomputed(i)));
  }
  EXPECT_TRUE(evaluate(c->recipe()->attrs, inputs, 1, &results, false).ok());
  const LoadedBytes loaded = results[0]->load();
  return Bytes(loaded.bytes.begin(), loaded.bytes.end());
}
void expect_same(const ConstantPtr& c, const OpAttrs& attrs, const std::vector<ConstantPtr>& plain) {
  ASSERT_NE(c, nullptr);
  ASSERT_NE(c->recipe(), nullptr);
  std::vector<ConstantPtr> want;
  ASSERT_TRUE(evaluate(attrs, plain, 1, &want, false).ok());
  const LoadedBytes loaded = want[0]->load(), lazy = c->load();
  EXPECT_EQ(recomputed(c), Bytes(loaded.bytes.begin(), loaded.bytes.end()));
  EXPECT_EQ(Bytes(lazy.bytes.begin(), lazy.bytes.end()), Bytes(loaded.bytes.begin(), loaded.bytes.end()));
}
ConstantPtr plain(const ConstantPtr& c) {
  const LoadedBytes loaded = c->load();
  return Constant::owned(c->dtype(), c->dims(), Bytes(loaded.bytes.begin(), loaded.bytes.end()));
}

TEST(Recipe, WidenedWeightsHaveOne) {
  for (const DType t :
       {DType::kBFloat16, DType::kFloat16, DType::kFloat8E4M3FN, DType::kFloat8E4M3FNUZ, DType::kFloat8E5M2,
        DType::kFloat8E5M2FNUZ, DType::kInt4, DType::kUint4, DType::kInt8}) {
    const ConstantPtr c = random(t, {40, 30});
    const ConstantPtr w = apply(to(DType::kFloat32), {c});
    expect_same(w, to(DType::kFloat32), {c});
    EXPECT_EQ(w->recipe()->stored_bytes, c->byte_size());
    EXPECT_EQ(w->recipe()->steps, 1);
  }
}

TEST(Recipe, NothingSmallOrUngainly) {
  EXPECT_EQ(apply(to(DType::kFloat32), {random(DType::kBFloat16, {15, 17})})->recipe(), nullptr);
  EXPECT_EQ(apply(to(DType::kBFloat16), {random(DType::kFloat32, {40, 30})})->recipe(), nullptr);
  EXPECT_EQ(apply(transposed(), {random(DType::kFloat32, {40, 30})})->recipe(), nullptr);
  // Mostly scales.
  EXPECT_EQ(apply(DequantizeAttrs{1, 1, static_cast<int64_t>(DType::kFloat32)},
                  {random(DType::kInt8, {40, 30}), random(DType::kFloat32, {40, 30})})
                ->recipe(),
            nullptr);
  // A product with a full float32 tensor.
  const ConstantPtr w = apply(to(DType::kFloat32), {random(DType::kBFloat16, {40, 30})});
  EXPECT_EQ(apply(MulAttrs{}, {w, random(DType::kFloat32, {40, 30})})->recipe(), nullptr);
}

TEST(Recipe, MovesHappenToTheNarrowConstant) {
  for (const DType t : {DType::kBFloat16, DType::kFloat8E5M2, DType::kInt4, DType::kUint4}) {
    const ConstantPtr w = apply(to(DType::kFloat32), {random(t, {40, 30})});
    const ConstantPtr moved = apply(transposed(), {w});
    expect_same(moved, transposed(), {plain(w)});
    EXPECT_EQ(moved->recipe()->steps, 1);
    EXPECT_EQ(moved->recipe()->inputs[0]->dims(), (Dims{30, 40}));
    EXPECT_EQ(moved->recipe()->inputs[0]->dtype(), t);
    ViewAttrs view;
    view.dims = {10, 120};
    const ConstantPtr flat = apply(view, {moved});
    expect_same(flat, view, {plain(moved)});
    EXPECT_EQ(flat->recipe()->steps, 1);
  }
}

TEST(Recipe, MovesOfScaledWeightsMoveTheirScales) {
  for (const DType t : {DType::kInt8, DType::kUint4, DType::kFloat8E4M3FN})
    for (const int64_t axis : {0, 1})
      for (const int64_t block : {0, 10}) {
        Dims dims{40, 30};
        if (block > 0)
          dims[static_cast<size_t>(axis)] /= block;
        else
          dims = {dims[static_cast<size_t>(axis)]};
        const DequantizeAttrs attrs{axis, block, static_cast<int64_t>(DType::kFloat32)};
        const ConstantPtr w =
            apply(attrs, {random(t, {40, 30}), random(DType::kFloat16, dims, 2), random(t, dims, 3)});
        const ConstantPtr moved = apply(transposed(), {w});
        expect_same(moved, transposed(), {plain(w)});
        EXPECT_EQ(moved->recipe()->steps, 1) << dtype_name(t) << " " << axis << " " << block;
        // Not a move of single elements any more.
        ViewAttrs view;
        view.dims = {30, 4, 10};
        const ConstantPtr flat = apply(view, {moved});
        expect_same(flat, view, {plain(moved)});
        EXPECT_EQ(flat->recipe()->steps, 2);
      }
}

TEST(Recipe, ArithmeticIsRememberedAsSteps) {
  const ConstantPtr narrow = random(DType::kFloat16, {40, 300});
  const ConstantPtr w = apply(to(DType::kFloat32), {narrow});
  const ConstantPtr wide = apply(to(DType::kFloat64), {w});
  EXPECT_EQ(wide->recipe()->steps, 1);  // widened at once
  const ConstantPtr scale = Constant::of<double>(DType::kFloat64, {40, 1}, std::vector<double>(40, 1.1));
  const ConstantPtr product = apply(MulAttrs{}, {wide, scale});
  const ConstantPtr back = apply(to(DType::kFloat32), {product});
  expect_same(back, to(DType::kFloat32), {plain(product)});
  EXPECT_EQ(back->recipe()->steps, 3);
  EXPECT_EQ(back->recipe()->stored_bytes, narrow->byte_size() + scale->byte_size());
  EXPECT_EQ(back->reshaped({12000})->recipe(), nullptr);
}

TEST(Recipe, DepthIsLimited) {
  ConstantPtr c = apply(to(DType::kFloat32), {random(DType::kInt8, {40, 300})});
  int most = 0;
  for (int i = 0; i < 60; ++i) {
    c = apply(NegAttrs{}, {c});
    if (c->recipe()) most = std::max(most, c->recipe()->steps);
  }
  EXPECT_EQ(most, kMostRecipeSteps);
}

TEST(Recipe, WordsAreUnpackedOnce) {
  Graph g;
  Builder b(g);
  const ConstantPtr words = random(DType::kInt32, {64, 1, 512});
  std::vector<int32_t> by(8);
  for (int i = 0; i < 8; ++i) by[static_cast<size_t>(i)] = 4 * i;
  const ValueId w = g.add_constant(words, "words"),
                s = g.add_constant(Constant::of<int32_t>(DType::kInt32, {1, 8, 1}, by));
  BitwiseAttrs shift;
  shift.fn = static_cast<int64_t>(BitwiseFn::kShiftRight);
  std::vector<ValueId> y;
  ASSERT_TRUE(b.emit(shift, {w, s}, 1, &y).ok());
  ASSERT_TRUE(g.is_constant(y[0]));
  EXPECT_EQ(g.value(y[0]).dims, (Dims{64, 8, 512}));
  EXPECT_TRUE(g.nodes.empty());
  expect_same(g.value(y[0]).constant, shift, {words, g.value(s).constant});
}

TEST(Recipe, NumbersTakenOutOfWordsOneByOneAreKeptNarrow) {
  const ConstantPtr words = random(DType::kInt32, {64, 32});
  const auto bitwise = [](BitwiseFn fn) { return BitwiseAttrs{static_cast<int64_t>(fn)}; };
  for (const int64_t bits : {2, 4, 8}) {
    std::vector<ConstantPtr> slices;
    for (int64_t at = 0; at < 32; at += bits) {
      const ConstantPtr mask = Constant::scalar_int(DType::kInt32, (1 << bits) - 1);
      const ConstantPtr shifted =
          apply(bitwise(BitwiseFn::kShiftRight), {words, Constant::scalar_int(DType::kInt32, at)});
      const ConstantPtr slice = apply(bitwise(BitwiseFn::kAnd), {shifted, mask});
      expect_same(slice, bitwise(BitwiseFn::kAnd), {plain(shifted), mask});
      EXPECT_EQ(slice->recipe()->steps, 1);
      EXPECT_LE(bit_width(slice->recipe()->inputs[0]->dtype()), bits);
      // On to a type that holds them all: one cast of what is stored.
      if (bits < 8) {
        const ConstantPtr bytes = apply(to(DType::kUint8), {slice});
        expect_same(bytes, to(DType::kUint8), {plain(slice)});
        EXPECT_EQ(bytes->recipe()->steps, 1);
      }
      slices.push_back(slice);
    }
    std::vector<ConstantPtr> wide;
    for (const ConstantPtr& c : slices) wide.push_back(plain(c));
    const ConstantPtr all = convert::apply(ConcatAttrs{1}, slices);
    expect_same(all, ConcatAttrs{1}, wide);
    EXPECT_LE(all->recipe()->stored_bytes, words->byte_size());
  }
  // What a shift leaves of full words is none of it.
  const ConstantPtr half =
      apply(bitwise(BitwiseFn::kShiftRight), {words, Constant::scalar_int(DType::kInt32, 4)});
  EXPECT_EQ(half->recipe(), nullptr);
}

TEST(Recipe, LargeResultsAreComputedWhenTheyAreRead) {
  const auto expect_equal = [](const ConstantPtr& c, const OpAttrs& attrs,
                               const std::vector<ConstantPtr>& in) {
    std::vector<ConstantPtr> want, plain_in;
    for (const ConstantPtr& i : in) plain_in.push_back(plain(i));
    ASSERT_TRUE(evaluate(attrs, plain_in, 1, &want, false).ok());
    const LoadedBytes a = want[0]->load(), b = c->load(), again = c->load();
    EXPECT_TRUE(std::equal(a.bytes.begin(), a.bytes.end(), b.bytes.begin(), b.bytes.end()));
    EXPECT_NE(b.bytes.data(), again.bytes.data());  // nothing is held between
  };
  const OpAttrs shift = BitwiseAttrs{static_cast<int64_t>(BitwiseFn::kShiftRight)};
  const OpAttrs mask = BitwiseAttrs{static_cast<int64_t>(BitwiseFn::kAnd)}, join = ConcatAttrs{1};
  const ConstantPtr words = random(DType::kInt32, {512, 640}), top = Constant::scalar_int(DType::kInt32, 15);
  std::vector<ConstantPtr> shifted, slices;
  for (const int64_t by : {0, 8}) {
    const std::vector<ConstantPtr> in{words, Constant::scalar_int(DType::kInt32, by)};
    shifted.push_back(apply(shift, in));
    expect_equal(shifted.back(), shift, in);
    slices.push_back(apply(mask, {shifted.back(), top}));
    expect_equal(slices.back(), mask, {shifted.back(), top});
    ASSERT_NE(slices.back()->recipe(), nullptr);
    EXPECT_EQ(slices.back()->recipe()->stored_bytes, words->byte_size() / 8);
  }
  const ConstantPtr all = convert::apply(join, shifted);
  expect_equal(all, join, shifted);
  const ConstantPtr masked = apply(mask, {all, top});
  expect_equal(masked, mask, {all, top});
  expect_equal(convert::apply(join, slices), join, slices);
  for (const DType t : {DType::kFloat16, DType::kFloat32}) {
    const ConstantPtr wide = apply(to(t), {masked});
    expect_equal(wide, to(t), {masked});
    EXPECT_EQ(wide->recipe()->stored_bytes, masked->size() / 2);
  }
  const OpAttrs widen = DequantizeAttrs{0, 0, static_cast<int64_t>(DType::kFloat32)};
  const std::vector<ConstantPtr> table{random(DType::kInt8, {512, 640}),
                                       Constant::scalar(DType::kFloat32, 0.375)};
  expect_equal(convert::apply(widen, table), widen, table);
}

// x * w + x * w', with bodies and duplicates.
TEST(StoreWeights, EqualWeightsArePreparedOnce) {
  Graph g;
  const ValueId x = g.add_value("x", DType::kFloat32, {40, 30});
  g.inputs = {x};
  Builder b(g);
  std::vector<ValueId> products;
  for (int i = 0; i < 3; ++i) {
    const ValueId narrow = g.add_constant(random(DType::kBFloat16, {40, 30}, i == 2 ? 2u : 1u), "w");
    std::vector<ValueId> w, y;
    ASSERT_TRUE(b.emit(to(DType::kFloat32), {narrow}, 1, &w).ok());
    EXPECT_EQ(g.value(w[0]).name, "w");
    ASSERT_TRUE(b.emit(MulAttrs{}, {x, w[0]}, 1, &y).ok());
    products.push_back(y[0]);
  }
  g.outputs = products;
  advance(g, Stage::kPlanned);
  store_weights(g, [](const OpCall&, size_t) { return false; });
  EXPECT_EQ(check(g), "");
  ASSERT_EQ(g.prepare.size(), 2u);
  EXPECT_EQ(g.nodes[0].inputs[1], g.prepare[0].outputs[0]);
  EXPECT_EQ(g.nodes[1].inputs[1], g.prepare[0].outputs[0]);
  EXPECT_EQ(g.nodes[2].inputs[1], g.prepare[1].outputs[0]);
  EXPECT_EQ(g.prepare[1].outputs[0], g.prepare[0].outputs[0] + 1);
  EXPECT_EQ(g.value(g.prepare[0].inputs[0]).dtype, DType::kBFloat16);
  EXPECT_EQ(g.value(g.prepare[0].inputs[0]).name, "");
}

TEST(StoreWeights, TablesAreReadNarrow) {
  Graph g;
  const ValueId ids = g.add_value("ids", DType::kInt64, {5});
  g.inputs = {ids};
  Builder b(g);
  std::vector<ValueId> w, y;
  ASSERT_TRUE(
      b.emit(to(DType::kFloat32), {g.add_constant(random(DType::kFloat16, {40, 30}), "table")}, 1, &w).ok());
  ASSERT_TRUE(b.emit(GatherAttrs{0}, {w[0], ids}, 1, &y).ok());
  g.outputs = {y[0]};
  advance(g, Stage::kPlanned);
  store_weights(g, [](const OpCall&, size_t) { return false; });
  EXPECT_EQ(check(g), "");
  EXPECT_TRUE(g.prepare.empty());
  ASSERT_EQ(g.nodes.size(), 2u);
  EXPECT_EQ(g.value(g.nodes[0].inputs[0]).dtype, DType::kFloat16);
  EXPECT_EQ(g.nodes[1].op(), Op::kCast);
  EXPECT_EQ(g.nodes[1].outputs[0], g.outputs[0]);
}

// Those that a kernel reads so; of enough weights, and of floats.
TEST(StoreWeights, LargeProductsReadNarrow) {
  const auto weights_of = [](DType type, int64_t columns, bool reads) {
    Graph g;
    const ValueId x = g.add_value("x", DType::kFloat32, {3, 1024});
    g.inputs = {x};
    Builder b(g);
    std::vector<ValueId> w, y;
    EXPECT_TRUE(
        b.emit(to(DType::kFloat32), {g.add_constant(random(type, {columns, 1024}), "w")}, 1, &w).ok());
    EXPECT_TRUE(b.emit(FullyConnectedAttrs{}, {x, w[0]}, 1, &y).ok());
    g.outputs = {y[0]};
    advance(g, Stage::kPlanned);
    store_weights(g, [&](const OpCall& call, size_t) {
      EXPECT_EQ(call.in(1).dtype, type);
      EXPECT_TRUE(call.in(1).constant);
      return reads;
    });
    EXPECT_EQ(check(g), "");
    EXPECT_EQ(g.prepare.empty(), g.value(g.nodes[0].inputs[1]).dtype == type);
    return g.value(g.nodes[0].inputs[1]).dtype;
  };
  for (const DType type : {DType::kFloat16, DType::kBFloat16, DType::kFloat8E4M3FN})
    EXPECT_EQ(weights_of(type, 1024, true), type);
  EXPECT_EQ(weights_of(DType::kBFloat16, 1024, false), DType::kFloat32);
  EXPECT_EQ(weights_of(DType::kBFloat16, 1023, true), DType::kFloat32);
  EXPECT_EQ(weights_of(DType::kInt8, 1024, true), DType::kFloat32);
}

// Scales of weights of few bits, however many; zero points beside them are widened.
TEST(StoreWeights, ScalesReadNarrow) {
  for (const bool reads : {true, false}) {
    Graph g;
    const ValueId x = g.add_value("x", DType::kFloat32, {3, 2048});
    g.inputs = {x};
    Builder b(g);
    std::vector<ValueId> scales, zeros, y;
    const ValueId weights = g.add_constant(random(DType::kUint4, {80, 2048}), "w");
    EXPECT_TRUE(
        b.emit(to(DType::kFloat32), {g.add_constant(random(DType::kFloat16, {80, 64}))}, 1, &scales).ok());
    EXPECT_TRUE(
        b.emit(to(DType::kFloat32), {g.add_constant(random(DType::kFloat16, {80, 64}, 2u))}, 1, &zeros).ok());
    EXPECT_TRUE(b.emit(LowBitFullyConnectedAttrs{32}, {x, weights, scales[0], zeros[0]}, 1, &y).ok());
    g.outputs = {y[0]};
    advance(g, Stage::kPlanned);
    store_weights(g, [&](const OpCall& call, size_t operand) {
      EXPECT_EQ(operand, 2u);
      EXPECT_EQ(call.in(2).dtype, DType::kFloat16);
      return reads;
    });
    EXPECT_EQ(check(g), "");
    const Node& product = g.nodes[0];
    EXPECT_EQ(g.value(product.inputs[2]).dtype, reads ? DType::kFloat16 : DType::kFloat32);
    EXPECT_EQ(g.value(product.inputs[3]).dtype, DType::kFloat32);
    EXPECT_EQ(g.prepare.size(), reads ? 1u : 2u);
  }
}

TEST(StoreWeights, PublicConstantsStayAsTheyAre) {
  Graph g;
  const ValueId x = g.add_value("x", DType::kFloat32, {40, 30});
  g.inputs = {x};
  Builder b(g);
  std::vector<ValueId> w, y;
  ASSERT_TRUE(b.emit(to(DType::kFloat32), {g.add_constant(random(DType::kBFloat16, {40, 30}))}, 1, &w).ok());
  ASSERT_TRUE(b.emit(MulAttrs{}, {x, w[0]}, 1, &y).ok());
  g.outputs = {y[0], w[0]};
  advance(g, Stage::kPlanned);
  store_weights(g, [](const OpCall&, size_t) { return false; });
  EXPECT_TRUE(g.prepare.empty());
}

}  // namespace
}  // namespace sinter::convert
