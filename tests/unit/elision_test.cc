// Steps that move nothing: values inside other values, and the damage that a wrong plan could do with them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/running.h"

namespace sinter::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

#define EXPECT_PLAN_REFUSED(builder, part)           \
  do {                                               \
    Running refused_(builder);                       \
    EXPECT_EQ(refused_.status.code, Code::kCorrupt); \
    EXPECT_THAT(refused_.why(), HasSubstr(part));    \
  } while (false)

SliceAttrs slice(IntList starts, IntList steps, IntList sizes) {
  SliceAttrs a;
  a.starts = starts, a.steps = steps, a.sizes = sizes;
  return a;
}

// x [2, 3] -> h = relu(x) -> v = h as [6] -> y = v + v.
ModelBuilder view_model() {
  ModelBuilder b;
  const int x = b.input("x", DType::kFloat32, {2, 3}), h = b.value(DType::kFloat32, {2, 3});
  const int v = b.value(DType::kFloat32, {6}), y = b.value(DType::kFloat32, {6});
  b.step(relu(), {x}, {h});
  ViewAttrs view;
  view.dims = {6};
  b.step(view, {h}, {v}).elided = true;
  b.place(v).alias_of = h, b.place(v).first = 1;
  b.step(AddAttrs{}, {v, v}, {y});
  b.output("y", y);
  return b;
}

TEST(Elision, View) {
  ModelBuilder b = view_model();
  Running r(b);
  ASSERT_RUNNING(r);
  EXPECT_STREQ(r.session.step_backend(1), "elided");
  r.set<float>("x", {1, -2, 3, 4, -5, 6});
  ASSERT_TRUE(r.session.run().ok());
  EXPECT_THAT(r.get<float>("y"), ElementsAre(2, 0, 6, 8, 0, 12));
  b.place(2).alias_of = -1;
  EXPECT_PLAN_REFUSED(b, "elided step's operands");
  b.place(2).alias_of = 1, b.place(2).alias_offset = 4;
  EXPECT_PLAN_REFUSED(b, "elided step's operands");
}

// The middle columns of x, twice as large; x and the slice are read again afterwards.
TEST(Elision, SliceOfAnInnerAxis) {
  ModelBuilder b;
  const int x = b.input("x", DType::kFloat32, {2, 4}), s = b.value(DType::kFloat32, {2, 2});
  const int y = b.value(DType::kFloat32, {2, 2});
  b.step(slice({0, 1}, {1, 2}, {2, 2}), {x}, {s}).elided = true;
  b.place(s).alias_of = x, b.place(s).alias_offset = 4, b.place(s).strides = {16, 8};
  b.step(AddAttrs{}, {s, s}, {y});
  b.output("y", y);
  {
    Running r(b);
    ASSERT_RUNNING(r);
    r.set<float>("x", {0, 1, 2, 3, 4, 5, 6, 7});
    ASSERT_TRUE(r.session.run().ok());
    EXPECT_THAT(r.get<float>("y"), ElementsAre(2, 6, 10, 14));
  }
  b.place(s).strides = {16, 4};
  EXPECT_PLAN_REFUSED(b, "elided step's operands");
  b.place(s).strides = {16, 8}, b.place(s).alias_offset = 0;
  EXPECT_PLAN_REFUSED(b, "elided step's operands");
}

// Pools of two of four channels: pixels between others.
TEST(Elision, PixelsApartWhereTheRowTakesThem) {
  ModelBuilder b;
  const int x = b.input("x", DType::kFloat32, {1, 2, 2, 4}), s = b.value(DType::kFloat32, {1, 2, 2, 2});
  const int y = b.value(DType::kFloat32, {1, 1, 2, 2});
  b.step(slice({0, 0, 0, 1}, {1, 1, 1, 1}, {1, 2, 2, 2}), {x}, {s}).elided = true;
  b.place(s).alias_of = x, b.place(s).alias_offset = 4, b.place(s).strides = {64, 32, 16, 4};
  MaxPoolAttrs pool;
  pool.kernel = {2, 1};
  b.step(pool, {s}, {y});
  b.output("y", y);
  Running r(b);
  ASSERT_RUNNING(r);
  r.set<float>("x", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 0, 0, 1, 9, 0});
  ASSERT_TRUE(r.session.run().ok());
  EXPECT_THAT(r.get<float>("y"), ElementsAre(9, 2, 5, 9));
}

// Two of three columns: lines are farther apart than their pixels take.
TEST(Elision, PixelsUnevenlyApart) {
  ModelBuilder b;
  const int x = b.input("x", DType::kFloat32, {1, 2, 3, 4}), s = b.value(DType::kFloat32, {1, 2, 2, 4});
  const int y = b.value(DType::kFloat32, {1, 1, 2, 4});
  b.step(slice({0, 0, 0, 0}, {1, 1, 1, 1}, {1, 2, 2, 4}), {x}, {s}).elided = true;
  b.place(s).alias_of = x, b.place(s).strides = {96, 48, 16, 4};
  MaxPoolAttrs pool;
  pool.kernel = {2, 1};
  b.step(pool, {s}, {y});
  b.output("y", y);
  EXPECT_PLAN_REFUSED(b, "must be dense");
}

// Weights are never apart.
TEST(Elision, OnlyOperandZeroHasPixels) {
  ModelBuilder b;
  const int x = b.input("x", DType::kFloat32, {2, 4}), w = b.value(DType::kFloat32, {2, 2});
  const int y = b.value(DType::kFloat32, {2, 2}), u = b.value(DType::kFloat32, {2, 2});
  const SliceAttrs half = slice({0, 1}, {1, 1}, {2, 2});
  for (const int v : {w, u}) {
    b.step(half, {x}, {v}).elided = true;
    b.place(v).alias_of = x, b.place(v).alias_offset = 4, b.place(v).strides = {16, 4};
  }
  b.step(FullyConnectedAttrs{}, {u, w}, {y});
  b.output("y", y);
  EXPECT_PLAN_REFUSED(b, "must be dense");
}

// States are copied with their strides.
TEST(Elision, UpdatesAreDense) {
  ModelBuilder b;
  const int x = b.input("x", DType::kFloat32, {2, 4}), h = b.value(DType::kFloat32, {2, 4});
  const int u = b.value(DType::kFloat32, {2, 2}), y = b.value(DType::kFloat32, {2, 2});
  const int state = b.state(DType::kFloat32, {2, 2}, -1, u);
  b.step(relu(), {x}, {h});
  b.step(slice({0, 1}, {1, 1}, {2, 2}), {h}, {u}).elided = true;
  b.place(u).alias_of = h, b.place(u).alias_offset = 4, b.place(u).strides = {16, 4};
  b.step(AddAttrs{}, {state, u}, {y});
  b.output("y", y);
  EXPECT_PLAN_REFUSED(b, "update is not dense");
}

TEST(Elision, OutputsAreDense) {
  ModelBuilder b;
  const int x = b.input("x", DType::kFloat32, {2, 4}), s = b.value(DType::kFloat32, {2, 2});
  b.step(slice({0, 1}, {1, 1}, {2, 2}), {x}, {s}).elided = true;
  b.place(s).alias_of = x, b.place(s).alias_offset = 4, b.place(s).strides = {16, 4};
  b.output("y", s);
  EXPECT_PLAN_REFUSED(b, "not dense");
}

// y = concat(relu(x), x + x) along the last axis; both parts are written in place, interleaved.
ModelBuilder concat_model() {
  ModelBuilder b;
  const int x = b.input("x", DType::kFloat32, {2, 2});
  const int p = b.value(DType::kFloat32, {2, 2}), q = b.value(DType::kFloat32, {2, 2});
  const int y = b.value(DType::kFloat32, {2, 4});
  b.step(relu(), {x}, {p});
  b.step(AddAttrs{}, {x, x}, {q});
  ConcatAttrs concat;
  concat.axis = 1;
  b.step(concat, {p, q}, {y}).elided = true;
  b.place(p).alias_of = y, b.place(p).strides = {16, 4};
  b.place(q).alias_of = y, b.place(q).strides = {16, 4}, b.place(q).alias_offset = 8;
  b.output("y", y);
  return b;
}

TEST(Elision, ConcatOfAnInnerAxis) {
  ModelBuilder b = concat_model();
  Running r(b);
  ASSERT_RUNNING(r);
  r.set<float>("x", {-1, 2, 3, -4});
  ASSERT_TRUE(r.session.run().ok());
  EXPECT_THAT(r.get<float>("y"), ElementsAre(0, 2, -2, 4, 3, 0, 6, -8));
}

// y = [[p, column], [row]]: a column and a row beside it, both written before the join. In bytes the row
// begins one column behind the column's third place, in the grid two columns before it and one row below.
TEST(Elision, BordersOfTwoAxes) {
  ModelBuilder b;
  const int x = b.input("x", DType::kFloat32, {2, 2, 2}), edge = b.input("edge", DType::kFloat32, {2, 2, 1});
  const int below = b.input("below", DType::kFloat32, {2, 1, 3});
  const int row = b.value(DType::kFloat32, {2, 1, 3}), p = b.value(DType::kFloat32, {2, 2, 2});
  const int column = b.value(DType::kFloat32, {2, 2, 1}), wide = b.value(DType::kFloat32, {2, 2, 3});
  const int y = b.value(DType::kFloat32, {2, 3, 3});
  b.step(relu(), {below}, {row});
  b.step(AddAttrs{}, {x, x}, {p});
  b.step(relu(), {edge}, {column});
  ConcatAttrs concat;
  concat.axis = 2;
  b.step(concat, {p, column}, {wide}).elided = true;
  concat.axis = 1;
  b.step(concat, {wide, row}, {y}).elided = true;
  for (const int v : {row, p, column, wide}) b.place(v).alias_of = y, b.place(v).strides = {36, 12, 4};
  b.place(column).alias_offset = 8, b.place(row).alias_offset = 24;
  b.output("y", y);
  Running r(b);
  ASSERT_RUNNING(r);
  r.set<float>("x", {1, 2, 3, 4, 5, 6, 7, 8});
  r.set<float>("edge", {10, 20, 30, 40});
  r.set<float>("below", {100, 200, 300, 400, 500, 600});
  ASSERT_TRUE(r.session.run().ok());
  EXPECT_THAT(r.get<float>("y"),
              ElementsAre(2, 4, 10, 6, 8, 20, 100, 200, 300, 10, 12, 30, 14, 16, 40, 400, 500, 600));
  b.place(row).alias_offset = 20;  // over the column's last place
  EXPECT_PLAN_REFUSED(b, "");
}

TEST(Elision, ConcatPartsInWrongPlaces) {
  ModelBuilder b = concat_model();
  b.place(2).alias_offset = 0;  // both parts in one place
  EXPECT_PLAN_REFUSED(b, "elided step's operands");
  b = concat_model();
  b.place(2).strides = {12, 4};
  EXPECT_PLAN_REFUSED(b, "elided step's operands");
  b = concat_model();
  b.place(2).alias_of = -1, b.place(2).alias_offset = 0, b.place(2).strides = {};
  EXPECT_PLAN_REFUSED(b, "elided step's operands");
}

TEST(Elision, DenseOperandsWhereTheKernelNeedsThem) {
  ModelBuilder b;
  const int x = b.input("x", DType::kFloat32, {2, 2});
  const int p = b.value(DType::kFloat32, {2, 2}), v = b.value(DType::kFloat32, {4});
  const int y = b.value(DType::kFloat32, {2, 2});
  b.step(relu(), {x}, {p});
  b.place(p).strides = {16, 4}, b.place(p).bytes = 24;
  ViewAttrs view;
  view.dims = {4};
  b.step(view, {p}, {v});
  view.dims = {2, 2};
  b.step(view, {v}, {y});
  b.output("y", y);
  EXPECT_PLAN_REFUSED(b, "must be dense");
}

// A slice outlives an operation that works in place on what it is a slice of.
TEST(Elision, WriteUnderALivingSlice) {
  ModelBuilder b;
  const int x = b.input("x", DType::kFloat32, {4}), h = b.value(DType::kFloat32, {4});
  const int s = b.value(DType::kFloat32, {2}), g = b.value(DType::kFloat32, {4}),
            y = b.value(DType::kFloat32, {2});
  b.step(relu(), {x}, {h});
  b.step(slice({0}, {1}, {2}), {h}, {s}).elided = true;
  b.place(s).alias_of = h;
  b.step(AddAttrs{}, {h, h}, {g});
  b.place(g).alias_of = h;
  b.step(AddAttrs{}, {s, s}, {y});
  b.output("y", y);
  b.output("g", g);
  EXPECT_PLAN_REFUSED(b, "overwritten");
}

// Half of a value is reused for something new while a view of the whole lives.
TEST(Elision, WriteUnderALivingView) {
  ModelBuilder b;
  const int x = b.input("x", DType::kFloat32, {4}), h = b.value(DType::kFloat32, {4});
  const int whole = b.value(DType::kFloat32, {2, 2});
  const int front = b.value(DType::kFloat32, {2}), other = b.value(DType::kFloat32, {2});
  const int joined = b.value(DType::kFloat32, {4}), y = b.value(DType::kFloat32, {2, 2});
  b.step(relu(), {x}, {h});
  ViewAttrs view;
  view.dims = {2, 2};
  b.step(view, {h}, {whole}).elided = true;
  b.step(slice({0}, {1}, {2}), {h}, {front}).elided = true;
  b.step(AddAttrs{}, {front, front}, {other});  // over the back half of h, which `whole` still shows
  b.step(ConcatAttrs{}, {front, other}, {joined}).elided = true;
  for (const int v : {whole, front, joined}) b.place(v).alias_of = h;
  b.place(other).alias_of = h, b.place(other).alias_offset = 8;
  b.step(relu(), {whole}, {y});
  b.output("y", y);
  b.output("joined", joined);
  EXPECT_PLAN_REFUSED(b, "overwritten");
}

}  // namespace
}  // namespace sinter::testing
